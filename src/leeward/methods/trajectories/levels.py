"""Which published values say enough to be used: 3-digit codes and ages of 8 years, chapters and 16 years
(docs/methods/trajectories.md#measures)."""

from __future__ import annotations

import numpy as np

from leeward.arrays import Bools, Int32s, Int64s
from leeward.vocabulary.hierarchy import Hierarchy

USABLE_YEARS, CHAPTER_YEARS = 8, 16
CHAPTER = "chapter"


def usable_codes(tree: Hierarchy) -> Bools:
    """The nodes at 3-digit level (the category of a built-in vocabulary) or finer.

    Elsewhere the children of the root count as chapters, and what is below them is usable; so is every leaf.
    """
    if CHAPTER in tree.level_names:
        category = tree.level_names.index(CHAPTER) - 2
        found = tree.level <= category
    else:
        found = tree.depth > 1
    return np.asarray(found | tree.is_leaf(np.arange(len(tree))))


def chapter_codes(tree: Hierarchy) -> Bools:
    """The nodes at chapter level or finer: all but the root where there are no chapters."""
    known = CHAPTER in tree.level_names
    found = tree.level <= tree.level_names.index(CHAPTER) if known else tree.depth > 0
    return np.asarray(found | tree.is_leaf(np.arange(len(tree))))


def narrow(tree: Hierarchy, years: Int64s, widest: int) -> Bools:
    """The age nodes of at most `widest` years; leaves always. `years` is the width of each node."""
    return np.asarray((years <= widest) | tree.is_leaf(np.arange(len(tree))))


def highest(tree: Hierarchy, allowed: Bools) -> Int32s:
    """The highest allowed node at or above each node, int32; the node itself where none above is allowed.

    `allowed` must hold of all nodes below one of which it holds.
    """
    found = np.arange(len(tree), dtype=np.int32)
    for node in range(1, len(tree)):  # parents come first
        if allowed[tree.parent[node]]:
            found[node] = found[tree.parent[node]]
    return found
