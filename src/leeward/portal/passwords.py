"""Local accounts: argon2id, the same reply and time for unknown names."""

from __future__ import annotations

import functools
import hmac
from typing import TYPE_CHECKING

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal, tries
from leeward.portal.people import LOCAL
from leeward.portal.store import Database, tables, writing
from leeward.portal.store.rows import Row, fetch_one

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST = 12
LONGEST = 256


@functools.cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher, Type

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, type=Type.ID)


@functools.cache
def _nobodys() -> str:
    """Hash to check against where there is no account, so that timing is the same."""
    return _hasher().hash("nobody has this password")


def matches(hashed: str, password: str) -> bool:
    from argon2.exceptions import VerificationError

    try:
        return _hasher().verify(hashed, password)
    except VerificationError:
        return False


def hash_of_new(password: str) -> str:
    """What is kept of a new password. BadInput where it is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise BadInput(f"a password has {SHORTEST} to {LONGEST} characters.")
    return _hasher().hash(password)


def sign_in(database: Database, login: str, password: str, address: str, cookie: str = "") -> Row | None:
    """The person with this login name and password, or None; TooManyTries. `cookie`: of a browser that signed in by
    the name before."""
    name, known = tries.keyed_hash(database, login), tries.cookie_of(database, login)
    place = tries.KNOWN if hmac.compare_digest(cookie.encode(), known.encode()) else address
    tries.begin(database, name, place)
    people, passwords = tables.people, tables.passwords
    asked = (
        sa.select(people, passwords.c.hash)
        .join(passwords, passwords.c.person == people.c.id)
        .where(people.c.issuer == LOCAL, people.c.subject == login)
    )
    row = fetch_one(database, asked)
    right = matches(_nobodys() if row is None else row["hash"], password[: LONGEST + 1])
    with writing(database) as connection:
        if row is not None and right and row["active"]:
            tries.forget(connection, name, place)
            return row
        journal.record(connection, "sign-in failed", how="password", name=name, address=address)
    return None
