"""Reading single columns: identifiers, dates and ages, with the rows of what cannot be read."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import Bools, Int64s
from leeward.cohort.readers.code_numbers import check_indices, row_text
from leeward.errors import BadInput

OLDEST_YEARS = 150

NO_VALUE_TEXTS = frozenset(
    (
        "null",
        "none",
        "na",
        "n/a",
        "n.a.",
        "nan",
        "nil",
        "missing",
        "unknown",
        "-",
        "--",
        "---",
        "?",
        ".",
        "#n/a",
    )
)
"""What tables write where there is no value, in lower case."""

GERMAN = "%d.%m.%Y"
"""Dates with points are day first wherever they are used."""

GERMAN_DATE = r"^\s*([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})(?:[^0-9.]|$)"
DECIMAL_COMMA = r"^\s*(-?[0-9]+),([0-9]+)\s*$"
THOUSANDS = r"^-?[1-9][0-9]{0,2}(,[0-9]{3})+$"


def german_dates(texts: pl.Series) -> pl.Series:
    """Dates of texts like 3.4.2010, perhaps with a time of day; null where they are not such."""
    return texts.str.extract(GERMAN_DATE).str.to_date(GERMAN, strict=False)


def with_points(texts: pl.Series) -> pl.Series | None:
    """The texts with a point for a decimal comma, where all are numbers and one is surely no group of thousands."""
    known = texts.drop_nulls().unique()
    commas = known.filter(known.str.contains(DECIMAL_COMMA))
    if len(commas) == 0 or commas.str.contains(THOUSANDS).all():
        return None
    if not known.str.contains(r"^-?[0-9]+(,[0-9]+)?$").all():
        return None
    return texts.str.replace(DECIMAL_COMMA, "$1.$2")


def plain(column: pa.Array, name: str = "the source", title: str = "") -> pl.Series:
    """An Arrow column as a Polars series without dictionary encoding.

    Raises
    ------
    BadInput
        Values of a type that no column of a cohort has (nested ones, decimal numbers of 256 bits), damaged ones.
    """
    if pa.types.is_dictionary(column.type):
        check_indices(column, name, title)
        column = column.dictionary_decode()
    kind = column.type
    where = f"column '{title}'" if title else "a column"
    if pa.types.is_nested(kind) or pa.types.is_decimal256(kind) or pa.types.is_union(kind):
        raise BadInput(f"{name}: {where} holds {kind}, not plain values; give text, numbers or dates.")
    try:
        return pl.Series(pl.from_arrow(column))
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (pl.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError):
        raise BadInput(
            f"{name}: {where} holds {kind}, which cannot be read; give text, numbers or dates."
        ) from None


def identifiers(column: pa.Array, name: str, title: str) -> pl.Series:
    """Identifiers as Int64 where every one is a plain whole number, otherwise as text without outer blanks.

    '007' stays text: it is not the identifier '7'.
    """
    series = plain(column, name, title)
    if series.dtype.is_integer() or series.dtype == pl.Null:
        return (
            series.cast(pl.Int64, strict=False)
            if series.dtype != pl.UInt64
            else _from_text(series.cast(pl.String))
        )
    if series.dtype.is_float():
        whole = series.cast(pl.Int64, strict=False)
        if (whole.cast(pl.Float64) == series.cast(pl.Float64)).all():
            return whole
        raise BadInput(
            f"{name}: column '{title}' holds fractions; identifiers must be whole numbers or text."
        )
    if series.dtype != pl.String:
        if isinstance(series.dtype, (pl.Enum, pl.Categorical)):
            return _from_text(series.cast(pl.String))
        raise BadInput(
            f"{name}: column '{title}' holds {series.dtype}; identifiers must be whole numbers or text."
        )
    return _from_text(series)


def identify_patients(
    column: pa.Array, name: str, title: str, rows: Int64s, missing: frozenset[str] = frozenset()
) -> pl.Series:
    """The `identifiers` of a column of patients; BadInput where one of the `rows` (their numbers) names none."""
    found = identifiers(column, name, title)
    absent = is_missing(found, missing)
    if absent.any():
        raise BadInput(
            f"{name}: column '{title}' names no patient in {row_text(rows[absent])}; every row needs one."
        )
    return found


def simplify(identifier: pl.Series) -> pl.Series:
    """Texts that are equal for identifiers that differ in blanks, leading zeros or '.0' alone."""
    texts = identifier.cast(pl.String).str.replace_all(r"\s+", "")
    return texts.str.replace(r"\.0+$", "").str.replace(r"^0+([0-9])", "$1")


def _from_text(texts: pl.Series) -> pl.Series:
    texts = texts.str.strip_chars()
    texts = texts.set(texts == "", None) if (texts == "").any() else texts
    numbers = texts.cast(pl.Int64, strict=False)
    if numbers.null_count() == texts.null_count() and (numbers.cast(pl.String) == texts).all():
        return numbers
    return texts


def is_missing(series: pl.Series, missing: frozenset[str]) -> Bools:
    """True where a value is null or one of the texts for 'missing'."""
    absent = series.is_null()
    if missing:
        absent = absent | series.cast(pl.String).is_in(list(missing)).fill_null(False)
    return absent.to_numpy()


def same_type(parts: list[pl.Series]) -> pl.Series:
    """All parts in one series; where some hold whole numbers and others text, all become text."""
    types = {part.dtype for part in parts if part.null_count() < len(part)}
    if len(types) > 1:
        target: pl.DataType | type[pl.DataType] = pl.String if pl.String in types else pl.Float64
        parts = [part.cast(target) for part in parts]
    elif types:
        (only,) = types
        parts = [part.cast(only) for part in parts]
    return pl.concat(parts, rechunk=True) if len(parts) > 1 else parts[0]


def years(column: pa.Array, name: str, title: str, missing: frozenset[str], first_row: int) -> pl.Series:
    """Ages in years as Float64; null where missing."""
    series = plain(column, name, title)
    if series.dtype == pl.String:
        series = blank_as_null(series, missing)
    elif not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        raise BadInput(f"{name}: column '{title}' holds {series.dtype}, not ages in years.")
    read = series.cast(pl.Float64, strict=False).fill_nan(None)
    if series.dtype == pl.String and read.null_count() > series.null_count():
        read = series.str.replace(DECIMAL_COMMA, "$1.$2").cast(pl.Float64, strict=False).fill_nan(None)
    bad = (
        (series.is_not_null() & read.is_null())
        | (read < 0).fill_null(False)
        | (read > OLDEST_YEARS).fill_null(False)
    )
    if bad.any():
        raise _unreadable(name, title, f"is no age between 0 and {OLDEST_YEARS} years", bad, first_row)
    return read


def dates(
    column: pa.Array, name: str, title: str, missing: frozenset[str], form: str | None, first_row: int
) -> pl.Series:
    """Dates; text is read as ISO 8601 or day.month.year (a time of day is dropped) unless `form` says otherwise."""
    series = plain(column, name, title)
    if series.dtype in (pl.Date, pl.Datetime):
        return series.cast(pl.Date)
    if series.dtype != pl.String:
        raise BadInput(f"{name}: column '{title}' holds {series.dtype}, not dates.")
    series = blank_as_null(series, missing)
    text = series if form else series.str.head(10)
    read = text.str.to_date(form or "%Y-%m-%d", strict=False)
    if form is None and read.null_count() > series.null_count():
        read = read.fill_null(german_dates(series))
    bad = series.is_not_null() & read.is_null()
    if bad.any():
        wanted = f"is no date of the form {form}" if form else "is no date (2015-10-02 or 2.10.2015)"
        raise _unreadable(name, title, wanted, bad, first_row, "name the form (`date_format`, --date-format)")
    return read


def blank_as_null(texts: pl.Series, missing: frozenset[str]) -> pl.Series:
    """Texts without outer blanks; null where nothing remains or a text for 'missing'."""
    texts = texts.str.strip_chars()
    absent = texts.is_in(["", *missing])
    return texts.set(absent.fill_null(False), None)


def _unreadable(name: str, title: str, what: str, bad: pl.Series, first_row: int, also: str = "") -> BadInput:
    rows = np.flatnonzero(bad.to_numpy()) + first_row
    return BadInput(
        f"{name}: column '{title}' holds a value that {what} ({row_text(rows)}); "
        f"repair it{f', {also},' if also else ''} or name the text that means 'missing'."
    )
