"""Enforcement of G2: every visit set is part of what at least k patients have over all their visits (ALGORITHMS §5.2).

Deletions shrink those unions, so every set is recounted every round. A round deletes one code from every violating set:
the one that leaves the part which most unions contain, as counted when the round began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.engine import pool
from leeward.methods.visits.enforce import Distinct, Ints, Longs, VisitSets
from leeward.methods.visits.kernels import containment as kernels

PATIENTS_A_HOLDER = 1024
"""A label that more than one patient in so many holds has its holders as bits too."""

SETS_AT_ONCE = 1 << 14


def unions(visits: VisitSets, labels: int) -> VisitSets:
    """One set a patient: all codes of the patient's visits."""
    starts, values = kernels.unite(visits.patient_offsets, visits.offsets, visits.values)
    return VisitSets(np.arange(len(starts), dtype=np.int64), starts, values)


def enforce_containment(visits: VisitSets, labels: int, k: int, threads: int = 1) -> tuple[VisitSets, int]:
    """Delete codes until every visit set is contained in k unions; returns the visits and the number of rounds."""
    rounds = 0
    held = np.full(labels, -1, np.int64)
    moved = np.zeros(len(visits), np.bool_)
    while True:
        distinct = Distinct.of(visits, labels)
        postings = Postings.of(unions(visits, labels), labels)
        starts, lengths = visits.offsets[distinct.first], np.diff(visits.offsets)[distinct.first]
        # A set held exactly by k patients is contained in their unions. One that stood here a round ago had k, and
        # has them still unless somebody lost one of its codes.
        lost = postings.held() != held
        doubtful = np.flatnonzero(
            (distinct.holders < k) & (moved[distinct.first] | _any_of(lost, visits.values, starts, lengths))
        )
        counts = postings.count(visits.values, starts[doubtful], lengths[doubtful], k, threads)
        bad = doubtful[counts < k]
        if not len(bad):
            return visits, rounds
        rounds += 1
        out = np.full(len(distinct.first), -1, np.int64)
        out[bad] = postings.choose(visits.values, starts[bad], lengths[bad], threads)
        held = postings.held()
        moved = (distinct.set_of >= 0) & (out[distinct.set_of] >= 0)
        offsets, values = kernels.delete(visits.offsets, visits.values, distinct.set_of, out)
        visits = VisitSets(visits.patient_offsets, offsets, values)


def _any_of(marked: NDArray[np.bool_], values: Ints, starts: Longs, lengths: Longs) -> NDArray[np.bool_]:
    """Whether each set has a marked label."""
    bounds = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    within = np.repeat(starts - bounds[:-1], lengths) + np.arange(bounds[-1])
    counted = np.concatenate([[0], np.cumsum(marked[values[within]])])
    found: NDArray[np.bool_] = counted[bounds[1:]] > counted[bounds[:-1]]
    return found


@dataclass(frozen=True)
class Postings:
    """Who holds each label, what each patient holds, and a row of bits for each label that many hold (row_of; -1)."""

    starts: Longs
    holders: Ints
    everyone: VisitSets
    row_of: Ints
    bits: NDArray[np.uint64]

    @staticmethod
    def of(everyone: VisitSets, labels: int) -> Postings:
        order = np.argsort(everyone.values, kind="stable")
        holders = np.repeat(np.arange(len(everyone), dtype=np.int32), np.diff(everyone.offsets))[order]
        starts = np.zeros(labels + 1, np.int64)
        np.cumsum(np.bincount(everyone.values, minlength=labels), out=starts[1:])
        chosen = np.flatnonzero(np.diff(starts) * PATIENTS_A_HOLDER > len(everyone)).astype(np.int32)
        row_of = np.full(labels, -1, np.int32)
        row_of[chosen] = np.arange(len(chosen))
        bits = np.zeros((len(chosen), (len(everyone) + 63) // 64), np.uint64)
        kernels.fill_bits(chosen, starts, holders, bits)
        return Postings(starts, holders, everyone, row_of, bits)

    def held(self) -> Longs:
        """Patients with each label."""
        return np.diff(self.starts)

    def count(self, content: Ints, starts: Longs, lengths: Longs, limit: int, threads: int) -> Longs:
        """How many unions contain each set: `limit` where there are so many or more, less where there are not."""
        return self._each(kernels.count_containing, content, starts, lengths, threads, limit)

    def choose(self, content: Ints, starts: Longs, lengths: Longs, threads: int) -> Longs:
        """The place of the code that each set loses."""
        return self._each(kernels.choose, content, starts, lengths, threads)

    def _each(
        self, kernel: Any, content: Ints, starts: Longs, lengths: Longs, threads: int, *further: int
    ) -> Longs:
        """A kernel on all sets, some at a time: each set is by itself, so the threads change nothing."""
        found = np.empty(len(starts), np.int64)
        arrays = (
            self.starts,
            self.holders,
            self.everyone.offsets,
            self.everyone.values,
            self.row_of,
            self.bits,
        )

        def work(first: int) -> None:
            part = slice(first, first + SETS_AT_ONCE)
            kernel(content, starts[part], lengths[part], *arrays, *further, found[part])

        with pool(threads) as workers:
            list(workers.map(work, range(0, len(starts), SETS_AT_ONCE)))
        return found
