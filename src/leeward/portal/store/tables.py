"""The portal's tables. Times are texts in UTC that sort; secrets (passwords, links, tokens, sessions) are kept
as hashes, those of one-time codes as they are.

No table holds a count: answers are the ledger's, and a row of `answers` only says which project asked for which.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class Json(sa.TypeDecorator[Any]):
    """JSON, kept as text: one text for one value."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        return None if value is None else json.loads(value)


def _text(name: str, *more: Any, **options: Any) -> sa.Column[str]:
    return sa.Column(name, sa.Text, *more, nullable=False, **options)


def _maybe(name: str) -> sa.Column[str | None]:
    return sa.Column(name, sa.Text, nullable=True)


def _json(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, Json, nullable=nullable)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


people = sa.Table(
    "portal_people", metadata,
    _key("id"), _text("issuer"), _text("subject"), _text("name"), _maybe("email"), _text("created"),
    sa.Column("active", sa.Boolean, nullable=False), _maybe("maker"), _maybe("confirmer"),
    sa.UniqueConstraint("issuer", "subject"),
)  # fmt: skip
"""A person is (issuer, subject); `id` is what the ledger sees. Names and addresses get used again by others. `maker`:
the administrator who made the account in the portal; none for the command line and for a provider's. `confirmer`: who
confirmed its roles of the house last."""

house_roles = sa.Table("portal_house_roles", metadata, _key("person"), _key("role"))
passwords = sa.Table("portal_passwords", metadata, _key("person"), _text("hash"))
links = sa.Table("portal_links", metadata, _key("person"), _text("digest", unique=True), _text("ends"))
"""Links with which people set their own password: one a person, used once."""
second_factors = sa.Table(
    "portal_second_factors", metadata,
    _key("person"), _text("secret"), _maybe("confirmed"), sa.Column("step", sa.BigInteger, nullable=False),
)  # fmt: skip
"""Secrets of one-time codes (RFC 6238). `step`: of the last code that was accepted; none is accepted twice."""

sessions = sa.Table(
    "portal_sessions", metadata,
    _key("id"), _maybe("person"), _text("csrf"), _text("created"), _text("seen"), _text("ends"), _json("login", True),
    _json("claims", True),
)  # fmt: skip
"""`id` is the SHA-256 of the cookie. `login`: state of a sign-in under way. `claims`: as the provider sent."""

tries = sa.Table(
    "portal_tries", metadata,
    _key("id"), _text("name"), _text("place", index=True), _text("time"),
)  # fmt: skip
"""Failed sign-ins. `name`: keyed hash of what was typed; `place`: an address, or a known browser."""

key = sa.Table(
    "portal_key", metadata, sa.Column("one", sa.Integer, primary_key=True), _text("value")
)  # fmt: skip
"""The key of the hashes of names, in hex."""

faults = sa.Table(
    "portal_faults", metadata,
    _key("number"), _text("time", index=True), _text("route"), _text("fault"), _text("reason"), _json("frames"),
)  # fmt: skip
"""`number`: of the request; `frames`: kinds of errors and where they happened, without values."""

indexes = sa.Table(
    "portal_indexes", metadata,
    _key("id"), _text("data_set", unique=True), _text("name"), _text("folder"), _maybe("ledger"), _text("opened"),
    _json("about", True),
)  # fmt: skip
"""`about`: what custodians say of it; see `directory`."""
requests = sa.Table(
    "portal_requests", metadata,
    _key("id"), _text("person"), _text("index"), _text("text"), _text("time"), _maybe("closed"),
)  # fmt: skip

projects = sa.Table(
    "portal_projects", metadata,
    _key("id"), _text("name"), _text("plan"), _text("ethics"), _text("created"),
)  # fmt: skip
members = sa.Table("portal_members", metadata, _key("project"), _key("person"), _text("role"))
messages = sa.Table(
    "portal_messages", metadata, _key("id"), _text("project"), _text("person"), _text("time"), _text("text")
)
allotments = sa.Table(
    "portal_allotments", metadata,
    _key("project"), _key("index"), sa.Column("epsilon", sa.BigInteger, nullable=False), _text("ends"),
    sa.Column("most_an_answer", sa.BigInteger),
)  # fmt: skip
"""`most_an_answer`: the largest price of one answer, in micro-ε; null: as much as is left."""

sets = sa.Table(
    "portal_sets", metadata,
    _key("project"), _key("name"), _text("terms"), _text("person"), _text("changed"),
)  # fmt: skip
"""Terms under a name, as a question writes them; a question holds them, never the name alone."""

answers = sa.Table(
    "portal_answers", metadata,
    _key("id"), _text("project"), _text("index"), _text("key"), _json("request"), _text("question"), _text("person"),
    _text("time"), sa.Column("cost", sa.BigInteger, nullable=False), _maybe("plan"),
    sa.UniqueConstraint("project", "index", "key"), sa.Index("portal_answers_by_time", "project", "time", "id"),
)  # fmt: skip
"""`request`: the question as it can be asked again; `key`: the ledger's; `cost`: micro-ε that it took; `plan`:
what was answered, JSON, so that a later version shows what was paid for; null for answers from before it was kept."""

idempotency = sa.Table(
    "portal_idempotency", metadata,
    _key("person"), _key("key"), _text("digest"), sa.Column("status", sa.Integer), _json("answers", True),
    _text("time"),
)  # fmt: skip

proposals = sa.Table(
    "portal_proposals", metadata,
    _key("id"), _text("kind"), _maybe("project"), _json("body"), _text("proposer"), _text("reason"), _text("created"),
    _text("state"), _maybe("decider"), _maybe("answer"), _maybe("decided"),
)  # fmt: skip

releases = sa.Table(
    "portal_releases", metadata,
    _key("id"), _text("name"), _text("folder"), _text("digest"), _json("files"), _text("published"), _maybe("verified"),
    sa.Column("passed", sa.Boolean),
)  # fmt: skip
"""`digest`: of release.json as confirmed; `files`: path -> SHA-256; `verified`: when last, `passed`: how."""

stops = sa.Table(
    "portal_stops", metadata, _key("kind"), _key("what"), _text("person"), _text("reason"), _text("time")
)
"""What one person stopped, until two start it again; see `stopping`."""

recipients = sa.Table("portal_recipients", metadata, _key("release"), _key("person"), _text("ends"))

tokens = sa.Table(
    "portal_tokens", metadata,
    _key("id"), _text("person"), _text("project"), _text("scope"), _text("name"), _text("start"),
    _text("digest", unique=True), _text("created"), _text("ends"), _maybe("revoked"),
)  # fmt: skip

journal = sa.Table(
    "portal_journal", metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False), _text("time"), _text("body"),
    _text("hash"),
)  # fmt: skip
"""Who did what: signing in, decisions, downloads. Append-only, each hash covers the one before."""

journal_end = sa.Table(
    "portal_journal_end", metadata,
    sa.Column("one", sa.Integer, primary_key=True), sa.Column("entries", sa.BigInteger, nullable=False), _text("head"),
)  # fmt: skip


def add_missing(connection: sa.Connection) -> None:
    """Make the tables, columns and indexes that an older database lacks; a column that may not be null has a server
    default."""
    metadata.create_all(connection)
    there = sa.inspect(connection)
    for table in metadata.sorted_tables:
        names = {each["name"] for each in there.get_columns(table.name)}
        for column in table.columns:
            if column.name not in names:
                made = sa.schema.CreateColumn(column).compile(connection)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {made}")
        for index in table.indexes:
            index.create(connection, checkfirst=True)
