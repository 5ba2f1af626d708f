"""Local accounts: people set their password themselves, by a link that works once, and may add a second factor.

Nobody else ever knows a password. A link for somebody with a role of the house takes two people, as whoever holds it
can become that person: one proposes the reset, another confirms it and hands the link over.
"""

from __future__ import annotations

import hmac
import secrets
import time
from typing import Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal, passwords, tries
from leeward.portal.people import LOCAL, admit, end_link, end_tokens
from leeward.portal.permissions import Viewer
from leeward.portal.sessions import hash_of
from leeward.portal.settings import Settings
from leeward.portal.store import Database, from_now, now, tables, writing
from leeward.portal.store.rows import Row, fetch_all, fetch_one, row_of

LINK_HOURS: Final = 72
STEP: Final = 30
"""Seconds of a one-time code; the code before and the code after are accepted too."""


def make_account(
    database: Database, login: str, name: str, maker: str | None = None, by: str = "command line"
) -> tuple[str, str]:
    """Make a local account. Returns the person's identifier and the secret of a set-up link.

    BadInput if the login name is taken."""
    with writing(database) as connection:
        if admit(connection, LOCAL, login, name, None, make=False) is not None:
            raise BadInput("there is an account with this login name already.")
        row = admit(connection, LOCAL, login, name, None, maker=maker)
        if row is None:
            raise BadInput("there is a closed account with this login name.")
        return str(row["id"]), new_link(connection, row["id"], maker or by)


def reset(connection: sa.Connection, person: str, by: str) -> str:
    """A set-up link in the place of everything that signs in to an account: until it is used, nobody does."""
    drop_second_factor(connection, person, by)
    connection.execute(tables.passwords.delete().where(tables.passwords.c.person == person))
    end_sign_ins(connection, person)
    return new_link(connection, person, by)


def new_link(connection: sa.Connection, person: str, by: str) -> str:
    """A link's secret with which a person sets a password within three days; an earlier link no longer works."""
    secret = secrets.token_urlsafe(32)
    end_link(connection, person)
    row = {"person": person, "digest": hash_of(secret), "ends": from_now(hours=LINK_HOURS)}
    connection.execute(tables.links.insert().values(**row))
    journal.record(connection, "set-up link made", person=person, by=by)
    return secret


def address_of(settings: Settings, secret: str) -> str:
    return f"{settings.public_url.rstrip('/')}/set-up?link={secret}"


def person_of_link(where: Database | sa.Connection, secret: str) -> Row | None:
    """The person whom a link is for, if it still works."""
    people, links = tables.people, tables.links.c
    asked = sa.select(people).join(tables.links, links.person == people.c.id)
    works = (links.digest == hash_of(secret)) & (links.ends > now()) & people.c.active
    return fetch_one(where, asked.where(works))


def set_up(database: Database, secret: str, password: str) -> str:
    """Set a password by a link, which is used up; ends the person's sessions. Returns the person's identifier.

    BadInput if the link is used, old or unknown."""
    with writing(database) as connection:
        row = person_of_link(connection, secret)
        if row is None:
            raise BadInput(
                "this link was used, is older than three days, or a role was given since. Ask for a new one."
            )
        hashed = passwords.hash_of_new(password)  # costly: not for a link that is none
        end_link(connection, row["id"])
        _keep(connection, row["id"], hashed, "link")
    return str(row["id"])


def change_password(database: Database, viewer: Viewer, old: str, new: str, address: str) -> None:
    """Replace one's own password; ends one's other sessions. BadInput if the old one is wrong."""
    check_password(database, viewer, old, address)
    hashed = passwords.hash_of_new(new)
    with writing(database) as connection:
        _keep(connection, viewer.person, hashed, "change", but=viewer.session)


def check_password(database: Database, viewer: Viewer, password: str, address: str) -> None:
    """BadInput where this is not one's own password: a session that was left open is not enough."""
    row = row_of(database, tables.people, viewer.person)
    if row["issuer"] != LOCAL:
        raise BadInput("you sign in at your institution; change password and second factor there.")
    if passwords.sign_in(database, row["subject"], password, address) is None:
        raise BadInput("the present password is wrong.")


def _keep(connection: sa.Connection, person: str, hashed: str, how: str, but: str | None = None) -> None:
    kept = tables.passwords
    connection.execute(kept.delete().where(kept.c.person == person))
    connection.execute(kept.insert().values(person=person, hash=hashed))
    end_sessions(connection, person, but)
    journal.record(connection, "password set", person=person, how=how)


