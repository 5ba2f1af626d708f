"""Drawings of the report on tables: coefficients with their intervals, survival curves, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leeward.methods.condensation.measures import figures
from leeward.report import charts
from leeward.report.drawing import FONT
from leeward.report.sections import number

BEFORE, AFTER = "original", "released"
COLORS = {BEFORE: charts.GREY, AFTER: charts.BLUE}
SHORT_LABEL = 40
LETTER = 8
"""Pixels of a letter of a label, at most on average."""


def forest(coefficients: Sequence[figures.Coefficient]) -> str:
    """Coefficients with intervals, original above released."""
    import altair as alt

    labels = [_label(each) for each in coefficients]
    rows = [
        {
            "name": label,
            "table": table,
            **{
                key: value * each.spread
                for key, value in found.to_json().items()
                if key != "p" and value is not None
            },
        }
        for each, label in zip(coefficients, labels, strict=True)
        for found, table in ((each.before, BEFORE), (each.after, AFTER))
        if found.coefficient is not None
    ]
    base = alt.Chart(charts._frame(rows)).encode(
        y=alt.Y("name:N", title=None, sort=labels, axis=_names_axis(labels)),
        yOffset=alt.YOffset("table:N", sort=list(COLORS)),
        color=_table_color(),
    )
    across = alt.X("low:Q", title="coefficient", axis=alt.Axis(tickCount=8, labelFlush=False))
    lines = base.mark_rule(strokeWidth=2).encode(x=across, x2="high:Q")
    points = base.mark_point(filled=True, size=55, opacity=1).encode(x="coefficient:Q")
    zero = (
        alt.Chart(charts._frame([{"at": 0.0}]))
        .mark_rule(strokeDash=[4, 3], color=charts.INK)
        .encode(x="at:Q")
    )
    width = charts.WIDTH - LETTER * max(map(len, labels))
    return charts._svg(alt.layer(zero, lines, points), width, max(90, 30 * len(labels)))


def _label(each: figures.Coefficient) -> str:
    """The coefficient's name, with the standard deviation that a number's effect is drawn for."""
    shown = short(leveled(each.name))
    return shown if each.spread == 1.0 else f"{shown} (per {number(each.spread)})"


def leveled(name: str) -> str:
    """A level as a person reads it: `size: <=20`, not `size=<=20`."""
    return name.replace("=", ": ", 1)


def _names_axis(names: Sequence[str], **more: Any) -> Any:
    """An axis of names with room for the longest: the renderer takes `<` for markup and measures it too short."""
    import altair as alt

    return alt.Axis(labelLimit=300, minExtent=LETTER * max(map(len, names)), **more)


def curve(rows: list[dict[str, Any]], title: str) -> str:
    """Step curves, the released one dashed so that both show where they agree."""
    import altair as alt

    chart = (
        alt.Chart(charts._frame(rows))
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=alt.X("at:Q", title=title, axis=alt.Axis(tickCount=8, labelFlush=False)),
            y=alt.Y(
                "share:Q",
                title="still without the event",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=_table_color(),
            strokeDash=alt.StrokeDash(
                "table:N", legend=None, scale=alt.Scale(domain=list(COLORS), range=[[1, 0], [6, 3]])
            ),
        )
    )
    return charts._svg(chart, charts.WIDTH, 260)


def _table_color() -> Any:
    import altair as alt

    return alt.Color(
        "table:N",
        title=None,
        scale=alt.Scale(domain=list(COLORS), range=list(COLORS.values())),
        legend=alt.Legend(orient="top", labelFontSize=13, columnPadding=24),
    )


def heat(found: figures.Correlations) -> str:
    """Original and release side by side."""
    import altair as alt

    names = [short(leveled(name), 24) for name in found.columns]
    rows = [
        {"x": names[i], "y": names[j], "r": matrix[i][j], "table": label}
        for matrix, label in ((found.before, BEFORE), (found.after, AFTER))
        for i in range(len(names))
        for j in range(len(names))
    ]
    side = (charts.WIDTH - LETTER * max(map(len, names)) - 40) // 2
    maps = [
        alt.Chart(charts._frame([row for row in rows if row["table"] == label]), title=label)
        .mark_rect()
        .encode(
            x=alt.X("x:N", sort=names, title=None, axis=_names_axis(names, labelAngle=-90)),
            y=alt.Y(
                "y:N", sort=names, title=None, axis=_names_axis(names) if first else alt.Axis(labels=False)
            ),
            color=alt.Color("r:Q", title="r", scale=alt.Scale(domain=[-1, 1], scheme="blueorange")),
        )
        .properties(width=side, height=side)
        for label, first in ((BEFORE, True), (AFTER, False))
    ]
    styled = alt.hconcat(*maps).configure(font=FONT, background="transparent").configure_view(stroke=None)
    return charts.drawn(styled)


def short(name: str, most: int = SHORT_LABEL) -> str:
    """A label that fits."""
    return name if len(name) <= most else name[: most - 1] + "…"
