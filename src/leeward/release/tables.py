"""Data files: Arrow batches to Parquet and CSV, streaming, with equal bytes for equal rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.release.content import ReleaseTable
from leeward.release.manifest import FileEntry, sha256_of

ROWS_A_GROUP = 1 << 20
"""Rows of a Parquet row group. Batches are re-cut to it: how a method happened to cut them must not show."""

SMALL = 10_000_000
"""Bytes that all CSV copies of a release may have when nobody asked for them: R reads so much in seconds."""

LIST_SEPARATOR = ";"
"""Joins a list of codes in one CSV cell; codes may hold blanks, commas and bars, hardly ever a semicolon."""


def write_table(table: ReleaseTable, folder: Path, root: Path) -> FileEntry:
    """Write `table` under `folder`; returns the manifest's entry, its path relative to `root`."""
    target = folder / table.path
    target.parent.mkdir(parents=True, exist_ok=True)
    write = _write_csv if target.suffix == ".csv" else _write_parquet
    return _entry(target, root, write(target, table.schema, table.batches()))


def with_copies(entries: Iterable[FileEntry], root: Path, *, limit: float = math.inf) -> list[FileEntry]:
    """`entries`, each Parquet file followed by its CSV copy. BadInput, and no copy is left, where CSV cannot hold a
    value or all copies together have more than `limit` bytes."""
    found: list[FileEntry] = []
    copies: list[Path] = []
    try:
        for entry in entries:
            found.append(entry)
            file = root / entry.path
            if file.suffix == ".parquet":
                copies.append(file.with_suffix(".csv"))
                stored = pq.ParquetFile(file)
                batches = stored.iter_batches(batch_size=1 << 16)
                rows = _write_csv(copies[-1], stored.schema_arrow, batches, limit)
                limit -= copies[-1].stat().st_size
                found.append(_entry(copies[-1], root, rows))
    except (BadInput, pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        for copy in copies:
            copy.unlink()
        if isinstance(problem, BadInput):
            raise
        raise BadInput(
            f"{copies[-1].name}: CSV cannot hold bytes or nested values. Leave `csv` out of the formats; Parquet keeps "
            "them."
        ) from None
    return found


def _entry(path: Path, root: Path, rows: int) -> FileEntry:
    return FileEntry(path.relative_to(root).as_posix(), rows, sha256_of(path))


def _write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    plain = _plain(schema)
    rows = 0
    # store_schema=False: no Arrow or pandas metadata of whatever the rows came from.
    with pq.ParquetWriter(path, plain, compression="zstd", store_schema=False, version="2.6") as writer:
        for group in _groups(plain, batches):
            writer.write_table(group, row_group_size=ROWS_A_GROUP)
            rows += group.num_rows
    return rows


def _groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of `batches` in contiguous tables of `ROWS_A_GROUP` rows, the last one shorter."""
    waiting: list[pa.Table] = []
    count = 0
    for batch in batches:
        table = pa.Table.from_batches([batch]).cast(schema)
        while count + table.num_rows >= ROWS_A_GROUP:
            take = ROWS_A_GROUP - count
            yield pa.concat_tables([*waiting, table.slice(0, take)]).combine_chunks()
            table, waiting, count = table.slice(take), [], 0
        if table.num_rows:
            waiting.append(table)
            count += table.num_rows
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _plain(schema: pa.Schema) -> pa.Schema:
    """The same columns without metadata and without in-memory encodings (dictionaries, 64-bit offsets)."""
    return pa.schema([pa.field(field.name, _plain_type(field.type), field.nullable) for field in schema])


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def _write_csv(
    path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], limit: float = math.inf
) -> int:
    flat = pa.schema([pa.field(f.name, pa.string() if pa.types.is_list(f.type) else f.type) for f in schema])
    rows = 0
    with pa.OSFile(str(path), "wb") as sink, pcsv.CSVWriter(sink, flat) as writer:
        for batch in batches:
            columns = [_cell(path, field, batch.column(field.name)) for field in schema]
            writer.write_table(pa.table(columns, schema=flat))
            rows += batch.num_rows
            if sink.tell() > limit:
                raise BadInput(f"{path.name}: too large for CSV.")
    return rows


def _cell(path: Path, field: pa.Field, column: pa.Array) -> pa.Array:
    if not pa.types.is_list(field.type):
        if pa.types.is_string(field.type):
            _refuse_formulas(path, field.name, column)
        return column
    texts = column.cast(pa.list_(pa.string()))
    _refuse_formulas(path, field.name, texts.flatten())
    if pc.any(pc.match_substring(texts.flatten(), LIST_SEPARATOR)).as_py():
        raise BadInput(
            f"{path.name}: a code in column `{field.name}` holds `{LIST_SEPARATOR}`, which separates the "
            "codes of a CSV cell. Leave `csv` out of the formats; Parquet keeps such codes."
        )
    return pc.binary_join(texts, LIST_SEPARATOR)


FORMULA = r"^[=+@\t\r]|^-[^0-9.]|^-.*[^0-9.]"
"""Texts that a spreadsheet runs instead of showing them; a lone `-` and negative numbers are none."""


def _refuse_formulas(path: Path, column: str, texts: pa.Array) -> None:
    if pc.any(pc.match_substring_regex(texts, FORMULA)).as_py():
        raise BadInput(
            f"{path.name}: a text in column `{column}` begins like a formula (=, +, -, @ or a tab), which "
            "spreadsheets run. Leave `csv` out of the formats; Parquet keeps such texts."
        )
