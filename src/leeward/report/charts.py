"""Charts as inline SVG, without a browser, a network or JavaScript.

What every report has, bars and steps, is drawn here (`drawing`); charts of points and intervals that fewer reports have
are made by Altair and rendered by vl-convert, which takes a second to start.

Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; they also differ in lightness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from leeward.report.drawing import (
    FONT,
    SOFT,
    TITLE,
    Drawing,
    Scale,
    axis_below,
    axis_left,
    counts,
    percentages,
    powers_of_ten,
    room_left,
    ticks,
    ticks_from_zero,
    width_of,
)
from leeward.report.painting import paint
from leeward.texts import all_for_xml

BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#8A8F98"
INK, LINE = "#1d2733", "#d9dee5"
WIDTH = 760
"""Pixels of the drawing inside the axes: with them, the width of a page's text."""

Rows = Sequence[dict[str, Any]]


def grouped_bars(
    rows: Rows, *, x: str, y: str, group: str, x_title: str, y_title: str, colors: dict[str, str]
) -> str:
    """Upright bars side by side (shares), one group a colour, each with its figure above."""
    names = list(dict.fromkeys(str(row[x]) for row in rows))
    at = ticks_from_zero(max((row[y] for row in rows), default=0.0), 5)
    written = percentages(at)
    left, height = room_left(at, written), 240.0
    drawing = Drawing()
    up = Scale(0, at[-1], 42 + height, 42)
    axis_left(drawing, up, left, left + WIDTH, at, written, y_title)
    step = WIDTH / max(1, len(names))
    bar = min(90.0, 0.8 * step / len(colors))
    for row in rows:
        middle = left + (names.index(str(row[x])) + 0.5) * step
        start = middle + (list(colors).index(row[group]) - len(colors) / 2) * bar
        drawing.bar(start + 1, up(row[y]), bar - 2, up(0) - up(row[y]), colors[row[group]])
        words = f"{100 * row[y]:.1f} %"
        drawing.text(start + bar / 2, up(row[y]) - 6, words, size=11 if bar > 44 else 9, anchor="middle")
    below = up(0)
    for place, name in enumerate(names):
        lines = [name] if width_of(name) < step else name.split()
        for number, line in enumerate(lines):
            drawing.text(left + (place + 0.5) * step, up(0) + 18 + 14 * number, line, anchor="middle")
        below = max(below, up(0) + 14 * (len(lines) - 1))
    drawing.line([(left, up(0)), (left + WIDTH, up(0))], SOFT)
    drawing.text(left + WIDTH / 2, below + 40, x_title, size=TITLE, anchor="middle")
    drawing.legend(left, 14, colors)
    return drawing.svg(left + WIDTH + 4, below + 48)


def stacked(
    rows: Rows, *, y: str, x: str, part: str, x_title: str, colors: dict[str, str], share: bool = False
) -> str:
    """Horizontal bars, one per value of `y`, stacked by `part`; `share`: each to its whole."""
    bars: dict[str, dict[str, float]] = {}
    for row in rows:
        bars.setdefault(str(row[y]), dict.fromkeys(colors, 0.0))[row[part]] += row[x]
    if share:
        bars = {name: {k: v / (sum(of.values()) or 1) for k, v in of.items()} for name, of in bars.items()}
    most = max((sum(of.values()) for of in bars.values()), default=0.0)
    left = max(map(width_of, bars), default=0) + 12
    at = ticks_from_zero(1.0 if share else most, 8)
    along = Scale(0, at[-1], left, left + WIDTH - 60)
    drawing = Drawing()
    high, thick = 32.0, 21.0
    height = max(thick * len(bars), 36.0)
    for value in at:
        drawing.line([(along(value), high), (along(value), high + height)])
    for place, (name, of) in enumerate(bars.items()):
        middle = high + (place + 0.5) * height / len(bars)
        drawing.text(left - 8, middle + 4, name, anchor="end")
        before = 0.0
        for kind, color in colors.items():
            if of[kind]:
                width = along(before + of[kind]) - along(before)
                drawing.bar(along(before), middle - thick * 0.42, width, thick * 0.84, color)
            before += of[kind]
    axis_below(drawing, along, high + height, at, percentages(at) if share else counts, x_title)
    drawing.legend(left, 14, colors)
    return drawing.svg(left + WIDTH, high + height + 48)


