"""Visits as sets of labels, and the distinct sets among them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from leeward.analysis.itemsets import owners_of
from leeward.arrays import Bools, Int32s, Int64s, UInt64s, distinct_of, offsets_of, positions_of


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
        full = np.flatnonzero(np.diff(visits.offsets))
        sizes = np.diff(visits.offsets)[full]
        set_of = np.full(len(visits), -1, np.int32)
        for salt in count():
            hashed = np.random.Generator(np.random.Philox(salt)).integers(1, 2**63, max(labels, 1), np.uint64)
            hashes = np.add.reduceat(hashed[visits.values], visits.offsets[full]) if len(full) else hashed[:0]
            _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
            equal = first[number]  # the first visit with the same hash
            if np.array_equal(sizes, sizes[equal]) and np.array_equal(
                visits.values, visits.values[positions_of(visits.offsets, full[equal])]
            ):
                break
        order = np.argsort(first)
        place = np.empty(len(first), np.int32)
        place[order] = np.arange(len(first))
        set_of[full] = place[number]
        patient = visits.patient_of_visit()[full]
        held = distinct_of(set_of[full] * np.int64(len(visits.patient_offsets)) + patient)
        holders = np.bincount(held // len(visits.patient_offsets), minlength=len(first)).astype(np.int32)
        return Distinct(set_of, full[first[order]], holders, hashes[first[order]], hashed)


def violations(visits: VisitSets, labels: int, k: int) -> int:
    """Number of distinct visit sets held by fewer than k patients."""
    return int(np.count_nonzero(Distinct.of(visits, labels).holders < k))


def unions(visits: VisitSets, labels: int) -> VisitSets:
    """One set a patient: all codes of the patient's visits."""
    return sets_of(distinct_of(visits.keys(labels)), len(visits.patient_offsets) - 1, labels)


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
