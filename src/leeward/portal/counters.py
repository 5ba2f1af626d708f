"""Rate counters per time window, kept in the database so that all processes share them."""

from __future__ import annotations

import time

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from leeward.portal.store import Database, tables, writing

_counters = tables.counters.c
# Built once, see `queries.ledger.families`.
_first = insert(tables.counters)
COUNT = _first.on_conflict_do_update(
    index_elements=[_counters.bucket, _counters.window],
    set_={"times": _counters.times + _first.excluded.times},
).returning(_counters.times)


def hit(database: Database, bucket: str, seconds: int, most: int, more: int = 1) -> bool:
    """Count `more` of `bucket`; whether they are at most `most` in this stretch of `seconds`."""
    with writing(database, durable=False) as connection:
        return hit_in(connection, bucket, seconds, most, more)


def hit_in(connection: sa.Connection, bucket: str, seconds: int, most: int, more: int = 1) -> bool:
    """Like `hit`, within an open transaction."""
    now = {"bucket": bucket, "window": int(time.time()) // seconds, "times": more}
    times = connection.execute(COUNT, now).scalar_one()
    if times == more:  # the first of this stretch
        passed = (_counters.bucket == bucket) & (_counters.window < now["window"])
        connection.execute(tables.counters.delete().where(passed))
    return int(times) <= most


def forgive(database: Database, bucket: str, seconds: int) -> None:
    """Undo one count of an event that is not limited."""
    counters = tables.counters
    with writing(database, durable=False) as connection:
        connection.execute(
            counters.update()
            .where(counters.c.bucket == bucket, counters.c.window == int(time.time()) // seconds)
            .values(times=counters.c.times - 1)
        )
