"""The trajectory lens: every patient's (code, age) pairs in order, as flat integer arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.arrays import Int32s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import categories, number_codes, patient_numbers
from leeward.cohort.notices import ROWS_SHOWN, Notice
from leeward.errors import BadInput


@dataclass(frozen=True)
class Trajectories:
    """Every patient's multiset of (code, age) pairs, ordered by (age, code); repeats stay.

    offsets : int64[n + 1], record r holds the pairs `offsets[r]:offsets[r + 1]`; every record has at least one.
    values : int32[total], indices into `codes`.
    ages : int32[total], whole years; fractions are cut off (33.9 is 33). Of dates, months: 12 · year + month − 1.
    codes : the codes that occur, sorted lexicographically, so that comparing indices compares codes.
    patients : the identifier of each record, ascending; never leaves the custodian.
    """

    offsets: Int64s
    values: Int32s
    ages: Int32s
    codes: tuple[str, ...]
    patients: pl.Series

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Int64s:
        """Pairs of each record, int64[n]."""
        return np.diff(self.offsets)

    def record(self, r: int) -> tuple[tuple[str, int], ...]:
        span = range(int(self.offsets[r]), int(self.offsets[r + 1]))
        return tuple((self.codes[self.values[i]], int(self.ages[i])) for i in span)


def trajectories_of(
    events: pl.DataFrame, first: int = 0, last: int = 127, name: str = "cohort", dated: bool = False
) -> Trajectories:
    """The trajectories of `events` (`patient`, `code` as an Enum of sorted categories, `age` in years or `date`), in
    any order of the rows. Missing ages, and those below `first` or above `last`, are left out. BadInput without an age
    column, or where `dated` without a date column."""
    if dated and "date" not in events.columns:
        raise BadInput(
            f"{name}: trajectories of dates need the date of each event; give its column with --date, or leave out "
            "--time: they are of ages then."
        )
    if not dated and "age" not in events.columns:
        raise BadInput(
            f"{name}: trajectories need the age at each event; give its column with --age (in years), "
            "or those of the date and of the date of birth with --date and --birth."
        )
    times = _times(events, dated)
    inside = times.is_between(first, last)
    kept = events.filter(inside)
    numbers, patients = patient_numbers(kept["patient"])
    values = kept["code"].to_physical().to_numpy().astype(np.int32)
    ages = times.filter(inside).to_numpy().astype(np.int32)
    order = np.lexsort((values, ages, numbers))
    offsets = offsets_of(np.bincount(numbers, minlength=len(patients)))
    values, codes = number_codes(values[order], categories(events["code"]))
    return Trajectories(offsets, values, ages[order], codes, patients)


def list_odd(parts: Iterable[pl.DataFrame], first: int, last: int, dated: bool = False) -> list[Notice]:
    """The rows of events (parts that share no patient) that have no usable age or date, by kind, and how many patients
    are left without a pair."""
    time, span = ("date", f"{first // 12}–{last // 12}") if dated else ("age", f"{first}–{last} years")
    messages = {
        "missing age": f"rows without a readable {time}",
        "age before birth": "rows with an age before birth",
        "age outside": f"rows with {'a' if dated else 'an'} {time} outside {span}",
        "no trajectory": f"patients have no event with a usable {time}: left out",
    }
    count: Counter[str] = Counter()
    rows: dict[str, list[int]] = {}
    for events in parts:
        years = _times(events, dated).fill_nan(None)
        masks = {
            "missing age": years.is_null(),
            "age before birth": years < 0,
            "age outside": ((years < first) | (years > last)) & (years >= 0),
        }
        for kind, mask in masks.items():
            count[kind] += int(mask.sum())
            if "row" in events.columns:
                rows[kind] = sorted(
                    [*rows.get(kind, ()), *events.filter(mask)["row"].sort().head(ROWS_SHOWN)]
                )
        kept = events.filter(years.is_between(first, last))
        count["no trajectory"] += events["patient"].n_unique() - kept["patient"].n_unique()
    return [
        Notice.of_rows(kind, f"{count[kind]:,} {message}", rows.get(kind, ())[:ROWS_SHOWN], count[kind])
        for kind, message in messages.items()
        if count[kind]
    ]


def _times(events: pl.DataFrame, dated: bool) -> pl.Series:
    if not dated:
        return events["age"].cast(pl.Float64).floor()
    date = events["date"].dt
    return (date.year() * 12 + date.month() - 1).cast(pl.Float64)
