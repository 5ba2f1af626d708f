"""Ages from dates of birth, with the rows where there can be none.

A row without a usable age stays, with an empty age: what to do about it is the method's and the custodian's
decision.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from leeward.arrays import UInt32s, count_noun
from leeward.cohort.notices import Notice
from leeward.cohort.readers.values import GERMAN, blank_as_null, german_dates, plain
from leeward.errors import BadInput

OLDEST = 127
"""The highest age in whole years that a reader computes; the age hierarchies end there too."""

ISO = ("%Y-%m-%d", "%Y%m%d")
FIRST_YEAR = 1000
"""A year before it is what a form with four digits makes of two."""

CENTURY = "100y"
BIRTH = {"birth": pl.Date, "two_digits": pl.Boolean, "year_only": pl.Boolean}
"""What is known of a birth: the date, whether its century was guessed, whether only the year was given."""


def dates_leniently(
    column: pa.Array | pl.Series, name: str, title: str, missing: frozenset[str], forms: Sequence[str]
) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Dates, where the year had two digits, and where a value is no date. Text is read by the first of `forms` that
    fits; a time of day after an ISO or a German date is dropped."""
    series = plain(column)
    never = pl.repeat(False, len(series), eager=True)
    if series.dtype in (pl.Date, pl.Datetime, pl.Null):
        return series.cast(pl.Date), never, never
    if series.dtype.is_integer():
        series = series.cast(pl.String)
    if series.dtype != pl.String:
        raise BadInput(f"{name}: column '{title}' holds {series.dtype}, not dates.")
    text = blank_as_null(series, missing)
    read = pl.repeat(None, len(text), dtype=pl.Date, eager=True)
    two_digits = never
    for form in forms:
        if form == GERMAN:
            found = german_dates(text)
        else:
            found = (text.str.head(10) if form == ISO[0] else text).str.to_date(form, strict=False)
        found = found.set((found.dt.year() < FIRST_YEAR).fill_null(False), None)
        if "%y" in form:
            two_digits = two_digits | (read.is_null() & found.is_not_null())
        read = read.zip_with(read.is_not_null(), found)
        if read.null_count() == text.null_count():
            break
    return read, two_digits, text.is_not_null() & read.is_null()


def years_between(birth: pl.Expr, date: pl.Expr) -> pl.Expr:
    """Completed years and the share of the running one, counted on a calendar of twelve months of 31 days.

    The whole part is exact: it steps on each birthday (for 29 February, on 1 March of other years). Negative
    before birth.
    """

    def place(of: pl.Expr) -> pl.Expr:
        return of.dt.month().cast(pl.Int32) * 31 + of.dt.day().cast(pl.Int32)

    return (date.dt.year() - birth.dt.year()).cast(pl.Float64) + (place(date) - place(birth)) / 372


def add_ages(
    patient: pl.Series, row: UInt32s, date: pl.Series, birth: pl.DataFrame
) -> tuple[pl.Series, list[Notice]]:
    """The age of each event in years, and notices of the rows that have none; `birth` as in `BIRTH`."""
    frame = birth.with_columns(date.alias("date"), patient.alias("patient"))
    if frame["two_digits"].any() or frame["year_only"].any():
        frame = _settle_births(frame)
    age = frame.select(years_between(pl.col("birth"), pl.col("date")).alias("age"))["age"]
    before = (age < 0).fill_null(False)
    beyond = (age >= OLDEST + 1).fill_null(False)
    absent = age.is_null()
    notices = []
    for kind, where, message in (
        ("event before birth", before, "{} before the patient's date of birth: kept without an age"),
        ("age out of range", beyond, f"{{}} at an age above {OLDEST} years: kept without an age"),
        ("age unknown", absent, "{} without an age: the date or the date of birth is not known"),
    ):
        notices += notice_rows(kind, where, row, message)
    return age.set(before | beyond, None), notices


def _settle_births(frame: pl.DataFrame) -> pl.DataFrame:
    """Births whose century or day is open, by the patient's first event. A year of two digits is in the latest
    century before it (before anybody's last event, for a patient without a date). A birth of which only the year is
    known is on the first event if that is in the same year (the OMOP convention)."""
    first = pl.col("date").min().over("patient").fill_null(pl.col("date").max())
    open_century = pl.col("two_digits").fill_null(False)
    birth = (
        pl.when(open_century & (pl.col("birth") > first))
        .then(pl.col("birth").dt.offset_by(f"-{CENTURY}"))
        .when(open_century & (pl.col("birth").dt.offset_by(CENTURY) <= first))
        .then(pl.col("birth").dt.offset_by(CENTURY))
        .when(pl.col("year_only").fill_null(False) & (pl.col("birth").dt.year() == first.dt.year()))
        .then(first)
        .otherwise(pl.col("birth"))
    )
    return frame.with_columns(birth.alias("birth"))


def notice_rows(kind: str, where: pl.Series, row: UInt32s, message: str) -> list[Notice]:
    """A notice of the events `where`, with '{}' in the message for '3 events'; none where there are none."""
    message = message.format(count_noun("event", int(where.sum())))
    return [Notice.of_rows(kind, message, row[where.to_numpy()])] if where.any() else []
