"""A log with one chain for a whole database (the portal's journal, the register of releases), hashed as a ledger's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from leeward.queries.ledger import chain
from leeward.queries.ledger.chain import Entry


@dataclass(frozen=True)
class Journal:
    """`log`: number, time, body, hash; `end`: one row with the number of entries and the last hash."""

    log: sa.Table
    end: sa.Table


def record(connection: sa.Connection, journal: Journal, body: Mapping[str, Any]) -> Entry:
    """Write an entry in the transaction of what it tells; whoever writes locks the journal's end first."""
    end, log = journal.end, journal.log
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
    last = connection.execute(sa.select(log.c.time).where(log.c.number == number - 1)).scalar()
    time, text = max(chain.now(), last or ""), chain.text_of(body)
    entry = Entry(number, time, text, chain.link(before, number, time, text))
    connection.execute(log.insert().values(**vars(entry)))
    connection.execute(end.update().where(end.c.one == 1).values(head=entry.hash))
    return entry


def entries(connection: sa.Connection, journal: Journal, after: int = 0) -> Iterator[Entry]:
    """The journal, oldest first."""
    log = journal.log.c
    asked = sa.select(log.number, log.time, log.body, log.hash).where(log.number > after).order_by(log.number)
    for row in connection.execute(asked):
        yield Entry(*row)


def end_of(connection: sa.Connection, journal: Journal) -> tuple[int, str]:
    """How many entries there are, and the last hash."""
    end = journal.end.c
    row = connection.execute(sa.select(end.entries, end.head)).first()
    return (0, chain.START) if row is None else (row.entries, row.head)


def append_only(connection: sa.Connection, table: sa.Table) -> None:
    """Let a database refuse to change or remove a table's rows."""
    name = table.name
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"CREATE FUNCTION {name}_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{name} is append-only'; END $$"
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {name}_is_append_only()"
        )
        return
    for change in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {name}_no_{change.lower()} BEFORE {change} ON {name} "
            f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
        )
