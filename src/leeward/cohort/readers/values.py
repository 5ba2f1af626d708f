"""Reading single columns (codes, identifiers, dates and ages), with the rows of what cannot be read; and attributes of
patients, one row each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.arrays import Bools, Int32s, Int64s, count_noun
from leeward.cohort.notices import Notice, row_text
from leeward.cohort.readers.parquet import is_text
from leeward.errors import BadInput
from leeward.texts import outside_xml

NO_CODE = -1
"""The number of a missing code."""

OLDEST_YEARS = 150

NO_VALUE_TEXTS = frozenset(
    [
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
    ]
)
"""What tables write where there is no value, in lower case."""

GERMAN = "%d.%m.%Y"
"""Dates with points are day first wherever they are used."""

GERMAN_DATE = r"^\s*([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})(?:[^0-9.]|$)"
DECIMAL_COMMA = r"^\s*(-?[0-9]+),([0-9]+)\s*$"
THOUSANDS = r"^-?[1-9][0-9]{0,2}(,[0-9]{3})+$"
WHOLE_NUMBER = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"


def german_dates(texts: pl.Series) -> pl.Series:
    """Dates of texts like 3.4.2010, perhaps with a time of day; null where they are not such."""
    return texts.str.extract(GERMAN_DATE).str.to_date(GERMAN, strict=False)


def numbers_of(texts: pl.Series, decimal: str) -> pl.Series | None:
    """The texts as whole or decimal numbers where each is one (as `decimal` has it; '007' and '0/1' are none), or has a
    decimal comma and one is surely no group of thousands; None elsewhere."""
    known = texts.drop_nulls().unique()  # what is written once a level is judged once a level
    if len(known) == 0:
        return None
    if known.str.contains(WHOLE_NUMBER).all():
        return texts.cast(pl.Int64)
    if known.str.contains(decimal).all() and not known.str.contains(r"^-?0[0-9]").any():
        return texts.cast(pl.Float64)
    commas = known.filter(known.str.contains(DECIMAL_COMMA))
    numbers = len(commas) and known.str.contains(r"^-?[0-9]+(,[0-9]+)?$").all()
    if not numbers or commas.str.contains(THOUSANDS).all():
        return None
    return texts.str.replace(DECIMAL_COMMA, "$1.$2").cast(pl.Float64)


def plain(column: pa.Array | pl.Series, name: str = "the source", title: str = "") -> pl.Series:
    """A column as a Polars series without dictionaries; BadInput for damaged values and for unusable types."""
    if isinstance(column, pl.Series):
        return column
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


def identifiers(column: pa.Array | pl.Series, name: str, title: str) -> pl.Series:
    """Identifiers as Int64 if all are plain whole numbers ('007' is none), else as text without outer blanks."""
    series = plain(column, name, title)
    kind = series.dtype
    if kind in (pl.String, pl.UInt64, pl.Enum, pl.Categorical):
        return _from_text(series.cast(pl.String))
    whole = series.cast(pl.Int64, strict=False) if kind.is_numeric() or kind == pl.Null else None
    if whole is None or kind.is_decimal():
        raise BadInput(f"{name}: column '{title}' holds {kind}; identifiers must be whole numbers or text.")
    if kind.is_float() and not (whole.cast(pl.Float64) == series.cast(pl.Float64)).all():
        raise BadInput(
            f"{name}: column '{title}' holds fractions; identifiers must be whole numbers or text."
        )
    return whole


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
    if not missing:
        return series.is_null().to_numpy()
    return series.cast(pl.String).is_in(list(missing)).fill_null(True).to_numpy()


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


def in_one_type(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    both = same_type([one, other])
    return both.head(len(one)), both.slice(len(one))


def stack(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """One frame of all parts by `same_type`; the parts are used up, so that memory holds each value once."""
    return pl.DataFrame(
        {name: same_type([part.drop_in_place(name) for part in parts]) for name in parts[0].columns}
    )


def look_up(keys: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
    """For each key the row of `table`, whose first column has the keys (of several the first); null where none is."""
    name = table.columns[0]
    known = table.unique(name, keep="first", maintain_order=True)
    wanted, there = in_one_type(keys, known[name])
    known = known.with_columns(there.alias(name))
    return wanted.alias(name).to_frame().join(known, on=name, how="left", maintain_order="left").drop(name)


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
    bad = series.is_not_null() & ~read.is_between(0, OLDEST_YEARS).fill_null(False)
    if bad.any():
        raise _unreadable(name, title, f"is not an age between 0 and {OLDEST_YEARS} years", bad, first_row)
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
        wanted = f"is not a date of the form {form}" if form else "is no date (2015-10-02 or 2.10.2015)"
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


@dataclass
class CodeNumbers:
    """Numbers the distinct texts of a column in order of appearance, over many batches."""

    missing: frozenset[str]
    texts: list[str] = field(default_factory=list)
    _number_of: dict[str, int] = field(default_factory=dict)

    def number(self, column: pa.Array, name: str, title: str, rows: Int64s | None = None) -> Int32s:
        """The number of each value, NO_CODE where it is missing. `rows`: numbers of the rows, for messages (default:
        1, 2, …)."""
        values, indices = _distinct(column, name, title, rows)
        return np.array([*map(self._number, values), NO_CODE], np.int32)[indices]

    def numbers_apart(
        self, column: pa.Array, name: str, title: str, rows: Int64s, separator: str
    ) -> tuple[Int64s, Int32s]:
        """Of each code in the cells its row's place and its number, in the order of the rows."""
        values, indices = _distinct(column, name, title, rows)
        cells = [[*map(self._number, (value or "").split(separator))] for value in (*values, None)]
        known = [[number for number in cell if number != NO_CODE] for cell in cells]
        ends = np.cumsum([len(cell) for cell in known])
        counts = np.diff(ends, prepend=0)[indices]
        places = np.repeat(np.arange(len(indices)), counts)
        inside = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = (ends - np.diff(ends, prepend=0))[indices]
        flat = np.array([number for cell in known for number in cell], np.int32)
        return places, flat[np.repeat(starts, counts) + inside]

    def _number(self, value: str | None) -> int:
        text = value.strip() if value is not None else ""
        if not text or text in self.missing:
            return NO_CODE
        number = self._number_of.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


