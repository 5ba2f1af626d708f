"""Formulas of terms, row by row: the plain version of `leeward.queries.language.formula` and of its counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Tree = Any
"""A term, or `("!", tree)`, `("&", [trees])`, `("|", [trees])`."""


def holds(tree: Tree, terms: Collection[str], below: Mapping[str, Collection[str]]) -> bool:
    """Whether a row with these terms is meant. `below`: the terms that a node stands for."""
    if isinstance(tree, str):
        return any(term in terms for term in below.get(tree, [tree]))
    sign, parts = tree
    if sign == "!":
        return not holds(parts, terms, below)
    every = [holds(part, terms, below) for part in parts]
    return all(every) if sign == "&" else any(every)


def count(
    rows: Sequence[Mapping[str, Any]], tree: Tree, below: Mapping[str, Collection[str]], unit: str
) -> int:
    """Rows that are meant, or their distinct patients."""
    found = [row for row in rows if holds(tree, row["terms"], below)]
    return len(found) if unit == "note" else len({row["patient"] for row in found})


def written(tree: Tree) -> str:
    """As a person writes it, every group in parentheses."""
    if isinstance(tree, str):
        return tree
    sign, parts = tree
    if sign == "!":
        return f"!{written(parts)}"
    return f"({f' {sign} '.join(map(written, parts))})"
