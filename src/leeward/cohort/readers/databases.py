"""Tables and queries of a database: by an SQLAlchemy URL (PostgreSQL by pg8000, SQLite, and what has a driver), or of a
DuckDB file (extra `files`), read by DuckDB itself.

`postgresql://user@host/db#schema.table` names a table (or, for OMOP and i2b2, `#schema`). Without a password in
the URL, PostgreSQL's is taken from the environment variable PGPASSWORD. `?sslmode=`, `sslrootcert=` and so on are as in
`leeward.postgres`.
"""

from __future__ import annotations

import datetime
import decimal
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, require_columns
from leeward.cohort.readers.request import Request
from leeward.errors import BadInput, did_you_mean, listed, require_extra
from leeward.postgres import fault_of_tls, with_tls

if TYPE_CHECKING:
    import duckdb
    import sqlalchemy as sa

BATCH_ROWS = 1 << 16
WRITES_NAMES = "42"
"""Class of SQLSTATE whose messages speak of names in the query, never of values."""

SETTINGS = {"enable_external_access": "false", "autoload_known_extensions": "false"}
"""A view in the file reads nothing outside it."""

OF_NAMES = ("CatalogException", "ParserException", "BinderException", "SyntaxException")
"""Errors whose texts speak of names and syntax, never of values."""