def close(database: Database, viewer: Viewer, person: str) -> None:
    """Close somebody's account at once, with sessions and tokens. BadInput for one's own, and for none."""
    if person == viewer.person:
        raise BadInput("you cannot close your own account; ask another administrator.")
    people = tables.people
    with writing(database) as connection:
        mine = people.c.id == person
        if not connection.execute(people.update().where(mine).values(active=False)).rowcount:
            raise BadInput("there is no such account.")
        end_sign_ins(connection, person)
        journal.record(connection, "account closed", person=person, by=viewer.person)


def end_sign_ins(connection: sa.Connection, person: str) -> None:
    """End a person's sessions, tokens and set-up link."""
    end_sessions(connection, person)
    end_tokens(connection, person)
    end_link(connection, person)


def sessions_of(database: Database, viewer: Viewer) -> list[Row]:
    """One's own sessions, the latest first."""
    sessions = tables.sessions
    mine = (sessions.c.person == viewer.person) & (sessions.c.ends > now())
    return fetch_all(database, sa.select(sessions).where(mine).order_by(sessions.c.seen.desc()))


def end_sessions(connection: sa.Connection, person: str, but: str | None = None) -> None:
    """End a person's sessions, all but one."""
    sessions = tables.sessions.c
    connection.execute(
        tables.sessions.delete().where(sessions.person == person, sessions.id.is_distinct_from(but))
    )


def sign_out_elsewhere(database: Database, viewer: Viewer) -> None:
    with writing(database) as connection:
        end_sessions(connection, viewer.person, viewer.session)
        journal.record(connection, "signed out elsewhere", person=viewer.person)


def has_second_factor(where: Database | sa.Connection, person: str) -> bool:
    factors = tables.second_factors.c
    asked = sa.select(factors.person).where(factors.person == person, factors.confirmed.is_not(None))
    return fetch_one(where, asked) is not None


def begin_second_factor(database: Database, viewer: Viewer) -> str:
    """A new secret for an app that makes one-time codes, in Base32; counts once a code of it was entered.

    BadInput if there is a second factor already."""
    import pyotp

    secret = pyotp.random_base32()
    factors = tables.second_factors
    with writing(database) as connection:
        if has_second_factor(connection, viewer.person):
            raise BadInput("you have a second factor already; remove it first.")
        connection.execute(factors.delete().where(factors.c.person == viewer.person))
        connection.execute(
            factors.insert().values(person=viewer.person, secret=secret, confirmed=None, step=0)
        )
    return secret


def confirm_second_factor(database: Database, viewer: Viewer, code: str) -> None:
    """Demand one-time codes from now on. BadInput if the code does not fit."""
    factors = tables.second_factors
    with writing(database) as connection:
        if not _accept(connection, viewer.person, code):
            raise BadInput("this code does not fit; look at the clock of your device, and try the next code.")
        mine = factors.c.person == viewer.person
        connection.execute(factors.update().where(mine).values(confirmed=now()))
        end_sessions(connection, viewer.person, viewer.session)
        journal.record(connection, "second factor set", person=viewer.person)


def remove_second_factor(database: Database, viewer: Viewer, code: str, address: str) -> None:
    """Demand no one-time codes any more. BadInput if the code does not fit; TooManyTries as when signing in."""
    if not check_code(database, viewer.person, code, address):
        raise BadInput("this code does not fit.")
    with writing(database) as connection:
        drop_second_factor(connection, viewer.person, viewer.person)


def drop_second_factor(connection: sa.Connection, person: str, by: str) -> None:
    factors = tables.second_factors
    if connection.execute(factors.delete().where(factors.c.person == person)).rowcount:
        journal.record(connection, "second factor removed", person=person, by=by)


def check_code(database: Database, person: str, code: str, address: str) -> bool:
    """Whether a one-time code is a person's, and was not used before. TooManyTries after five wrong ones, from
    wherever: whoever may try has the password already."""
    name = tries.keyed_hash(database, row_of(database, tables.people, person)["subject"])
    tries.begin(database, name, tries.CODES)
    with writing(database) as connection:
        if _accept(connection, person, code):
            tries.forget(connection, name, tries.CODES)
            return True
        journal.record(connection, "sign-in failed", how="code", name=name, address=address)
    return False


def _accept(connection: sa.Connection, person: str, code: str) -> bool:
    import pyotp

    factors = tables.second_factors
    mine = factors.c.person == person
    row = fetch_one(connection, sa.select(factors).where(mine))
    if row is None:
        return False
    present = int(time.time()) // STEP
    codes = pyotp.TOTP(row["secret"], interval=STEP)
    for step in (present - 1, present, present + 1):
        fits = hmac.compare_digest(codes.generate_otp(step).encode(), code.strip().encode())
        # The condition on the row lets two requests at once use a code only once.
        if fits and connection.execute(
            factors.update().where(mine, factors.c.step < step).values(step=step)
        ).rowcount:  # fmt: skip
            return True
    return False
