"""Sessions: a row in the database each, which signing out removes; the browser has a random value, we its hash."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.people import name_of, viewer_of
from leeward.portal.permissions import HOUSE_SCOPES, Viewer
from leeward.portal.settings import Settings
from leeward.portal.store import Database, from_now, new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row, fetch_all, fetch_one

TOUCH_SECONDS = 60
"""A session's last use is written down at most so often."""


def hash_of(secret: str) -> str:
    """Stored hash of a secret of 256 random bits."""
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


def renew(connection: sa.Connection, settings: Settings, old: str, person: str, claims: Any = None) -> str:
    """A session with a new identity for somebody who signed in; the one before ends."""
    if old:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.id == hash_of(old)))
    connection.execute(tables.sessions.delete().where(tables.sessions.c.ends < now()))
    journal.record(connection, "signed in", person=person)
    return begin(connection, settings, person, claims=claims)


def end(database: Database, secret: str) -> None:
    with writing(database) as connection:
        sessions = tables.sessions
        row = connection.execute(
            sessions.delete().where(sessions.c.id == hash_of(secret)).returning(sessions.c.person)
        ).first()
        if row is not None and row.person is not None:
            journal.record(connection, "signed out", person=row.person)


def find(database: Database, settings: Settings, secret: str) -> Row | None:
    """The session of a cookie's value, if it is there, not over, and not idle for too long."""
    row = fetch_one(database, sa.select(tables.sessions).where(tables.sessions.c.id == hash_of(secret)))
    if row is None or row["ends"] < now() or row["seen"] < from_now(minutes=-settings.idle_minutes):
        return None
    return row


def viewer_of_session(database: Database, settings: Settings, secret: str) -> Viewer | None:
    row = find(database, settings, secret)
    if row is None or row["person"] is None:
        return None
    with reading(database) as connection:
        viewer = viewer_of(connection, row["person"], session=row["id"], csrf=row["csrf"])
    if row["seen"] < from_now(seconds=-TOUCH_SECONDS):
        with writing(database, durable=False) as connection:
            mine = tables.sessions.c.id == row["id"]
            connection.execute(tables.sessions.update().where(mine).values(seen=now()))
    return viewer


PREFIX = "leeward_"
SCOPES = ("read", "ask")
LONGEST_DAYS = 366


_tokens, _people, _members = tables.tokens.alias("t"), tables.people.alias("p"), tables.members.alias("m")
_token, _member = _tokens.c, _members.c
ALIVE = sa.and_(
    _token.digest == sa.bindparam("digest"), _token.revoked.is_(None), _token.ends >= sa.bindparam("now")
)
BEARER = (
    sa.select(_token.person, _token.project, _token.scope, _people.c.name, _member.role)
    .join(_people, _people.c.id == _token.person)
    .join(_members, _member.person == _token.person)
    .where(_member.project == _token.project, _people.c.active, ALIVE)
)
"""Query for a token's owner, if person and membership still exist; built once, as every request runs it."""


def make_token(
    database: Database, viewer: Viewer, project: str, scope: str, days: int, name: str
) -> tuple[Row, str]:
    """A token of a member for a project, or (no project) of somebody with a role of the house; the text is given once.
    BadInput for a scope or length that is not offered."""
    scopes = SCOPES if project else [scope for scope, one in HOUSE_SCOPES.items() if viewer.reaches_all(one)]
    if scope not in scopes or not 1 <= days <= LONGEST_DAYS:
        offered = " or ".join(scopes) or "none for your roles"
        raise BadInput(f"the scope of such a token is {offered}, and it lasts 1 to {LONGEST_DAYS} days.")
    secret = PREFIX + secrets.token_urlsafe(32)
    row = {
        "id": new_id(), "person": viewer.person, "project": project, "scope": scope, "name": name_of(name),
        "start": secret[: len(PREFIX) + 4], "digest": hash_of(secret), "created": now(), "ends": from_now(days=days),
        "revoked": None,
    }  # fmt: skip
    with writing(database) as connection:
        connection.execute(tables.tokens.insert().values(**row))
        journal.record(
            connection, "token made", token=row["id"], person=viewer.person, project=project, scope=scope
        )
    return row, secret


def end_token(database: Database, viewer: Viewer, token: str) -> bool:
    """Revoke one of the viewer's tokens; False if there is none of that name."""
    with writing(database) as connection:
        mine = (tables.tokens.c.id == token) & (tables.tokens.c.person == viewer.person)
        ended = connection.execute(
            tables.tokens.update().where(mine, tables.tokens.c.revoked.is_(None)).values(revoked=now())
        ).rowcount
        if ended:
            journal.record(connection, "token ended", token=token, person=viewer.person)
    return bool(ended)


def tokens_of(database: Database, viewer: Viewer) -> list[Row]:
    tokens = tables.tokens.c
    mine = (tokens.person == viewer.person) & tokens.revoked.is_(None) & (tokens.ends > now())
    return fetch_all(database, sa.select(tables.tokens).where(mine).order_by(tokens.created))


def viewer_of_token(database: Database, secret: str) -> Viewer | None:
    """The viewer of a token: its owner's rights in the token's project only, or one right of the house."""
    if not secret.startswith(PREFIX):
        return None
    given = {"digest": hash_of(secret), "now": now()}
    with reading(database) as connection:
        row = connection.execute(BEARER, given).first()
        if row is not None:
            return Viewer(row.person, row.name, frozenset(), {row.project: row.role}, token_scope=row.scope)
        asked = sa.select(_token.person, _token.scope).where(ALIVE, _token.project == "")
        token = connection.execute(asked, given).first()
        owner = None if token is None else viewer_of(connection, token.person)
        if token is None or owner is None:
            return None
        return Viewer(owner.person, owner.name, owner.house, token_scope=token.scope)
