"""Delimited text: the project's lexicon and tables of others; errors name file, row and column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import KINDS, SEPARATOR, Concept, Lexicon, concept
from leeward.vocabulary._text import lines


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield row number and cells of the requested columns, in their order, of a file with a header. Tab-separated if
    the header has a tab (quotes are then plain characters), else comma-separated. Column names are compared in lower
    case. Cells are stripped of outer blanks."""
    source = lines(path)
    header_line = next(source, "")
    delimiter = "\t" if "\t" in header_line else ","
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    header = [
        h.strip().lower() for h in next(csv.reader([header_line], delimiter=delimiter, quoting=quoting), [])
    ]
    if not any(header):
        raise BadInput(f"{path.name}: the file is empty; it needs a header and rows.")
    missing = [c for c in columns if c not in header]
    if missing:
        raise BadInput(
            f"{path.name}, row 1: no column {missing[0]!r}; the header has {', '.join(map(repr, header[:12]))}."
        )
    places = [header.index(c) for c in columns]
    reader = csv.reader(source, delimiter=delimiter, quoting=quoting, strict=quoting == csv.QUOTE_MINIMAL)
    row = 2
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                if len(cells) != len(header):
                    raise BadInput(
                        f"{path.name}, row {row}: {len(cells)} cells where the header has {len(header)}."
                    )
                yield row, [cells[p].strip() for p in places]
            row = reader.line_num + 2
    except csv.Error:
        raise BadInput(f"{path.name}, row {row}: not a row of cells; do the quotes match?") from None


def plain_rows(
    path: Path, delimiter: str, cells: int, columns: dict[str, int]
) -> Iterator[tuple[int, list[str]]]:
    """Yield row number and the cells at the indices `columns`, of a file without header or quotes whose rows have at
    least `cells` cells. Raises BadInput naming file and row."""
    places = list(columns.values())
    for row, line in enumerate(lines(path), start=1):
        parts = line.rstrip("\r\n").split(delimiter)
        if len(parts) >= cells:
            yield row, [parts[p].strip() for p in places]
        elif line.strip():
            missing = [c for c, p in columns.items() if p >= len(parts)] or ["of the last places"]
            raise BadInput(
                f"{path.name}, row {row}: {len(parts)} cells where {cells} are needed; "
                f"the column {missing[0]!r} is missing."
            )


def read_concepts(path: Path, kind: str = "") -> list[Concept]:
    """Read concepts of a table with the columns `id`, `name`, `synonyms` (separated by `|`) and, unless `kind` is
    given, `kind`. Terms may carry the flags of `Term.parse`. Raises BadInput."""
    columns = ("id", "name", "synonyms") if kind else ("id", "name", "synonyms", "kind")
    found = []
    for row, cells in rows(path, columns):
        id_, name, synonyms = cells[:3]
        what = kind or cells[3].lower()
        for column, value in (("id", id_), ("name", name)):
            if not value:
                raise BadInput(f"{path.name}, row {row}: the column {column!r} is empty.")
        if what not in KINDS:
            raise BadInput(f"{path.name}, row {row}: the column 'kind' needs one of {', '.join(KINDS)}.")
        found.append(concept(id_, what, [name, *synonyms.split(SEPARATOR)]))
    if not found:
        raise BadInput(f"{path.name}: the file has a header but no concepts.")
    return found


OWN_FILES = {
    "symptoms": "symptom",
    "diseases": "disease",
    "tests": "test",
    "drugs": "drug",
    "procedures": "procedure",
}
"""Files of the project's lexicon, with the kind of their terms."""


@cache
def load_lexicon() -> Lexicon:
    folder = resources.files("leeward.notes.lexicon").joinpath("data")
    concepts = []
    for file, kind in OWN_FILES.items():
        with resources.as_file(folder.joinpath(f"{file}.tsv")) as path:
            concepts += read_concepts(path, kind)
    phrases = folder.joinpath("phrases.txt").read_text("utf-8").splitlines()
    return Lexicon("leeward", tuple(concepts), tuple(p for p in phrases if p and not p.startswith("#")))
