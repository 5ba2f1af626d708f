"""The portal's own database: people, sessions, projects, proposals, releases, and a journal that nobody changes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
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


def open_store(
    folder: Path, url: str | None = None, upgrade: Callable[[str], None] | None = None
) -> Database:
    """The portal's database, made where there is none. BadInput where another version made it, but an earlier one's is
    migrated where `upgrade` is given, which is told before; LedgerUnreachable where it does not answer."""
    database = open_database(_address(folder, url))
    with writing(database) as connection:
        found = _revision(connection)
        if found == REVISION:
            return database
        schemas = f"its schema is {found}, this version knows {REVISION}"
        if found is not None and found > REVISION:
            raise BadInput(
                f"{database.place}: the portal's database was made by a later version of Leeward ({schemas}). "
                "Install the later version."
            )
        if found is not None:
            if upgrade is None:
                raise BadInput(
                    f"{database.place}: the portal's database was made by an earlier version of Leeward ({schemas}). "
                    "Stop the portal, back up (`leeward serve --backup OUT`; PostgreSQL: pg_dump), then run "
                    "`leeward serve --upgrade`: the earlier version cannot open it afterwards."
                )
            upgrade(f"{database.place}: from schema {found} to {REVISION}")
        migrate(connection, Path(__file__).parent / "migrations", REVISION)
    return database


def find_store(folder: Path, url: str | None = None) -> Database:
    """The portal's database, of whatever version. BadInput where there is none."""
    if url is not None or (folder / FILE).is_file():
        database = open_database(_address(folder, url))
        with reading(database) as connection:
            if _revision(connection) is not None:
                return database
    raise BadInput(f"{folder}: there is no portal in this folder. `--folder` names it; serving it makes one.")


def _address(folder: Path, url: str | None) -> str:
    return url or f"sqlite:///{folder / FILE}"


def _revision(connection: sa.Connection) -> str | None:
    """The migration that a database is at; None where no portal is in it."""
    if not sa.inspect(connection).has_table(VERSIONS):
        return None
    found: str | None = connection.exec_driver_sql(f"SELECT version_num FROM {VERSIONS}").scalar()
    return found


def new_id() -> str:
    """A random identifier of 128 bits, in hex: it cannot be guessed from another."""
    return secrets.token_hex(16)


def now() -> str:
    """The time in UTC, to the millisecond; sorts as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def from_now(**length: float) -> str:
    return (datetime.now(UTC) + timedelta(**length)).isoformat(timespec="milliseconds")
