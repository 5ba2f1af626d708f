"""A database as files: a folder with one file (or one folder of files) a table, its names in any case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl
import pyarrow as pa

from leeward.cohort.readers import delimited, parquet
from leeward.cohort.readers.columns import require_columns
from leeward.cohort.readers.files import (
    DELIMITED,
    PARQUET,
    READABLE,
    WHOLE,
    find_files,
    keys_of,
    readable_files,
    refuse_log,
    suffix,
)
from leeward.cohort.readers.values import plain
from leeward.errors import BadInput


class Reader(Protocol):
    def header(self, file: Path) -> list[str]: ...

    def types(self, file: Path, columns: Sequence[str]) -> list[pa.DataType]: ...

    def batches(
        self, file: Path, columns: Sequence[str], dictionary: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class Partition:
    """The reader of a file below folders `key=value`, whose keys are columns of texts where the file has none of the
    name."""

    reader: Reader
    keys: Mapping[str, str | None]

    def header(self, file: Path) -> list[str]:
        return list(dict.fromkeys([*self.reader.header(file), *self.keys]))

    def types(self, file: Path, columns: Sequence[str]) -> list[pa.DataType]:
        own = self._select_own(file, columns)
        types = dict(zip(own, self.reader.types(file, own), strict=True))
        return [types.get(name, pa.string()) for name in columns]

    def batches(
        self, file: Path, columns: Sequence[str], dictionary: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        own = self._select_own(file, columns)
        values = {name: pa.scalar(value, pa.string()) for name, value in self.keys.items()}
        for batch in self.reader.batches(file, own, [name for name in dictionary if name in own]):
            parts = [
                batch.column(name) if name in own else pa.repeat(values[name], batch.num_rows)
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(parts, list(columns))

    def _select_own(self, file: Path, columns: Sequence[str]) -> list[str]:
        """The columns that are in the file; its first where none is asked for, so that rows are counted."""
        header = self.reader.header(file)
        return [name for name in columns if name in header] or header[:1]


def reader_of(file: Path) -> Reader:
    keys = keys_of(file)
    return Partition(_reader_of(file), keys) if keys else _reader_of(file)


def _reader_of(file: Path) -> Reader:
    if suffix(file) in PARQUET:
        return parquet
    if suffix(file) in DELIMITED:
        return delimited
    raise BadInput(
        f"{file.name}: this ending is not known; files end in {', '.join(READABLE)}, text also in .gz; single files "
        f"also in {', '.join((*WHOLE, '.zip', '.sqlite', '.duckdb'))}."
    )


class Store(Protocol):
    """Tables by name. Names of tables and columns are given and taken in lower case."""

    @property
    def name(self) -> str:
        """What messages call the store."""

    def has(self, table: str) -> bool:
        """Whether the table is there."""

    def columns(self, table: str) -> list[str]:
        """The columns of a table that is there."""

    def batches(
        self, table: str, columns: Sequence[str], encoded: Sequence[str] = ()
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The asked columns in batches, each with the name of the file or table that it comes from."""

    def file(self, table: str) -> Path | None:
        """The one text file of a table; None where there is none, or several."""


class Folder:
    """A folder of CSV, TSV or Parquet files (text also as `.gz`); a table may be a folder of parts."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._files: dict[str, list[Path]] = {}
        refuse_log(path)
        for entry in sorted(path.iterdir()):
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir() or entry.is_symlink():
                refuse_log(entry)
            readable = suffix(entry) in READABLE
            if entry.is_file() and readable:
                self._put(entry.name.split(".")[0].lower(), [entry])
            elif entry.is_dir() and any(readable_files(entry)):
                self._put(entry.name.split(".")[0].lower(), find_files(entry))

    def _put(self, table: str, files: list[Path]) -> None:
        if table in self._files:
            raise BadInput(
                f"{self.name}: the table {table} is there twice, as {self._files[table][0].name} and "
                f"{files[0].name}; keep one."
            )
        self._files[table] = files

    def has(self, table: str) -> bool:
        return table in self._files

    def file(self, table: str) -> Path | None:
        files = self._files.get(table, [])
        return files[0] if len(files) == 1 and suffix(files[0]) != ".parquet" else None

    def columns(self, table: str) -> list[str]:
        """The columns of the table's first file, in lower case."""
        first = self._files[table][0]
        return [name.lower() for name in reader_of(first).header(first)]

    def batches(
        self, table: str, columns: Sequence[str], encoded: Sequence[str] = ()
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        for file in self._files[table]:
            reader = reader_of(file)
            header = reader.header(file)
            lower = [name.lower() for name in header]
            require_columns(file.name, columns, lower)
            actual = {name: header[lower.index(name)] for name in columns}
            wanted = list(actual.values())
            for batch in reader.batches(file, wanted, [actual[name] for name in encoded]):
                parts = [batch.column(actual[name]) for name in columns]
                yield file.name, pa.RecordBatch.from_arrays(parts, list(columns))


def require_table(store: Store, table: str, why: str) -> None:
    if not store.has(table):
        raise BadInput(f"{store.name}: there is no table {table.upper()}, {why}.")


def pick(store: Store, table: str, names: Sequence[str]) -> str | None:
    available = store.columns(table)
    return next((name for name in names if name in available), None)


def frames(store: Store, table: str, columns: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The asked columns as frames, each with its file; `row` counts the rows of the file from 1."""
    last, before = "", 0
    for title, batch in store.batches(table, columns):
        before = before if title == last else 0
        last = title
        frame = pl.DataFrame({name: plain(batch.column(name)) for name in columns})
        yield title, frame.with_columns(row=pl.int_range(before + 1, before + 1 + frame.height))
        before += batch.num_rows
