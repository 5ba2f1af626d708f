"""Enforcement: every visit set is held exactly by at least k patients (G3; ALGORITHMS §5.2).

Sets are changed from the largest to the smallest. A changed set is always smaller (or climbed), and no other set loses
holders, so each size is one pass over the sets that too few hold, and only those are ever touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.methods.visits.kernels import enforce as kernels

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class VisitSets:
    """Visits after merging: `values` number labels in ascending order, visits may be empty."""

    patient_offsets: Longs
    offsets: Longs
    values: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def patient_of_visit(self) -> Ints:
        return np.repeat(
            np.arange(len(self.patient_offsets) - 1, dtype=np.int32), np.diff(self.patient_offsets)
        )

    def emptied(self) -> int:
        """Visits without any code."""
        return int(np.count_nonzero(np.diff(self.offsets) == 0))


@dataclass(frozen=True)
class Distinct:
    """The distinct non-empty sets of some visits."""

    set_of: Ints
    first: Longs
    hashes: NDArray[np.uint64]
    holders: Ints

    @staticmethod
    def of(visits: VisitSets, labels: int) -> Distinct:
        table = np.full(_room(len(visits)), kernels.FREE, np.int32)
        hashed = kernels.hash_codes(labels)
        set_of, first, hashes = kernels.number_sets(visits.offsets, visits.values, hashed, table)
        return Distinct(
            set_of, first, hashes, kernels.count_holders(set_of, visits.patient_offsets, len(first))
        )


def violations(visits: VisitSets, labels: int, k: int) -> int:
    """How many distinct visit sets fewer than k patients hold."""
    return int(np.count_nonzero(Distinct.of(visits, labels).holders < k))


def enforce_visits(
    visits: VisitSets, labels: int, k: int, *, relative: bool = False, up: Ints | None = None
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

    up: Ints
    hashed: NDArray[np.uint64]
    set_of: Ints
    sets: int
    used: int
    table: Ints
    content: Ints
    starts: Longs
    lengths: Ints
    hashes: NDArray[np.uint64]
    count: Ints
    became: Ints
    head: Ints
    after: Ints
    patient: Ints
    times: Ints
    held_starts: Longs
    held_codes: Ints
    held_times: Ints
    frequency: Longs
    k: int

    @staticmethod
    def of(visits: VisitSets, labels: int, k: int, up: Ints) -> _State:
        distinct = Distinct.of(visits, labels)
        sets = len(distinct.first)
        lengths = np.diff(visits.offsets)[distinct.first].astype(np.int32)
        starts = np.zeros(sets + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        take = np.repeat(visits.offsets[distinct.first] - starts[:-1], lengths) + np.arange(starts[-1])
        head, after, patient, times = kernels.list_holders(
            distinct.set_of, visits.patient_offsets, distinct.holders, k
        )
        held_starts, held_codes, held_times = kernels.count_codes(
            visits.patient_offsets, visits.offsets, visits.values, up
        )
        table = np.full(_room(sets), kernels.FREE, np.int32)
        kernels.fill_table(table, distinct.hashes, 0, sets)
        return _State(
            up,
            kernels.hash_codes(labels),
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
            held_starts,
            held_codes,
            held_times,
            kernels.count_patients(held_codes, held_times, labels),
            k,
        )

    def buckets(self) -> Iterator[Ints]:
        """The sets to look at, step by step: most codes first, then most codes that can climb, then by their codes.

        A step makes sets of later buckets only, so each bucket is complete when its turn comes.
        """
        waiting: dict[tuple[int, int], list[Ints]] = {}
        seen = 0
        while True:
            for key, ids in self._by_bucket(seen):
                waiting.setdefault(key, []).append(ids)
            seen = self.sets
            if not waiting:
                return
            key = max(waiting)
            yield self._in_order(np.concatenate(waiting.pop(key)), key[0])

    def _by_bucket(self, first: int) -> list[tuple[tuple[int, int], Ints]]:
        """The unsafe sets from number `first` on, by (codes, codes that climb)."""
        ids = np.flatnonzero(self.count[first : self.sets] < self.k).astype(np.int32) + np.int32(first)
        if not len(ids):
            return []
        lengths = self.lengths[ids].astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        within = np.repeat(self.starts[ids] - bounds[:-1], lengths) + np.arange(bounds[-1])
        climbs = np.add.reduceat((self.up[self.content[within]] >= 0).astype(np.int64), bounds[:-1])
        keys = lengths * (int(lengths.max()) + 1) + climbs
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        parts = np.split(order, cuts)
        return [((int(lengths[part[0]]), int(climbs[part[0]])), ids[part]) for part in parts]

    def _in_order(self, ids: Ints, length: int) -> Ints:
        """Sets of one length by their codes."""
        columns = self.content[self.starts[ids][:, None] + np.arange(length)]
        return ids[np.lexsort(columns.T[::-1])]

    def step(self, chosen: Ints, k: int, relative: bool) -> int:
        """Change the chosen sets; returns how many still had too few holders."""
        self._make_room(len(chosen), int(self.lengths[chosen].sum()))
        self.sets, self.used, steps = kernels.enforce_bucket(
            chosen,
            k,
            relative,
            self.up,
            self.hashed,
            self.table,
            self.content,
            self.starts,
            self.lengths,
            self.hashes,
            self.count,
            self.became,
            self.head,
            self.after,
            self.patient,
            self.times,
            self.held_starts,
            self.held_codes,
            self.held_times,
            self.frequency,
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
            self.table = np.full(_room(2 * (self.sets + sets)), kernels.FREE, np.int32)
            kernels.fill_table(self.table, self.hashes, 0, self.sets)


def _grown(array: NDArray[Any], needed: int) -> NDArray[Any]:
    larger = np.zeros(max(needed, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def _room(entries: int) -> int:
    """Places of a look-up table for so many entries: a power of two, at most half full."""
    return 1 << max(4, (2 * entries).bit_length())
