"""Enforcement of `containment`: what a record shows of each of its visits is part of at least k records.

A record is the union of a patient's visits, so a code that leaves one visit leaves all visits of that patient: else the
record would still show it of the visit that lost it (docs/methods/visits.md#containment). Deletions shrink the unions,
so every set is recounted every round. A round deletes one code from every violating set: the one that leaves the part
which most unions contain, as counted when the round began. At the end codes return where that harms nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s, offsets_of
from leeward.engine import pool
from leeward.methods.visits.kernels import containment as kernels
from leeward.methods.visits.sets import Distinct, VisitSets, unions

PATIENTS_A_HOLDER = 1024
"""A label that more than one patient in so many holds has its holders as bits too."""

SETS_AT_ONCE = 1 << 14


def enforce_containment(visits: VisitSets, labels: int, k: int, threads: int = 1) -> tuple[VisitSets, int]:
    """Delete codes until what each union shows of each visit is in k unions; returns visits and number of rounds."""
    source = visits
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
            return put_back(source, visits, labels, k, threads), rounds
        rounds += 1
        out = np.full(len(distinct.first), -1, np.int64)
        out[bad] = postings.choose(visits.values, starts[bad], lengths[bad], threads)
        held = postings.held()
        offsets, values = kernels.delete(
            visits.patient_offsets,
            visits.offsets,
            visits.values,
            distinct.set_of,
            out,
            np.zeros(labels, np.bool_),
        )
        moved = np.diff(offsets) < np.diff(visits.offsets)
        visits = VisitSets(visits.patient_offsets, offsets, values)


def put_back(source: VisitSets, visits: VisitSets, labels: int, k: int, threads: int = 1) -> VisitSets:
    """Show codes of `source` again where what each visit then shows is part of k records, until no code can return.

    Codes that return only raise what others can count on, so each round may take one code of every patient: the one
    that most patients show, the smallest among equals. A code that could not return still cannot when none of the codes
    that its visits would show has returned to anybody since: nobody more has them.
    """
    everyone = unions(visits, labels)
    patient, code = kernels.find_lost(
        source.patient_offsets, source.offsets, source.values, everyone.offsets, everyone.values
    )
    allowed, returned = np.ones(len(patient), np.bool_), np.zeros(labels, np.bool_)
    while len(patient):
        postings = Postings.of(everyone, labels)
        allowed = postings.may_return(patient, code, source, k - 1, threads, allowed, returned)
        if not allowed.any():
            break
        held = postings.held()
        candidates = np.flatnonzero(allowed)
        order = candidates[np.lexsort((code[candidates], -held[code[candidates]], patient[candidates]))]
        first = np.ones(len(order), np.bool_)
        first[1:] = patient[order[1:]] != patient[order[:-1]]
        chosen = order[first]
        everyone = _with(everyone, patient[chosen], code[chosen])
        left = np.ones(len(patient), np.bool_)
        left[chosen] = False
        returned = np.bincount(code[chosen], minlength=labels) > 0
        patient, code, allowed = patient[left], code[left], allowed[left]
    return cut_to(source, everyone, labels)


def _with(everyone: VisitSets, patient: Int32s, code: Int32s) -> VisitSets:
    """The unions with one further code for some patients (ascending)."""
    values = np.concatenate([everyone.values, code])
    owner = np.concatenate(
        [np.repeat(np.arange(len(everyone), dtype=np.int32), np.diff(everyone.offsets)), patient]
    )
    order = np.lexsort((values, owner))
    offsets = offsets_of(np.bincount(owner, minlength=len(everyone)))
    return VisitSets(everyone.patient_offsets, offsets, values[order])


def cut_to(source: VisitSets, everyone: VisitSets, labels: int) -> VisitSets:
    """What each patient's union shows of each visit."""
    width = np.int64(max(labels, 1))
    visit = np.repeat(np.arange(len(source)), np.diff(source.offsets))
    mine = source.patient_of_visit()[visit] * width + source.values
    theirs = np.repeat(np.arange(len(everyone)), np.diff(everyone.offsets)) * width + everyone.values
    kept = np.isin(mine, theirs)
    offsets = offsets_of(np.bincount(visit[kept], minlength=len(source)))
    return VisitSets(source.patient_offsets, offsets, source.values[kept])


