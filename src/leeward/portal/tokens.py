"""Tokens for programs: one project, one scope, an end; the random part is shown once and kept as a hash."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.people import name_of, viewer_of
from leeward.portal.permissions import Viewer
from leeward.portal.sessions import hash_of
from leeward.portal.store import Database, fetch_all, fetch_one, new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row, from_now

PREFIX = "leeward_"
SCOPES = ("read", "ask")
LONGEST_DAYS = 366


def make_token(
    database: Database, viewer: Viewer, project: str, scope: str, days: int, name: str
) -> tuple[Row, str]:
    """A token of a member for a project; the text is given once. BadInput for a scope or length that is not offered."""
    if scope not in SCOPES or not 1 <= days <= LONGEST_DAYS:
        raise BadInput(f"a token's scope is read or ask, and it lasts 1 to {LONGEST_DAYS} days.")
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
    """End one's own token; False where there is none of that name."""
    with writing(database) as connection:
        mine = (tables.tokens.c.id == token) & (tables.tokens.c.person == viewer.person)
        ended = connection.execute(
            tables.tokens.update().where(mine, tables.tokens.c.revoked.is_(None)).values(revoked=now())
        ).rowcount
        if ended:
            journal.record(connection, "token ended", token=token, person=viewer.person)
    return bool(ended)


def tokens_of(database: Database, viewer: Viewer) -> list[Row]:
    """A person's tokens that can still be used."""
    with reading(database) as connection:
        tokens = tables.tokens
        asked = sa.select(tokens).where(
            tokens.c.person == viewer.person, tokens.c.revoked.is_(None), tokens.c.ends > now()
        )
        return fetch_all(connection, asked.order_by(tokens.c.created))


def viewer_of_token(database: Database, secret: str) -> Viewer | None:
    """Who a token belongs to: the rights of that person in the token's project alone, and none of the house."""
    if not secret.startswith(PREFIX):
        return None
    with reading(database) as connection:
        row = fetch_one(connection, sa.select(tables.tokens).where(tables.tokens.c.digest == hash_of(secret)))
        if row is None or row["revoked"] is not None or row["ends"] < now():
            return None
        found = viewer_of(connection, row["person"], token_scope=row["scope"])
    if found is None or row["project"] not in found.memberships:
        return None
    only = {row["project"]: found.memberships[row["project"]]}
    return Viewer(found.person, found.name, frozenset(), only, token_scope=row["scope"])
