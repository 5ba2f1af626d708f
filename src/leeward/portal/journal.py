"""The portal's journal: who signed in, proposed, decided, downloaded; hashed as the ledger's log is.

Entries hold identifiers, kinds and digests; no question, no count, no token and no password.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa

from leeward.portal.store import Database, reading, tables
from leeward.queries.ledger import chain, journal
from leeward.queries.ledger.auditing import Check
from leeward.queries.ledger.chain import Entry

JOURNAL: Final = journal.Journal(tables.journal, tables.journal_end)


def record(connection: sa.Connection, event: str, **facts: Any) -> None:
    """Write an entry in the transaction of what it tells."""
    journal.record(connection, JOURNAL, {"event": event, **facts})


def entries(connection: sa.Connection, after: int = 0) -> Iterator[Entry]:
    """The journal, oldest first."""
    return journal.entries(connection, JOURNAL, after)


_checked: Final[dict[str, chain.End]] = {}
"""How far this process has checked the journal of a database."""


def check(database: Database, *, again: bool = True) -> tuple[Check, str]:
    """Whether the journal is whole, and its last hash. Not `again`: of what this process has checked before, only that
    the rest follows it."""
    known = _checked.get(database.key, chain.End())
    before = chain.End() if again else known
    with reading(database, snapshot=True) as connection:
        count, head = journal.end_of(connection, JOURNAL)
        found = list(entries(connection, before.entries))
    checked, fault = chain.follow(found, count, head, before)
    if fault is None and checked.entries >= known.entries:
        _checked[database.key] = checked
    detail = f"{count} entries, each hash covers the one before" if fault is None else fault
    return Check("journal of the portal", fault is None, detail), head
