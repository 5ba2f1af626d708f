"""The portal's own database: people, sessions, projects, proposals, releases, and a journal that nobody changes."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.queries.ledger.opening import Ledger, migrate, open_database
from leeward.queries.ledger.opening import reading as reading
from leeward.queries.ledger.opening import writing as writing

Database = Ledger

REVISION: Final = "0002"
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


def new_id() -> str:
    """A random identifier of 128 bits, in hex: it cannot be guessed from another."""
    return secrets.token_hex(16)


def now() -> str:
    """The time in UTC, to the millisecond; sorts as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def from_now(**length: float) -> str:
    return (datetime.now(UTC) + timedelta(**length)).isoformat(timespec="milliseconds")
