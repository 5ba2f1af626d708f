"""Plots of a phenome-wide study: a dot a phecode, names of the strongest, and phecodes without a p left out."""

from __future__ import annotations

from xml.etree import ElementTree

from leeward.methods.phewas_report import NAMED, of_predictor

COLUMNS = (
    "predictor", "phecode", "p_original", "effect", "cases", "p_anonymized", "category", "phenotype",
)  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def test_each_phecode_is_a_dot_and_the_strongest_are_named() -> None:
    rows = [
        ("rs1", f"{n}.1", 10.0 ** -(n / 2), n / 10, 30, 0.5 if n else None, f"c{n % 3}", f"<name {n}>")
        for n in range(20)
    ]
    rows += [("rs1", "30", None, None, 3, None, "c1", "few"), ("sex", "1", 0.1, 1.0, 30, 0.1, "", "")]
    tests = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    drawn = {
        chart.title.removeprefix("rs1: "): ElementTree.fromstring(chart.svg)
        for chart in of_predictor("rs1", tests)
    }
    dots = {title: len([*picture.iter(SVG + "circle")]) for title, picture in drawn.items()}
    assert dots == {
        "p before and after": 19,
        "change of p": 0,
        "volcano plot, original data": 20,
        "by disease category": 39,
    }
    for title in ("p before and after", "volcano plot, original data", "by disease category"):
        words = [each.text or "" for each in drawn[title].iter(SVG + "text")]
        named = [each for each in words if each.startswith("<name")]
        assert named[0] == "<name 19>" and 1 < len(named) <= NAMED
    assert {"c0", "c1", "c2"} <= {each.text for each in drawn["by disease category"].iter(SVG + "text")}


def test_an_association_that_only_the_release_has_is_named_in_the_qq_plot() -> None:
    rows = [("rs1", "1", 1e-4, 0.5, 30, 0.5, "c", "lost"), ("rs1", "2", 0.6, 0.1, 30, 1e-3, "c", "false")]
    rows.append(("rs1", "3", 0.3, 0.1, 30, 0.2, "c", "weak"))
    first, *_ = of_predictor("rs1", [dict(zip(COLUMNS, row, strict=True)) for row in rows])
    words = {each.text for each in ElementTree.fromstring(first.svg).iter(SVG + "text")}
    assert words & {"lost", "false", "weak"} == {"lost", "false"}
