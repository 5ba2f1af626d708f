"""Scope `raise`: the caps rise from nothing, the codes of most records first, and what fails is passed over
(docs/methods/censoring.md#raised-caps)."""

from __future__ import annotations

import numpy as np

from leeward.analysis.containment import Index, Multisets
from leeward.analysis.containment.multisets import item_offsets, levels_of
from leeward.arrays import UInt32s, offsets_of
from leeward.methods.censoring.gccens import Censored, censoring_order, highest


def censor(population: Index, capped: Multisets, k: int) -> Censored:
    """Raise each cap while every record of the sample stays contained in k people; k must not exceed the population.

    The order is GCCens's, backwards. Records that show the same form a class and share the list of people who contain
    what they show; a cap may rise when that list keeps k people in every class where some record would show more.
    """
    distinct, _ = capped.distinct()
    caps = highest(capped, len(population.caps))
    rank, code_at = censoring_order(capped, caps)
    starts = item_offsets(caps)
    owner, item = levels_of(distinct, starts)
    by_item = np.argsort(item, kind="stable")
    holders, bounds = owner[by_item], offsets_of(np.bincount(item, minlength=int(starts[-1])))
    item_at = np.argsort(rank)[::-1]
    level = item_at - starts[code_at[::-1]] + 1
    final = np.zeros(len(caps), np.int64)
    class_of = np.zeros(len(distinct), np.int64)
    people: list[UInt32s] = [np.arange(population.n, dtype=np.uint32)]
    members = [len(distinct)]
    has = np.zeros(population.n, np.bool_)
    counted = 0
    while True:
        before = int(final.sum())
        for i, c, at in zip(item_at.tolist(), code_at[::-1].tolist(), level.tolist(), strict=True):
            if at != final[c] + 1:
                continue
            those = population.owners(np.array([c], np.int32), np.array([at], np.int32))
            has[those] = True
            records = holders[bounds[i] : bounds[i + 1]]
            rising, place, sizes = np.unique(class_of[records], return_inverse=True, return_counts=True)
            smaller: dict[int, UInt32s] = {}
            for number in sorted(rising.tolist(), key=lambda number: len(people[number])):
                smaller[number] = people[number][has[people[number]]]
                counted += 1
                if len(smaller[number]) < k:
                    break
            else:
                class_of[records] = len(people) + place
                for number, size in zip(rising.tolist(), sizes.tolist(), strict=True):
                    people.append(smaller[number])
                    members.append(size)
                    members[number] -= size
                    if not members[number]:  # nobody shows just that any more
                        people[number] = people[number][:0]
                final[c] = at
            has[those] = False
        if int(final.sum()) == before:
            return Censored(capped.capped(final), final, code_at[:0], counted)
