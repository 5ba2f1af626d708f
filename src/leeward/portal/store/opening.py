"""Where the portal's database is: SQLite in its folder, or PostgreSQL by URL; its schema is made by migrations."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.queries.ledger.opening import Ledger as Database
from leeward.queries.ledger.opening import open_database, reading, writing

REVISION: Final = "0001"
"""The migration that this version works with."""
VERSIONS: Final = "portal_version"
"""Alembic's table; another one than the ledger's, so that both may be in one database."""
FILE: Final = "portal.db"

__all__ = [
    "FILE",
    "REVISION",
    "VERSIONS",
    "Database",
    "open_store",
    "reading",
    "writing",
]


def open_store(folder: Path, url: str | None = None) -> Database:
    """The portal's database, made or migrated where needed.

    BadInput where it was made by a later version; LedgerUnreachable where the database does not answer.
    """
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
        _migrate(connection)
    return database


def _migrate(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, REVISION)
