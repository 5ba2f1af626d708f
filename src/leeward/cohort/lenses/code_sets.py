"""Lenses: the views of a cohort that kernels read, as flat integer arrays (offsets + values)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.arrays import AnyArray, Int32s, Int64s, offsets_of
from leeward.errors import BadInput


@dataclass(frozen=True)
class CodeSets:
    """Every patient's set of distinct codes.

    Attributes
    ----------
    offsets : int64[n + 1]
        Record r holds `values[offsets[r]:offsets[r + 1]]`.
    values : int32[total]
        Indices into `codes`, ascending inside a record, no repeats.
    codes : tuple of str
        The distinct codes, sorted lexicographically, so that comparing indices compares codes.
    patients : pl.Series
        The identifier of each record, ascending; never leaves the custodian.
    """

    offsets: Int64s
    values: Int32s
    codes: tuple[str, ...]
    patients: pl.Series

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, records: AnyArray) -> CodeSets:
        """The code sets of some of the records, in their order; codes keep their numbers."""
        lengths = np.diff(self.offsets)[records]
        offsets = offsets_of(lengths)
        places = np.repeat(self.offsets[:-1][records] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return CodeSets(offsets, self.values[places], self.codes, self.patients.gather(records))

    def lengths(self) -> Int64s:
        """Number of distinct codes of each record, int64[n]."""
        return np.diff(self.offsets)

    def supports(self) -> Int64s:
        """Number of records that hold each code, int64[len(codes)]."""
        return np.bincount(self.values, minlength=len(self.codes)).astype(np.int64)

    def record(self, r: int) -> tuple[str, ...]:
        """The codes of record `r` as strings, ascending (for small data and tests)."""
        return tuple(self.codes[v] for v in self.values[self.offsets[r] : self.offsets[r + 1]])


def patient_numbers(patient: pl.Series) -> tuple[Int64s, pl.Series]:
    """Number patients 0…n-1 in ascending order of their identifiers: (number of each row, identifiers)."""
    if patient.is_sorted():  # the usual case of files written a patient at a time
        first = patient.ne_missing(patient.shift(1)).to_numpy().copy()
        first[:1] = True
        return np.cumsum(first, dtype=np.int64) - 1, patient.filter(pl.Series(first))
    distinct = patient.unique().sort()
    if patient.dtype.is_integer():
        low, high = int(distinct[0]), int(distinct[-1])
        if high - low < 4 * max(len(distinct), 1_000_000):
            table = np.zeros(high - low + 1, np.int64)
            table[(distinct - low).to_numpy()] = np.arange(len(distinct))
            return table[(patient - low).to_numpy()], distinct
        return np.searchsorted(distinct.to_numpy(), patient.to_numpy()), distinct
    numbered = pl.DataFrame({"patient": distinct}).with_row_index("number")
    numbers = patient.to_frame("patient").join(numbered, on="patient", how="left", maintain_order="left")[
        "number"
    ]
    return numbers.to_numpy().astype(np.int64), distinct


def categories(codes: pl.Series) -> tuple[str, ...]:
    """The distinct codes, sorted, of the `code` column (an Enum)."""
    if not isinstance(codes.dtype, pl.Enum):
        raise BadInput(
            f"the column 'code' of a Cohort must be an Enum of the sorted codes; got {codes.dtype}."
        )
    return tuple(codes.dtype.categories.to_list())


def code_sets_of(events: pl.DataFrame) -> CodeSets:
    """The code-set lens of `events` (`patient`, `code` as an Enum of sorted categories).

    Repeats of a code in a patient collapse; the order of the rows has no influence.
    """
    codes = categories(events["code"])
    numbers, patients = patient_numbers(events["patient"])
    width = np.int64(max(len(codes), 1))
    in_order = bool((numbers[1:] >= numbers[:-1]).all())
    keys = numbers * width
    keys += events["code"].to_physical().to_numpy()
    del numbers
    # Keys in runs suit timsort; in no order the vectorised quicksort is faster.
    keys.sort(kind="stable" if in_order else "quicksort")
    keep = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=keep[1:])
    keys = keys[keep]
    values = (keys % width).astype(np.int32)
    counts = np.bincount(keys // width, minlength=len(patients))
    offsets = offsets_of(counts)
    used = np.bincount(values, minlength=len(codes)) > 0
    if used.all():
        return CodeSets(offsets, values, codes, patients)
    renumber = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return CodeSets(
        offsets, renumber[values], tuple(c for c, u in zip(codes, used, strict=True) if u), patients
    )
