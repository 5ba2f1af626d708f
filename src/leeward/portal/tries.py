"""Failed sign-ins of the last quarter of an hour, by name and address, in the database that all processes share.

Who guesses at a name stops whoever signs in by it from the same address, and who guesses at many names whoever signs in
there; neither stops somebody whose browser signed in by the name before, as a cookie shows. Names are kept as keyed
hashes: people type passwords there too.
"""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa

from leeward.errors import LeewardError
from leeward.portal import journal
from leeward.portal.store import Database, from_now, new_id, now, tables, writing
from leeward.portal.store.rows import Row, fetch_all, fetch_one

OF_A_NAME: Final = 5
"""Tries by one name from one address."""
OF_AN_ADDRESS: Final = 20
"""Tries from one address, whatever the names."""
MINUTES: Final = 15
KNOWN: Final = "a browser that signed in before"
"""The place of a try with the cookie of its name, instead of its address."""
CODES: Final = "one-time codes"
"""The place of a try by whoever has the password: five guesses at the code of a name, from wherever."""
BY_NAME: Final = (KNOWN, CODES)

_tries = tables.tries.c


class TooManyTries(LeewardError):
    """Too many failures: no password is looked at for `wait` seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"Too many tries. Wait {1 + wait // 60:.0f} minutes, or ask an administrator.")
        self.wait = wait


def keyed_hash(database: Database, text: str) -> str:
    """A login name as journal and tries have it: only whoever has the portal's key can look for a name."""
    key = fetch_one(database, sa.select(tables.key.c.value))
    assert key is not None  # the migration made it
    return hmac.digest(bytes.fromhex(key["value"]), text.encode(), "sha256").hex()


def cookie_of(database: Database, login: str) -> str:
    """What a browser keeps that signed in by a name."""
    return keyed_hash(database, f"signed in by {login}")


def begin(database: Database, name: str, place: str) -> None:
    """Count a try before its password is looked at, so that guesses at the same time count too. TooManyTries beyond
    the limits; such a try is not counted."""
    ours = {"id": new_id(), "name": name, "place": place, "time": now()}
    with writing(database, durable=False) as connection:
        connection.execute(tables.tries.delete().where(_tries.time < from_now(minutes=-MINUTES)))
        connection.execute(tables.tries.insert().values(**ours))
    rows = fetch_all(database, sa.select(tables.tries).where(_tries.place == place).order_by(_tries.time))
    limits = {OF_A_NAME: [row["time"] for row in rows if row["name"] == name]}
    if place not in BY_NAME:
        limits[OF_AN_ADDRESS] = [row["time"] for row in rows]
    since = [times[-most - 1] for most, times in limits.items() if len(times) > most]
    if since:
        with writing(database, durable=False) as connection:
            connection.execute(tables.tries.delete().where(_tries.id == ours["id"]))
        free = datetime.fromisoformat(max(since)) + timedelta(minutes=MINUTES)
        raise TooManyTries(max(1.0, (free - datetime.now(UTC)).total_seconds()))


def forget(connection: sa.Connection, name: str, place: str) -> None:
    """Forget the tries from a place, by a name or, where that is empty, by all."""
    theirs = sa.true() if name == "" else _tries.name == name
    connection.execute(tables.tries.delete().where(_tries.place == place, theirs))


def forgive(database: Database, name: str, place: str, by: str) -> None:
    """Let a place try again."""
    with writing(database) as connection:
        forget(connection, name, place)
        journal.record(connection, "tries forgiven", name=name or None, place=place, by=by)


def refused_now(database: Database) -> list[Row]:
    """Which names at which place, and which addresses (no name), have used up their tries."""
    number, last = sa.func.count().label("number"), sa.func.max(_tries.time).label("last")
    recent = _tries.time >= from_now(minutes=-MINUTES)
    names = sa.select(_tries.place, _tries.name, number, last).where(recent)
    any_name = sa.literal("").label("name")
    addresses = sa.select(_tries.place, any_name, number, last).where(recent, _tries.place.not_in(BY_NAME))
    return [
        *fetch_all(database, names.group_by(_tries.place, _tries.name).having(number >= OF_A_NAME)),
        *fetch_all(database, addresses.group_by(_tries.place).having(number >= OF_AN_ADDRESS)),
    ]
