"""Hierarchies from OMOP `CONCEPT_ANCESTOR`, complete or an extract; labels are concept ids."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from leeward.errors import BadInput
from leeward.vocabulary._text import TextTable, read_table, read_text
from leeward.vocabulary.hierarchy import Hierarchy

ROOT = "*"
"""The root's label: the concepts that nothing is above hang under it."""

BY_CODE = "#concept_code"
"""After the path of a CONCEPT_ANCESTOR: its labels are the codes of the CONCEPT beside it."""

Row = tuple[int, int, int]
"""Ancestor, descendant, fewest levels between them."""


def from_concept_ancestor(path: str | Path) -> Hierarchy:
    """Read CONCEPT_ANCESTOR as CSV or as the vocabulary site's tab-separated text.

    The parent of a concept is its nearest ancestor in the file: one level up where the file is complete,
    more where it is an extract. Among several nearest ancestors the one with the most descendants in the
    file is kept, the smallest id among equals. Extracts drop the rows of inner concepts; a concept with
    descendants but without an ancestor therefore goes under the concept of the same kind with the fewest
    descendants among those that have all of its descendants and more. What is left hangs under one root,
    `*`. Every concept of the file is a node. Raises BadInput with file and row.
    """
    path = Path(path)
    rows = _rows(path)
    below: dict[int, set[int]] = {}
    above: dict[int, dict[int, int]] = {}
    for ancestor, descendant, levels in rows:
        if ancestor != descendant:
            below.setdefault(ancestor, set()).add(descendant)
            above.setdefault(descendant, {})[ancestor] = levels
    parent = {c: min(found, key=lambda a: (found[a], -len(below[a]), a)) for c, found in above.items()}
    parent |= _covers({c: frozenset(found) for c, found in below.items() if c not in parent}, above)
    concepts = sorted({c for row in rows for c in row[:2]})
    pairs: list[tuple[str, str | None]] = [(ROOT, None)]
    pairs += [(str(c), str(parent.get(c, ROOT))) for c in concepts]
    return Hierarchy.from_pairs(pairs, path.name)


def _covers(below: dict[int, frozenset[int]], above: dict[int, dict[int, int]]) -> dict[int, int]:
    """For each concept of `below` the one with the next larger set of descendants around its own, if there is one.
    Of concepts with equal sets the one with the fewest levels above the smallest descendant, then the smallest id,
    is searched for all."""
    alike: dict[frozenset[int], list[int]] = {}
    for concept, own in below.items():
        alike.setdefault(own, []).append(concept)
    chosen = {own: min(found, key=lambda c: (above[min(own)][c], c)) for own, found in alike.items()}
    around: dict[int, set[int]] = {}
    for own, concept in chosen.items():
        for descendant in own:
            around.setdefault(descendant, set()).add(concept)
    covers: dict[int, int] = {}
    for own, concepts in alike.items():
        larger = set.intersection(*(around[d] for d in own)) - {chosen[own]}
        if larger:
            best = min(larger, key=lambda c: (len(below[c]), c))
            covers |= dict.fromkeys(concepts, best)
    return covers


def header_of(path: Path) -> str:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        return stream.readline().decode("utf-8-sig", "replace")


def is_concept_ancestor(path: Path) -> bool:
    try:
        return "ancestor_concept_id" in header_of(path).lower()
    except (OSError, EOFError):
        return False


def concept_beside(path: Path) -> Path:
    """The file CONCEPT in the folder of a CONCEPT_ANCESTOR. Raises BadInput where there is none."""
    found = [each for each in path.parent.iterdir() if each.name.partition(".")[0].lower() == "concept"]
    if len(found) != 1:
        raise BadInput(
            f"{path.name}: there is no file CONCEPT beside it, which holds the codes of its concepts."
        )
    return found[0]


def concepts_of(concept: Path, column: str, wanted: Iterable[str]) -> list[tuple[str, str]]:
    """(concept_id, concept_code) of the rows of CONCEPT whose `column`, one of these two, holds a wanted text."""
    chosen = pl.col(column).is_in(pl.Series(list(wanted), dtype=pl.String).implode())
    return sorted(_rows_of(concept, ("concept_id", "concept_code"), chosen))


def concept_names(path: Path) -> dict[str, tuple[str, str]]:
    """Concept id -> code and name, from the CONCEPT beside a CONCEPT_ANCESTOR; nothing where there is none."""
    try:
        concept = concept_beside(path)
    except BadInput:
        return {}
    rows = _rows_of(concept, ("concept_id", "concept_code", "concept_name"), pl.lit(True))
    return {concept: (code, name) for concept, code, name in rows}


def scan(path: Path) -> pl.LazyFrame:
    """A table of the vocabulary site (separated by tabs, without quotes) or a CSV, all text, its columns in lower
    case."""
    tabs = "\t" in header_of(path)
    rows = pl.scan_csv(
        path, separator="\t" if tabs else ",", infer_schema=False, quote_char=None if tabs else '"'
    )
    return rows.rename({name: name.lower() for name in rows.collect_schema().names()})


def _rows_of(concept: Path, columns: Sequence[str], chosen: pl.Expr) -> list[Any]:
    try:
        rows = scan(concept).select(pl.col(columns).str.strip_chars()).drop_nulls()
        return rows.filter(chosen).collect(engine="streaming").rows()
    except (pl.exceptions.PolarsError, OSError):
        raise BadInput(f"{concept.name}: cannot be read as OMOP's CONCEPT.") from None


def require_concept_ancestor(path: Path) -> None:
    if not is_concept_ancestor(path):
        raise BadInput(
            f"{path.name}: no column 'ancestor_concept_id'; give the CONCEPT_ANCESTOR.csv of an OMOP vocabulary."
        )


def _rows(path: Path) -> Sequence[Row]:
    header = read_text(path).partition("\n")[0]
    table = read_table(path, delimiter="\t" if "\t" in header else ",")
    names = ("ancestor_concept_id", "descendant_concept_id", "min_levels_of_separation")
    return list(zip(*(_whole_numbers(table, name) for name in names), strict=True))


def _whole_numbers(table: TextTable, name: str) -> list[int]:
    cells = table.column(name)
    bad = next((row for cell, row in zip(cells, table.rows, strict=True) if not cell.isdecimal()), None)
    if bad is not None:
        raise BadInput(f"{table.path.name}, row {bad}: the column {name!r} needs a whole number.")
    return list(map(int, cells))
