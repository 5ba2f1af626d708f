"""What commands print: what a release is safe against, what not, what it cost; notices; a report's sections."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leeward.cli.options import print_json
from leeward.texts import for_terminal

if TYPE_CHECKING:
    from leeward.release import Release
    from leeward.report.sections import Part, Section, Table
    from leeward.report.summary import Summary
    from leeward.runs.protect import Result


ROWS_SHOWN = 10
LABEL = 14
"""Columns of the label before a text."""

WIDEST = 110
TONES = {"good": "green", "warn": "yellow", "bad": "red", "plain": None}


def told(result: Result, opening: str, before: Sequence[str] = ()) -> list[str]:
    """The last lines of a command that made a release; `before` are further lines below the first."""
    release, summary, verification = result.release, result.summary, result.verification
    notes = [with_flags(each, release) for each in result.measures.get("notices", ())]
    notes += verification.warnings
    little = wrap(f"Little is left: {summary.little_left}") if summary.little_left else []
    return [
        for_terminal(opening),
        *(line for each in before for line in label_lines("", each)),
        *summary_lines(summary),
        *(line for each in notes for line in label_lines("Note:", each)),
        f"Verified: {len(verification.checks)} checks of the written files passed.",
        *(click.style(line, fg="red", bold=True) for line in little),
        for_terminal(f"For the recipient: {from_here(release.share)}"),
        for_terminal(f"Report:            {from_here(result.report)}"),
    ]


def from_here(path: Path) -> Path:
    """A path as one types it in the working folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def with_flags(notice: Mapping[str, Any], release: Release) -> str:
    """A notice; parameters in one of the method are named by their flags."""
    from leeward.cli.flags import FLAGS, name_flags
    from leeward.methods import METHODS

    row = METHODS.get(release.method)
    if row is None or notice["kind"] != "method":
        return format_notice(notice)
    return name_flags(format_notice(notice), row.parameters_class(), FLAGS)


def summary_lines(summary: Summary) -> Iterator[str]:
    """Safe against, not against, and what it cost; each with a colour of its own."""
    from leeward.report.summary import DOORS_SHOWN, NOT_MEASURED

    yield from label_lines("Safe against", summary.safe_against, "cyan")
    for place, line in enumerate(summary.risk):
        yield from label_lines("" if place else "Risk", line)
    doors = summary.not_against[:DOORS_SHOWN]
    for place, door in enumerate(doors):
        yield from label_lines("" if place else "Not against", f"- {door}", "yellow")
    more = len(summary.not_against) - len(doors)
    if more:
        yield from label_lines("", f"- {more} more: see the report")
    if not summary.costs:
        yield from label_lines("It cost", NOT_MEASURED)
    for place, cost in enumerate(summary.costs):
        yield from label_lines("" if place else "It cost", str(cost), None, TONES[cost.tone])


def check_line(check: Any) -> str:
    """A check of a verifier or an audit."""
    return f"{'passed' if check.passed else 'FAILED'}  {check.name}: {check.detail}"


def label_lines(
    label: str, text: str, color: str | None = None, text_color: str | None = None
) -> Iterator[str]:
    """A text beside its label, wrapped to the terminal, its further lines below one another."""
    lines = wrap(text, LABEL)
    for place, line in enumerate(lines):
        head = click.style(f"{'' if place else label:<{LABEL}}", fg=color, bold=bool(color))
        yield head + (click.style(line, fg=text_color) if text_color else line)


def wrap(text: str, indent: int = 0) -> list[str]:
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns) - indent
    return textwrap.wrap(for_terminal(text), max(30, width), break_on_hyphens=False) or [""]


def format_notice(notice: Mapping[str, Any]) -> str:
    """A notice with its first row numbers."""
    rows = ", ".join(str(row) for row in notice["rows"][:ROWS_SHOWN])
    more = ", …" if notice["count"] > min(len(notice["rows"]), ROWS_SHOWN) else ""
    word = "rows" if len(notice["rows"]) > 1 or more else "row"
    return f"{notice['message']} ({word} {rows}{more})" if rows else str(notice["message"])


def print_styled(lines: Sequence[str]) -> None:
    """Lines that hold colours; a pipe gets none."""
    click.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)


WIDTH = 110
WIDEST_CELL = 60


def section_lines(section: Section) -> Iterator[str]:
    """A section under its title."""
    yield section.title
    yield "=" * len(section.title)
    for part in section.parts:
        yield from _part(part)
        yield ""


def _part(part: Part) -> Iterator[str]:
    from leeward.report.sections import Chart, Notes, Tiles

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


def tell(result: Result, as_json: bool) -> None:
    """Print what was written, for a person or as JSON."""
    from leeward.report.summary import headline

    tell_register(result)
    if as_json:
        print_json(summary(result))
    else:
        print_styled(told(result, f"{headline(result.release)}."))


def tell_register(result: Result) -> None:
    """Say on stderr which register counts a release, and what it was compared with, or that none does."""
    from leeward.arrays import count_noun
    from leeward.runs.registering import NOBODY_COUNTS

    entry = result.release.custody_json("register.json")
    text = f"{NOBODY_COUNTS}."
    if entry is not None:
        others = count_noun("earlier release", len(entry["compared"]))
        text = f"the register counts this release as {entry['facts']['id']}, compared with {others}."
    click.echo(f"leeward: {text}", err=True)


def summary(result: Result) -> dict[str, Any]:
    release = result.release
    return {
        "release": str(result.path),
        "share": str(release.share),
        "report": str(result.report),
        "method": release.method,
        "parameters": release.parameters,
        "guarantee": release.guarantee,
        "records": release.records,
        "summary": result.summary.to_json(),
        "verification": result.verification.to_json(),
        "measures": dict(result.measures),
    }