def _any_of(marked: NDArray[np.bool_], values: Int32s, starts: Int64s, lengths: Int64s) -> NDArray[np.bool_]:
    """Whether each set has a marked label."""
    bounds = offsets_of(lengths)
    within = np.repeat(starts - bounds[:-1], lengths) + np.arange(bounds[-1])
    counted = offsets_of(marked[values[within]])
    found: NDArray[np.bool_] = counted[bounds[1:]] > counted[bounds[:-1]]
    return found


@dataclass(frozen=True)
class Postings:
    """Who holds each label, what each patient holds, and a row of bits for each label that many hold (row_of; -1)."""

    starts: Int64s
    holders: Int32s
    everyone: VisitSets
    row_of: Int32s
    bits: NDArray[np.uint64]

    @staticmethod
    def of(everyone: VisitSets, labels: int) -> Postings:
        order = np.argsort(everyone.values, kind="stable")
        holders = np.repeat(np.arange(len(everyone), dtype=np.int32), np.diff(everyone.offsets))[order]
        starts = offsets_of(np.bincount(everyone.values, minlength=labels))
        chosen = np.flatnonzero(np.diff(starts) * PATIENTS_A_HOLDER > len(everyone)).astype(np.int32)
        row_of = np.full(labels, -1, np.int32)
        row_of[chosen] = np.arange(len(chosen))
        bits = np.zeros((len(chosen), (len(everyone) + 63) // 64), np.uint64)
        kernels.fill_bits(chosen, starts, holders, bits)
        return Postings(starts, holders, everyone, row_of, bits)

    def held(self) -> Int64s:
        """Patients with each label."""
        return np.diff(self.starts)

    def count(self, content: Int32s, starts: Int64s, lengths: Int64s, limit: int, threads: int) -> Int64s:
        """How many unions contain each set: `limit` where there are so many or more, less where there are not."""
        return self._count(content, starts, lengths, np.full(len(starts), -1), limit, limit, threads)

    def choose(self, content: Int32s, starts: Int64s, lengths: Int64s, threads: int) -> Int64s:
        """The place of the code that each set loses."""
        likely = kernels.rarest_places(content, starts, lengths, np.full(len(starts), -1), self.starts)
        most = self._count(content, starts, lengths, likely, 0, 1 << 60, threads)
        rarest = content[starts + likely].astype(np.int64)
        return self._each(
            kernels.choose, rarest, threads, content, starts, lengths, likely, self.arrays(), most
        )

    def may_return(
        self,
        patient: Int32s,
        code: Int32s,
        source: VisitSets,
        others: int,
        threads: int,
        asked: NDArray[np.bool_],
        returned: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Whether each code could be shown again of its patient, with `others` besides who share each visit's part. Not
        counted again are codes neither `asked` for nor with a `returned` one (bool[labels]) in a part."""
        entry, offsets, codes = kernels.parts_with(
            patient, code, source.patient_offsets, source.offsets, source.values, self.arrays()
        )
        allowed = asked.copy()
        allowed[entry[_any_of(returned, codes, offsets[:-1], np.diff(offsets))]] = True
        entry, starts, lengths = (each[allowed[entry]] for each in (entry, offsets[:-1], np.diff(offsets)))
        allowed[entry[self.count(codes, starts, lengths, others, threads) < others]] = False
        return allowed

    def arrays(self) -> kernels.Holders:
        """The same for the kernels."""
        return kernels.Holders(
            self.starts, self.holders, self.everyone.offsets, self.everyone.values, self.row_of, self.bits
        )

    def _count(
        self,
        content: Int32s,
        starts: Int64s,
        lengths: Int64s,
        skipped: Int64s,
        needed: int,
        limit: int,
        threads: int,
    ) -> Int64s:
        place = kernels.rarest_places(content, starts, lengths, skipped, self.starts)
        rarest = np.full(len(starts), -1, np.int64)
        rarest[place >= 0] = content[(starts + place)[place >= 0]]
        return self._each(
            kernels.count_containing,
            rarest,
            threads,
            content,
            starts,
            lengths,
            skipped,
            self.arrays(),
            needed,
            limit,
        )

    def _each(self, kernel: Any, rarest: Int64s, threads: int, *further: Any) -> Int64s:
        """A kernel on all sets, some at a time: each set is by itself, so the threads change nothing. Sets with the
        same rarest code are together, so that its holders are looked at for all of them."""
        found = np.empty(len(rarest), np.int64)
        order = np.argsort(rarest, kind="stable")

        def work(first: int) -> None:
            kernel(order[first : first + SETS_AT_ONCE], rarest, *further, found)

        with pool(threads) as workers:
            list(workers.map(work, range(0, len(rarest), SETS_AT_ONCE)))
        return found
