"""The plots of docs/studies/visits.md: all SNPs, before and after (Heatherly et al. 2013, Figures 1 to 12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

Tests = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]

COLORS = {
    "drawn from the population": "#0072B2",
    "drawn from the biobank": "#E69F00",
    "anonymized alone": "#D55E00",
}
SMALLEST = 1e-300
SIZE = 250
"""Pixels of a panel."""
HIGHEST_CHANGE = 2.0
COLOURS_KEPT = 96


def draw(tests: Tests, folder: Path, name: str) -> list[str]:
    """Write the plots as PNG; the lines that show them in the page."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = frame(tests)
    shown = []
    for level in rows["level"].unique(maintain_order=True):
        part = rows.filter(pl.col("level") == level)
        for kind, make, says in (("qq", scatter, "p"), ("change", changes, "changes")):
            shown += saved(make(part), folder / f"{name}-{level}-{kind}.png", f"Level `{level}`: {says}")
    drawn = rows.filter((pl.col("level") == "visit") & (pl.col("strategy") == "drawn from the population"))
    if drawn.height:
        shown += saved(volcano(drawn), folder / f"{name}-volcano.png", "Effects")
        shown += saved(manhattan(drawn), folder / f"{name}-manhattan.png", "By category")
    return ["\n### Plots\n", *shown]


def frame(tests: Tests) -> pl.DataFrame:
    """One row a test of a release."""
    rows = [
        {
            "level": level,
            "strategy": strategy,
            "snp": test["predictor"],
            "category": test["category"],
            "place": float(test["phecode"]),
            "effect": test["effect"],
            "original": logarithm(test["p_original"]),
            "release": logarithm(test["p_anonymized"]),
        }
        for (level, strategy), listed in tests.items()
        for test in listed
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def logarithm(p: float | None) -> float | None:
    """-log10 p."""
    return None if p is None else -math.log10(max(p, SMALLEST))


def saved(chart: Any, file: Path, caption: str) -> list[str]:
    """Write a chart; the Markdown that shows it."""
    import vl_convert
    from PIL import Image

    styled = chart.configure(font="sans-serif", background="white").configure_axis(
        labelFontSize=11, titleFontSize=12, titleFontWeight="normal"
    )
    picture = Image.open(BytesIO(vl_convert.vegalite_to_png(styled.to_json(), scale=1.25)))
    picture.convert("RGB").quantize(COLOURS_KEPT).save(file, optimize=True)
    return [f"\n![{caption}](visits/{file.name})"]


def color(rows: pl.DataFrame) -> Any:
    """A colour for each strategy that the rows have."""
    import altair as alt

    there = set(rows["strategy"])
    used = {name: hue for name, hue in COLORS.items() if name in there}
    return alt.Color(
        "strategy:N",
        title=None,
        scale=alt.Scale(domain=list(used), range=list(used.values())),
        legend=alt.Legend(orient="top", labelFontSize=13, labelLimit=400),
    )


def panels(chart: Any, columns: int = 3, **scales: str) -> Any:
    """One panel a SNP."""
    import altair as alt

    faceted = chart.properties(width=SIZE, height=SIZE * 3 // 4).facet(
        facet=alt.Facet("snp:N", title=None, header=alt.Header(labelFontSize=13)), columns=columns
    )
    return faceted.resolve_scale(**scales)


def scatter(rows: pl.DataFrame) -> Any:
    """p before and after; every SNP on its own scale, with a diagonal."""
    import altair as alt

    both = rows.drop_nulls(["original", "release"])
    tops = both.group_by("snp").agg(
        pl.max_horizontal(pl.col("original").max(), pl.col("release").max()).alias("top")
    )
    ends = pl.concat([tops.select("snp", at=pl.lit(0.0)), tops.select("snp", at=pl.col("top"))])
    together = pl.concat([both, ends], how="diagonal")
    line = alt.Chart().mark_line(color="#8A8F98").encode(x="at:Q", y="at:Q")
    dots = (
        alt.Chart()
        .mark_circle(size=16, opacity=0.65)
        .encode(
            x=alt.X("original:Q", title="-log10 p, original"),
            y=alt.Y("release:Q", title="-log10 p, release"),
            color=color(rows),
        )
        .transform_filter("isValid(datum.original)")
    )
    layered = alt.layer(line.transform_filter("isValid(datum.at)"), dots, data=together)
    return panels(layered, x="independent", y="independent")


def changes(rows: pl.DataFrame) -> Any:
    """Histogram of the change of -log10 p, one line a strategy."""
    import altair as alt

    moved = (pl.col("release") - pl.col("original")).clip(-HIGHEST_CHANGE, HIGHEST_CHANGE)
    counted = (
        rows.drop_nulls(["original", "release"])
        .with_columns(change=(moved / 0.1).round() * 0.1)
        .group_by("snp", "strategy", "change")
        .agg(phecodes=pl.len())
        .sort("snp", "strategy", "change")
    )
    lines = (
        alt.Chart(counted)
        .mark_line(point=alt.OverlayMarkDef(size=18))
        .encode(
            x=alt.X("change:Q", title=f"change of -log10 p (beyond ±{HIGHEST_CHANGE:.0f} there)"),
            y=alt.Y("phecodes:Q", title="phecodes", scale=alt.Scale(type="log")),
            color=color(rows),
        )
    )
    return panels(lines)


def volcano(rows: pl.DataFrame) -> Any:
    """Effect against p, before (dots) and after (rings, at the original's effect)."""
    import altair as alt

    known = rows.drop_nulls(["effect", "original"]).filter(pl.col("effect").is_finite())
    x = alt.X("effect:Q", title="log odds ratio an allele")
    dots = alt.Chart().mark_circle(size=16, opacity=0.65, color="#0072B2")
    rings = alt.Chart().mark_point(size=16, strokeWidth=0.8, color="#D55E00")
    layered = alt.layer(
        dots.encode(x=x, y=alt.Y("original:Q", title="-log10 p")),
        rings.encode(x=x, y="release:Q").transform_filter("isValid(datum.release)"),
        data=known,
    )
    return panels(layered, x="independent", y="independent")


def manhattan(rows: pl.DataFrame) -> Any:
    """Phecodes in order, coloured by category; dots before, rings after."""
    import altair as alt

    known = rows.drop_nulls("original")
    order = known.select("place").unique().sort("place").with_row_index("at")
    known = known.join(order, on="place")
    hue = alt.Color(
        "category:N",
        title=None,
        scale=alt.Scale(scheme="category20"),
        legend=alt.Legend(orient="bottom", columns=5, labelLimit=220),
    )
    x = alt.X("at:Q", title="phecodes in order", axis=alt.Axis(labels=False, ticks=False))
    layered = alt.layer(
        alt.Chart().mark_circle(size=16).encode(x=x, y=alt.Y("original:Q", title="-log10 p"), color=hue),
        alt.Chart()
        .mark_point(size=18, strokeWidth=0.8)
        .encode(x=x, y="release:Q", color=hue)
        .transform_filter("isValid(datum.release)"),
        data=known,
    )
    return panels(layered, y="independent")
