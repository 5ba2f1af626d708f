"""The code-count lens: every patient's codes with their repeats, as flat integer arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.arrays import Int32s, Int64s, UInt32s, offsets_of
from leeward.cohort.lenses.code_sets import patient_numbers


@dataclass(frozen=True)
class CodeCounts:
    """Every patient's multiset of codes.

    Attributes
    ----------
    offsets : int64[n + 1]
        Record r holds the entries `offsets[r]:offsets[r + 1]` of `values` and `counts`.
    values : int32[total]
        Indices into `codes`, ascending inside a record, no repeats.
    counts : int32[total]
        Mentions of each code in the record, at least 1.
    codes : tuple of str
        The codes that occur, sorted lexicographically, so that comparing indices compares codes.
    patients : pl.Series
        The identifier of each record, ascending; never leaves the custodian.
    rows : uint32[n]
        First source row of each record (1-based), for messages; 0 where the events have no `row`.
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
    """The code-count lens of `events` (`patient`, `code` as an Enum of sorted categories, where known `visit`).

    Without a visit column each row is a mention. With one, a code counts once a visit of a patient; rows whose
    visit is null count each. The order of the rows has no influence.
    """
    mentions = once_a_visit(events)
    kind = events.schema["code"]
    assert isinstance(kind, pl.Enum)  # the cohort's contract
    categories = tuple(kind.categories.to_list())
    numbers, patients = patient_numbers(mentions["patient"])
    width = np.int64(max(len(categories), 1))
    keys = numbers * width + mentions["code"].to_physical().to_numpy()
    rows = first_rows(mentions, numbers, len(patients))
    keys.sort()
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    counts = np.diff(np.append(starts, len(keys))).astype(np.int32)
    keys = keys[starts]
    values = (keys % width).astype(np.int32)
    offsets = offsets_of(np.bincount(keys // width, minlength=len(patients)))
    used = np.bincount(values, minlength=len(categories)) > 0
    if not used.all():
        values = (np.cumsum(used, dtype=np.int32) - np.int32(1))[values]
        categories = tuple(code for code, held in zip(categories, used, strict=True) if held)
    return CodeCounts(offsets, values, counts, categories, patients, rows)


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