class Database:
    """One schema of a database as a store of tables, names in lower case."""

    def __init__(self, url: str) -> None:
        user, at, rest = url.rpartition("@")  # a # in the password is none
        address, _, place = rest.partition("#")
        address = user + at + address
        self._engine = _engine(address)
        self.name = Path(self._engine.url.database or self._engine.url.drivername).name
        with (
            ExitStack() as opened,
            refusals(self.name, "cannot be opened; check its URL, user and password (PGPASSWORD)"),
        ):
            opened.callback(self.close)
            inspector = _sqlalchemy().inspect(self._engine)
            schema, _, self.table = place.rpartition(".")
            self.schema: str | None = schema or None
            names = inspector.get_table_names(self.schema) + inspector.get_view_names(self.schema)
            if self.table not in ("", *names) and not schema and self.table in inspector.get_schema_names():
                self.schema, self.table = self.table, ""
                names = inspector.get_table_names(self.schema) + inspector.get_view_names(self.schema)
            opened.pop_all()
        self._tables = {name.lower(): name for name in names}
        self._inspector = inspector

    def file(self, table: str) -> Path | None:
        return None

    def close(self) -> None:
        self._engine.dispose()

    def has(self, table: str) -> bool:
        return table.lower() in self._tables

    def only_table(self) -> str:
        names = sorted(self._tables.values())
        if len(names) != 1:
            shown = f" ({listed(names)})" if names else ""
            raise BadInput(
                f"{self.name}: it has {len(names)} tables{shown}; name one with --table or give a query "
                f"(--query)."
            )
        return names[0]

    def columns(self, table: str) -> list[str]:
        return [name.lower() for name in self.header(table)]

    def header(self, table: str) -> list[str]:
        if not self.has(table):
            raise BadInput(f"{self.name}: no table '{table}'.{did_you_mean(table, self._tables)}")
        with refusals(self.name, "does not show its columns"):
            columns = self._inspector.get_columns(self._tables[table.lower()], self.schema)
            return [str(column["name"]) for column in columns]

    def batches(
        self, table: str, columns: Sequence[str], encoded: Sequence[str] = ()
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The asked columns (lower case), in the order of the primary key, or else of their values."""
        header = self.header(table)
        lower = [name.lower() for name in header]
        require_columns(table, columns, lower)
        wanted = [header[lower.index(name)] for name in columns]
        for batch in self.rows(table, wanted):
            yield table, batch.rename_columns(list(columns))

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        alchemy = _sqlalchemy()
        actual = self._tables[table.lower()]
        with refusals(self.name, "does not show its keys"):
            key = self._inspector.get_pk_constraint(actual, self.schema)["constrained_columns"]
        # Columns without a type: values come as the driver gives them, and none is converted on the way.
        selected = alchemy.select(*map(alchemy.column, columns))
        from_table = selected.select_from(alchemy.table(actual, schema=self.schema))
        yield from self._stream(from_table.order_by(*map(alchemy.column, key or columns)), columns)

    def query(self, text: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
        alchemy = _sqlalchemy()
        with refusals(self.name, "refused the query"), self._engine.connect() as connection:
            result = connection.execution_options(stream_results=True).execute(alchemy.text(text))
            columns = list(result.keys())
        return columns, self._stream(alchemy.text(text), columns)

    def _stream(self, statement: sa.Executable, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with refusals(self.name, "refused the query"), self._engine.connect() as connection:
            result = connection.execution_options(stream_results=True).execute(statement)
            for part in result.partitions(BATCH_ROWS):
                named = zip(columns, zip(*part, strict=True), strict=True)
                arrays = [as_arrow(list(values), self.name, name) for name, values in named]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))


class DuckDatabase(Database):
    """A schema of a DuckDB file as a store of tables; rows come in the order in which they were inserted."""

    def __init__(self, file: Path, place: str = "") -> None:
        require_extra(f"{file.name}: a .duckdb file", "files", "duckdb")
        import duckdb

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
        self._connection.close()

    def header(self, table: str) -> list[str]:
        if not self.has(table):
            raise BadInput(f"{self.name}: no table '{table}'.{did_you_mean(table, self._tables)}")
        return [name for name, *_ in self._rows(f"DESCRIBE {self._of(table)}")]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._batches(f"SELECT {', '.join(map(_quote, columns))} FROM {self._of(table)}")

    def query(self, text: str) -> tuple[list[str], Iterator[pa.RecordBatch]]:
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


def read_sql(asked: Request) -> Cohort:
    database, query = asked.store, asked.query
    assert isinstance(database, Database)  # `formats.detect_format` opened it
    if query is not None and any(sign.isspace() for sign in query.strip()):
        title = "query"
        header, batches = database.query(query)
    else:
        title = query.strip() if query is not None else database.table or database.only_table()
        header, batches = database.header(title), None
    mapped = ColumnMap.of(asked.columns, header)
    require_columns(title, mapped.columns_to_read(), header)
    collector = Collector(title, mapped, asked.missing, asked.date_format, separator=asked.code_separator)
    for batch in database.rows(title, mapped.columns_to_read()) if batches is None else batches:
        collector.add(batch)
    return collector.cohort(asked.vocabulary)


def open_database(url: str) -> Database:
    if not url.startswith("duckdb:///"):
        return Database(url)
    file, _, place = url.removeprefix("duckdb:///").partition("#")
    return DuckDatabase(Path(file), place)


def as_arrow(values: Sequence[Any], name: str, title: str) -> pa.Array:
    """A database's values as whole numbers, decimal numbers, dates or text; all null is text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return pa.array(values, pa.string())
    if kinds <= {int, float, decimal.Decimal}:
        return _numbers(values, kinds)
    if kinds <= {datetime.date, datetime.datetime}:
        return _as(lambda day: day.date() if isinstance(day, datetime.datetime) else day, values, pa.date32())
    if kinds <= {str, int, uuid.UUID}:
        return _as(str, values, pa.string())
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise BadInput(f"{name}: column '{title}' holds {found}; readable are text, numbers and dates.")


def _numbers(values: Sequence[Any], kinds: Collection[type]) -> pa.Array:
    """Numbers as whole ones where all are; whole ones beyond 64 bits as text."""
    known = [value for value in values if value is not None]
    if kinds == {int} and (min(known) < -(2**63) or max(known) >= 2**63):
        return _as(str, values, pa.string())
    if all(value == value // 1 for value in known):
        return _as(int, values, pa.int64())
    return _as(float, values, pa.float64())


def _as(convert: Callable[[Any], Any], values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in values], kind)


def _engine(address: str) -> sa.Engine:
    alchemy = _sqlalchemy()
    try:
        url = alchemy.make_url(address)
    except (alchemy.exc.ArgumentError, ValueError):
        raise BadInput(
            "The source's URL is not of the form dialect://user@host:port/database; write the @, : and / of a password "
            "as %40, %3A and %2F, or give it in PGPASSWORD."
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+pg8000")
    if url.get_backend_name() == "postgresql" and url.password is None and os.environ.get("PGPASSWORD"):
        url = url.set(password=os.environ["PGPASSWORD"])
    # SQLite would make an empty database of a name that is wrong.
    if url.get_backend_name() == "sqlite" and not (url.database and Path(url.database).is_file()):
        raise BadInput(f"{Path(url.database or 'sqlite').name}: no such database file.")
    arguments: dict[str, Any] = {}
    if url.drivername == "postgresql+pg8000":
        url, arguments = with_tls(url)
    try:
        return alchemy.create_engine(url, connect_args=arguments)
    except (ImportError, alchemy.exc.NoSuchModuleError):
        raise BadInput(
            f"No driver for the database '{url.drivername}'; install its Python package."
        ) from None


def _sqlalchemy() -> Any:
    require_extra("Reading databases", "omop", "sqlalchemy")
    import sqlalchemy

    return sqlalchemy


@contextmanager
def refusals(name: str, what: str) -> Iterator[None]:
    """A database's refusal as an error without its text, which may hold values; messages on names may stay."""
    alchemy = _sqlalchemy()
    try:
        yield
    except alchemy.exc.SQLAlchemyError as error:
        raise BadInput(f"{name}: the database {what}{_reason(error)}.") from None
    except OSError as error:
        fault = fault_of_tls(error) or type(error).__name__
        raise BadInput(f"{name}: the database {what} ({fault}).") from None


def _reason(error: Exception) -> str:
    cause = getattr(error, "orig", None)
    told = cause.args[0] if cause is not None and cause.args else None
    if isinstance(told, dict):  # pg8000: the fields of PostgreSQL's message
        state = str(told.get("C", ""))
        return f" ({told.get('M')})" if state.startswith(WRITES_NAMES) else f" (SQLSTATE {state})"
    kind = fault_of_tls(cause or error) or type(cause or error).__name__
    if kind == "OperationalError" and isinstance(told, str):  # SQLite: of names and syntax only
        return f" ({told})"
    return f" ({kind})"
