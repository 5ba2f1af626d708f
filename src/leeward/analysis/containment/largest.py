"""The largest part of each record that at least k people of a population share
(docs/methods/censoring.md#record-scope).

Of equally large parts the one with more of the lexicographically first code, then of the next. Solved exactly by
branch and bound over the overlaps of the population with the record, within a budget; a record whose search runs out
of it keeps the best part found, and the result says which records those are.

Chains: a record, and what is left of it as its mentions are dropped one after the other. Parts of a chain are nested,
so their distinguishability only grows; one question for all of them finds where a record becomes safe, in a single
pass over the population.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.analysis.containment import kernels
from leeward.analysis.containment.index import Multisets, Population, levels_of
from leeward.arrays import Bools, Int64s, offsets_of, ranges_of
from leeward.engine import pool


def drop_order(records: Multisets, caps: Int64s, key: Int64s) -> Int64s:
    """Each record's mentions in the order in which they are dropped, as entries: int64[mentions].

    By rising `key` of (code, level), flat as `Population.supports`; at equal keys the later code and the higher level
    go first. `key` must not fall with the level, so that a code loses its highest level first.
    """
    owner, item = levels_of(records, offsets_of(caps))
    entry = np.repeat(np.arange(len(records.counts)), records.counts)
    return entry[np.lexsort((-item, key[item], owner))].astype(np.int64)


def states(records: Multisets, order: Int64s) -> Multisets:
    """The parts of every record after 0, 1, …, all of its mentions are dropped, record after record."""
    sizes = records.sizes()
    room = int((np.diff(records.offsets) * (sizes + 1)).sum())
    return Multisets(
        *kernels.chain_states(records.offsets, records.values, records.counts, sizes, order, room)
    )


def count_drops(population: Population, records: Multisets, order: Int64s, k: int) -> Int64s:
    """How many mentions of each record must go, in `order`, until at least k people contain the rest: int64[n]."""
    lengths = records.sizes() + 1
    safe = population.counts(states(records, order), limit=k) >= k
    owner = np.repeat(np.arange(len(records)), lengths)
    return np.bincount(owner[~safe], minlength=len(records)).astype(np.int64)


def after_drops(records: Multisets, order: Int64s, drops: Int64s) -> Int64s:
    """What is left of each entry's count when the first `drops[r]` mentions of record r in `order` are gone."""
    sizes = records.sizes()
    gone = order[ranges_of(np.zeros_like(sizes), sizes) < np.repeat(drops, sizes)]
    return records.counts - np.bincount(gone, minlength=len(records.counts))


BUDGET = 2_000_000_000
"""Cells that the search for one record may look at: about two seconds, which hardly any record needs."""


class Parts(NamedTuple):
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
    shared = distinct.cap(_highest_levels(supports, population.caps, k))
    order = drop_order(shared, population.caps, supports)
    drops = count_drops(population, shared, order, k)
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
    starts = offsets_of(caps)
    return np.asarray(enough[starts[1:]] - enough[starts[:-1]], np.int64)