def histogram(bins: Rows, *, x_title: str, y_title: str, mark: tuple[float, float] | None = None) -> str:
    """Bars of `count` from `low` to `high` (shares); the span `mark` is shaded behind them."""
    up_at = ticks_from_zero(max((row["count"] for row in bins), default=0.0), 5)
    low, high = min(row["low"] for row in bins), max(row["high"] for row in bins)
    at = ticks(low, high, 9)
    left = room_left(up_at, counts)
    drawing = Drawing()
    up, along = Scale(0, up_at[-1], 230, 10), Scale(low, high, left, left + WIDTH)
    if mark is not None:
        drawing.bar(along(mark[0]), 10, along(mark[1]) - along(mark[0]), 220, ORANGE, opacity=0.25)
    axis_left(drawing, up, left, left + WIDTH, up_at, counts, y_title)
    for row in bins:
        width = along(row["high"]) - along(row["low"])
        drawing.bar(along(row["low"]) + 0.5, up(row["count"]), width - 1, up(0) - up(row["count"]), BLUE)
    axis_below(drawing, along, 230, at, percentages(at, signed=True), x_title)
    return drawing.svg(left + WIDTH + 30, 278)


def steps(
    rows: Rows, *, x: str, y: str, group: str, x_title: str, y_title: str, colors: dict[str, str], at: float
) -> str:
    """Shares that rise over a logarithmic count, a line of steps a colour; a broken line at the count `at`."""
    low = 10.0 ** math.floor(math.log10(min([at, *(row[x] for row in rows)])))
    high = max([10 * low, at, *(row[x] for row in rows)])
    up_at = ticks(0, 1, 5)
    written = percentages(up_at)
    left, height = room_left(up_at, written), 260.0
    drawing = Drawing()
    up, along = Scale(0, 1, 32 + height, 32), Scale(low, high, left, left + WIDTH, logarithmic=True)
    axis_left(drawing, up, left, left + WIDTH, up_at, written, y_title)
    drawing.line([(along(at), up(0)), (along(at), up(1))], SOFT, dash="5 4")
    for name, color in colors.items():
        path: list[tuple[float, float]] = []
        for row in rows:
            if row[group] == name:
                if path:
                    path.append((along(row[x]), path[-1][1]))
                path.append((along(row[x]), up(row[y])))
        if len(path) > 1:
            drawing.line(path, color, width=2.5)
        elif path:
            drawing.bar(path[0][0] - 2, path[0][1] - 2, 4, 4, color)
    axis_below(drawing, along, up(0), powers_of_ten(low, high), counts, x_title)
    drawing.legend(left, 14, colors)
    return drawing.svg(left + WIDTH + 30, up(0) + 48)


def _frame(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(list(rows), infer_schema_length=None)


def _svg(chart: Any, width: int, height: int) -> str:
    """The chart as SVG that scales with the page; its labels stay text, to be searched and read out."""
    styled = (
        chart.properties(width=width, height=height, background="transparent", padding=4)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight="normal",
            titlePadding=10,
            labelColor=INK,
            titleColor=INK,
            gridColor=LINE,
            domainColor=GREY,
            tickColor=GREY,
        )
        .configure_axisY(domain=False, ticks=False)
    )
    return drawn(styled)


def drawn(chart: Any) -> str:
    """A chart of Altair's as SVG, drawn beside this process.

    The drawing library ends its process at a sign that XML lacks, so it gets none (`for_xml`).
    """
    return paint(all_for_xml(chart.to_dict()))