def _distinct(
    column: pa.Array, name: str, title: str, rows: Int64s | None
) -> tuple[list[str | None], Int64s]:
    """The distinct values, and of each row its value's place among them, the end where it is null."""
    if pa.types.is_nested(column.type) or pa.types.is_decimal256(column.type):
        raise BadInput(
            f"{name}: column '{title}' holds {column.type}, not codes; codes are text or whole numbers."
        )
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    check_indices(column, name, title)
    values = _as_texts(column.dictionary, name, title)
    # what a quote that is never closed makes
    if any(value is not None and "\n" in value for value in values):
        raise BadInput(
            f"{name}: a value in column '{title}' spans several lines; look for an unclosed quote."
        )
    _refuse_control(column, values, name, title, rows)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
    return values, indices.to_numpy(zero_copy_only=False)


def check_indices(column: pa.Array, name: str, title: str) -> None:
    """BadInput where a dictionary-encoded column points outside of its dictionary."""
    limits = pc.min_max(column.indices)
    low, high = limits["min"].as_py(), limits["max"].as_py()
    if low is not None and (low < 0 or high >= len(column.dictionary)):
        raise BadInput(f"{name}: column '{title}' is damaged (its values point outside its dictionary).")


def _refuse_control(
    column: pa.Array, values: list[str | None], name: str, title: str, rows: Int64s | None
) -> None:
    """Codes go into pages and pictures, which are XML: a sign that XML lacks is a fault of the file."""
    outside = outside_xml()
    bad = [number for number, value in enumerate(values) if value is not None and outside.search(value)]
    at = (
        pl.Series(pl.from_arrow(column.indices)).is_in(bad).arg_true().to_numpy()
        if bad
        else np.zeros(0, np.int64)
    )
    if len(at):
        numbers = at + 1 if rows is None else rows[at]
        raise BadInput(
            f"{name}: column '{title}' holds a code with a control character ({row_text(numbers)}); remove "
            f"it from the file."
        )


def _as_texts(values: pa.Array, name: str, title: str) -> list[str | None]:
    kind = values.type
    if is_text(kind) or pa.types.is_null(kind):
        return values.to_pylist()
    if not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise BadInput(f"{name}: column '{title}' holds {kind}, not codes; codes are text or whole numbers.")
    numbers = pl.Series(pl.from_arrow(values))
    if pa.types.is_floating(kind):
        numbers = numbers.cast(pl.Float64).fill_nan(None)
        if not (numbers.is_finite() & (numbers == numbers.floor())).all():
            raise BadInput(
                f"{name}: column '{title}' holds codes as decimal numbers, where 250.1 and 250.10 are the same; "
                f"store them as text."
            )
    return [None if number is None else str(int(number)) for number in numbers]


def one_row_each(
    gathered: pl.DataFrame, patient: pl.Series, missing: frozenset[str]
) -> tuple[pl.DataFrame, list[Notice]]:
    """Each patient's first value of every attribute, patients ascending; a notice counts those whose rows disagree."""
    names = [name for name in gathered.columns if name != "patient"]
    notices = []
    for name in names:
        if gathered.schema[name] == pl.String:
            numbers, commas = _parse_numbers(gathered[name], missing)
            gathered = gathered.with_columns(numbers)
            notices += [comma_notice(name)] if commas else []
    values = {name: pl.col(name).drop_nulls() for name in names}
    frame = gathered.group_by("patient", maintain_order=True).agg(
        *(each.first() for each in values.values()),
        *((each.n_unique() > 1).alias(f"{name}\x1f") for name, each in values.items()),
    )
    for name in names:
        if count := int(frame[f"{name}\x1f"].sum()):
            message = f"{count_noun('patient', count)} with several values of '{name}': the first is kept"
            notices.append(Notice("conflicting attribute", message, count))
    wanted, known = in_one_type(patient.unique().sort(), frame["patient"])
    if absent := int((~wanted.is_in(known.implode())).sum()):
        message = f"{count_noun('patient', absent)} of the events without attributes"
        notices.append(Notice("patient without attributes", message, absent))
    frame = frame.select(known.alias("patient"), *names)
    joined = pl.DataFrame({"patient": wanted}).join(frame, on="patient", how="left", maintain_order="left")
    return joined.with_columns(patient.unique().sort().alias("patient")), notices


def comma_notice(name: str) -> Notice:
    return Notice("decimal comma", f"the commas of column '{name}' are read as decimal points", 1)


def _parse_numbers(texts: pl.Series, missing: frozenset[str]) -> tuple[pl.Series, bool]:
    texts = texts.set(texts.str.strip_chars().is_in(["", *missing]).fill_null(False), None)
    numbers = numbers_of(texts, DECIMAL_NUMBER)
    if numbers is None:
        return texts, False
    return numbers, bool(texts.str.contains(",", literal=True).any())
