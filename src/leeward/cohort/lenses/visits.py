"""The visits lens: every patient's visits, each a set of codes, as flat integer arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.arrays import Int32s, Int64s, UInt32s, offsets_of
from leeward.cohort.lenses.code_sets import categories, number_codes, patient_numbers, run_starts
from leeward.errors import BadInput

LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True)
class Visits:
    """Every patient's visits.

    patient_offsets : int64[n + 1], patient p has the visits `patient_offsets[p]:patient_offsets[p + 1]`, at least one.
    offsets : int64[visits + 1], visit v holds `values[offsets[v]:offsets[v + 1]]`, at least one code.
    values : int32[total], indices into `codes`, ascending inside a visit, no repeats.
    codes : the codes that occur, sorted lexicographically, so that comparing indices compares codes.
    patients : the identifier of each patient, ascending; never leaves the custodian.
    rows : uint32[visits], first source row of each visit (1-based).
    """

    patient_offsets: Int64s
    offsets: Int64s
    values: Int32s
    codes: tuple[str, ...]
    patients: pl.Series
    rows: UInt32s

    def __len__(self) -> int:
        return len(self.patient_offsets) - 1

    @property
    def n_visits(self) -> int:
        return len(self.offsets) - 1

    def patient_of_visit(self) -> Int32s:
        """The patient's number of each visit, int32[visits]."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.patient_offsets))

    def visit_of_value(self) -> Int32s:
        return np.repeat(np.arange(self.n_visits, dtype=np.int32), np.diff(self.offsets))

    def table(self) -> pl.DataFrame:
        """`patient`, `visit`, `code` (Int32 numbers), one row an entry: what relational steps work on."""
        visit = self.visit_of_value()
        return pl.DataFrame({"patient": self.patient_of_visit()[visit], "visit": visit, "code": self.values})

    def visit(self, v: int) -> tuple[str, ...]:
        return tuple(self.codes[c] for c in self.values[self.offsets[v] : self.offsets[v + 1]])


def visits_of(events: pl.DataFrame, name: str = "cohort", *, merged: bool = False) -> Visits:
    """The visits of `events` (`patient`, `code` as an Enum of sorted categories, `visit` or else `date`), in any
    order of the rows but for `rows`. Rows whose visit is null are a visit each; `merged`: one visit per patient, else
    BadInput without visits and dates."""
    codes = categories(events["code"])
    numbers, patients = patient_numbers(events["patient"])
    pairs, patient_of_pair = _pairs(numbers, events, name, merged, max(len(codes), 1))
    keys = pairs * np.int64(max(len(codes), 1))
    keys += events["code"].to_physical().to_numpy()
    del pairs, numbers
    rows = _rows(events)
    if not bool((keys[1:] >= keys[:-1]).all()):
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        del order
    pair = keys // max(len(codes), 1)
    starts = run_starts(pair)
    first_rows = np.minimum.reduceat(rows, starts)
    people = patient_of_pair(pair[starts])
    keep = run_starts(keys)
    values = (keys[keep] % max(len(codes), 1)).astype(np.int32)
    sizes = np.bincount(np.searchsorted(starts, keep, side="right") - 1, minlength=len(starts))
    of_patients = offsets_of(np.bincount(people, minlength=len(patients)))
    return Visits(of_patients, offsets_of(sizes), *number_codes(values, codes), patients, first_rows)


def _pairs(
    numbers: Int64s, events: pl.DataFrame, name: str, merged: bool, width: int
) -> tuple[Int64s, Callable[[Int64s], Int64s]]:
    """A number of each row's (patient, visit), ascending by patient; and the patient of such a number."""
    if merged:
        return numbers, lambda pair: pair
    visit = _visit_numbers(events, name)
    wide = int(visit.max(initial=0)) + 1
    pairs = numbers * np.int64(wide)
    pairs += visit
    if (int(numbers.max(initial=0)) + 1) * wide * width <= LARGEST_KEY:
        return pairs, lambda pair: pair // wide
    distinct, dense = np.unique(pairs, return_inverse=True)
    return dense.astype(np.int64), lambda pair: distinct[pair] // wide


def _visit_numbers(events: pl.DataFrame, name: str) -> Int64s:
    """A number of each row's visit; a null visit gets a number of its own."""
    column = next((c for c in ("visit", "date") if c in events.columns), None)
    if column is None or events[column].null_count() == events.height:
        raise BadInput(
            f"{name}: no visit column and no dates, so it is unknown which codes belong to one visit; name the column "
            "with --visit (or --date), or ask for `merge_visits`."
        )
    given = events[column]
    null = given.is_null().to_numpy()
    if not null.any():
        return patient_numbers(given)[0]
    found = np.empty(len(given), np.int64)
    found[~null], distinct = patient_numbers(given.drop_nulls())
    found[null] = len(distinct) + np.arange(int(null.sum()))
    return found


def _rows(events: pl.DataFrame) -> UInt32s:
    if "row" in events.columns:
        return events["row"].cast(pl.UInt32).to_numpy()
    return np.arange(1, events.height + 1, dtype=np.uint32)
