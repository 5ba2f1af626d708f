"""Charts as inline SVG, without a browser, a network or JavaScript.

Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; they also differ in lightness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.report.drawing import (
    INK,
    SOFT,
    TITLE,
    Axis,
    Drawing,
    Scale,
    Written,
    axis_below,
    axis_left,
    counts,
    percentages,
    plane,
    powers_of_ten,
    room_left,
    ticks,
    ticks_from_zero,
    width_of,
)

BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#8A8F98"
WIDTH = 760
"""Pixels of the drawing inside the axes: with them, the width of a page's text."""

Rows = Sequence[dict[str, Any]]


def bars_by_group(
    bars: Sequence[tuple[str, float, str]], *, x_title: str, y_title: str, colors: dict[str, str]
) -> str:
    """Upright bars side by side, each with its figure above: what is below it, a share, the name of its colour."""
    names = list(dict.fromkeys(name for name, _, _ in bars))
    at = ticks_from_zero(max((share for _, share, _ in bars), default=0.0), 5)
    written = percentages(at)
    left, height = room_left(at, written), 240.0
    drawing = Drawing()
    up = Scale(0, at[-1], 42 + height, 42)
    axis_left(drawing, up, left, left + WIDTH, at, written, y_title)
    step = WIDTH / max(1, len(names))
    width = min(90.0, 0.8 * step / len(colors))
    for name, share, kind in bars:
        middle = left + (names.index(name) + 0.5) * step
        start = middle + (list(colors).index(kind) - len(colors) / 2) * width
        drawing.bar(start + 1, up(share), width - 2, up(0) - up(share), colors[kind])
        words = f"{100 * share:.1f} %"
        drawing.text(start + width / 2, up(share) - 6, words, size=11 if width > 44 else 9, anchor="middle")
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


def stacked_bars(
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


def histogram(
    bins: Rows,
    *,
    x_title: str,
    y_title: str,
    written: Written | None = None,
    mark: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> str:
    """Bars of `count` from `low` to `high` (shares, unless `written` says otherwise); the span `mark` is shaded behind
    them. `logarithmic` : by the logarithm of 1 + count, so that single ones are seen beside thousands."""
    most = max((row["count"] for row in bins), default=0.0)
    up_at = [0.0, *powers_of_ten(1, 10 * (most or 1))] if logarithmic else ticks_from_zero(most, 5)
    low, high = min(row["low"] for row in bins), max(row["high"] for row in bins)
    at = ticks(low, high, 9)
    x = Axis(x_title, low, high, at, written or percentages(at, signed=True))
    y = Axis(y_title, 0, up_at[-1], up_at, counts, math.log1p if logarithmic else float)
    drawing, along, up = plane(x, y, WIDTH, 220, 10)
    if mark is not None:
        drawing.bar(along(mark[0]), 10, along(mark[1]) - along(mark[0]), 220, ORANGE, opacity=0.25)
    for row in bins:
        width = along(row["high"]) - along(row["low"])
        drawing.bar(along(row["low"]) + 0.5, up(row["count"]), width - 1, up(0) - up(row["count"]), BLUE)
    return drawing.svg(along.end + 30, 278)


def steps(
    rows: Rows,
    *,
    x: str,
    y: str,
    group: str,
    x_title: str,
    y_title: str,
    colors: dict[str, str],
    at: float | None = None,
    dashes: Mapping[str, str] | None = None,
) -> str:
    """Shares that rise or fall over a number, a line of steps a colour, broken where `dashes` says so.

    With the count `at`, where a broken line is drawn, the numbers are counts on a logarithmic axis.
    """
    most = max(row[x] for row in rows)
    if at is None:
        marks = ticks(0, most, 8)
        across = Axis(x_title, 0, most, marks, counts)
    else:
        low = 10.0 ** math.floor(math.log10(min(at, *(row[x] for row in rows))))
        high = max(10 * low, at, most)
        across = Axis(x_title, low, high, powers_of_ten(low, high), counts, math.log)
    up_at = ticks(0, 1, 5)
    drawing, along, up = plane(across, Axis(y_title, 0, 1, up_at, percentages(up_at)), WIDTH, 260, 32)
    if at is not None:
        drawing.line([(along(at), up(0)), (along(at), up(1))], SOFT, dash="5 4")
    for name, color in colors.items():
        path: list[tuple[float, float]] = []
        for row in rows:
            if row[group] == name:
                if path:
                    path.append((along(row[x]), path[-1][1]))
                path.append((along(row[x]), up(row[y])))
        if len(path) > 1:
            drawing.line(path, color, width=2.5, dash=(dashes or {}).get(name, ""))
        elif path:
            drawing.bar(path[0][0] - 2, path[0][1] - 2, 4, 4, color)
    drawing.legend(along.start, 14, colors)
    return drawing.svg(along.end + 30, up(0) + 48)


def intervals(rows: Rows, names: Sequence[str], *, x_title: str, colors: dict[str, str]) -> str:
    """Points (`value`) with their intervals (`low` to `high`), below one another by `name` and by `group`, a colour;
    a broken line at 0."""
    left, top, thick = max(map(width_of, names), default=0) + 12, 32.0, 30.0
    height = max(90.0, thick * len(names))
    x = Axis.around(x_title, [0.0, *(row[end] for row in rows for end in ("low", "high"))])
    drawing, along = Drawing(), Scale(x.low, x.high, left, left + WIDTH - left)
    for value in x.at:
        drawing.line([(along(value), top), (along(value), top + height)])
    drawing.line([(along(0), top), (along(0), top + height)], INK, dash="4 3")
    for place, name in enumerate(names):
        drawing.text(left - 8, top + (place + 0.5) * height / len(names) + 4, name, anchor="end")
    for row in rows:
        beside = (list(colors).index(row["group"]) + 0.5) / len(colors) - 0.5
        y = top + (names.index(row["name"]) + 0.5 + 0.5 * beside) * height / len(names)
        color = colors[row["group"]]
        drawing.line([(along(row["low"]), y), (along(row["high"]), y)], color, width=2)
        drawing.dot(along(row["value"]), y, 4, color)
    axis_below(drawing, along, top + height, x.at, x.written, x_title)
    drawing.legend(left, 14, colors)
    return drawing.svg(along.end + 30, top + height + 48)
