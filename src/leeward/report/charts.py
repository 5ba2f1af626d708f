"""Charts as inline SVG, without a browser, a network or JavaScript (docs/decisions/0005-charts-offline.md): first their
parts (text, bars, lines, dots, axes), then the charts.

Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; they also differ in lightness.
Those of text and lines follow the page (`--ink`, `--line`, `--soft`), so that a dark page stays readable; without a
page they are those of the light one. Whatever is written is freed of signs that XML does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markupsafe import escape

from leeward.texts import for_xml

FONT = "system-ui, Segoe UI, Helvetica, Arial, sans-serif"
INK, LINE, SOFT = "var(--ink, #1d2733)", "var(--line, #d9dee5)", "var(--soft, #566273)"
LABEL, TITLE, LEGEND = 12, 13, 13
"""Sizes of letters in pixels."""

LETTER = 0.6
"""Width of a letter in heights: that of a wide one in the fonts named, so that no label is cut."""

BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#8A8F98"
WIDTH = 760
"""Pixels of the drawing inside the axes: with them, the width of a page's text."""

Rows = Sequence[dict[str, Any]]


@dataclass
class Drawing:
    """Marks in the order in which they are drawn, in pixels from the upper left corner."""

    marks: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = LABEL,
        anchor: str = "start",
        color: str = INK,
        turned: bool = False,
    ) -> None:
        """Words with their base line at y; `anchor` as in SVG; `turned` to be read from below."""
        turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
        self.marks.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{anchor}" fill="{color}"{turn}>'
            f"{escape(for_xml(words))}</text>"
        )

    def bar(self, x: float, y: float, width: float, height: float, color: str, opacity: float = 1.0) -> None:
        seen = f' fill-opacity="{number(opacity)}"' if opacity < 1 else ""
        self.marks.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'fill="{color}"{seen}/>'
        )

    def line(
        self, points: Sequence[tuple[float, float]], color: str = LINE, width: float = 1.0, dash: str = ""
    ) -> None:
        """Straight pieces through the points."""
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.marks.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dashed}/>')

    def dot(self, x: float, y: float, radius: float, color: str, *, ring: bool = False) -> None:
        ink = f'fill="none" stroke="{color}"' if ring else f'fill="{color}" fill-opacity="0.7"'
        self.marks.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" {ink}/>')

    def legend(self, x: float, y: float, colors: dict[str, str], end: float = math.inf) -> float:
        """A square and a name for each colour, in rows up to `end`, and the last row's base line; a single colour needs
        none."""
        start = x
        for name, color in colors.items() if len(colors) > 1 else ():
            wide = 16 + width_of(name, LEGEND)
            if x > start and x + wide > end:
                x, y = start, y + 20
            self.bar(x, y - 10, 11, 11, color)
            self.text(x + 16, y, name, size=LEGEND)
            x += wide + 24
        return y

    def svg(self, width: float, height: float) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
            f'viewBox="0 0 {number(width)} {number(height)}" font-family="{FONT}">{"".join(self.marks)}</svg>'
        )


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` laid out over pixels from `start` to `end`, evenly by what `by` makes of them."""

    low: float
    high: float
    start: float
    end: float
    by: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        low, high = self.by(self.low), self.by(self.high)
        share = 0.0 if high == low else (self.by(value) - low) / (high - low)
        return self.start + share * (self.end - self.start)


def width_of(words: str, size: float = LABEL) -> float:
    return len(words) * size * LETTER


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def step_of(span: float, about: int) -> float:
    """1, 2 or 5 times a power of ten, so that some `about` steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / about))
    return power * next(each for each in (1, 2, 5, 10) if each * power >= span / about * 0.999)


def ticks(low: float, high: float, about: int) -> list[float]:
    if high <= low:
        return [low]
    step = step_of(high - low, about)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def ticks_from_zero(high: float, about: int) -> list[float]:
    """Round values from 0, the last of them the first that is not below `high`; to 1 where that is 0."""
    step = step_of(high or 1.0, about)
    return [n * step for n in range(math.ceil((high or 1.0) / step - 1e-9) + 1)]


def powers_of_ten(low: float, high: float) -> list[float]:
    return [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


Written = Callable[[float], str]
"""A value of an axis as people read it."""


def decimals(values: Sequence[float], *, times: float = 1, unit: str = "", signed: bool = False) -> Written:
    """Values with the decimals that tell the neighbours of an axis apart."""
    steps = [times * (b - a) for a, b in pairwise(values)]
    digits = max(0, math.ceil(-math.log10(min(steps)) - 1e-9)) if steps and min(steps) > 0 else 0
    sign = "+" if signed else ""
    return lambda value: f"{times * value:{sign if value else ''}.{digits}f}{unit}"


def percentages(values: Sequence[float], *, signed: bool = False) -> Written:
    return decimals(values, times=100, unit=" %", signed=signed)


def counts(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2g}"


def axis_below(
    drawing: Drawing, scale: Scale, y: float, at: Sequence[float], written: Written, title: str
) -> None:
    """A horizontal axis at the height y: line, marks, labels, title. Labels that would touch are left out."""
    drawing.line([(scale.start, y), (scale.end, y)], SOFT)
    right = -math.inf
    for value in at:
        x, words = scale(value), written(value)
        drawing.line([(x, y), (x, y + 5)], SOFT)
        if x - width_of(words) / 2 > right + 4:
            drawing.text(x, y + 18, words, anchor="middle")
            right = x + width_of(words) / 2
    drawing.text((scale.start + scale.end) / 2, y + 40, title, size=TITLE, anchor="middle")


def axis_left(
    drawing: Drawing, scale: Scale, x: float, end: float, at: Sequence[float], written: Written, title: str
) -> None:
    """A vertical axis at x: labels, title, and a thin line across the drawing, to `end`, at each mark."""
    for value in at:
        drawing.line([(x, scale(value)), (end, scale(value))])
        drawing.text(x - 8, scale(value) + 4, written(value), anchor="end")
    widest = max((width_of(written(value)) for value in at), default=0)
    drawing.text(
        x - 8 - widest - 12, (scale.start + scale.end) / 2, title, size=TITLE, anchor="middle", turned=True
    )


def room_left(at: Sequence[float], written: Written) -> float:
    """Pixels that a vertical axis takes left of the drawing: labels and the title."""
    return max((width_of(written(value)) for value in at), default=0) + 8 + 12 + TITLE + 4


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, laid out by `by`, with marks `at` some of them, and a title."""

    title: str
    low: float
    high: float
    at: Sequence[float]
    written: Written
    by: Callable[[float], float] = float

    @classmethod
    def around(cls, title: str, values: Sequence[float], about: int = 8) -> Axis:
        """An axis that holds the values, with about so many round marks."""
        low, high = min(values), max(values)
        margin = 0.02 * (high - low) or 1.0
        at = ticks(low - margin, high + margin, about)
        return cls(title, low - margin, high + margin, at, decimals(at))


def plane(x: Axis, y: Axis, width: float, height: float, top: float) -> tuple[Drawing, Scale, Scale]:
    """A drawing with two axes, and the scales of both."""
    left = room_left(y.at, y.written)
    drawing = Drawing()
    along = Scale(x.low, x.high, left, left + width, x.by)
    up = Scale(y.low, y.high, top + height, top, y.by)
    axis_left(drawing, up, left, left + width, y.at, y.written, y.title)
    axis_below(drawing, along, top + height, x.at, x.written, x.title)
    return drawing, along, up


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
    """A line of steps a colour: shares over a number, broken where `dashes` says so. The count `at` has a broken line
    and makes the axis logarithmic."""
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


SHADES = (
    (19, 75, 133), (47, 120, 179), (93, 162, 203), (157, 202, 225), (210, 229, 239), (242, 240, 235),
    (252, 224, 186), (251, 191, 116), (232, 147, 47), (197, 105, 13), (153, 74, 7),
)  # fmt: skip
"""Colours of correlations from -1 to 1: Vega's blueorange, whose ends colour-blind readers can tell apart."""


def heat(names: Sequence[str], matrices: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Two matrices of correlations of the same columns, by their labels, beside each other."""
    left, top, apart, scale = max(map(width_of, names)) + 8, 26.0, 16.0, 56.0
    side = max((WIDTH - left - apart - scale) / 2, 10.0 * len(names))
    cell = side / len(names)
    size = min(12.0, cell)
    drawing = Drawing()
    for start, (label, matrix) in zip((left, left + side + apart), matrices.items(), strict=True):
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
    at = (min(max(r, -1.0), 1.0) + 1) / 2 * (len(SHADES) - 1)
    low = min(int(at), len(SHADES) - 2)
    mixed = (round(a + (at - low) * (b - a)) for a, b in zip(SHADES[low], SHADES[low + 1], strict=True))
    return "#" + "".join(f"{each:02x}" for each in mixed)
