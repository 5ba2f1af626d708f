"""Visits as sets of labels, and the distinct sets among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s
from leeward.methods.visits.kernels import containment
from leeward.methods.visits.kernels import sets as kernels


@dataclass(frozen=True)
class VisitSets:
    """Visits after merging: `values` number labels in ascending order, visits may be empty."""

    patient_offsets: Int64s
    offsets: Int64s
    values: Int32s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def patient_of_visit(self) -> Int32s:
        return np.repeat(
            np.arange(len(self.patient_offsets) - 1, dtype=np.int32), np.diff(self.patient_offsets)
        )

    def emptied(self) -> int:
        """Visits without any code."""
        return int(np.count_nonzero(np.diff(self.offsets) == 0))


@dataclass(frozen=True)
class Distinct:
    """The distinct non-empty sets of some visits."""

    set_of: Int32s
    first: Int64s
    hashes: NDArray[np.uint64]
    holders: Int32s

    @staticmethod
    def of(visits: VisitSets, labels: int) -> Distinct:
        table = np.full(room(len(visits)), kernels.FREE, np.int32)
        hashed = kernels.hash_codes(labels)
        set_of, first, hashes = kernels.number_sets(visits.offsets, visits.values, hashed, table)
        return Distinct(
            set_of, first, hashes, kernels.count_holders(set_of, visits.patient_offsets, len(first))
        )


def violations(visits: VisitSets, labels: int, k: int) -> int:
    """How many distinct visit sets fewer than k patients hold."""
    return int(np.count_nonzero(Distinct.of(visits, labels).holders < k))


def unions(visits: VisitSets, labels: int) -> VisitSets:
    """One set a patient: all codes of the patient's visits."""
    starts, values = containment.unite(visits.patient_offsets, visits.offsets, visits.values)
    return VisitSets(np.arange(len(starts), dtype=np.int64), starts, values)


def room(entries: int) -> int:
    """Places of a look-up table for so many entries: a power of two, at most half full."""
    return 1 << max(4, (2 * entries).bit_length())
