"""How often something happened in a stretch of time, counted in the database so that every process counts the same."""

from __future__ import annotations

import time

import sqlalchemy as sa

from leeward.portal.store import Database, tables, writing


def hit(database: Database, bucket: str, seconds: int, most: int, more: int = 1) -> bool:
    """Count `more` of `bucket`; whether they are at most `most` in this stretch of `seconds`."""
    window = int(time.time()) // seconds
    counters = tables.counters
    with writing(database, durable=False) as connection:
        asked = (
            counters.update()
            .where(counters.c.bucket == bucket, counters.c.window == window)
            .values(times=counters.c.times + more)
            .returning(counters.c.times)
        )
        times = connection.execute(asked).scalar()
        if times is None:
            connection.execute(
                counters.delete().where(counters.c.bucket == bucket, counters.c.window < window)
            )
            try:
                with connection.begin_nested():
                    connection.execute(counters.insert().values(bucket=bucket, window=window, times=more))
                times = more
            except sa.exc.IntegrityError:  # another process was first
                times = connection.execute(asked).scalar() or 1
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
