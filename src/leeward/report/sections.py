"""What a report is made of: sections of text, figures in tiles, tables, charts and notes.

Texts are plain; the page escapes them. `**bold**` and `` `code` `` are the only marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tile:
    """One figure that a reader should see first. `tone` is `good`, `warn`, `bad` or `plain`."""

    value: str
    label: str
    note: str = ""
    tone: str = "plain"


@dataclass(frozen=True)
class Tiles:
    tiles: tuple[Tile, ...]
    kind: str = "tiles"


@dataclass(frozen=True)
class Table:
    """A table; columns after the first are set to the right when `numbers`."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = True
    kind: str = "table"


@dataclass(frozen=True)
class Chart:
    """An SVG with a title, what it shows in one sentence (`alt`, for readers who cannot see it), and a caption."""

    title: str
    alt: str
    svg: str
    caption: str = ""
    kind: str = "chart"


@dataclass(frozen=True)
class Notes:
    items: tuple[str, ...]
    kind: str = "notes"


Part = str | Tiles | Table | Chart | Notes
"""A paragraph or one of the above."""


@dataclass(frozen=True)
class Section:
    title: str
    parts: tuple[Part, ...]


Figures = Mapping[str, Any]
"""What was measured, by name."""

Column = tuple[str, str, Callable[[Any], str]]
"""A heading; the figure of a row that is below it (`kept.are`: of a figure of its own; empty: the row itself); how it
is written."""


def table_of(caption: str, rows: Iterable[Any], *columns: Column, numbers: bool = True) -> Table:
    """A table with a row for each of some figures, or of their JSON."""
    return Table(
        caption,
        tuple(heading for heading, _, _ in columns),
        tuple(tuple(written(figure_of(row, name)) for _, name, written in columns) for row in rows),
        numbers,
    )


def figure_of(row: Any, name: str) -> Any:
    """The figure of this name; None where a figure that it is of is None."""
    for each in name.split(".") if name else ():
        if row is not None:
            row = row[each] if isinstance(row, Mapping) else getattr(row, each)
    return row


def words_section(text: str) -> Section:
    """The guarantee for people who do not read proofs."""
    limits = "What it does not protect against is under **The guarantee and its limits**."
    return Section("In plain words", (text, limits))


def percent(share: float | None, digits: int = 1) -> str:
    """A share as per cent; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def number(value: Any) -> str:
    """A figure as people write it; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
