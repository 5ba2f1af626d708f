"""Rows of the portal's tables: asked for, found by identifier, listed in parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from leeward.errors import BadInput
from leeward.portal.store import Database, reading

Row = dict[str, Any]


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


class Unknown(BadInput):
    """Nothing of this name exists or is visible to the viewer; both get the same message."""

    def __str__(self) -> str:
        return "there is nothing at this address."


def known(row: Row | None) -> Row:
    """The row; Unknown where there is none."""
    if row is None:
        raise Unknown
    return row


def row_of(where: Database | sa.Connection, table: sa.Table, identifier: str) -> Row:
    """The row with an identifier; Unknown where there is none."""
    return known(fetch_one(where, sa.select(table).where(table.c.id == identifier)))


def names_of(where: Database | sa.Connection, table: sa.Table) -> dict[str, str]:
    """Identifier -> name of everything in a table."""
    return {row["id"]: row["name"] for row in fetch_all(where, sa.select(table.c.id, table.c.name))}


def fetch_one(where: Database | sa.Connection, asked: sa.Select[Any], **given: Any) -> Row | None:
    return next(iter(fetch_all(where, asked, **given)), None)
