"""The table lens: one row per patient, every column as a column of floats that a method can compute with.

A value of a `levels` or `ordered` column becomes the number of its level, a date the days since 1970, a missing
value NaN. `Column.decode` is the way back: values of the column's own type, permissible ones only.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.cohort.notices import row_text
from leeward.errors import BadInput, did_you_mean

Floats = NDArray[np.float64]
Kind = Literal["number", "whole", "date", "levels", "ordered"]

PATIENT = "patient"
MOST_DECIMALS = 6
NUMBERED = 200
"""From this many rows on, whole numbers that all differ are taken for record numbers."""
LONE_TEXTS = 20, 0.5
"""From this many rows on, a column in which a larger share of the rows has a text of its own is taken for names."""
TEXTS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
DOMAIN_KEYS = ("low", "high", "levels", "ordered")


@dataclass(frozen=True)
class Column:
    """What is permissible in a column.

    dtype : polars type of the input
    levels : the levels in their order (declared, or sorted), for `levels` and `ordered`
    low, high : the range: declared, or else the observed least and greatest value (which are real ones). NaN where
        every value is missing
    declared : whether the custodian gave the domain
    decimals : decimals that every value of a `number` column is written with; None where values have more than six
    missing : how many values are missing
    """

    name: str
    kind: Kind
    dtype: pl.DataType
    levels: tuple[Any, ...]
    low: float
    high: float
    declared: bool
    decimals: int | None
    missing: int

    @property
    def is_categorical(self) -> bool:
        """True for unordered levels: they are computed with as dummies."""
        return self.kind == "levels"

    def permissible(self, values: Floats) -> Floats:
        """The nearest permissible values: rounded half away from zero, inside the range; NaN stays."""
        if self.kind == "number":
            if self.decimals is None:
                return np.clip(values, self.low, self.high)
            scale = 10.0**self.decimals
            return np.clip(half_away(values * scale) / scale, self.low, self.high)
        return np.clip(half_away(values), self.low, self.high)

    def decode(self, values: Floats) -> pl.Series:
        """Permissible floats as a series of the column's own type."""
        missing = np.isnan(values)
        if self.kind in ("levels", "ordered"):
            numbers = pl.Series(np.where(missing, 0, values).astype(np.uint32))
            if not self.levels:
                return pl.Series(self.name, [None] * len(values), dtype=self.dtype)
            series = pl.Series(list(self.levels), dtype=self.dtype).gather(numbers)
        elif self.dtype.is_float():
            series = pl.Series(values).cast(self.dtype)
        elif self.dtype.is_decimal():
            series = pl.Series(np.where(missing, 0.0, values)).cast(self.dtype)
        else:
            whole = pl.Series(half_away(np.where(missing, 0.0, values)).astype(np.int64))
            series = (whole.cast(pl.Int32) if self.dtype == pl.Date else whole).cast(self.dtype)
        if missing.any():
            series = series.set(pl.Series(missing), None)
        return series.alias(self.name)


@dataclass(frozen=True)
class Table:
    """A table of patients: the input's columns without the identifier, in order, and its name for messages."""

    frame: pl.DataFrame
    columns: tuple[Column, ...]
    name: str

    def __len__(self) -> int:
        return self.frame.height

    def column(self, name: str, role: str = "column") -> Column:
        """The column `name`; BadInput with the nearest name where there is none."""
        for each in self.columns:
            if each.name == name:
                return each
        names = [each.name for each in self.columns]
        raise BadInput(
            f"{self.name}: {role} names the column '{name}', which is not there.{did_you_mean(name, names)} "
            f"Columns: {', '.join(names)}."
        )

    def encode(self, name: str) -> Floats:
        """The column as float64[rows]: numbers, days, or level numbers; NaN where missing."""
        return encode(self.frame[name], self.column(name), self.name)


