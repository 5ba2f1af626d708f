"""Plots of a phenome-wide study before and after anonymization (Heatherly et al. 2013, Figures 1 to 12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leeward.methods.visits.measures.figures import OnePhecode
from leeward.report import charts
from leeward.report.sections import Chart

SMALLEST_P = 1e-300
NAMED = 6
"""Phenotypes of the smallest p that a plot names."""
NAME_WIDTH, NAME_HEIGHT = 0.45, 0.07
"""Room of a name, as shares of the plot."""
WIDEST_CHANGE = 3.0


def of_predictor(predictor: str, tests: Sequence[OnePhecode]) -> list[Chart]:
    """QQ, change of p, volcano and Manhattan plot of one predictor."""
    rows: list[dict[str, Any]] = [
        {
            "phecode": test.phecode,
            "phenotype": test.phenotype or test.phecode,
            "category": test.category,
            "effect": test.effect,
            "original": _minus_log(test.p_original),
            "anonymized": _minus_log(test.p_anonymized),
            "order": float(test.phecode),
        }
        for test in tests
        if test.predictor == predictor
    ]
    both = [row for row in rows if row["original"] is not None and row["anonymized"] is not None]
    first = [row for row in rows if row["original"] is not None]
    found = []
    if both:
        moved = sum(abs(row["original"] - row["anonymized"]) > 0.05 for row in both)
        found.append(
            Chart(
                f"{predictor}: p before and after",
                f"Each dot a phecode; {moved:,} of {len(both):,} lie off the diagonal by more than 0.05.",
                _qq(both),
                "On the diagonal an association is as strong in the release as in the original data.",
            )
        )
        found.append(
            Chart(
                f"{predictor}: change of p",
                f"Histogram of the change of -log10 p over {len(both):,} phecodes.",
                _changes(both),
                "Left of zero associations got weaker.",
            )
        )
    effects = [row for row in first if row["effect"] is not None]
    if effects:
        found.append(
            Chart(
                f"{predictor}: volcano plot, original data",
                "Effect (log odds) against -log10 p; the line is p = 0.05.",
                _dots(
                    effects,
                    "effect",
                    "log odds ratio per allele or unit",
                    "original",
                ),
            )
        )
    if first:
        found.append(
            Chart(
                f"{predictor}: by disease category",
                "Manhattan plot: phecodes in order, coloured by category, -log10 p in the original data.",
                _manhattan(first),
                "Filled: original data. Rings: release.",
            )
        )
    return found


def _minus_log(p: float | None) -> float | None:
    return None if p is None else -math.log10(max(p, SMALLEST_P))


def _qq(rows: list[dict[str, Any]]) -> str:
    import altair as alt

    top = max(max(row["original"], row["anonymized"]) for row in rows) * 1.02 + 0.05
    line = alt.Chart(charts._frame([{"a": 0.0, "b": 0.0}, {"a": top, "b": top}])).mark_line(color=charts.GREY)
    dots = alt.Chart(charts._frame(rows)).mark_circle(color=charts.BLUE, opacity=0.6, size=30)
    x, y = alt.X("original:Q", title="-log10 p, original"), alt.Y("anonymized:Q", title="-log10 p, release")
    return charts._svg(
        alt.layer(line.encode(x=alt.X("a:Q"), y=alt.Y("b:Q")), dots.encode(x=x, y=y)), charts.WIDTH, 340
    )


def _changes(rows: list[dict[str, Any]]) -> str:
    import altair as alt

    moved = [row["anonymized"] - row["original"] for row in rows]
    data = [{"change": max(-WIDEST_CHANGE, min(WIDEST_CHANGE, each))} for each in moved]
    chart = (
        alt.Chart(charts._frame(data))
        .mark_bar(color=charts.BLUE)
        .encode(
            x=alt.X(
                "change:Q",
                bin=alt.Bin(step=0.25, extent=[-WIDEST_CHANGE, WIDEST_CHANGE + 0.25]),
                title="change of -log10 p (beyond ±3 counted there)",
                axis=alt.Axis(format=".1f", values=[float(each) for each in range(-3, 4)]),
            ),
            y=alt.Y("count():Q", title="phecodes", scale=alt.Scale(type="symlog")),
        )
    )
    return charts._svg(chart, charts.WIDTH, 200)


def _dots(rows: list[dict[str, Any]], x: str, title: str, y: str) -> str:
    import altair as alt

    limit = (
        alt.Chart(charts._frame([{"y": -math.log10(0.05)}])).mark_rule(color=charts.VERMILION).encode(y="y:Q")
    )
    dots = (
        alt.Chart(charts._frame(rows))
        .mark_circle(color=charts.BLUE, opacity=0.6, size=30)
        .encode(x=alt.X(f"{x}:Q", title=title), y=alt.Y(f"{y}:Q", title="-log10 p"))
    )
    return charts._svg(alt.layer(limit, dots, _names(rows, x, y)), charts.WIDTH, 280)


def _manhattan(rows: list[dict[str, Any]]) -> str:
    import altair as alt

    ordered = [
        {**row, "place": place} for place, row in enumerate(sorted(rows, key=lambda row: row["order"]))
    ]
    after = [row for row in ordered if row["anonymized"] is not None]
    x = alt.X("place:Q", title="phecodes in order", axis=alt.Axis(labels=False, ticks=False))
    color = alt.Color(
        "category:N",
        title=None,
        scale=alt.Scale(scheme="category20"),
        legend=alt.Legend(orient="bottom", columns=4, labelLimit=200, columnPadding=30, labelFontSize=12),
    )
    y = alt.Y("original:Q", title="-log10 p")
    layers = [alt.Chart(charts._frame(ordered)).mark_circle(size=30).encode(x=x, y=y, color=color)]
    if after:
        rings = alt.Chart(charts._frame(after)).mark_point(size=34, filled=False, strokeWidth=1)
        layers.append(rings.encode(x=x, y="anonymized:Q", color=color))
    return charts._svg(alt.layer(*layers, _names(ordered, "place", "original")), charts.WIDTH, 280)


def _names(rows: list[dict[str, Any]], x: str, y: str) -> Any:
    """The phenotypes of the smallest p, each on the side of its dot where there is room, none over another."""
    import altair as alt

    places = [row[x] for row in rows]
    low, width = min(places), max(max(places) - min(places), 1e-9)
    top = max(max(row[y] for row in rows), 1e-9)
    named: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: -row[y]):
        near = [
            other
            for other in named
            if abs(other[y] - row[y]) < NAME_HEIGHT * top and abs(other[x] - row[x]) < NAME_WIDTH * width
        ]
        if not near and len(named) < NAMED and row[y] > NAME_HEIGHT * top:
            named.append({**row, "right": row[x] > low + width / 2})
    if not named:
        return alt.layer()
    texts = [
        alt.Chart(charts._frame([row for row in named if row["right"] is side]))
        .mark_text(align="right" if side else "left", dx=-6 if side else 6, fontSize=11, color=charts.INK)
        .encode(x=f"{x}:Q", y=f"{y}:Q", text="phenotype:N")
        for side in (False, True)
        if any(row["right"] is side for row in named)
    ]
    return alt.layer(*texts)
