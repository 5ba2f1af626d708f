"""Enforcement: every visit set is held exactly by at least k patients (docs/methods/visits.md#visit).

Sets are changed from the largest to the smallest. A changed set is always smaller (or climbed), and no other set loses
holders, so each size is one pass over the sets that too few hold, and only those are ever touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s, offsets_of
from leeward.methods.visits.kernels import enforce as kernels
from leeward.methods.visits.kernels import sets as numbering
from leeward.methods.visits.sets import Distinct, VisitSets, room


def enforce_visits(
    visits: VisitSets, labels: int, k: int, *, relative: bool = False, up: Int32s | None = None
) -> tuple[VisitSets, int]:
    """Change visits until every set has k holders; returns the visits and the number of steps.

    labels : number of labels (nodes that codes climb to included).
    up : for each label the node that takes its place before it is deleted, -1 for none.
    """
    up = np.full(labels, -1, np.int32) if up is None else up
    state = _State.of(visits, labels, k, up)
    steps = 0
    for chosen in state.buckets():
        steps += state.step(chosen, k, relative)
    last = kernels.follow(state.set_of, state.became)
    offsets, values = kernels.spread(last, state.starts, state.lengths, state.content)
    return VisitSets(visits.patient_offsets, offsets, values), steps


@dataclass
class _State:
    """Arrays of the enforcement, one entry a set, grown before each step."""

    up: Int32s
    hashed: NDArray[np.uint64]
    set_of: Int32s
    sets: int
    used: int
    table: Int32s
    content: Int32s
    starts: Int64s
    lengths: Int32s
    hashes: NDArray[np.uint64]
    count: Int32s
    became: Int32s
    head: Int32s
    after: Int32s
    patient: Int32s
    times: Int32s
    held: kernels.Codes
    k: int

    @staticmethod
    def of(visits: VisitSets, labels: int, k: int, up: Int32s) -> _State:
        distinct = Distinct.of(visits, labels)
        sets = len(distinct.first)
        lengths = np.diff(visits.offsets)[distinct.first].astype(np.int32)
        starts = offsets_of(lengths)
        take = np.repeat(visits.offsets[distinct.first] - starts[:-1], lengths) + np.arange(starts[-1])
        head, after, patient, times = kernels.list_holders(
            distinct.set_of, visits.patient_offsets, distinct.holders, k
        )
        held = kernels.count_codes(visits.patient_offsets, visits.offsets, visits.values, up)
        table = np.full(room(sets), numbering.FREE, np.int32)
        numbering.fill_table(table, distinct.hashes, 0, sets)
        return _State(
            up,
            numbering.hash_codes(labels),
            distinct.set_of,
            sets,
            int(starts[-1]),
            table,
            visits.values[take],
            starts[:-1].copy(),
            lengths,
            distinct.hashes,
            distinct.holders,
            np.arange(sets, dtype=np.int32),
            head,
            after,
            patient,
            times,
            kernels.Codes(held[0], held[1], held[2], kernels.count_patients(held[1], held[2], labels)),
            k,
        )

    def buckets(self) -> Iterator[Int32s]:
        """The sets to look at, step by step: most codes first, then most codes that can climb, then by their codes.

        A step makes sets of later buckets only, so each bucket is complete when its turn comes.
        """
        waiting: dict[tuple[int, int], list[Int32s]] = {}
        seen = 0
        while True:
            for key, ids in self._by_bucket(seen):
                waiting.setdefault(key, []).append(ids)
            seen = self.sets
            if not waiting:
                return
            key = max(waiting)
            yield self._in_order(np.concatenate(waiting.pop(key)), key[0])

    def _by_bucket(self, first: int) -> list[tuple[tuple[int, int], Int32s]]:
        """The unsafe sets from number `first` on, by (codes, codes that climb)."""
        ids = np.flatnonzero(self.count[first : self.sets] < self.k).astype(np.int32) + np.int32(first)
        if not len(ids):
            return []
        lengths = self.lengths[ids].astype(np.int64)
        bounds = offsets_of(lengths)
        within = np.repeat(self.starts[ids] - bounds[:-1], lengths) + np.arange(bounds[-1])
        climbs = np.add.reduceat((self.up[self.content[within]] >= 0).astype(np.int64), bounds[:-1])
        keys = lengths * (int(lengths.max()) + 1) + climbs
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        parts = np.split(order, cuts)
        return [((int(lengths[part[0]]), int(climbs[part[0]])), ids[part]) for part in parts]

    def _in_order(self, ids: Int32s, length: int) -> Int32s:
        """Sets of one length by their codes."""
        columns = self.content[self.starts[ids][:, None] + np.arange(length)]
        return ids[np.lexsort(columns.T[::-1])]

    def step(self, chosen: Int32s, k: int, relative: bool) -> int:
        """Change the chosen sets; returns how many still had too few holders."""
        self._make_room(len(chosen), int(self.lengths[chosen].sum()))
        self.sets, self.used, steps = kernels.enforce_bucket(
            chosen,
            k,
            relative,
            self.up,
            self.hashed,
            self.table,
            kernels.Sets(self.content, self.starts, self.lengths, self.hashes, self.count, self.became),
            kernels.Lists(self.head, self.after, self.patient, self.times),
            self.held,
            self.sets,
            self.used,
        )
        return int(steps)

    def _make_room(self, sets: int, content: int) -> None:
        """Room for so many further sets with so many codes in all."""
        if self.sets + sets > len(self.starts):
            for name in ("starts", "lengths", "hashes", "count", "became", "head"):
                setattr(self, name, _grown(getattr(self, name), self.sets + sets))
        if self.used + content > len(self.content):
            self.content = _grown(self.content, self.used + content)
        if 2 * (self.sets + sets) > len(self.table):
            self.table = np.full(room(2 * (self.sets + sets)), numbering.FREE, np.int32)
            numbering.fill_table(self.table, self.hashes, 0, self.sets)


def _grown(array: NDArray[Any], needed: int) -> NDArray[Any]:
    larger = np.zeros(max(needed, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
