"""Enforcement of G2: every visit set is part of what at least k patients have over all their visits (ALGORITHMS §5.2).

Deletions shrink those unions, so every set is recounted every round. A round deletes one code from every violating set:
the one that leaves the part which most unions contain, as counted when the round began.
"""

from __future__ import annotations

import numpy as np

from leeward.protect.visits import _containment as kernels
from leeward.protect.visits.enforce import Distinct, Ints, Longs, VisitSets


def unions(visits: VisitSets, labels: int) -> VisitSets:
    """One set a patient: all codes of the patient's visits."""
    starts, values = kernels.unite(visits.patient_offsets, visits.offsets, visits.values)
    return VisitSets(np.arange(len(starts), dtype=np.int64), starts, values)


def enforce_containment(visits: VisitSets, labels: int, k: int) -> tuple[VisitSets, int]:
    """Delete codes until every visit set is contained in k unions; returns the visits and the number of rounds."""
    rounds = 0
    while True:
        distinct = Distinct.of(visits, labels)
        everyone = unions(visits, labels)
        postings = Postings.of(everyone, labels)
        starts, lengths = visits.offsets[distinct.first], np.diff(visits.offsets)[distinct.first]
        # A set held exactly by k patients is contained in their unions.
        doubtful = np.flatnonzero(distinct.holders < k)
        counts = postings.count(visits.values, starts[doubtful], lengths[doubtful], k)
        bad = doubtful[counts < k]
        if not len(bad):
            return visits, rounds
        rounds += 1
        place = kernels.choose(visits.values, starts[bad], lengths[bad], *postings.arrays)
        out = np.full(len(distinct.first), -1, np.int64)
        out[bad] = place
        offsets, values = kernels.delete(visits.offsets, visits.values, distinct.set_of, out)
        visits = VisitSets(visits.patient_offsets, offsets, values)


class Postings:
    """Who holds each label, and what each patient holds."""

    def __init__(self, arrays: tuple[Longs, Ints, Longs, Ints]) -> None:
        self.arrays = arrays

    @staticmethod
    def of(everyone: VisitSets, labels: int) -> Postings:
        order = np.argsort(everyone.values, kind="stable")
        holders = np.repeat(np.arange(len(everyone), dtype=np.int32), np.diff(everyone.offsets))[order]
        starts = np.zeros(labels + 1, np.int64)
        np.cumsum(np.bincount(everyone.values, minlength=labels), out=starts[1:])
        return Postings((starts, holders, everyone.offsets, everyone.values))

    def count(self, content: Ints, starts: Longs, lengths: Longs, limit: int) -> Longs:
        """How many unions contain each set, counted up to `limit`."""
        found: Longs = kernels.count_containing(content, starts, lengths, *self.arrays, limit)
        return found
