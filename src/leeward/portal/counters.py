"""How often something happened in a stretch of time, counted in the database so that every process counts the same."""

from __future__ import annotations

import time

import sqlalchemy as sa

from leeward.portal.store import Database, tables, writing, writing_directly
from leeward.portal.store.rows import new_row
from leeward.queries.ledger.direct import Connection

_counters = tables.counters.c
COUNT = (
    tables.counters.update()
    .where(_counters.bucket == sa.bindparam("of"), _counters.window == sa.bindparam("at"))
    .values(times=_counters.times + sa.bindparam("more", type_=sa.BigInteger))
    .returning(_counters.times)
)

PASSED = tables.counters.delete().where(
    _counters.bucket == sa.bindparam("of"), _counters.window < sa.bindparam("at")
)
FIRST = new_row(tables.counters)


def hit(database: Database, bucket: str, seconds: int, most: int, more: int = 1) -> bool:
    """Count `more` of `bucket`; whether they are at most `most` in this stretch of `seconds`."""
    with writing_directly(database, durable=False) as connection:
        return hit_in(connection, bucket, seconds, most, more)


def hit_in(connection: Connection, bucket: str, seconds: int, most: int, more: int = 1) -> bool:
    """As `hit`, in a transaction that does more."""
    given = {"of": bucket, "at": int(time.time()) // seconds, "more": more}
    times = connection.execute(COUNT, given).scalar()
    if times is None:
        connection.execute(PASSED, {"of": bucket, "at": given["at"]})
        first = connection.execute(FIRST, {"bucket": bucket, "window": given["at"], "times": more}).rowcount
        times = more if first else connection.execute(COUNT, given).scalar() or 1
    return int(times) <= most


def forgive(database: Database, bucket: str, seconds: int) -> None:
    """Take one back: it was none of those that are limited."""
    counters = tables.counters
    with writing(database, durable=False) as connection:
        connection.execute(
            counters.update()
            .where(counters.c.bucket == bucket, counters.c.window == int(time.time()) // seconds)
            .values(times=counters.c.times - 1)
        )
