"""Families of data sets in the ledger: who belongs to which, and the lock that writers take first."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from leeward.queries.ledger import tables
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable


def known_family(connection: sa.Connection, data_set: str) -> str | None:
    """The family of a data set, None for one that the ledger does not know."""
    asked = sa.select(tables.data_sets.c.family).where(tables.data_sets.c.data_set == data_set)
    family: str | None = connection.execute(asked).scalar()
    return family


def family_of(connection: sa.Connection, ledger: Ledger, data_set: str) -> str:
    family = known_family(connection, data_set)
    if family is None:
        raise LedgerUnreachable(
            f"{ledger.place}: this ledger has no budget for the index's data set. No answer was given. "
            "An index is answered from the ledger that `leeward index` opened for it; "
            "`leeward budget INDEX --move-to URL` moves its budget."
        )
    return family


def family_terms(connection: sa.Connection, family: str) -> Any:
    asked = sa.select(tables.families).where(tables.families.c.family == family)
    return connection.execute(asked).one()


def line_of(connection: sa.Connection, data_set: str) -> list[str]:
    """The data set, its parent, and so on to the first of the family."""
    line = [data_set]
    while True:
        asked = sa.select(tables.data_sets.c.parent).where(tables.data_sets.c.data_set == line[-1])
        parent = connection.execute(asked).scalar()
        if parent is None:
            return line
        line.append(parent)


def lock(connection: sa.Connection, ledger: Ledger, family: str) -> tuple[int, str]:
    """Lock the family against other writers; its log's length and last hash."""
    families = tables.families.c
    row = connection.execute(
        tables.families.update()
        .where(families.family == family, families.moved.is_(None))
        .values(entries=families.entries)
        .returning(families.entries, families.head)
    ).first()
    if row is None:
        raise moved_away(ledger)
    return row.entries, row.head


def user_account(family: str, user: str) -> str:
    return f"user:{family}:{user}"


def moved_away(ledger: Ledger) -> LedgerUnreachable:
    """The refusal of a ledger whose family is elsewhere."""
    return LedgerUnreachable(
        f"{ledger.place}: the budget has moved to another ledger. No answer was given. Name it with --ledger URL."
    )
