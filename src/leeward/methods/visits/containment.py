"""Enforcement of `containment`: the shown part of each visit of a record is contained in at least k records.

A record is the union of a patient's visits, so a code deleted from one visit is deleted from all visits of the patient:
else the record would still show it of that visit (docs/methods/visits.md#containment). Deletions shrink the unions,
so every set is recounted every round. A round deletes one code from every violating set: the one whose removal leaves
the part that most unions contain when the round begins. At the end codes return where all sets stay in k unions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leeward.analysis import itemsets
from leeward.arrays import Bools, Int32s, Int64s, distinct_of, offsets_of, positions_of, ranges_of
from leeward.engine import pool
from leeward.methods.visits.kernels import containment as kernels
from leeward.methods.visits.sets import Distinct, VisitSets, cut_to, is_in, sets_of, unions

PATIENTS_A_HOLDER = 1024
"""Labels held by more than one patient in so many have their holders as bits too."""

SETS_AT_ONCE = 1 << 16
NOBODY, NO_LIMIT = 1 << 62, 1 << 60


def enforce_containment(visits: VisitSets, labels: int, k: int, threads: int = 1) -> tuple[VisitSets, int]:
    """Delete codes until the shown part of each visit is in k unions; returns visits and number of rounds."""
    source = visits
    rounds = 0
    held = np.full(labels, -1, np.int64)
    moved = np.zeros(len(visits), np.bool_)
    while True:
        distinct = Distinct.of(visits, labels)
        postings = Postings.of(unions(visits, labels), labels)
        starts, lengths = visits.offsets[distinct.first], np.diff(visits.offsets)[distinct.first]
        # A set held exactly by k patients is contained in their unions. One that the last round left had k, and
        # still has them unless a patient lost one of its codes.
        lost = postings.count_held() != held
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
        held = postings.count_held()
        # Delete the code from all visits of the patient: otherwise the record would still show it of this visit.
        losing = np.flatnonzero(np.append(out, -1)[distinct.set_of] >= 0)
        keys = visits.keys(labels)
        gone = distinct_of(keys[visits.offsets[losing] + out[distinct.set_of[losing]]])
        left = visits.keep(~is_in(keys, gone))
        moved = np.diff(left.offsets) < np.diff(visits.offsets)
        visits = left


def put_back(source: VisitSets, visits: VisitSets, labels: int, k: int, threads: int = 1) -> VisitSets:
    """Restore codes of `source` while the shown part of each visit stays in k records, until no code can return.

    Restored codes only add holders, so each round may restore one code of every patient: the one that most patients
    show, the smallest among equals. A code that could not return still cannot if none of the codes that its visits
    would show has been restored since, to any patient: their holders are the same.
    """
    everyone = unions(visits, labels)
    width = max(labels, 1)
    lost = distinct_of(source.keys(labels))
    lost = lost[~is_in(lost, everyone.keys(labels))]
    allowed, returned = np.ones(len(lost), np.bool_), np.zeros(labels, np.bool_)
    while len(lost):
        postings = Postings.of(everyone, labels)
        allowed = postings.may_return(lost, source, k - 1, threads, allowed, returned)
        if not allowed.any():
            break
        patient, code = lost // width, lost % width
        candidates = np.flatnonzero(allowed)
        order = candidates[
            np.lexsort((code[candidates], -postings.count_held()[code[candidates]], patient[candidates]))
        ]
        first = np.ones(len(order), np.bool_)
        first[1:] = patient[order[1:]] != patient[order[:-1]]
        chosen = order[first]
        everyone = sets_of(np.sort(np.append(everyone.keys(labels), lost[chosen])), len(everyone), labels)
        left = np.ones(len(lost), np.bool_)
        left[chosen] = False
        returned = np.bincount(code[chosen], minlength=labels) > 0
        lost, allowed = lost[left], allowed[left]
    return cut_to(source, everyone, labels)


def _any_of(marked: Bools, values: Int32s, starts: Int64s, lengths: Int64s) -> Bools:
    bounds, counted = offsets_of(lengths), offsets_of(marked[values[ranges_of(starts, lengths)]])
    found: Bools = counted[bounds[1:]] > counted[bounds[:-1]]
    return found


@dataclass(frozen=True)
class Postings:
    """The holders of each label, the labels of each patient, and a row of bits for each frequent label."""

    holders: kernels.Holders
    everyone: VisitSets
    labels: int

    @staticmethod
    def of(everyone: VisitSets, labels: int) -> Postings:
        starts, holders = itemsets.postings(everyone.offsets, everyone.values, labels)
        chosen = np.flatnonzero(np.diff(starts) * PATIENTS_A_HOLDER > len(everyone))
        row_of = np.full(labels, -1, np.int32)
        row_of[chosen] = np.arange(len(chosen))
        bits = itemsets.bit_rows(
            [holders[starts[label] : starts[label + 1]] for label in chosen], len(everyone)
        )
        return Postings(
            kernels.Holders(starts, holders, everyone.offsets, everyone.values, row_of, bits),
            everyone,
            labels,
        )

    def count_held(self) -> Int64s:
        return np.diff(self.holders.postings)

    def count(self, content: Int32s, starts: Int64s, lengths: Int64s, limit: int, threads: int) -> Int64s:
        """Number of unions that contain each set, `limit` at most; if fewer than `limit`, any smaller number."""
        _, rarest, _ = self._rarest(content, starts, lengths)
        every, needed = np.full(len(starts), -1), np.full(len(starts), limit)
        return self._count(rarest, threads, content, starts, lengths, every, self.holders, needed, limit)

    def choose(self, content: Int32s, starts: Int64s, lengths: Int64s, threads: int) -> Int64s:
        """The place of the code of each set that leaves the part with most holders (ties: the last place). Of parts of
        one set that without the larger code is the smaller one. The part without the rarest code mostly wins: counting
        of the others stops as soon as they cannot win."""
        likely, rarest, next_rarest = self._rarest(content, starts, lengths)
        further = content, starts, lengths, likely, self.holders, np.zeros(len(starts), np.int64), NO_LIMIT
        most = self._count(next_rarest, threads, *further)
        owner, place = np.repeat(np.arange(len(starts)), lengths), ranges_of(np.zeros_like(lengths), lengths)
        other = place != likely[owner]
        owner, place = owner[other], place[other]
        needed = most[owner] + (place < likely[owner])
        further = content, starts[owner], lengths[owner], place, self.holders, needed, NO_LIMIT
        width = int(lengths.max(initial=0)) + 1
        best = most * width + likely
        np.maximum.at(best, owner, self._count(rarest[owner], threads, *further) * width + place)
        return best % width

    def may_return(
        self, lost: Int64s, source: VisitSets, others: int, threads: int, asked: Bools, returned: Bools
    ) -> Bools:
        """Whether each lost code (`VisitSets.keys`) could return: `others` further patients share each visit's part.
        Codes neither in `asked` nor with a `returned` code (bool[labels]) in a part are not counted again."""
        entry, offsets, codes = self._parts_with(lost, source)
        allowed = asked.copy()
        allowed[entry[_any_of(returned, codes, offsets[:-1], np.diff(offsets))]] = True
        entry, starts, lengths = (each[allowed[entry]] for each in (entry, offsets[:-1], np.diff(offsets)))
        allowed[entry[self.count(codes, starts, lengths, others, threads) < others]] = False
        return allowed

    def _parts_with(self, lost: Int64s, source: VisitSets) -> tuple[Int64s, Int64s, Int32s]:
        """(place in `lost`, offsets, codes) of the part of each visit with a lost code once the code is shown again."""
        keys = source.keys(self.labels)
        by_key = np.argsort(keys, kind="stable")
        low, high = (np.searchsorted(keys[by_key], lost, side=side) for side in ("left", "right"))
        entry = np.repeat(np.arange(len(lost)), high - low)
        visit = itemsets.owners_of(source.offsets)[by_key[ranges_of(low, high - low)]]
        sizes = np.diff(source.offsets)[visit]
        at, wanted = positions_of(source.offsets, visit), np.repeat(lost[entry], sizes)
        kept = (keys[at] == wanted) | is_in(keys, self.everyone.keys(self.labels))[at]
        return entry, offsets_of(kept)[offsets_of(sizes)], source.values[at[kept]]

    def _rarest(self, content: Int32s, starts: Int64s, lengths: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """The place of the rarest code of each set (ties: the first), this code, and the rarest of the others (-1:
        none); no set is empty."""
        first, width = offsets_of(lengths)[:-1], int(lengths.max(initial=0)) + 1
        place = ranges_of(np.zeros_like(lengths), lengths)
        rank = self.count_held()[content[ranges_of(starts, lengths)]] * width + place
        likely = np.minimum.reduceat(rank, first) % width
        rank[first + likely] = NOBODY
        least = np.minimum.reduceat(rank, first)
        second = np.where(least == NOBODY, -1, content[starts + least % width * (least < NOBODY)])
        return likely, content[starts + likely].astype(np.int64), second.astype(np.int64)

    @staticmethod
    def _count(rarest: Int64s, threads: int, *further: Any) -> Int64s:
        """Run the kernel on all sets in batches; sets are independent, so threads do not change the result. Sets with
        the same rarest code are consecutive, so that its holders are read once for all of them."""
        found = np.empty(len(rarest), np.int64)
        order = np.argsort(rarest, kind="stable")

        def work(first: int) -> None:
            kernels.count_containing(order[first : first + SETS_AT_ONCE], rarest, *further, found)

        with pool(threads) as workers:
            list(workers.map(work, range(0, len(rarest), SETS_AT_ONCE)))
        return found