def table_of(frame: pl.DataFrame | None, domains: Mapping[str, Any], name: str) -> Table:
    """The table lens of a patients' frame without its identifiers. BadInput: no rows, no columns, a column of a kind
    that cannot be released, a domain that does not fit."""
    if frame is None or frame.height == 0:
        raise BadInput(f"{name}: no rows; a table of patients needs at least one row per patient.")
    if PATIENT in frame.columns:
        frame = frame.drop(PATIENT)
    if not frame.columns:
        raise BadInput(f"{name}: no column is left except the identifier.")
    for given in domains:
        if given not in frame.columns:
            raise BadInput(f"`domains`: {name} has no column '{given}'.{did_you_mean(given, frame.columns)}")
    columns = tuple(column_of(frame[each], domains.get(each), name) for each in frame.columns)
    return Table(frame, columns, name)


def column_of(series: pl.Series, domain: Any, where: str) -> Column:
    """A column's domain: declared (levels, `{levels: […], ordered: true}`, `{low: …, high: …}`) or observed."""
    dtype = series.dtype
    rules = _rules(domain, series.name)
    numeric = dtype.is_numeric() or dtype in (pl.Date, pl.Datetime)
    if not numeric and dtype not in TEXTS and dtype != pl.Null:
        raise BadInput(
            f"{where}: column '{series.name}' holds {dtype}; a table is released with numbers, dates, texts and "
            "true/false only. Convert the column, or leave it out with --drop."
        )
    if "levels" in rules or not numeric:
        return _levels_column(series, rules, series.null_count(), where)
    return _number_column(series, rules, where)


def _number_column(series: pl.Series, rules: Mapping[str, Any], where: str) -> Column:
    values = series.to_physical().cast(pl.Float64).to_numpy()
    known = values[~np.isnan(values)]
    if np.isinf(known).any():
        rows = row_text(np.flatnonzero(np.isinf(values)) + 1)
        raise BadInput(f"{where}: column '{series.name}' holds infinity ({rows}).")
    missing = len(values) - len(known)
    least, greatest = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    low, high = _limit(rules, "low", least, series), _limit(rules, "high", greatest, series)
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        raise BadInput(
            f"{where}: column '{series.name}' has {len(outside):,} values outside its declared domain "
            f"({row_text(outside + 1)}); widen the domain or correct the values."
        )
    dtype = series.dtype
    kind: Kind = "date" if dtype in (pl.Date, pl.Datetime) else "whole" if dtype.is_integer() else "number"
    decimals = decimals_of(known) if kind == "number" else 0
    return Column(series.name, kind, dtype, (), low, high, bool(rules), decimals, missing)


def refuse_numberings(table: Table, used: Collection[str]) -> None:
    """BadInput where whole numbers that are not `used` differ in every row, as record numbers do."""
    found = [
        column.name
        for column in table.columns
        if column.kind == "whole"
        and not column.declared
        and column.name not in used
        and len(table) - column.missing >= NUMBERED
        and table.frame[column.name].n_unique() - (column.missing > 0) == len(table) - column.missing
    ]
    if found:
        listed = ", ".join(f"'{name}'" for name in found)
        raise BadInput(
            f"{table.name}: every row of {listed} has a different whole number, which looks like an "
            f"identifier. Leave "
            "it out with --drop, or name it with --patient; if it is a measurement, declare its domain (--domains)."
        )


def refuse_names(table: Table, used: Collection[str]) -> None:
    """BadInput where most rows of a column of texts that is not `used` have a text of their own, as names do."""
    rows, share = LONE_TEXTS
    for column in table.columns:
        if not column.is_categorical or column.declared or column.name in used or len(table) < rows:
            continue
        lone = int(table.frame[column.name].drop_nulls().is_unique().sum())
        if lone > share * len(table):
            raise BadInput(
                f"{table.name}: {lone:,} of {len(table):,} rows have a unique text in '{column.name}', "
                f"which looks like an identifier or free text. Leave it out with --drop, or name it with --patient."
            )


