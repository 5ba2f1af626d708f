"""The portal's journal: who signed in, proposed, decided, downloaded; hashed as the ledger's log is.

Entries hold identifiers, kinds and digests; no question, no count, no token and no password.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa

from leeward.portal.store import Database, reading, tables
from leeward.queries.ledger import chain
from leeward.queries.ledger.auditing import Check
from leeward.queries.ledger.chain import Entry


def record(connection: sa.Connection, event: str, **facts: Any) -> None:
    """Write an entry in the transaction of what it tells; whoever writes locks the journal's end first."""
    end = tables.journal_end
    asked = (
        end.update()
        .where(end.c.one == 1)
        .values(entries=end.c.entries + 1)
        .returning(end.c.entries, end.c.head)
    )
    row = connection.execute(asked).first()
    if row is None:
        connection.execute(end.insert().values(one=1, entries=1, head=chain.START))
        number, before = 1, chain.START
    else:
        number, before = row.entries, row.head
    last = connection.execute(
        sa.select(tables.journal.c.time).where(tables.journal.c.number == number - 1)
    ).scalar()
    time = max(chain.now(), last or "")
    body = chain.text_of({"event": event, **facts})
    head = chain.link(before, number, time, body)
    connection.execute(tables.journal.insert().values(number=number, time=time, body=body, hash=head))
    connection.execute(end.update().where(end.c.one == 1).values(head=head))


def entries(connection: sa.Connection, after: int = 0) -> Iterator[Entry]:
    """The journal, oldest first."""
    asked = sa.select(tables.journal).where(tables.journal.c.number > after).order_by(tables.journal.c.number)
    for row in connection.execute(asked):
        yield Entry(row.number, row.time, row.body, row.hash)


_checked: Final[dict[str, chain.End]] = {}
"""How far this process has checked the journal of a database."""


def check(database: Database, *, again: bool = True) -> tuple[Check, str]:
    """Whether the journal is whole, and its last hash. Not `again`: of what this process has checked before, only that
    the rest follows it."""
    known = _checked.get(database.key, chain.End())
    before = chain.End() if again else known
    with reading(database, snapshot=True) as connection:
        end = connection.execute(sa.select(tables.journal_end)).first()
        count, head = (0, chain.START) if end is None else (end.entries, end.head)
        found = list(entries(connection, before.entries))
    checked, fault = chain.follow(found, count, head, before)
    if fault is None and checked.entries >= known.entries:
        _checked[database.key] = checked
    detail = f"{count} entries, each hash covers the one before" if fault is None else fault
    return Check("journal of the portal", fault is None, detail), head
