"""Sessions: a row in the database each, which signing out removes; the browser has a random value, we its hash."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import sqlalchemy as sa

from leeward.portal import journal
from leeward.portal.people import viewer_of
from leeward.portal.permissions import Viewer
from leeward.portal.settings import Settings
from leeward.portal.store import Database, fetch_one, now, reading, tables, writing
from leeward.portal.store.rows import Row, from_now

TOUCH_SECONDS = 60
"""A session's last use is written down at most so often."""


def hash_of(secret: str) -> str:
    """What is kept of a secret of 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def begin(connection: sa.Connection, settings: Settings, person: str | None, **more: Any) -> str:
    """A new session; returns what the browser keeps. Without a person: while signing in, for ten minutes."""
    secret = secrets.token_urlsafe(32)
    ends = from_now(minutes=10) if person is None else from_now(hours=settings.most_hours)
    row = {
        "id": hash_of(secret), "person": person, "csrf": secrets.token_urlsafe(24), "created": now(), "seen": now(),
        "ends": ends, **more,
    }  # fmt: skip
    connection.execute(tables.sessions.insert().values(**row))
    return secret


def renew(
    connection: sa.Connection, settings: Settings, old: str | None, person: str, claims: Any = None
) -> str:
    """A session with a new identity for somebody who signed in; the one before ends."""
    if old:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.id == hash_of(old)))
    connection.execute(tables.sessions.delete().where(tables.sessions.c.ends < now()))
    journal.record(connection, "signed in", person=person)
    return begin(connection, settings, person, claims=None if claims is None else json.dumps(claims))


def end(database: Database, secret: str) -> None:
    """Sign out."""
    with writing(database) as connection:
        sessions = tables.sessions
        row = connection.execute(
            sessions.delete().where(sessions.c.id == hash_of(secret)).returning(sessions.c.person)
        ).first()
        if row is not None and row.person is not None:
            journal.record(connection, "signed out", person=row.person)


def find(database: Database, settings: Settings, secret: str) -> Row | None:
    """The session of a cookie's value, if it is there, not over, and not idle for too long."""
    with reading(database) as connection:
        return _find(connection, settings, secret)


def _find(connection: sa.Connection, settings: Settings, secret: str) -> Row | None:
    row = fetch_one(connection, sa.select(tables.sessions).where(tables.sessions.c.id == hash_of(secret)))
    if row is None or row["ends"] < now() or row["seen"] < from_now(minutes=-settings.idle_minutes):
        return None
    return row


def viewer_of_session(database: Database, settings: Settings, secret: str) -> Viewer | None:
    """Who a cookie's session belongs to."""
    with reading(database) as connection:
        row = _find(connection, settings, secret)
        if row is None or row["person"] is None:
            return None
        viewer = viewer_of(connection, row["person"], session=row["id"], csrf=row["csrf"])
    if row["seen"] < from_now(seconds=-TOUCH_SECONDS):
        with writing(database, durable=False) as connection:
            mine = tables.sessions.c.id == row["id"]
            connection.execute(tables.sessions.update().where(mine).values(seen=now()))
    return viewer
