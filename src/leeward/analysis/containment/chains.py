"""Chains: a record, and what is left of it as its mentions are dropped one after the other.

Parts of a chain are nested, so their distinguishability only grows; one question for all of them finds where a record
becomes safe, in a single pass over the population.
"""

from __future__ import annotations

import numpy as np

from leeward.analysis.containment import kernels
from leeward.analysis.containment.multisets import Multisets, Population, item_offsets, levels_of
from leeward.arrays import Int64s


def drop_order(records: Multisets, caps: Int64s, key: Int64s) -> Int64s:
    """Each record's mentions in the order in which they are dropped, as entries: int64[mentions].

    By rising `key` of (code, level), flat as `Population.supports`; at equal keys the later code and the higher level
    go first. `key` must not fall with the level, so that a code loses its highest level first.
    """
    starts = item_offsets(caps)
    owner, item = levels_of(records, starts)
    entry = np.repeat(np.arange(len(records.counts)), records.counts)
    return entry[np.lexsort((-item, key[item], owner))].astype(np.int64)


def states(records: Multisets, order: Int64s) -> Multisets:
    """The parts of every record after 0, 1, …, all of its mentions are dropped, record after record."""
    sizes = records.sizes()
    room = int((np.diff(records.offsets) * (sizes + 1)).sum())
    return Multisets(
        *kernels.chain_states(records.offsets, records.values, records.counts, sizes, order, room)
    )


def drops_needed(population: Population, records: Multisets, order: Int64s, k: int) -> Int64s:
    """How many mentions of each record must go, in `order`, until at least k people contain the rest: int64[n]."""
    lengths = records.sizes() + 1
    safe = population.counts(states(records, order), limit=k) >= k
    owner = np.repeat(np.arange(len(records)), lengths)
    return np.bincount(owner[~safe], minlength=len(records)).astype(np.int64)


def after_drops(records: Multisets, order: Int64s, drops: Int64s) -> Int64s:
    """What is left of each entry's count when the first `drops[r]` mentions of record r in `order` are gone."""
    sizes = records.sizes()
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    gone = order[place < np.repeat(drops, sizes)]
    return records.counts - np.bincount(gone, minlength=len(records.counts))
