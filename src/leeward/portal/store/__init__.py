"""The portal's own database: people, sessions, projects, proposals, releases, and a journal that nobody changes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from leeward.errors import BadInput
from leeward.queries.ledger.opening import Ledger, migrate, open_database
from leeward.queries.ledger.opening import reading as reading
from leeward.queries.ledger.opening import writing as writing

Database = Ledger

REVISION: Final = "0005"
"""The migration that this version works with."""
VERSIONS: Final = "portal_version"
"""Alembic's table; another one than the ledger's, so that both may be in one database."""
FILE: Final = "portal.db"


def open_store(folder: Path, url: str | None = None) -> Database:
    """The portal's database, made or migrated where needed. BadInput where it was made by a later version;
    LedgerUnreachable where it does not answer."""
    database = open_database(url or f"sqlite:///{folder / FILE}")
    with writing(database) as connection:
        found = None
        if sa.inspect(connection).has_table(VERSIONS):
            found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSIONS}").scalar()
        if found == REVISION:
            return database
        if found is not None and str(found) > REVISION:
            raise BadInput(
                f"{database.place}: the portal's database was made by a later version of Leeward (its schema is "
                f"{found}, this version knows {REVISION}). Install the later version."
            )
        migrate(connection, Path(__file__).parent / "migrations", REVISION)
    return database


Row = dict[str, Any]


def new_id() -> str:
    """A random identifier of 128 bits, in hex: it cannot be guessed from another."""
    return secrets.token_hex(16)


def now() -> str:
    """The time in UTC, to the millisecond; sorts as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def from_now(**length: float) -> str:
    return (datetime.now(UTC) + timedelta(**length)).isoformat(timespec="milliseconds")


def new_row(table: sa.Table) -> sa.Insert:
    """An insertion that changes nothing where such a row is there already, in SQLite too."""
    return insert(table).on_conflict_do_nothing()


def fetch_all(where: Database | sa.Connection, asked: sa.Select[Any], **given: Any) -> list[Row]:
    """Every row of a question, over a connection or, given a database, one of its own."""
    with nullcontext(where) if isinstance(where, sa.Connection) else reading(where) as connection:
        return [dict(row) for row in connection.execute(asked, given).mappings()]


def fetch_part(
    where: Database, asked: sa.Select[Any], order: Sequence[sa.ColumnElement[Any]], after: str, most: int
) -> tuple[list[Row], str | None]:
    """Rows in falling order of some columns, the last of which is the identifier: those after a row, and whether (after
    which one) there are more."""
    if after:
        last = fetch_one(where, asked.with_only_columns(*order).where(order[-1] == after))
        if last is None:
            return [], None
        asked = asked.where(sa.tuple_(*order) < sa.tuple_(*map(sa.literal, last.values())))
    rows = fetch_all(where, asked.order_by(*(each.desc() for each in order)).limit(most + 1))
    return rows[:most], rows[most - 1]["id"] if len(rows) > most else None


def fetch_one(where: Database | sa.Connection, asked: sa.Select[Any], **given: Any) -> Row | None:
    return next(iter(fetch_all(where, asked, **given)), None)
