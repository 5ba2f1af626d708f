"""Tables and queries of a DuckDB file, read by DuckDB itself (extra `files`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from leeward.cohort.readers.sql import BATCH_ROWS, Database
from leeward.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import duckdb

SETTINGS = {"enable_external_access": "false", "autoload_known_extensions": "false"}
"""A view in the file reads nothing outside it."""

OF_NAMES = ("CatalogException", "ParserException", "BinderException", "SyntaxException")
"""Errors whose texts speak of names and syntax, never of values."""


class DuckDatabase(Database):
    """A schema of a DuckDB file as a store of tables; rows come in the order in which they were inserted."""

    def __init__(self, file: Path, place: str = "") -> None:
        try:
            import duckdb
        except ImportError:
            raise BadInput(f"{file.name}: to read .duckdb files install leeward[files].") from None
        if not file.is_file():
            raise BadInput(f"{file.name}: no such database file.")
        self.name = file.name
        self._error: type[Exception] = duckdb.Error
        with self._refusals("cannot be opened; it is damaged, in use, or of another version"):
            self._connection: duckdb.DuckDBPyConnection = duckdb.connect(
                str(file), read_only=True, config=dict(SETTINGS)
            )
        schema, _, self.table = place.rpartition(".")
        self.schema = schema or "main"
        rows = self._rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY 1",
            [self.schema],
        )
        self._tables = {name.lower(): name for (name,) in rows}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def header(self, table: str) -> list[str]:
        """The table's columns as they are written."""
        if not self.has(table):
            raise BadInput(f"{self.name}: no table '{table}'.{did_you_mean(table, self._tables)}")
        return [name for name, *_ in self._rows(f"DESCRIBE {self._of(table)}")]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns as the table writes them."""
        yield from self._batches(f"SELECT {', '.join(map(_quote, columns))} FROM {self._of(table)}")

    def query(self, text: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
        """The columns of a query and its rows."""
        columns = [name for name, *_ in self._rows(f"DESCRIBE {text.rstrip().rstrip(';')}")]
        return columns, self._batches(text)

    def _of(self, table: str) -> str:
        return f"{_quote(self.schema or 'main')}.{_quote(self._tables[table.lower()])}"

    def _rows(self, text: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._refusals("refused the query"):
            return self._connection.execute(text, list(values)).fetchall()

    def _batches(self, text: str) -> Iterator[pa.RecordBatch]:
        with self._refusals("refused the query"):
            yield from self._connection.sql(text).to_arrow_reader(BATCH_ROWS)

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        """DuckDB's refusal as an error without its text, which may hold values; messages on names may stay."""
        try:
            yield
        except self._error as error:
            kind = type(error).__name__
            reason = str(error).splitlines()[0] if kind in OF_NAMES else kind
            raise BadInput(f"{self.name}: the database {what} ({reason}).") from None


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
