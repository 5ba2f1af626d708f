"""Drawings of the report on tables: coefficients with their intervals, survival curves, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.methods.condensation.measures import figures
from leeward.report import charts
from leeward.report.drawing import Drawing, Scale, width_of
from leeward.report.sections import number

BEFORE, AFTER = "original", "released"
COLORS = {BEFORE: charts.GREY, AFTER: charts.BLUE}
SHORT_LABEL = 40


def forest(coefficients: Sequence[figures.Coefficient]) -> str:
    """Coefficients with intervals, original above released."""
    labels = [_label(each) for each in coefficients]
    rows = [
        {
            "name": label,
            "group": table,
            "value": each.spread * found.coefficient,
            "low": each.spread * (found.coefficient if found.low is None else found.low),
            "high": each.spread * (found.coefficient if found.high is None else found.high),
        }
        for each, label in zip(coefficients, labels, strict=True)
        for found, table in ((each.before, BEFORE), (each.after, AFTER))
        if found.coefficient is not None
    ]
    return charts.intervals(rows, labels, x_title="coefficient", colors=COLORS)


def _label(each: figures.Coefficient) -> str:
    """The coefficient's name, with the standard deviation that a number's effect is drawn for."""
    shown = short(level_label(each.name))
    return shown if each.spread == 1.0 else f"{shown} (per {number(each.spread)})"


def level_label(name: str) -> str:
    """A level as a person reads it: `size: <=20`, not `size=<=20`."""
    return name.replace("=", ": ", 1)


def curve(rows: list[dict[str, Any]], title: str) -> str:
    """Step curves, the released one dashed so that both show where they agree."""
    return charts.steps(
        rows, x="at", y="share", group="table", x_title=title, y_title="still without the event",
        colors=COLORS, dashes={AFTER: "6 3"},
    )  # fmt: skip


SHADES = (
    (19, 75, 133), (47, 120, 179), (93, 162, 203), (157, 202, 225), (210, 229, 239), (242, 240, 235),
    (252, 224, 186), (251, 191, 116), (232, 147, 47), (197, 105, 13), (153, 74, 7),
)  # fmt: skip
"""Colours of correlations from -1 to 1: Vega's blueorange, whose ends colour-blind readers can tell apart."""


def heat(found: Mapping[str, Any]) -> str:
    """Original and release side by side."""
    names = [short(level_label(name), 24) for name in found["columns"]]
    left, top, apart, scale = max(map(width_of, names)) + 8, 26.0, 16.0, 56.0
    side = max((charts.WIDTH - left - apart - scale) / 2, 10.0 * len(names))
    cell = side / len(names)
    size = min(12.0, cell)
    drawing = Drawing()
    for label, matrix, start in (
        (BEFORE, found["before"], left),
        (AFTER, found["after"], left + side + apart),
    ):
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
