"""Lenses: the views of a cohort that kernels read, as flat integer arrays (offsets + values)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.arrays import AnyArray, Int32s, Int64s, UInt32s, offsets_of, positions_of
from leeward.errors import BadInput

RECORDS_A_BLOCK = 1 << 18
"""A whole number of words of bits."""


@dataclass(frozen=True)
class CodeSets:
    """Every patient's set of distinct codes.

    offsets : int64[n + 1], record r holds `values[offsets[r]:offsets[r + 1]]`.
    values : int32[total], indices into `codes`, ascending inside a record, no repeats.
    codes : the distinct codes, sorted lexicographically, so that comparing indices compares codes.
    patients : the identifier of each record, ascending; never leaves the custodian.
    """

    offsets: Int64s
    values: Int32s
    codes: tuple[str, ...]
    patients: pl.Series

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, records: AnyArray) -> CodeSets:
        """The code sets of some of the records, in their order; codes keep their numbers."""
        offsets, values = (
            offsets_of(np.diff(self.offsets)[records]),
            self.values[positions_of(self.offsets, records)],
        )
        return CodeSets(offsets, values, self.codes, self.patients.gather(records))

    def blocks(self) -> Iterator[tuple[int, CodeSets]]:
        """The number of the first record of each block, and its records: what is made of them is small."""
        for first in range(0, max(1, len(self)), RECORDS_A_BLOCK):
            offsets = self.offsets[first : first + RECORDS_A_BLOCK + 1]
            patients = self.patients.slice(first, RECORDS_A_BLOCK)
            yield (
                first,
                CodeSets(offsets - offsets[0], self.values[offsets[0] : offsets[-1]], self.codes, patients),
            )

    def lengths(self) -> Int64s:
        """Number of distinct codes of each record, int64[n]."""
        return np.diff(self.offsets)

    def supports(self) -> Int64s:
        """Number of records that hold each code, int64[len(codes)]."""
        width = len(self.codes)
        # in blocks: `bincount` copies what it counts
        counts = [np.bincount(block.values, minlength=width) for _, block in self.blocks()]
        return np.sum(counts, axis=0, dtype=np.int64)

    def record(self, r: int) -> tuple[str, ...]:
        return tuple(self.codes[v] for v in self.values[self.offsets[r] : self.offsets[r + 1]])


@dataclass(frozen=True)
class Supports:
    """The distinct codes, sorted, and int64[codes], the patients of each; the number of patients, and the most codes of
    one."""

    codes: tuple[str, ...]
    patients_of: Int64s
    patients: int
    longest: int

    @staticmethod
    def of(parts: Iterable[CodeSets]) -> Supports:
        """Added up over parts that share no patient."""
        total: Counter[str] = Counter()
        patients = longest = 0
        for sets in parts:
            total.update(dict(zip(sets.codes, sets.supports().tolist(), strict=True)))
            patients, longest = patients + len(sets), max(longest, int(sets.lengths().max()))
        codes = tuple(sorted(total))
        return Supports(codes, np.array([total[code] for code in codes]), patients, longest)


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
    joined = patient.to_frame("patient").join(numbered, on="patient", how="left", maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64), distinct


def categories(codes: pl.Series) -> tuple[str, ...]:
    if not isinstance(codes.dtype, pl.Enum):
        raise BadInput(
            f"the column 'code' of a Cohort must be an Enum of the sorted codes; got {codes.dtype}."
        )
    return tuple(codes.dtype.categories.to_list())


def run_starts(keys: AnyArray) -> Int64s:
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return np.flatnonzero(first)


def number_codes(values: Int32s, codes: tuple[str, ...]) -> tuple[Int32s, tuple[str, ...]]:
    """Numbers of codes that all occur, and these codes."""
    used = np.bincount(values, minlength=len(codes)) > 0
    if used.all():
        return values, codes
    renumber = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return renumber[values], tuple(code for code, held in zip(codes, used, strict=True) if held)


def code_sets_of(events: pl.DataFrame) -> CodeSets:
    """The code-set lens of `events` (`patient`, `code` as an Enum of sorted categories), in any order of the rows."""
    codes = categories(events["code"])
    numbers, patients = patient_numbers(events["patient"])
    width = np.int64(max(len(codes), 1))
    in_order = bool((numbers[1:] >= numbers[:-1]).all())
    keys = numbers * width
    keys += events["code"].to_physical().to_numpy()
    del numbers
    # Keys in runs suit timsort; in no order the vectorised quicksort is faster.
    keys.sort(kind="stable" if in_order else "quicksort")
    keys = keys[run_starts(keys)]
    offsets = offsets_of(np.bincount(keys // width, minlength=len(patients)))
    return CodeSets(offsets, *number_codes((keys % width).astype(np.int32), codes), patients)


@dataclass(frozen=True)
class CodeCounts:
    """Every patient's multiset of codes.

    offsets : int64[n + 1], record r holds the entries `offsets[r]:offsets[r + 1]` of `values` and `counts`.
    values : int32[total], indices into `codes`, ascending inside a record, no repeats.
    counts : int32[total], mentions of each code in the record, at least 1.
    codes : the codes that occur, sorted lexicographically, so that comparing indices compares codes.
    patients : the identifier of each record, ascending; never leaves the custodian.
    rows : uint32[n], first source row of each record (1-based), for messages; 0 where the events have no `row`.
    """

    offsets: Int64s
    values: Int32s
    counts: Int32s
    codes: tuple[str, ...]
    patients: pl.Series
    rows: UInt32s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Int64s:
        """Mentions in each record, int64[n]."""
        return np.diff(offsets_of(self.counts)[self.offsets])

    def most(self) -> Int64s:
        """The highest count of each code in any record, int64[len(codes)]."""
        highest = np.zeros(len(self.codes), np.int64)
        np.maximum.at(highest, self.values, self.counts)
        return highest

    def record(self, r: int) -> tuple[str, ...]:
        """The codes of record `r` as strings, ascending, repeats kept (for small data and tests)."""
        entries = range(int(self.offsets[r]), int(self.offsets[r + 1]))
        return tuple(self.codes[self.values[e]] for e in entries for _ in range(self.counts[e]))


def code_counts_of(events: pl.DataFrame) -> CodeCounts:
    """The code-count lens of `events` (`patient`, `code` as an Enum of sorted categories, where known `visit`), in
    any order of the rows. A code counts once a visit; without a visit each row counts."""
    mentions = once_a_visit(events)
    codes = categories(events["code"])
    numbers, patients = patient_numbers(mentions["patient"])
    width = np.int64(max(len(codes), 1))
    keys = numbers * width + mentions["code"].to_physical().to_numpy()
    rows = first_rows(mentions, numbers, len(patients))
    keys.sort()
    starts = run_starts(keys)
    counts = np.diff(starts, append=len(keys)).astype(np.int32)
    keys = keys[starts]
    values, codes = number_codes((keys % width).astype(np.int32), codes)
    offsets = offsets_of(np.bincount(keys // width, minlength=len(patients)))
    return CodeCounts(offsets, values, counts, codes, patients, rows)


def once_a_visit(events: pl.DataFrame) -> pl.DataFrame:
    """The mentions that count: with a visit column each (patient, visit, code) once, at its first row."""
    if "visit" not in events.columns or events["visit"].null_count() == events.height:
        return events
    known = events.filter(pl.col("visit").is_not_null())
    known = known.unique(["patient", "visit", "code"], keep="first", maintain_order=True)
    return pl.concat([known, events.filter(pl.col("visit").is_null())])


def first_rows(events: pl.DataFrame, numbers: Int64s, n: int) -> UInt32s:
    """The least `row` of each of `n` patients, whose number each event's `numbers` gives."""
    if "row" not in events.columns:
        return np.zeros(n, np.uint32)
    least = np.full(n, np.iinfo(np.uint32).max, np.uint32)
    np.minimum.at(least, numbers, events["row"].cast(pl.UInt32).to_numpy())
    return least
