"""The bytes of data files: nothing but what their rows need.

A Parquet file can carry more than its rows: metadata, bytes between pages and footer, values of a dictionary that no
row has, statistics of rows that are gone. So the verifier writes the rows again as releases are written (docs of the
format: zstd, no Arrow schema, row groups of 2^20 rows) and compares the bytes. Where the file says that another version
of Arrow wrote it, the bytes may differ for that reason, and the file's structure is inspected instead.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from leeward.verify.checks import Check, of_count
from leeward.verify.manifest import Share

LIST_SEPARATOR = ";"
"""Between the codes of one cell of a CSV copy."""

ROWS_A_GROUP = 1 << 20
WRITER = re.compile(r"parquet-cpp-arrow version \d+\.\d+\.\d+")
OWN = f"parquet-cpp-arrow version {pa.__version__}"


UNREADABLE = (OSError, ValueError, pa.ArrowException)
"""What reading a damaged file can raise."""

Given = ParamSpec("Given")
Found = TypeVar("Found")


def unless_readable(otherwise: Found) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Makes a function give `otherwise` for a damaged file; want of memory says nothing of the file."""

    def of(read: Callable[Given, Found]) -> Callable[Given, Found]:
        @wraps(read)
        def guarded(*args: Given.args, **more: Given.kwargs) -> Found:
            try:
                return read(*args, **more)
            except MemoryError:  # Arrow's is an ArrowException too
                raise
            except UNREADABLE:
                return otherwise

        return guarded

    return of


