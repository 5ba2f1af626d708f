"""SVG of a chart's parts: text, bars, lines, axes. Of its own, since a drawing library costs a second at every run.

Colours of text and lines follow the page (`--ink`, `--line`, `--soft`), so that a dark page stays readable; without a
page they are those of the light one. Whatever is written is freed of signs that XML does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import escape

from leeward.texts import for_xml

FONT = "system-ui, Segoe UI, Helvetica, Arial, sans-serif"
INK, LINE, SOFT = "var(--ink, #1d2733)", "var(--line, #d9dee5)", "var(--soft, #566273)"
LABEL, TITLE, LEGEND = 12, 13, 13
"""Sizes of letters in pixels."""

LETTER = 0.6
"""Width of a letter in heights: that of a wide one in the fonts named, so that no label is cut."""


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
        """A filled rectangle."""
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

    def legend(self, x: float, y: float, colors: dict[str, str]) -> None:
        """A square and a name for each colour, in one row; a single colour needs none."""
        for name, color in colors.items() if len(colors) > 1 else ():
            self.bar(x, y - 10, 11, 11, color)
            self.text(x + 16, y, name, size=LEGEND)
            x += 16 + width_of(name, LEGEND) + 24

    def svg(self, width: float, height: float) -> str:
        """The whole as an element that scales with the page."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
            f'viewBox="0 0 {number(width)} {number(height)}" font-family="{FONT}">{"".join(self.marks)}</svg>'
        )


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` laid out over pixels from `start` to `end`, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = 0.0 if high == low else (value - low) / (high - low)
        return self.start + share * (self.end - self.start)


def width_of(words: str, size: float = LABEL) -> float:
    """Pixels that words take at most."""
    return len(words) * size * LETTER


def number(value: float) -> str:
    """A coordinate: two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def step_of(span: float, about: int) -> float:
    """1, 2 or 5 times a power of ten, so that some `about` steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / about))
    return power * next(each for each in (1, 2, 5, 10) if each * power >= span / about * 0.999)


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round values from `low` to `high`, some `about` of them."""
    if high <= low:
        return [low]
    step = step_of(high - low, about)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def ticks_from_zero(high: float, about: int) -> list[float]:
    """Round values from 0, the last of them the first that is not below `high`; to 1 where that is 0."""
    step = step_of(high or 1.0, about)
    return [n * step for n in range(math.ceil((high or 1.0) / step - 1e-9) + 1)]


def powers_of_ten(low: float, high: float) -> list[float]:
    """The powers of ten from `low` to `high`."""
    return [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


Written = Callable[[float], str]
"""A value of an axis as people read it."""


def percentages(values: Sequence[float], *, signed: bool = False) -> Written:
    """Shares in per cent, with the decimals that tell the neighbours of an axis apart."""
    steps = [100 * (b - a) for a, b in pairwise(values)]
    decimals = max(0, math.ceil(-math.log10(min(steps)) - 1e-9)) if steps and min(steps) > 0 else 0
    sign = "+" if signed else ""
    return lambda value: f"{100 * value:{sign if value else ''}.{decimals}f} %"


def counts(value: float) -> str:
    """A count with its thousands."""
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
