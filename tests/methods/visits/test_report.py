"""What the report of a master and of its extracts says, and to whom."""

from __future__ import annotations

import pytest
from tests.verify.test_visits import made_up

from leeward.methods.phewas_report import without_regression
from leeward.methods.visits import Visits
from leeward.runs.extract import extract
from leeward.runs.protect import protect


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    master = protect(made_up(), Visits(k=3), folder / "master", seed=1)
    snps = made_up().patients
    drawn = extract(
        folder / "master",
        snps["patient"].head(40),
        folder / "drawn",
        payload=snps,
        membership_is_secret="a test",
        seed=1,
    )
    measured = extract(
        folder / "master",
        "visits > 1",
        folder / "measured",
        original=made_up(),
        measures=["retention"],
        membership_is_secret="nobody is told",
        seed=1,
    )
    assert "is left with at least 3" not in drawn._repr_html_()
    return {name: each.report.read_text() for name, each in
            (("master", master), ("drawn", drawn), ("measured", measured))}  # fmt: skip


def test_a_master_speaks_of_its_patients(pages: dict[str, str]) -> None:
    assert "is left with at least 3 patients." in pages["master"]
    assert "of the population&#39;s" not in pages["master"]
    assert "Payload columns" not in pages["master"]


def test_an_extract_says_what_membership_costs(pages: dict[str, str]) -> None:
    for name in ("drawn", "measured"):
        assert "If membership in the cohort is known" in pages[name]
        assert "at least 3 patients of the 80 it was drawn from; whoever also knows" in pages[name]
    assert "Payload columns" in pages["drawn"] and "Payload columns" not in pages["measured"]
    assert "of the population&#39;s" in pages["measured"]


def test_missing_regressions_are_told_with_their_reason() -> None:
    original = {"fitted": 40, "few": 1, "collinear": 0, "separated": 4}
    anonymized = {"fitted": 45, "few": 0, "collinear": 0, "separated": 0}
    regressions = {"original": original, "anonymized": anonymized}
    found = {"test": "logistic", "min_cases": 25, "regressions": regressions}
    said = without_regression(found)
    assert "In the original regressions are missing: 4 because of complete separation" in said
    assert "1 because there are fewer than 25 cases or controls" in said
    assert "In the release" not in said
    assert without_regression({**found, "test": "allelic"}) == ""