class _Digest(io.RawIOBase):
    """A file that keeps the digest of what is written, and nothing else."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()
        self.place = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sum.update(data)
        self.place += len(memoryview(data))
        return len(memoryview(data))

    def tell(self) -> int:
        return self.place


def open_with_dictionaries(file: Path, columns: Collection[str]) -> pq.ParquetFile:
    """A Parquet file whose texts, or lists of texts, in some columns are read as dictionaries: a text is made once a
    column chunk, not once a row."""
    metadata = pq.read_metadata(file)
    paths = (metadata.schema.column(place).path for place in range(metadata.num_columns))
    encoded = [path for path in paths if path.partition(".")[0] in columns]
    return pq.ParquetFile(file, metadata=metadata, read_dictionary=encoded)


def storage_checks(share: Share) -> list[Check]:
    """Parquet and CSV files hold nothing but their rows; CSV copies are those of their Parquet files."""
    files = [share.folder / path for path in share.paths]
    copies = [file for file in files if file.suffix == ".csv" and file.with_suffix(".parquet") in files]
    plain = {".parquet": plain_parquet, ".csv": plain_csv}
    files = [file for file in files if file.suffix in plain and file not in copies]
    return [
        of_count(
            "csv_copies",
            sum(not is_copy(file) for file in copies),
            "Every CSV copy says what its Parquet file says.",
            "CSV copies differ from their Parquet file.",
        ),
        of_count(
            "only_rows",
            sum(not plain[file.suffix](file) for file in files),
            "The files hold nothing but their rows: no metadata, no gaps, no unused values.",
            "files hold more than their rows need: metadata, gaps, unused values, or another way of writing them.",
        ),
    ]


def foreign_writers(share: Share) -> int:
    """How many Parquet files another version of Arrow wrote, so that their bytes cannot be written again here."""
    return sum(_is_foreign(share.folder / path) for path in share.paths if path.endswith(".parquet"))


@unless_readable(False)
def _is_foreign(file: Path) -> bool:
    return bool(pq.read_metadata(file).created_by != OWN)


@unless_readable(False)
def plain_parquet(file: Path) -> bool:
    """True when writing the file's rows again gives the same bytes; by its structure for another version's files."""
    metadata = pq.read_metadata(file)
    stored = pq.ParquetFile(file, metadata=metadata)
    if _carries_metadata(stored):
        return False
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if any(each != ROWS_A_GROUP for each in rows[:-1]):
        return False
    if metadata.created_by != OWN:
        for group in range(len(rows)):
            stored.read_row_group(group).validate(full=True)
        return _no_gaps(file, metadata)
    with file.open("rb") as stream:
        stored_digest = hashlib.file_digest(stream, "sha256").digest()
    # lists are written otherwise
    texts = [each.name for each in stored.schema_arrow if each.type == pa.string()]
    as_numbers = pq.ParquetFile(file, metadata=metadata, read_dictionary=texts)
    return _rewrite_digest(as_numbers) == stored_digest or _rewrite_digest(stored) == stored_digest


def _carries_metadata(stored: pq.ParquetFile) -> bool:
    """Whether the file, its schema or a column has metadata, or was not written by Arrow."""
    metadata, schema = stored.metadata, stored.schema_arrow
    if WRITER.fullmatch(metadata.created_by or "") is None or metadata.metadata or schema.metadata:
        return True
    return any(schema.field(i).metadata for i in range(len(schema)))


def _rewrite_digest(stored: pq.ParquetFile) -> bytes | None:
    """The digest of a file of the same rows; None where texts that are read by their numbers in the file's dictionaries
    would be numbered otherwise."""
    digest = _Digest()
    with pq.ParquetWriter(
        pa.PythonFile(digest, mode="w"),
        stored.schema_arrow,
        compression="zstd",
        store_schema=False,
        version="2.6",
    ) as writer:
        for group in range(stored.metadata.num_row_groups):
            rows = stored.read_row_group(group)
            rows.validate(full=True)  # texts that are no UTF-8 pass Arrow's reader
            rows = rows.combine_chunks()
            if not all(_is_in_row_order(column) for column in rows.columns):
                return None
            writer.write_table(rows, row_group_size=ROWS_A_GROUP)
    return digest.sum.digest()


def _is_in_row_order(column: pa.ChunkedArray) -> bool:
    """Whether texts stand in their dictionary once each, in the order in which rows first have them."""
    if pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    if not pa.types.is_dictionary(column.type):
        return True
    for chunk in column.chunks:
        numbers = chunk.indices.drop_null().to_numpy()
        new = (
            np.flatnonzero(numbers[1:] > np.maximum.accumulate(numbers)[:-1]) + 1 if len(numbers) else numbers
        )
        first = numbers[np.concatenate([np.zeros(min(1, len(numbers)), np.int64), new])]
        if not np.array_equal(first, np.arange(len(chunk.dictionary))):
            return False
        if pc.count_distinct(chunk.dictionary).as_py() != len(chunk.dictionary):
            return False
    return len(column.chunks) <= 1


def _no_gaps(file: Path, metadata: Any) -> bool:
    """Column chunks follow one another without a gap, up to the footer."""
    at = 4
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            if start != at:
                return False
            at += chunk.total_compressed_size
    return bool(at + metadata.serialized_size + 8 == file.stat().st_size)


@unless_readable(False)
def plain_csv(file: Path) -> bool:
    """True when writing the file's cells again gives the same bytes."""
    types = {"node": pa.string(), "parent": pa.string()}
    table = pcsv.read_csv(
        file,
        read_options=pcsv.ReadOptions(use_threads=False),
        parse_options=pcsv.ParseOptions(newlines_in_values=True),
        convert_options=pcsv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )
    sink = pa.BufferOutputStream()
    pcsv.write_csv(table, sink)
    return bool(sink.getvalue().to_pybytes() == file.read_bytes())


@unless_readable(False)
def is_copy(file: Path) -> bool:
    """True when a CSV file is the copy of the Parquet file beside it, byte by byte."""
    return copy_of(file.with_suffix(".parquet")) == file.read_bytes()


def copy_of(parquet: Path) -> bytes:
    """A Parquet file as its CSV copy is written: lists joined in one cell."""
    stored = pq.ParquetFile(parquet)
    flat = pa.schema(
        [
            pa.field(each.name, pa.string() if pa.types.is_list(each.type) else each.type)
            for each in stored.schema_arrow
        ]
    )
    sink = pa.BufferOutputStream()
    with pcsv.CSVWriter(sink, flat) as writer:
        for batch in stored.iter_batches(batch_size=1 << 16):
            columns = [
                pc.binary_join(column.cast(pa.list_(pa.string())), LIST_SEPARATOR)
                if pa.types.is_list(column.type)
                else column
                for column in batch.columns
            ]
            writer.write_table(pa.table(columns, schema=flat))
    return sink.getvalue().to_pybytes()
