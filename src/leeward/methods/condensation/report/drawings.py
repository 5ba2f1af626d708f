"""Drawings of the report on tables: coefficients with their intervals, survival curves, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leeward.methods.condensation.measures import figures
from leeward.report import charts
from leeward.report.drawing import Drawing, Scale, width_of
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


SHADES = (
    (19, 75, 133), (47, 120, 179), (93, 162, 203), (157, 202, 225), (210, 229, 239), (242, 240, 235),
    (252, 224, 186), (251, 191, 116), (232, 147, 47), (197, 105, 13), (153, 74, 7),
)  # fmt: skip
"""Colours of correlations from -1 to 1: Vega's blueorange, whose ends colour-blind readers can tell apart."""


def heat(found: figures.Correlations) -> str:
    """Original and release side by side."""
    names = [short(leveled(name), 24) for name in found.columns]
    left, top, apart, scale = max(map(width_of, names)) + 8, 26.0, 16.0, 56.0
    side = max((charts.WIDTH - left - apart - scale) / 2, 10.0 * len(names))
    cell = side / len(names)
    size = min(12.0, cell)
    drawing = Drawing()
    for label, matrix, start in ((BEFORE, found.before, left), (AFTER, found.after, left + side + apart)):
        drawing.text(start + side / 2, top - 10, label, size=13, anchor="middle")
        for i, row in enumerate(matrix):
            for j, r in enumerate(row):
                drawing.bar(start + i * cell, top + j * cell, cell, cell, _shade(r))
            across = start + (i + 0.5) * cell + size / 3
            drawing.text(across, top + side + 8, names[i], size=size, anchor="end", turned=True)
    for j, name in enumerate(names):
        drawing.text(left - 8, top + (j + 0.5) * cell + size / 3, name, size=size, anchor="end")
    start, steps = left + 2 * side + 2 * apart, 40
    up = Scale(-1, 1, top + min(side, 160.0), top)
    drawing.text(start, top - 10, "r", size=13)
    for step in range(steps):
        r = -1 + 2 * (step + 1) / steps
        drawing.bar(start, up(r), 14, up(-1 + 2 * step / steps) - up(r), _shade(r - 1 / steps))
    for r in (-1, 0, 1):
        drawing.text(start + 20, up(r) + 4, str(r))
    below = max(width_of(name, size) for name in names) + 16
    return drawing.svg(start + scale, top + side + below)


def _shade(r: float) -> str:
    """The colour of a correlation."""
    at = (min(max(r, -1.0), 1.0) + 1) / 2 * (len(SHADES) - 1)
    low = min(int(at), len(SHADES) - 2)
    mixed = (round(a + (at - low) * (b - a)) for a, b in zip(SHADES[low], SHADES[low + 1], strict=True))
    return "#" + "".join(f"{each:02x}" for each in mixed)


def short(name: str, most: int = SHORT_LABEL) -> str:
    """A label that fits."""
    return name if len(name) <= most else name[: most - 1] + "…"
