"""Age hierarchies: blocks of 1, 2, 4, 8 … years (the thesis), ages over 89 as one (HIPAA), or a user's own.

Ages are whole years. A block is labelled `33-36`, a single year `33`, an open end `90+`. The thesis' tree
covers 1–128; the general default is 0–127, because real sets hold age 0 (docs/methods/trajectories.md#loss).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from leeward.arrays import Int32s
from leeward.errors import BadInput, listed
from leeward.vocabulary.hierarchy import Hierarchy

FIRST, LAST = 0, 127
HIPAA_TOP = 90
"""HIPAA Safe Harbor, 45 CFR 164.514(b)(2)(i)(C): ages over 89 may only appear as one category, 90 or older."""

OPEN_END = 150
"""Highest age that an open-ended label (`90+`) of a user's hierarchy takes in."""

_LABEL = re.compile(r"(\d{1,3})(?:-(\d{1,3})|(\+))?")


@dataclass(frozen=True)
class AgeTree:
    """A hierarchy of ages, or of dates (`vocabulary.dates`), and the leaf of every age.

    hierarchy : the tree; `level` i of a binary tree is its blocks of 2^i years.
    first : the lowest age in years; of dates, the first month.
    leaf : int32[last - first + 1], the node of each age (each month) from `first` on.
    dated : whether the times are months of a calendar.
    """

    hierarchy: Hierarchy
    first: int
    leaf: Int32s
    dated: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.leaf) - 1

    @property
    def a_year(self) -> int:
        """Times of a year."""
        return 12 if self.dated else 1

    @property
    def widths(self) -> tuple[int, int]:
        """The widest times of a usable pair and of a chapter pair (docs/methods/trajectories.md#measures)."""
        return (12, 120) if self.dated else (8, 16)

    def nodes(self, ages: ArrayLike) -> Int32s:
        """The leaf of each age in years, without fractions (33.9 is 33); BadInput with the number and the first
        positions (from 1) of ages that are missing, negative or outside the hierarchy."""
        floored = np.floor(np.asarray(ages, np.float64))
        inside = (floored >= self.first) & (floored <= self.last)
        if not inside.all():
            places = np.flatnonzero(~inside)
            raise BadInput(
                f"{len(places):,} of {floored.size:,} ages are missing or outside {self.first}–{self.last} "
                f"years (positions {listed((places + 1).tolist())}); correct them or choose a wider age hierarchy."
            )
        return self.leaf[(floored - self.first).astype(np.int64)]


def binary(first: int = FIRST, last: int = LAST) -> AgeTree:
    """The full binary tree over `first` … `last` years: blocks of 2, 4, 8 … years counted from `first`; BadInput
    unless the number of ages is a power of two."""
    n = last - first + 1
    if first < 0 or n < 1 or n & (n - 1):
        raise BadInput(
            f"ages {first}–{last}: a binary age hierarchy needs 1, 2, 4, 8 … ages, none negative "
            "(0–127, 1–128)."
        )
    height = n.bit_length() - 1
    levels = {
        block_label(start, level, first): level
        for level in range(height, -1, -1)
        for start in range(first, last + 1, 1 << level)
    }
    pairs = [
        (label, block_label(_bounds(label)[0], level + 1, first) if level < height else None)
        for label, level in levels.items()
    ]
    names = tuple(f"{1 << level}-year" for level in range(height + 1))
    hierarchy = Hierarchy.from_pairs(pairs, f"age {first}–{last}", levels, names)
    return AgeTree(hierarchy, first, hierarchy.leaves.copy())


def hipaa(first: int = FIRST, last: int = LAST) -> AgeTree:
    """One year a leaf up to 89, and `90+`; above them the blocks of `binary`, those that reach 90 left open-ended.

    A block with ages below 90 and from 90 on takes in `90+` whole and is named by its first age (`88+` has
    the leaves 88, 89 and 90+); blocks that would add nothing to the one below are left out. Raises BadInput
    unless the range holds both 89 and 90.
    """
    full = binary(first, last).hierarchy
    if not first < HIPAA_TOP <= last:
        raise BadInput(f"ages {first}–{last}: the HIPAA age hierarchy needs a range with 89 and 90 in it.")
    top = f"{HIPAA_TOP}+"
    above: dict[str, str | None] = {}
    levels = {top: 0}
    label: dict[int, str | None] = {-1: None}
    for node, (low, high) in enumerate(map(_bounds, full.labels)):
        label[node] = own = f"{low}+" if high >= HIPAA_TOP else full.labels[node]
        parent = label[int(full.parent[node])]
        if low < HIPAA_TOP and own != parent:
            above[own] = parent
            levels[own] = int(full.level[node])
    above[top] = next(each for each in reversed(above) if each.endswith("+"))
    hierarchy = Hierarchy.from_pairs(above.items(), f"age {first}–89, 90+", levels, full.level_names)
    ages = [str(age) if age < HIPAA_TOP else top for age in range(first, last + 1)]
    return AgeTree(hierarchy, first, hierarchy.nodes_of(ages))


def from_csv(path: str | Path) -> AgeTree:
    """A user's age hierarchy, `node,parent`, with labels `33`, `33-36` or `90+`. BadInput names a label that is none
    of these, leaves that miss or repeat an age, or a node that does not span exactly its leaves."""
    hierarchy = Hierarchy.from_csv(path)
    spans = [_bounds(label, hierarchy.name) for label in hierarchy.labels]
    covered = sorted((*spans[leaf], leaf) for leaf in hierarchy.leaves.tolist())
    for (_, before, _), (start, _, node) in pairwise(covered):
        if start != before + 1:
            what = "repeats" if start <= before else "leaves out"
            raise BadInput(
                f"{hierarchy.name}: the leaf {hierarchy.labels[node]!r} {what} ages next to the leaf "
                "before it; leaves cover each age once."
            )
    _check_spans(hierarchy, spans)
    leaf = np.concatenate([np.full(high - low + 1, node, np.int32) for low, high, node in covered])
    return AgeTree(hierarchy, covered[0][0], leaf)


def _check_spans(hierarchy: Hierarchy, spans: list[tuple[int, int]]) -> None:
    for node, (low, high) in enumerate(spans):
        leaves = hierarchy.leaves[hierarchy.first_leaf[node] : hierarchy.last_leaf[node] + 1]
        below = [spans[leaf] for leaf in leaves]
        years = sum(end - start + 1 for start, end in below)
        if (low, high) != (min(below)[0], max(below)[1]) or years != high - low + 1:
            raise BadInput(
                f"{hierarchy.name}: node {hierarchy.labels[node]!r} does not span the leaves below it; "
                "correct its label or its leaves."
            )


def block_label(age: int, level: int, first: int = FIRST) -> str:
    """The label of the block of 2^level years that holds `age` in the binary tree from `first` on."""
    start = first + ((age - first) >> level << level)
    return str(start) if level == 0 else f"{start}-{start + (1 << level) - 1}"


def _bounds(label: str, name: str = "age") -> tuple[int, int]:
    found = _LABEL.fullmatch(label)
    if found is None:
        raise BadInput(f"{name}: {label!r} is not an age label; write 33, 33-36 or 90+.")
    low = int(found[1])
    high = OPEN_END if found[3] else int(found[2] or low)
    if high < low:
        raise BadInput(f"{name}: the age label {label!r} ends before it begins.")
    return low, high
