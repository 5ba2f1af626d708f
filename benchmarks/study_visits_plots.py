"""The plots of docs/studies/visits.md: all SNPs, before and after (Heatherly et al. 2013, Figures 1 to 12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from leeward.methods.phewas_report import BIN, SMALLEST_P, WEAKEST_NAMED, WIDEST_CHANGE

Tests = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]

COLORS = {
    "drawn from the population": "#0072B2",
    "drawn from the biobank": "#E69F00",
    "anonymized alone": "#D55E00",
}
SIZE = 250
"""Pixels of a panel."""
NAMED, LONGEST_NAME, NAMES_FIT = 3, 30, 15
"""Names in a panel, their letters, and how many would fit one above the other."""
LOWEST_BAR = 0.7
"""Where bars of a logarithmic axis begin: below one phecode."""
COLOURS_KEPT = 96


def draw(tests: Tests, folder: Path, name: str) -> list[str]:
    """Write the plots as PNG; the lines that show them in the page."""
    import altair as alt

    alt.data_transformers.disable_max_rows()  # dots are drawn here and now, and not kept as data of a page
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
            "phenotype": test["phenotype"] or test["phecode"],
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
    return None if p is None else -math.log10(max(p, SMALLEST_P))


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
    """p before and after; every SNP on its own scale, with a diagonal and the names of the strongest phecodes."""
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
    at = {"x": "at_original:Q", "y": "at_release:Q", "text": "name:N"}
    left, right = (
        alt.Chart()
        .mark_text(fontSize=9, color="#40444B", dy=-5, align=align)
        .encode(**at)
        .transform_filter(f"isValid(datum.name) && datum.right == {on_right}")
        for align, on_right in (("left", "false"), ("right", "true"))
    )
    layered = alt.layer(
        line.transform_filter("isValid(datum.at)"),
        dots,
        left,
        right,
        data=pl.concat([together, names_of(both)], how="diagonal"),
    )
    return panels(layered, x="independent", y="independent")


def names_of(both: pl.DataFrame) -> pl.DataFrame:
    """The strongest phecodes of each SNP, in the original or a release, once: where its name goes, on which side."""
    strength = pl.max_horizontal("original", "release")
    ranked = both.filter(strength > WEAKEST_NAMED).sort(strength, descending=True)
    tops = both.group_by("snp").agg(pl.max("original").alias("widest"), strength.max().alias("top"))
    ranked = ranked.unique(["snp", "phenotype"], keep="first", maintain_order=True).join(tops, on="snp")
    named: list[dict[str, Any]] = []
    for row in ranked.iter_rows(named=True):
        mine = [each for each in named if each["snp"] == row["snp"]]
        apart = all(abs(each["release"] - row["release"]) > row["top"] / NAMES_FIT for each in mine)
        if len(mine) < NAMED and apart:
            named.append(row)
    return pl.DataFrame(named, schema=ranked.schema).select(
        "snp",
        "strategy",
        pl.col("original").alias("at_original"),
        pl.col("release").alias("at_release"),
        pl.col("phenotype").str.head(LONGEST_NAME).alias("name"),
        (pl.col("original") > pl.col("widest") / 2).alias("right"),
    )


def changes(rows: pl.DataFrame) -> Any:
    """Histogram of the change of -log10 p, in the bins of the report's; in each bin one bar a strategy."""
    import altair as alt

    both = rows.drop_nulls(["original", "release"])
    order = {
        name: place for place, name in enumerate(name for name in COLORS if name in set(both["strategy"]))
    }
    last = round(WIDEST_CHANGE / BIN)
    bin_of = ((pl.col("release") - pl.col("original")) / BIN).floor().clip(-last, last)
    shift = pl.col("strategy").replace_strict(order, return_dtype=pl.Float64) / len(order)
    counted = (
        both.group_by("snp", "strategy", bin_of.alias("bin"))
        .agg(phecodes=pl.len())
        .with_columns(low=(pl.col("bin") + shift) * BIN, high=(pl.col("bin") + shift + 1 / len(order)) * BIN)
        .with_columns(floor=pl.lit(LOWEST_BAR))
        .sort("snp", "strategy", "bin")
    )
    bars = (
        alt.Chart(counted)
        .mark_bar()
        .encode(
            x=alt.X("low:Q", title=f"change of -log10 p (beyond ±{WIDEST_CHANGE:g} there)"),
            x2="high:Q",
            y=alt.Y("phecodes:Q", title="phecodes", scale=alt.Scale(type="log", domainMin=LOWEST_BAR)),
            y2="floor:Q",
            color=color(rows),
        )
    )
    return panels(bars)


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
