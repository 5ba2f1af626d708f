"""Local accounts: argon2id, five tries in a quarter of an hour, the same reply and time for unknown names."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import counters, journal
from leeward.portal.people import LOCAL, admit
from leeward.portal.store import Database, Row, fetch_one, tables, writing

if TYPE_CHECKING:
    from argon2 import PasswordHasher

TRIES = 5
QUARTER = 15 * 60
SHORTEST = 12
LONGEST = 256


class TooManyTries(Exception):
    """Too many failures: no password is checked for the rest of the quarter of an hour."""

    def __str__(self) -> str:
        return "Too many tries. Wait a quarter of an hour."


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


def make_account(database: Database, login: str, name: str, password: str, by: str) -> str:
    """A local account; returns the person's identifier. BadInput where the login name is taken or the password weak."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise BadInput(f"a password has {SHORTEST} to {LONGEST} characters.")
    hashed = _hasher().hash(password)
    with writing(database) as connection:
        if admit(connection, LOCAL, login, name, None, make=False) is not None:
            raise BadInput("there is an account with this login name already.")
        row = admit(connection, LOCAL, login, name, None)
        if row is None:
            raise BadInput("there is a closed account with this login name.")
        connection.execute(tables.passwords.insert().values(person=row["id"], hash=hashed))
        journal.record(connection, "password set", person=row["id"], by=by)
    return str(row["id"])


def sign_in(database: Database, login: str, password: str, address: str) -> Row | None:
    """The person with this login name and password, or None. TooManyTries after five failures of a name, or of an
    address, in fifteen minutes."""
    buckets = [f"login {hashlib.sha256(login.encode()).hexdigest()}", f"address {address}"]
    # Counted before the password is looked at, so that guesses at the same time count too; both, whatever the first is.
    within = [counters.hit(database, bucket, QUARTER, TRIES) for bucket in buckets]
    if not all(within):
        raise TooManyTries
    people, passwords = tables.people, tables.passwords
    asked = (
        sa.select(people, passwords.c.hash)
        .join(passwords, passwords.c.person == people.c.id)
        .where(people.c.issuer == LOCAL, people.c.subject == login)
    )
    row = fetch_one(database, asked)
    right = matches(_nobodys() if row is None else row["hash"], password[: LONGEST + 1])
    if row is not None and right and row["active"]:
        for bucket in buckets:
            counters.forgive(database, bucket, QUARTER)
        return row
    with writing(database) as connection:
        journal.record(connection, "sign-in failed", how="password")
    return None
