"""The largest part of each record that at least k people of a population share
(docs/methods/censoring.md#record-scope).

Of equally large parts the one with more of the lexicographically first code, then of the next. Solved exactly by
branch and bound over the overlaps of the population with the record, within a budget; a record whose search runs out
of it keeps the best part found, and the result says which records those are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leeward.analysis.containment import kernels
from leeward.analysis.containment.chains import after_drops, drop_order, drops_needed
from leeward.analysis.containment.multisets import Multisets, Population, item_offsets
from leeward.arrays import Bools, Int64s, offsets_of
from leeward.engine import pool

BUDGET = 2_000_000_000
"""Cells that the search for one record may look at: about two seconds, which hardly any record needs."""


@dataclass(frozen=True)
class Parts:
    """The part kept of each record, and whether it is known to be the largest one."""

    kept: Multisets
    exact: Bools


def largest_parts(population: Population, records: Multisets, k: int, budget: int = BUDGET) -> Parts:
    """The largest part of each record with distinguishability ≥ k, which must not exceed the population.

    1. Mentions that fewer than k people reach by themselves go.
    2. Dropping the rarest mention first until k people contain the rest gives a part to beat.
    3. Only people who share at least as much with the record can do better: the search runs over their overlaps.
    """
    distinct, number = records.distinct()
    supports = population.supports()
    shared = distinct.capped(_highest_levels(supports, population.caps, k))
    order = drop_order(shared, population.caps, supports)
    drops = drops_needed(population, shared, order, k)
    counts = after_drops(shared, order, drops)
    exact = np.ones(len(shared), np.bool_)
    unsettled = np.flatnonzero(drops > 0)
    floors = np.maximum(shared.sizes() - drops, 1)

    def search(those: Int64s) -> None:
        projections = population.projections(shared.take(those), floors[those])
        for r, projection in zip(those.tolist(), projections, strict=True):
            levels, found, exact[r] = kernels.find_largest_part(
                projection.rows, projection.weights, k, int(floors[r]), budget
            )
            if found:
                counts[shared.offsets[r] : shared.offsets[r + 1]] = levels

    with pool(population.threads) as workers:
        list(workers.map(search, np.array_split(unsettled, population.threads)))
    return Parts(shared.with_counts(counts).take(number), exact[number])


def _highest_levels(supports: Int64s, caps: Int64s, k: int) -> Int64s:
    """The highest level of each code that at least k people reach, int64[codes]."""
    enough = offsets_of(supports >= k)
    starts = item_offsets(caps)
    return np.asarray(enough[starts[1:]] - enough[starts[:-1]], np.int64)
