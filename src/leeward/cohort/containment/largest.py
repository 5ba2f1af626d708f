"""The largest part of each record that at least k people of a population share (ALGORITHMS §4.9).

Of equally large parts the one with more of the lexicographically first code, then of the next. Solved exactly by
branch and bound over the overlaps of the population with the record, within a budget; a record whose search runs out
of it keeps the best part found, and the result says which records those are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.containment import kernels
from leeward.cohort.containment.multisets import Ints, Multisets, Population, item_offsets, levels_of

BUDGET = 2_000_000_000
"""Cells that the search for one record may look at: seconds, reached by hardly any record."""


@dataclass(frozen=True)
class Parts:
    """The part kept of each record, and whether it is known to be the largest one."""

    kept: Multisets
    exact: NDArray[np.bool_]


def largest_parts(population: Population, records: Multisets, k: int, budget: int = BUDGET) -> Parts:
    """The largest part of each record with distinguishability ≥ k; k must not exceed the population."""
    distinct, number = records.distinct()
    shared = distinct.capped_levels(_reached(population, k))
    floors, start = _by_dropping_the_rarest(population, shared, k)
    kept, exact = [start.take(np.array([r], np.int64)) for r in range(len(start))], np.ones(len(start), np.bool_)
    unsettled = np.flatnonzero(floors < shared.sizes())
    asked = shared.take(unsettled)
    projections = population.projections(asked, np.maximum(floors[unsettled], 1))
    for r, projection in zip(unsettled.tolist(), projections, strict=True):
        floor = max(int(floors[r]), 1)
        counts, found, exact[r] = kernels.largest_shared(projection.rows, projection.weights, k, floor, budget)
        if found:
            one = shared.take(np.array([r], np.int64))
            kept[r] = one.with_counts(counts)
    together = Multisets.together(kept)
    return Parts(together.take(number), exact[number])
