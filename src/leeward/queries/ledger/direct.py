"""Statements given to the driver itself: SQLAlchemy compiles each once, and the driver runs it ever after.

What every question asks of a database is the same few statements. SQLAlchemy takes 30 to 60 µs to run one that SQLite
answers in 5; PostgreSQL's driver parses a statement anew each time, in three round trips, where a prepared one takes
one. `Direct` has of `sqlalchemy.Connection` what those statements need, with the same errors.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from leeward.queries.ledger.engines import UNKNOWN_ANSWER, state_of

MOST_PREPARED: Final = 200
"""Statements that a connection to a server keeps prepared."""

OUTDATED: Final = frozenset({"0A000", "26000"})
"""SQLSTATE: a prepared statement whose table was altered since, or that the server does not know."""


class Rows(list[Any]):
    """The rows of a statement, as named tuples, and how many it changed."""

    rowcount: int = -1

    def first(self) -> Any:
        """The first row, None where there is none."""
        return self[0] if self else None

    def scalar(self) -> Any:
        """The first column of the first row, None where there is none."""
        return self[0][0] if self else None

    def one(self) -> Any:
        """The only row; NoResultFound where there is none."""
        if not self:
            raise sa.exc.NoResultFound("no row was found")
        return self[0]


@dataclass(frozen=True)
class Compiled:
    """A statement's text with the names of its values in their order, and what becomes of its rows."""

    text: str
    order: tuple[str, ...]
    constants: Mapping[str, Any]
    row: Any
    booleans: tuple[int, ...]
    """Columns that SQLite gives as 0 and 1."""


@functools.lru_cache(maxsize=512)
def compiled(statement: Any, dialect: sa.Dialect, names: tuple[str, ...]) -> Compiled:
    """A statement as a dialect writes it; `names`: of the values that come with it."""
    made = statement.compile(dialect=dialect, column_keys=None if statement.is_select else list(names))
    columns = list(statement.exported_columns) if statement.is_select or statement._returning else []
    row = namedtuple("row", [each.name for each in columns]) if columns else None
    booleans = [place for place, each in enumerate(columns) if isinstance(each.type, sa.Boolean)]
    return Compiled(str(made), tuple(made.positiontup or ()), dict(made.params), row, tuple(booleans))


class Direct:
    """A connection of the pool. Nothing is begun by itself: a statement outside of a transaction is one of its own."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.raw = engine.raw_connection()
        self.driver: Any = self.raw.driver_connection
        self.dialect = _dialect(engine.dialect)

    @staticmethod
    def knows(engine: sa.Engine) -> bool:
        """Whether this database's driver is one of those that statements may be given to."""
        return (engine.dialect.name, engine.dialect.driver) in {
            ("sqlite", "pysqlite"), ("postgresql", "pg8000"),
        }  # fmt: skip

    def execute(
        self, statement: Any, given: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> Rows:
        """Run a statement, or one for each of several sets of values; every row is read."""
        if isinstance(given, Sequence):
            for each in given:
                self.execute(statement, each)
            return Rows()
        values = given or {}
        made = compiled(statement, self.dialect, tuple(values))
        constants = made.constants
        ordered = [values[name] if name in values else constants[name] for name in made.order]
        try:
            found, changed = self._run(made.text, ordered)
        except BaseException as error:
            raise self._said(error) from error
        rows = Rows()
        if made.row is not None:
            if made.booleans and self.dialect.name == "sqlite":
                found = [[_truth(v) if i in made.booleans else v for i, v in enumerate(r)] for r in found]
            rows.extend(map(made.row._make, found))
        rows.rowcount = changed
        return rows

    def exec_driver_sql(self, text: str) -> Rows:
        """Run a text without values."""
        try:
            if self.dialect.name == "sqlite":
                cursor = self.driver.execute(text)
                found, changed = cursor.fetchall(), cursor.rowcount
            else:
                context = self.driver.execute_simple(text)
                found, changed = context.rows or [], context.row_count
        except BaseException as error:
            raise self._said(error) from error
        rows = Rows(map(tuple, found))
        rows.rowcount = changed
        return rows

    @contextmanager
    def begin_nested(self) -> Iterator[None]:
        """What fails in here leaves the transaction as it was. In SQLite a failed statement does so by itself."""
        if self.dialect.name == "sqlite":
            yield
            return
        self.exec_driver_sql("SAVEPOINT here")
        try:
            yield
        except BaseException:
            if self.raw.is_valid:
                self.exec_driver_sql("ROLLBACK TO SAVEPOINT here")
            raise
        self.exec_driver_sql("RELEASE SAVEPOINT here")

    def close(self) -> None:
        """Give the connection back; the pool undoes what was not committed."""
        self.raw.close()

    def _run(self, text: str, values: list[Any]) -> tuple[list[Any], int]:
        if self.dialect.name == "sqlite":
            cursor = self.driver.execute(text, values)
            return cursor.fetchall(), cursor.rowcount
        from pg8000.converters import make_params

        driver, kept = self.driver, self.raw.info.setdefault("prepared", {})
        if text not in kept:
            while len(kept) >= MOST_PREPARED:
                driver.close_prepared_statement(kept.pop(next(iter(kept)))[0])
            kept[text] = driver.prepare_statement(text, ())
        name, columns, readers = kept[text]
        context = driver.execute_named(name, make_params(driver.py_types, values), columns, readers, text)
        return context.rows or [], context.row_count

    def _said(self, error: BaseException) -> BaseException:
        """An error as SQLAlchemy raises it. A connection of which nobody knows what comes next is never used again: one
        that was lost, or one whose answer was not read to its end."""
        dialect = self.engine.dialect
        driver: Any = dialect.loaded_dbapi
        if not isinstance(error, driver.Error):
            self.raw.invalidate(error)
            return ConnectionError(UNKNOWN_ANSWER) if isinstance(error, LookupError) else error
        lost = dialect.is_disconnect(error, self.driver, None)
        if lost:
            self.engine.dispose()
        if lost or state_of(error) in OUTDATED:
            self.raw.invalidate(error)
        elif type(error) is driver.DatabaseError:  # pg8000 tells kinds apart only in its cursors
            kind = (
                driver.IntegrityError if (state_of(error) or "").startswith("23") else driver.ProgrammingError
            )
            error = kind(*error.args)
        found: BaseException = sa.exc.DBAPIError.instance(
            "", None, error, driver.Error, hide_parameters=True, connection_invalidated=lost, dialect=dialect
        )
        return found


Connection = sa.Connection | Direct


def among(column: sa.ColumnElement[Any], count: int) -> sa.ColumnElement[bool]:
    """That a column is one of `count` values, which `values_of` names."""
    return column.in_([sa.bindparam(f"among{each}") for each in range(count)])


def values_of(values: Sequence[Any]) -> dict[str, Any]:
    """The values of `among`."""
    return {f"among{place}": each for place, each in enumerate(values)}


def _truth(value: Any) -> bool | None:
    return None if value is None else bool(value)


@functools.cache
def _dialect(dialect: sa.Dialect) -> sa.Dialect:
    """The dialect that writes a statement's values as the driver's own protocol does: `$1` where it is PostgreSQL."""
    if dialect.name == "sqlite":
        return dialect
    kind: Any = type(dialect)
    made: sa.Dialect = kind(paramstyle="numeric_dollar")
    return made
