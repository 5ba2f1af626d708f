"""Tokens for programs: one project, one scope, an end; the random part is shown once and kept as a hash."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.people import name_of
from leeward.portal.permissions import Viewer
from leeward.portal.sessions import hash_of
from leeward.portal.store import Database, fetch_all, new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row, from_now

PREFIX = "leeward_"
SCOPES = ("read", "ask")
LONGEST_DAYS = 366


_token, _member = tables.tokens.c, tables.members.c
BEARER = (
    sa.select(_token.person, _token.project, _token.scope, tables.people.c.name, _member.role)
    .join(tables.people, tables.people.c.id == _token.person)
    .join(tables.members, _member.person == _token.person)
    .where(_member.project == _token.project, tables.people.c.active)
    .where(
        _token.digest == sa.bindparam("digest"), _token.revoked.is_(None), _token.ends >= sa.bindparam("now")
    )
)
"""Whose token it is, if that person and the membership are still there; built once, as every request asks it."""


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
        row = connection.execute(BEARER, {"digest": hash_of(secret), "now": now()}).first()
    if row is None:
        return None
    return Viewer(row.person, row.name, frozenset(), {row.project: row.role}, token_scope=row.scope)
