"""Hierarchies from the OMOP vocabulary: `CONCEPT_ANCESTOR`, complete or an extract; labels are concept ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leeward.errors import BadInput
from leeward.vocabulary._text import TextTable, read_table, read_text
from leeward.vocabulary.hierarchy import Hierarchy

ROOT = "*"
"""The root's label: the concepts that nothing is above hang under it."""

Row = tuple[int, int, int]
"""Ancestor, descendant, fewest levels between them."""


def from_concept_ancestor(path: str | Path) -> Hierarchy:
    """Read CONCEPT_ANCESTOR as CSV or as the vocabulary site's tab-separated text.

    The parent of a concept is its nearest ancestor in the file: one level up where the file is complete,
    more where it is an extract. Among several nearest ancestors the one with the most descendants in the
    file is kept, the smallest id among equals. Extracts drop the rows of inner concepts; a concept with
    descendants but without an ancestor therefore goes under the concept with the fewest descendants among
    those that have all of its descendants and more (or as many, from further up). What is left hangs under
    one root, `*`. Every concept of the file is a node. Raises BadInput with file and row.
    """
    path = Path(path)
    rows = _rows(path)
    below: dict[int, set[int]] = {}
    above: dict[int, dict[int, int]] = {}
    for ancestor, descendant, levels in rows:
        if ancestor != descendant:
            below.setdefault(ancestor, set()).add(descendant)
            above.setdefault(descendant, {})[ancestor] = levels
    parent = {c: _nearest(found, below) for c, found in above.items()}
    for concept in below:
        if concept not in parent:
            inferred = _smallest_cover(concept, below, above)
            if inferred is not None:
                parent[concept] = inferred
    concepts = sorted({c for row in rows for c in row[:2]})
    pairs: list[tuple[str, str | None]] = [(ROOT, None)]
    pairs += [(str(c), str(parent.get(c, ROOT))) for c in concepts]
    return Hierarchy.from_pairs(pairs, path.name)


def _nearest(found: dict[int, int], below: dict[int, set[int]]) -> int:
    return min(found, key=lambda a: (found[a], -len(below[a]), a))


def _smallest_cover(concept: int, below: dict[int, set[int]], above: dict[int, dict[int, int]]) -> int | None:
    """The concept with the next larger set of descendants around those of `concept`; None if there is none."""
    own = below[concept]
    first = min(own)
    candidates = set(above[first])
    for descendant in own:
        candidates &= above[descendant].keys()
        if candidates == {concept}:
            return None

    def rank(c: int) -> tuple[int, int, int]:
        return len(below[c]), above[first][c], c

    # Ranks rise along every inferred step, so the steps never run in a circle.
    higher = [c for c in candidates if rank(c) > rank(concept) and c not in own]
    return min(higher, key=rank, default=None)


def _rows(path: Path) -> Sequence[Row]:
    header = read_text(path).partition("\n")[0]
    table = read_table(path, delimiter="\t" if "\t" in header else ",")
    names = ("ancestor_concept_id", "descendant_concept_id", "min_levels_of_separation")
    return list(zip(*(_whole_numbers(table, name) for name in names), strict=True))


def _whole_numbers(table: TextTable, name: str) -> list[int]:
    numbers = []
    for cell, row in zip(table.column(name), table.rows, strict=True):
        if not cell.isdecimal():
            raise BadInput(f"{table.path.name}, row {row}: the column {name!r} needs a whole number.")
        numbers.append(int(cell))
    return numbers
