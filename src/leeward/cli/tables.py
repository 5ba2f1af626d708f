"""A report's sections as text: its tables, tiles and sentences; of a chart, the sentence that says what it shows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from leeward.report.sections import Chart, Notes, Part, Section, Table, Tiles

WIDTH = 110
WIDEST_CELL = 60


def section_lines(sections: Sequence[Section]) -> list[str]:
    """Every section under its title."""
    return [line for section in sections for line in _section(section)]


def _section(section: Section) -> Iterator[str]:
    yield section.title
    yield "=" * len(section.title)
    for part in section.parts:
        yield from _part(part)
        yield ""


def _part(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield from textwrap.wrap(_plain(part), WIDTH)
    elif isinstance(part, Tiles):
        for tile in part.tiles:
            note = f" ({tile.note})" if tile.note else ""
            yield f"  {tile.value} {_plain(tile.label)}{_plain(note)}"
    elif isinstance(part, Notes):
        for item in part.items:
            yield from textwrap.wrap(_plain(item), WIDTH, initial_indent="  - ", subsequent_indent="    ")
    elif isinstance(part, Chart):
        yield from textwrap.wrap(f"{part.title}: {_plain(part.alt)}", WIDTH)
    else:
        yield from table_lines(part)


def table_lines(table: Table) -> Iterator[str]:
    """A table with aligned columns: the first to the left, figures to the right."""
    yield _plain(table.caption)
    rows = [table.columns, *table.rows]
    cells = [[textwrap.shorten(_plain(cell), WIDEST_CELL, placeholder=" …") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
    for place, row in enumerate(cells):
        texts = [
            f"{cell:>{width}}" if i and table.numbers else f"{cell:<{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(texts)).rstrip()
        if place == 0:
            yield "  " + "-" * (sum(widths) + 2 * (len(widths) - 1))


def _plain(text: str) -> str:
    """A text without the marks of `**bold**` and `` `code` ``."""
    return text.replace("**", "").replace("`", "")
