"""The trajectory lens: every patient's (code, age) pairs in order, as flat integer arrays."""

from __future__ import annotations

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
    codes : int32[total], indices into `labels`.
    ages : int32[total], whole years; fractions are cut off (33.9 is 33).
    labels : the codes that occur, sorted lexicographically, so that comparing indices compares codes.
    patients : the identifier of each record, ascending; never leaves the custodian.
    odd : rows that hold no usable age, by kind, and patients left without a pair. They are not in the arrays.
    """

    offsets: Int64s
    codes: Int32s
    ages: Int32s
    labels: tuple[str, ...]
    patients: pl.Series
    odd: tuple[Notice, ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Int64s:
        """Pairs of each record, int64[n]."""
        return np.diff(self.offsets)

    def record(self, r: int) -> tuple[tuple[str, int], ...]:
        span = range(int(self.offsets[r]), int(self.offsets[r + 1]))
        return tuple((self.labels[self.codes[i]], int(self.ages[i])) for i in span)


def trajectories_of(
    events: pl.DataFrame, first: int = 0, last: int = 127, name: str = "cohort"
) -> Trajectories:
    """The trajectories of `events` (`patient`, `code` as an Enum of sorted categories, `age` in years), in any order
    of the rows. Missing ages, and those below `first` or above `last`, are left out and listed as odd. BadInput
    without an age column or a usable row."""
    if "age" not in events.columns:
        raise BadInput(
            f"{name}: trajectories need the age at each event; give its column with --age (in years), "
            "or those of the date and of the date of birth with --date and --birth."
        )
    years = events["age"].cast(pl.Float64).floor()
    odd = _odd_rows(events, years, first, last)
    kept = events.filter(years.is_between(first, last))
    if kept.height == 0:
        raise BadInput(f"{name}: no event has an age from {first} to {last} years.")
    numbers, patients = patient_numbers(kept["patient"])
    codes = kept["code"].to_physical().to_numpy().astype(np.int32)
    ages = kept["age"].floor().to_numpy().astype(np.int32)
    order = np.lexsort((codes, ages, numbers))
    codes, ages = codes[order], ages[order]
    offsets = offsets_of(np.bincount(numbers, minlength=len(patients)))
    lost = events["patient"].n_unique() - len(patients)
    if lost:
        odd.append(
            Notice("no trajectory", f"{lost:,} patients have no event with a usable age: left out", lost)
        )
    codes, labels = number_codes(codes, categories(events["code"]))
    return Trajectories(offsets, codes, ages, labels, patients, tuple(odd))


def _odd_rows(events: pl.DataFrame, years: pl.Series, first: int, last: int) -> list[Notice]:
    years = years.fill_nan(None)
    outside = ((years < first) | (years > last)) & (years >= 0)
    found = []
    for kind, mask, message in (
        ("missing age", years.is_null(), "rows without a readable age"),
        ("age before birth", years < 0, "rows with an age before birth"),
        ("age outside", outside, f"rows with an age outside {first}–{last} years"),
    ):
        if count := int(mask.sum()):
            rows = events.filter(mask)["row"].sort().head(ROWS_SHOWN) if "row" in events.columns else ()
            found.append(Notice.of_rows(kind, f"{count:,} {message}", rows, count))
    return found
