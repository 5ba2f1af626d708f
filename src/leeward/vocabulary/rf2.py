"""SNOMED CT in Release Format 2: the snapshots of concepts, descriptions and relationships, as one tree with names.

The files come under the licence of SNOMED International; Leeward ships none of them. SNOMED's is-a is no tree: a
concept has several parents. Of them the one with the most concepts below it is kept, the smallest id among equals, as
for OMOP (`vocabulary.omop`), so that groups are few and large.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from leeward.errors import BadInput
from leeward.vocabulary._text import lines, read_table, write_table

IS_A = "116680003"
FULLY_SPECIFIED, SYNONYM = "900000000000003001", "900000000000013009"
ROOT = "*"
"""The root's label: the concepts that nothing is above hang under it."""
SYSTEMS = ("http://snomed.info/sct", "SNOMED CT", "SNOMED", "SNOMED-CT")
"""How sources name SNOMED CT."""


def component(folder: Path, what: str) -> Path | None:
    """The snapshot of a component (`Concept`, `Description`, `Relationship`) in a folder and those below it, or its
    only file."""
    found = sorted(each for end in ("txt", "txt.gz") for each in folder.rglob(f"sct2_{what}_*.{end}"))
    return min(found, key=lambda file: "Snapshot" not in file.name, default=None)


def require_file(folder: Path, what: str) -> Path:
    found = component(folder, what)
    if found is None:
        raise BadInput(f"{folder.name}: no sct2_{what}_*.txt in this folder.")
    return found


def active_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Row number and the cells of `columns` (in any case) of the active rows; a quote is just a character. BadInput
    naming file, row and column."""
    table = _rows(path)
    header = [cell.strip().lower() for cell in next(table, [])]
    on, *places = (_place(path, header, name) for name in ("active", *columns))
    for row, cells in enumerate(table, start=2):
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise BadInput(f"{path.name}, row {row}: {len(cells)} cells where the header has {len(header)}.")
        if cells[on] not in ("0", "1"):
            raise BadInput(f"{path.name}, row {row}: the column 'active' needs 0 or 1.")
        if cells[on] == "1":
            yield row, [cells[place].strip() for place in places]


def _place(path: Path, header: Sequence[str], name: str) -> int:
    if not any(header):
        raise BadInput(f"{path.name}: the file is empty; it needs a header and rows.")
    if name not in header:
        known = ", ".join(map(repr, header[:12]))
        raise BadInput(f"{path.name}, row 1: no column {name!r}; the header has {known}.")
    return header.index(name)


def _rows(path: Path) -> Iterator[list[str]]:
    """The cells of every row, the header's first. BadInput for a cell longer than the csv module reads."""
    table = csv.reader(lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    row = 1
    try:
        for cells in table:
            row += 1
            yield cells
    except csv.Error:
        raise BadInput(
            f"{path.name}, row {row}: a cell of more than {csv.field_size_limit():,} characters, or a damaged one; "
            "copy the file again."
        ) from None


def is_release(folder: Path) -> bool:
    return folder.is_dir() and component(folder, "Concept") is not None


def convert(folder: Path, target: Path) -> None:
    """Write the tree of a release: CSV `node,parent,name`, active concepts with their full English names. BadInput
    with file, row and column: a missing file or column, an id that is no number, a relationship with an absent or
    inactive concept, concepts above each other."""
    concepts = require_file(folder, "Concept")
    row_of = {_id(concepts, row, "id", cells[0]): row for row, cells in active_rows(concepts, ("id",))}
    if not row_of:
        raise BadInput(f"{concepts.name}: no active concept.")
    above = _is_a(require_file(folder, "Relationship"), row_of)
    below: Counter[int] = Counter()
    for found in _ancestors(concepts, row_of, above).values():
        below.update(found.tolist())
    names = _names(require_file(folder, "Description"), row_of)
    rows = [(ROOT, "", "")]
    for each in sorted(row_of):
        parent = min(above.get(each, ()), key=lambda up: (-below[up], up), default=ROOT)
        rows.append((str(each), str(parent), names.get(each, "")))
    write_table(target, ("node", "parent", "name"), rows)


def _is_a(path: Path, known: Mapping[int, int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for row, (source, destination, kind) in active_rows(path, ("sourceid", "destinationid", "typeid")):
        if kind != IS_A:
            continue
        pair = (_id(path, row, "sourceId", source), _id(path, row, "destinationId", destination))
        for column, each in zip(("sourceId", "destinationId"), pair, strict=True):
            if each not in known:
                raise BadInput(
                    f"{path.name}, row {row}: the column {column!r} names a concept that is not active in the file of "
                    "concepts; give the files of one release."
                )
        found.setdefault(pair[0], set()).add(pair[1])
    return found


def _ancestors(
    path: Path, row_of: Mapping[int, int], above: Mapping[int, set[int]]
) -> dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """All concepts above each, parents first. BadInput for a circle."""
    found: dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for start in row_of:
        stack, open_ones = [start], {start}
        while stack:
            each = stack[-1]
            parents = sorted(above.get(each, ()))
            missing = [up for up in parents if up not in found]
            if not missing:
                parts = [np.array(parents, np.int64), *(found[up] for up in parents)]
                found[each] = np.unique(np.concatenate(parts))
                open_ones.discard(stack.pop())
            elif missing[0] in open_ones:
                raise BadInput(f"{path.name}, row {row_of[each]}: the concept is above itself (column 'id').")
            else:
                stack.append(missing[0])
                open_ones.add(missing[0])
    return found


def _names(path: Path, known: Mapping[int, int]) -> dict[int, str]:
    """Fully specified English names; of several the first."""
    found: dict[int, str] = {}
    columns = ("conceptid", "languagecode", "typeid", "term")
    for row, (concept, language, kind, term) in active_rows(path, columns):
        if kind == FULLY_SPECIFIED and language == "en" and term:
            each = _id(path, row, "conceptId", concept)
            if each in known:
                found.setdefault(each, term)
    return found


def _id(path: Path, row: int, column: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise BadInput(
            f"{path.name}, row {row}: the column {column!r} needs an identifier of SNOMED CT, a number."
        )
    return int(text)


@lru_cache(maxsize=4)
def _column(path: Path, name: str, stamp: int) -> Mapping[str, str]:
    table = read_table(path)
    return dict(zip(table.column("node"), table.column(name), strict=True))


def parents(path: Path) -> Mapping[str, str]:
    """Concept -> the one kept above it, of a file that `convert` wrote."""
    return _column(path, "parent", path.stat().st_mtime_ns)


def names(path: Path) -> Mapping[str, str]:
    """Concept -> its fully specified name, of a file that `convert` wrote."""
    return _column(path, "name", path.stat().st_mtime_ns)


def is_tree(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.readline().strip() == b"node,parent,name"
    except OSError:
        return False
