"""Reading rows as dictionaries, new identifiers, and the time."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

Row = dict[str, Any]


def new_id() -> str:
    """A random identifier of 128 bits, in hex: it cannot be guessed from another."""
    return secrets.token_hex(16)


def now() -> str:
    """The time in UTC, to the millisecond; sorts as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def from_now(**length: float) -> str:
    """The time in so many minutes, hours or days."""
    return (datetime.now(UTC) + timedelta(**length)).isoformat(timespec="milliseconds")


def new_row(table: sa.Table) -> sa.Insert:
    """An insertion that changes nothing where such a row is there already, in SQLite too."""
    return insert(table).on_conflict_do_nothing()


def fetch_all(connection: sa.Connection, asked: sa.Select[Any]) -> list[Row]:
    """Every row of a question."""
    return [dict(row) for row in connection.execute(asked).mappings()]


def fetch_one(connection: sa.Connection, asked: sa.Select[Any], **given: Any) -> Row | None:
    """The first row of a question, if there is one."""
    row = connection.execute(asked, given).mappings().first()
    return None if row is None else dict(row)
