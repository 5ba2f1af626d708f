"""Distinct texts of a column of codes, numbered over many batches; what is no text of a code is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.arrays import Int32s, Int64s
from leeward.cohort.readers.parquet import is_text
from leeward.errors import BadInput
from leeward.texts import outside_xml

NO_CODE = -1
"""The number of a missing code."""

ROWS_SHOWN = 20
"""A message lists at most this many."""


def row_text(rows: Int64s) -> str:
    """'row 4' or 'rows 4, 9, …' for a message."""
    shown = ", ".join(str(row) for row in rows[:ROWS_SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > ROWS_SHOWN else ''}"


@dataclass
class CodeNumbers:
    """Numbers the distinct texts of a column in order of appearance, over many batches."""

    missing: frozenset[str]
    texts: list[str] = field(default_factory=list)
    _number_of: dict[str, int] = field(default_factory=dict)

    def number(self, column: pa.Array, name: str, title: str, rows: Int64s | None = None) -> Int32s:
        """The number of each value, NO_CODE where it is null, blank or a text for 'missing'.

        `rows` are the numbers of the rows, for messages (default: 1, 2, …).
        """
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
    _refuse_line_breaks(values, name, title)
    _refuse_control(column, values, name, title, rows)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
    return values, indices.to_numpy(zero_copy_only=False)


def _refuse_line_breaks(values: list[str | None], name: str, title: str) -> None:
    """A value over several lines is what a quote that is never closed makes of the rows after it."""
    if any(value is not None and "\n" in value for value in values):
        raise BadInput(
            f"{name}: a value in column '{title}' goes over several lines; "
            f"look for a quote that is not closed."
        )


def check_indices(column: pa.Array, name: str, title: str) -> None:
    """BadInput where a dictionary-encoded column points outside of its dictionary."""
    limits = pc.min_max(column.indices)
    low, high = limits["min"].as_py(), limits["max"].as_py()
    if low is not None and (low < 0 or high >= len(column.dictionary)):
        raise BadInput(f"{name}: column '{title}' is damaged (its values point outside of its dictionary).")


def _refuse_control(
    column: pa.Array, values: list[str | None], name: str, title: str, rows: Int64s | None
) -> None:
    """Codes go into pages and pictures, which are XML: a sign that XML lacks is a fault of the file."""
    outside = outside_xml()
    bad = [number for number, value in enumerate(values) if value is not None and outside.search(value)]
    if not bad:
        return
    hits = pl.Series(pl.from_arrow(column.indices)).is_in(bad)
    at = np.flatnonzero(hits.fill_null(False).to_numpy())
    if not len(at):
        return
    numbers = at + 1 if rows is None else rows[at]
    raise BadInput(
        f"{name}: column '{title}' holds a code with a control character ({row_text(numbers)}); take it out of the "
        f"file."
    )


def _as_texts(values: pa.Array, name: str, title: str) -> list[str | None]:
    kind = values.type
    if is_text(kind):
        return values.to_pylist()
    if pa.types.is_integer(kind):
        return [None if v is None else str(v) for v in values.to_pylist()]
    if pa.types.is_null(kind):
        return [None] * len(values)
    if pa.types.is_floating(kind):
        numbers = [None if v is None or v != v else v for v in values.to_pylist()]
        if all(v is None or v.is_integer() for v in numbers):
            return [None if v is None else str(int(v)) for v in numbers]
        raise BadInput(
            f"{name}: column '{title}' holds codes as decimal numbers, where 250.1 and 250.10 are the same; "
            f"store them as text."
        )
    raise BadInput(f"{name}: column '{title}' holds {kind}, not codes; codes are text or whole numbers.")
