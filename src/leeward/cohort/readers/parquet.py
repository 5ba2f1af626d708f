"""Parquet files as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.paths import is_file

BATCH_ROWS = 1 << 20


def header(file: Path) -> list[str]:
    return list(schema(file).names)


def schema(file: Path) -> pa.Schema:
    return _open(file, ()).schema_arrow


def batches(file: Path, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """The asked columns, up to 2**20 rows at a time; text columns in `dictionary` dictionary-encoded."""
    types(file, columns)
    opened = _open(file, dictionary)
    try:
        yield from opened.iter_batches(batch_size=BATCH_ROWS, columns=list(columns))
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (pa.ArrowException, OSError) as error:
        raise BadInput(
            f"{file.name}: a part of this Parquet file cannot be read; it seems damaged."
        ) from error


def types(file: Path, columns: Sequence[str]) -> list[pa.DataType]:
    """What the columns hold; BadInput where that is no plain values."""
    found = schema(file)
    kinds = [found.field(name).type for name in columns]
    for name, kind in zip(columns, kinds, strict=True):
        if pa.types.is_nested(kind) or pa.types.is_decimal256(kind):
            raise BadInput(
                f"{file.name}: column '{name}' holds {kind}, not plain values; give text, numbers or dates."
            )
    return kinds


def frame(file: Path) -> pl.DataFrame:
    """A whole file at once. By way of Arrow: of a type that it does not know Polars' own reader ends the process."""
    try:
        return pl.DataFrame(_open(file, ()).read())
    except (pa.ArrowException, OSError, pl.exceptions.PolarsError):
        raise BadInput(
            f"{file.name}: this Parquet file is damaged, or holds values of a type that cannot be read."
        ) from None


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text, in whatever encoding."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _open(file: Path, dictionary: Sequence[str]) -> pq.ParquetFile:
    if not is_file(file):
        raise BadInput(f"{file.name}: no such file.")
    if file.stat().st_size == 0:
        raise BadInput(f"{file.name}: the file is empty.")
    try:
        return pq.ParquetFile(file, read_dictionary=list(dictionary))
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (pa.ArrowException, OSError) as error:
        raise BadInput(
            f"{file.name}: this is not a readable Parquet file (damaged, or another format)."
        ) from error