def as_levels(table: Table, name: str) -> Column:
    column = table.column(name)
    if column.kind in ("levels", "ordered"):
        return column
    values = table.frame[name].drop_nulls().unique().sort().to_list()
    return column_of(table.frame[name], {"levels": values}, table.name)


def _levels_column(series: pl.Series, rules: Mapping[str, Any], missing: int, where: str) -> Column:
    dtype = series.dtype
    found = series.drop_nulls().unique()
    if "levels" in rules:
        levels = tuple(rules["levels"])
        try:
            declared = pl.Series(list(levels), dtype=dtype, strict=True)
        except (TypeError, pl.exceptions.PolarsError):
            raise BadInput(
                f"`domains.{series.name}`: the levels must be values of the column's type ({dtype})."
            ) from None
        strange = series.is_not_null() & ~series.is_in(declared.implode())
        if strange.any():
            rows = row_text(np.flatnonzero(strange.fill_null(False).to_numpy()) + 1)
            raise BadInput(
                f"{where}: column '{series.name}' has {int(strange.sum()):,} values that are not declared "
                f"levels ({rows}); add the levels or correct the values."
            )
    elif isinstance(dtype, pl.Enum):
        levels = tuple(dtype.categories.to_list())
    else:
        texts = found.cast(pl.String) if dtype == pl.Categorical else found
        levels = tuple(texts.sort().to_list())
    kind: Kind = "ordered" if rules.get("ordered") else "levels"
    return Column(series.name, kind, dtype, levels, 0.0, float(len(levels) - 1), bool(rules), 0, missing)


def _rules(domain: Any, column: str) -> Mapping[str, Any]:
    if domain is None:
        return {}
    if isinstance(domain, list | tuple):
        domain = {"levels": list(domain)}
    fits = isinstance(domain, Mapping) and set(domain) <= set(DOMAIN_KEYS)
    if not fits or ("levels" in domain) == ("low" in domain or "high" in domain):
        raise BadInput(
            f"`domains.{column}` is a list of levels, `{{levels: [...], ordered: true}}` or `{{low: …, high: …}}`."
        )
    levels = domain.get("levels", ["one"])
    if not isinstance(levels, list | tuple) or not levels or len(set(map(str, levels))) < len(levels):
        raise BadInput(f"`domains.{column}`: `levels` is a list of different values, in their order.")
    rules: Mapping[str, Any] = domain
    return rules


def _limit(rules: Mapping[str, Any], key: str, observed: float, series: pl.Series) -> float:
    if rules.get(key) is None:
        return observed
    value = rules[key]
    if series.dtype in (pl.Date, pl.Datetime):
        if isinstance(value, str):
            value = datetime.date.fromisoformat(value)
        if not isinstance(value, datetime.date):
            raise BadInput(f"`domains.{series.name}.{key}` must be a date.")
        return float(pl.Series([value]).cast(series.dtype).to_physical()[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"`domains.{series.name}.{key}` must be a number.")
    return float(value)


def encode(series: pl.Series, column: Column, where: str) -> Floats:
    """A series as float64: numbers, days since 1970, or level numbers of `column`; NaN where missing."""
    if column.kind in ("levels", "ordered"):
        if not column.levels:
            return np.full(len(series), np.nan)
        levels = pl.Series(list(column.levels), dtype=series.dtype)
        numbers = pl.DataFrame({"level": levels, "number": np.arange(len(levels), dtype=np.float64)})
        joined = series.alias("level").to_frame().join(numbers, on="level", how="left", maintain_order="left")
        return joined["number"].fill_null(np.nan).to_numpy()
    return series.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()


def decimals_of(values: Floats) -> int | None:
    """The fewest decimals that write every value exactly, up to six; None where none do."""
    for decimals in range(MOST_DECIMALS + 1):
        scaled = values * 10.0**decimals
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(np.abs(scaled), 1.0)):
            return decimals
    return None


def half_away(values: Floats) -> Floats:
    """Rounded to whole numbers, halves away from zero (NaN stays)."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values)
