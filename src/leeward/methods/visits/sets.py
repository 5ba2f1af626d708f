"""Visits as sets of labels, and the distinct sets among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from leeward.analysis.itemsets import owners_of
from leeward.arrays import AnyArray, Bools, Int32s, Int64s, UInt64s, distinct_of, offsets_of, positions_of
from leeward.cohort.lenses.code_sets import run_starts

PATIENTS_AT_ONCE = 1 << 17
"""What is worked out of keys of 8 bytes is worked out for so many patients at a time."""


@dataclass(frozen=True)
class VisitSets:
    """Visits of patients: `values` number labels in ascending order, visits may be empty."""

    patient_offsets: Int64s
    offsets: Int64s
    values: Int32s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def patient_of_visit(self) -> Int64s:
        return owners_of(self.patient_offsets)

    def blocks(self) -> Iterator[VisitSets]:
        """The visits of the first patients, then of the next ones."""
        for low in range(0, len(self.patient_offsets) - 1, PATIENTS_AT_ONCE):
            of_patients = self.patient_offsets[low : low + PATIENTS_AT_ONCE + 1]
            bounds = self.offsets[of_patients[0] : of_patients[-1] + 1]
            yield VisitSets(
                of_patients - of_patients[0], bounds - bounds[0], self.values[bounds[0] : bounds[-1]]
            )

    def keys(self, labels: int) -> Int64s:
        """Key of each value's patient and label: patient · labels + label."""
        patient = owners_of(self.offsets[self.patient_offsets])
        return patient * np.int64(max(labels, 1)) + self.values

    def keep(self, kept: Bools) -> VisitSets:
        return VisitSets(self.patient_offsets, offsets_of(kept)[self.offsets], self.values[kept])

    def count_empty(self) -> int:
        return int(np.count_nonzero(np.diff(self.offsets) == 0))


@dataclass(frozen=True)
class Distinct:
    """The distinct non-empty sets of some visits, in order of appearance. `set_of`: the set of each visit, -1 for an
    empty one. `first`: the first visit of each set. `holders`: its distinct patients. `hashes`: the wrapped sum of
    `hashed`, a number of each label."""

    set_of: Int32s
    first: Int64s
    holders: Int32s
    hashes: UInt64s
    hashed: UInt64s

    @staticmethod
    def of(visits: VisitSets, labels: int) -> Distinct:
        sizes = np.diff(visits.offsets)
        for salt in count():
            hashed = np.random.Generator(np.random.Philox(salt)).integers(1, 2**63, max(labels, 1), np.uint64)
            hashes = _concatenate([_sums(block, hashed) for block in visits.blocks()], np.uint64)
            order = np.argsort(hashes, kind="stable")
            heads = run_starts(hashes[order])
            number = np.empty(len(order), np.int32)  # of each visit, the place of its hash
            number[order] = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(order))))
            first = order[heads]
            del order
            if _are_equal(visits, sizes, first, number):
                break
        full = np.flatnonzero(sizes[first])
        full = full[np.argsort(first[full])]
        place = np.full(len(first), -1, np.int32)
        place[full] = np.arange(len(full))
        set_of, first = place[number], first[full]
        del number
        held, low = [], 0
        for block in visits.blocks():
            own, people = set_of[low : low + len(block)], len(block.patient_offsets)
            keys = distinct_of((own * np.int64(people) + block.patient_of_visit())[own >= 0])
            held.append((keys // people).astype(np.int32))
            low += len(block)
        holders = np.bincount(_concatenate(held, np.int32), minlength=len(first)).astype(np.int32)
        return Distinct(set_of, first, holders, hashes[first], hashed)


def _sums(visits: VisitSets, hashed: UInt64s) -> UInt64s:
    """The wrapped sum of each visit's labels, 0 for an empty one."""
    found, full = np.zeros(len(visits), np.uint64), np.flatnonzero(np.diff(visits.offsets))
    if len(full):
        found[full] = np.add.reduceat(hashed[visits.values], visits.offsets[full])
    return found


def _are_equal(visits: VisitSets, sizes: Int64s, first: Int64s, number: Int32s) -> bool:
    """Whether each visit has the labels of the first one of its number."""
    low = 0
    for block in visits.blocks():
        like = first[number[low : low + len(block)]]
        if not np.array_equal(np.diff(block.offsets), sizes[like]):
            return False
        if not np.array_equal(block.values, visits.values[positions_of(visits.offsets, like)]):
            return False
        low += len(block)
    return True


def _concatenate(parts: Sequence[AnyArray], kind: type[np.generic]) -> AnyArray:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def violations(visits: VisitSets, labels: int, k: int) -> int:
    """Number of distinct visit sets held by fewer than k patients."""
    return int(np.count_nonzero(Distinct.of(visits, labels).holders < k))


def unions(visits: VisitSets, labels: int) -> VisitSets:
    """One set a patient: all codes of the patient's visits."""
    made = [
        sets_of(distinct_of(block.keys(labels)), len(block.patient_offsets) - 1, labels)
        for block in visits.blocks()
    ]
    patients = len(visits.patient_offsets) - 1
    sizes = _concatenate([np.diff(each.offsets) for each in made], np.int64)
    values = _concatenate([each.values for each in made], np.int32)
    return VisitSets(np.arange(patients + 1), offsets_of(sizes), values)


def sets_of(keys: Int64s, patients: int, labels: int) -> VisitSets:
    """One set a patient, of ascending numbers of patients and labels (`VisitSets.keys`)."""
    width = np.int64(max(labels, 1))
    offsets = offsets_of(np.bincount(keys // width, minlength=patients))
    return VisitSets(np.arange(patients + 1), offsets, (keys % width).astype(np.int32))


def is_in(wanted: Int64s, ascending: Int64s) -> Bools:
    place = np.searchsorted(ascending, wanted)
    found: Bools = np.append(ascending, -1)[place] == wanted
    return found


def cut_to(source: VisitSets, everyone: VisitSets, labels: int) -> VisitSets:
    """The codes of each visit that are in its patient's union."""
    return source.keep(is_in(source.keys(labels), everyone.keys(labels)))
