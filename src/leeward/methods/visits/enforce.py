"""Enforcement: every visit set is held exactly by at least k patients (docs/methods/visits.md#visit).

Sets are changed from the largest to the smallest. A changed set is always smaller (or climbed), and no other set loses
holders, so each size is one pass over the sets with fewer than k holders.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leeward.arrays import AnyArray, Int32s, distinct_of, offsets_of, positions_of, ranges_of
from leeward.methods.visits.kernels import enforce as kernels
from leeward.methods.visits.sets import Distinct, VisitSets, is_in

VISITS_AT_ONCE = 1 << 18


def enforce_visits(
    visits: VisitSets, labels: int, k: int, *, relative: bool = False, up: Int32s | None = None
) -> tuple[VisitSets, int]:
    """Change visits until every set has k holders; returns the visits and the number of steps. `labels`: number of
    labels, with the nodes that codes climb to. `up`: the node that replaces a label before it is deleted, -1 for none.
    """
    state = _State(visits, labels, k, np.full(labels, -1, np.int32) if up is None else up)
    steps = sum(state.step(chosen, relative) for chosen in state.buckets())
    return state.finish(visits), steps


class _State:
    """Arrays of the enforcement, one entry a set, grown before each step."""

    def __init__(self, visits: VisitSets, labels: int, k: int, up: Int32s) -> None:
        distinct = Distinct.of(visits, labels)
        self.k, self.up, self.set_of, self.hashed = k, up, distinct.set_of, distinct.hashed
        self.count = len(distinct.first)
        lengths = np.diff(visits.offsets)[distinct.first].astype(np.int32)
        starts = offsets_of(lengths)
        self.used = int(starts[-1])
        content = visits.values[positions_of(visits.offsets, distinct.first)]
        became = np.arange(self.count, dtype=np.int32)
        self.sets = kernels.Sets(content, starts[:-1], lengths, distinct.hashes, distinct.holders, became)
        self.lists = _list_holders(distinct, visits, k)
        self.held = _count_codes(visits, labels, up)
        self._fill_table(self.count)

    def _fill_table(self, sets: int) -> None:
        """A look-up table with room for so many sets: a power of two, at most half full."""
        self.table = np.full(1 << max(4, (2 * sets).bit_length()), kernels.FREE, np.int32)
        kernels.fill_table(self.table, self.sets.hashes, 0, self.count)

    def buckets(self) -> Iterator[Int32s]:
        """The sets to look at, step by step: most codes first, then most codes that can climb, then by their codes. A
        step makes sets of later buckets only, so each bucket is complete when its turn comes."""
        waiting: dict[tuple[int, int], list[Int32s]] = {}
        seen = 0
        while True:
            for key, ids in self._by_bucket(seen):
                waiting.setdefault(key, []).append(ids)
            seen = self.count
            if not waiting:
                return
            key = max(waiting)
            chosen = np.concatenate(waiting.pop(key))
            codes = self.sets.content[self.sets.starts[chosen][:, None] + np.arange(key[0])]
            yield chosen[np.lexsort(codes.T[::-1])]

    def _by_bucket(self, first: int) -> list[tuple[tuple[int, int], Int32s]]:
        """The unsafe sets from number `first` on, by (codes, codes that climb)."""
        ids = np.flatnonzero(self.sets.people[first : self.count] < self.k).astype(np.int32) + np.int32(first)
        if not len(ids):
            return []
        lengths = self.sets.lengths[ids].astype(np.int64)
        codes = self.sets.content[ranges_of(self.sets.starts[ids], lengths)]
        climbs = np.add.reduceat((self.up[codes] >= 0).astype(np.int64), offsets_of(lengths)[:-1])
        keys = lengths * (int(lengths.max()) + 1) + climbs
        order = np.argsort(keys, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
        return [((int(lengths[part[0]]), int(climbs[part[0]])), ids[part]) for part in parts]

    def step(self, chosen: Int32s, relative: bool) -> int:
        """Change the chosen sets; returns how many still had too few holders."""
        sets, used = self.count + len(chosen), self.used + int(self.sets.lengths[chosen].sum())
        if sets > len(self.sets.starts):
            self.sets = kernels.Sets(self.sets.content, *(_grow(each, sets) for each in self.sets[1:]))
            self.lists = self.lists._replace(head=_grow(self.lists.head, sets))
        if used > len(self.sets.content):
            self.sets = self.sets._replace(content=_grow(self.sets.content, used))
        if 2 * sets > len(self.table):
            self._fill_table(2 * sets)
        self.count, self.used, steps = kernels.enforce_bucket(
            chosen, self.k, relative, self.up, self.hashed, self.table, self.sets, self.lists, self.held, self.count,
            self.used,
        )  # fmt: skip
        return int(steps)

    def finish(self, visits: VisitSets) -> VisitSets:
        became = self.sets.became[: self.count]
        while len(became):
            further = np.where(became >= 0, became[np.maximum(became, 0)], became)
            if np.array_equal(further, became):
                break
            became = further
        last = np.maximum(np.append(became, -1)[self.set_of], -1)
        lengths, starts, content = (
            np.append(self.sets.lengths, 0),
            np.append(self.sets.starts, 0),
            self.sets.content,
        )
        del self.lists, self.held, self.table
        values = [np.zeros(0, np.int32)]
        for low in range(0, len(last), VISITS_AT_ONCE):
            some = last[low : low + VISITS_AT_ONCE]
            values.append(content[ranges_of(starts[some], lengths[some])])
        return VisitSets(visits.patient_offsets, offsets_of(lengths[last]), np.concatenate(values))


def _grow(array: AnyArray, needed: int) -> AnyArray:
    larger = np.zeros(max(needed, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _list_holders(distinct: Distinct, visits: VisitSets, k: int) -> kernels.Lists:
    """The holders of every set with fewer than k, as linked lists."""
    few = np.flatnonzero((distinct.set_of >= 0) & np.append(distinct.holders < k, False)[distinct.set_of])
    people = len(visits.patient_offsets)
    keys, times = np.unique(
        distinct.set_of[few] * np.int64(people) + visits.patient_of_visit()[few], return_counts=True
    )
    of_set = keys // people
    first = np.append(np.ones(min(1, len(keys)), np.bool_), np.diff(of_set) > 0)
    head = np.full(len(distinct.first), -1, np.int32)
    head[of_set[first]] = np.flatnonzero(first)
    after = np.arange(1, len(keys) + 1, dtype=np.int32)
    after[np.append(first[1:], True)[: len(keys)]] = -1
    return kernels.Lists(head, after, (keys % people).astype(np.int32), times.astype(np.int32))


def _count_codes(visits: VisitSets, labels: int, up: Int32s) -> kernels.Codes:
    """Each patient's codes and, for every one that can climb, the node above; and in how many visits they are."""
    sizes, codes, visits_with = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block in visits.blocks():
        keys, times = np.unique(block.keys(labels), return_counts=True)
        above = up[keys % max(labels, 1)]
        nodes = distinct_of((keys - keys % max(labels, 1) + above)[above >= 0])
        nodes = nodes[~is_in(nodes, keys)]
        every = np.concatenate([keys, nodes])
        order = np.argsort(every)
        patients = len(block.patient_offsets) - 1
        sizes.append(np.bincount(every // max(labels, 1), minlength=patients))
        codes.append((every % max(labels, 1))[order].astype(np.int32))
        visits_with.append(np.append(times, np.zeros(len(nodes), np.int64))[order].astype(np.int32))
    each, shown = np.concatenate(codes), np.concatenate(visits_with)
    return kernels.Codes(
        offsets_of(np.concatenate(sizes)), each, shown, np.bincount(each[shown > 0], minlength=labels)
    )
