"""The shape in which every engine hands rows to a kernel and takes its result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa

# pyarrow looks for pandas at its first array, and of two threads that make theirs together one fails: it looks now.
pa.array(np.zeros(1))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The one Arrow type that kernels see for a logical type: no large or view variants, no dictionaries."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    return kind


def plain_table(table: pa.Table) -> pa.Table:
    """The table with plain types."""
    return table.cast(pa.schema([(field.name, plain_type(field.type)) for field in table.schema]))


def plain_frame(frame: pl.LazyFrame) -> pl.LazyFrame:
    """A Polars frame with the types that every engine has."""
    return frame.with_columns(
        cs.enum().cast(pl.String), cs.categorical().cast(pl.String), cs.unsigned_integer().cast(pl.Int64)
    )


def order_of(columns: Sequence[str], by: str, order: Sequence[str] | None) -> list[str]:
    """The columns to sort a group by."""
    chosen = columns if order is None else order
    return [column for column in chosen if column != by]


def check_schema(result: pa.Table, schema: pa.Schema) -> pa.Table:
    """The kernel's result, refused when it is not of the promised schema."""
    if not isinstance(result, pa.Table) or result.schema.names != schema.names:
        got = result.schema.names if isinstance(result, pa.Table) else type(result).__name__
        raise ValueError(f"the kernel promised the columns {schema.names} and returned {got}")
    return result.cast(schema)
