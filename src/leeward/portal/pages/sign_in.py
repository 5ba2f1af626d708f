"""Signing in, by a password and a code or at the provider, setting a first password, and signing out."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from leeward.portal import accounts, journal, passwords, people, sessions, tries
from leeward.portal.guards import need
from leeward.portal.oidc import SignInRefused, address_of
from leeward.portal.permissions import PUBLIC
from leeward.portal.settings import Settings
from leeward.portal.store import now, tables, writing
from leeward.portal.store.rows import Unknown, fetch_one
from leeward.portal.visit import Here, Text

router = APIRouter(include_in_schema=False)
KNOWN_HOURS = 90 * 24
"""How long a browser keeps the cookie that somebody signed in by a name with it."""


@router.get("/sign-in", dependencies=need(PUBLIC))
def show_sign_in(here: Here) -> Response:
    """The provider's button, and the local form where there are local accounts."""
    return sign_in_page(here, 200, "")


@router.post("/sign-in", dependencies=need(PUBLIC, signs_in=True))
def sign_in(here: Here, login: Text, password: Text) -> Response:
    if not here.settings.local_accounts:
        raise Unknown
    login, known = login[:200], f"{here.settings.cookie}-known"
    cookie = here.request.cookies.get(known, "")
    row = passwords.sign_in(here.database, login, password, here.address, cookie)
    if row is None:
        fault = "Name and password do not fit. After five tries wait a quarter of an hour."
        return sign_in_page(here, 403, fault)
    if accounts.has_second_factor(here.database, row["id"]):
        reply: Response = here.page("code.html", fault="")
        with writing(here.database) as connection:
            secret = sessions.begin(connection, here.settings, None, login={"person": row["id"]})
        keep_cookie(reply, here.settings, secret)
    else:
        reply = enter(here, row["id"], None)
    keep_cookie(reply, here.settings, tries.cookie_of(here.database, login), known, KNOWN_HOURS)
    return reply


@router.post("/sign-in/code", dependencies=need(PUBLIC, signs_in=True))
def enter_code(here: Here, code: Text) -> Response:
    """The second step of signing in: the session that the password began, and a one-time code."""
    mine = sessions.hash_of(here.cookie)
    found = tables.sessions.c
    begun = fetch_one(here.database, sa.select(tables.sessions).where(found.id == mine, found.ends > now()))
    state = (begun or {}).get("login") or {}
    if "person" not in state:
        return sign_in_page(here, 403, "Begin again with your password.")
    if not accounts.check_code(here.database, state["person"], code, here.address):
        return here.page("code.html", 403, fault="This code does not fit, or was used before.")
    return enter(here, state["person"], None)


@router.get("/sign-in/provider", dependencies=need(PUBLIC))
def begin_at_provider(here: Here) -> Response:
    """To the provider; what belongs to this sign-in is kept in a session of this browser."""
    if here.portal.provider is None:
        raise Unknown
    address, kept = here.portal.provider.begin()
    with writing(here.database, durable=False) as connection:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.ends < now()))
        secret = sessions.begin(connection, here.settings, None, login=kept)
    reply = RedirectResponse(address, 303)
    keep_cookie(reply, here.settings, secret)
    return reply


@router.get("/sign-in/callback", dependencies=need(PUBLIC))
def return_from_provider(here: Here, state: str = "", code: str = "") -> Response:
    """Back from the provider: the session that began it must be this one, once."""
    if here.portal.provider is None:
        raise Unknown
    try:
        claims = here.portal.provider.finish(take_login(here), state, code)
    except SignInRefused:
        # Anybody can come back with anything: the journal takes no more of that than of failed passwords.
        tries.begin(here.database, tries.keyed_hash(here.database, state), f"provider, {here.address}")
        with writing(here.database) as connection:
            journal.record(connection, "sign-in failed", how="provider")
        raise
    settings = here.portal.provider.provider
    name = claims.get("name")
    shown = name if isinstance(name, str) and name.strip() else "(no name)"
    with writing(here.database) as connection:
        row = people.admit(connection, settings.issuer, claims["sub"], shown[:100], address_of(claims))
        if row is not None and settings.roles_claim is not None:
            roles = people.roles_from_claims(claims, settings.roles_claim, settings.roles)
            people.set_house_roles(connection, row["id"], roles, "provider")
    if row is None:
        raise SignInRefused("this account was closed")
    return enter(here, row["id"], claims)


def take_login(here: Here) -> dict[str, str] | None:
    """Remove and return the session's state of this sign-in; None if it began none."""
    found = tables.sessions
    with writing(here.database) as connection:
        mine = (
            (found.c.id == sessions.hash_of(here.cookie))
            & found.c.login.is_not(None)
            & (found.c.ends > now())
        )
        kept = connection.execute(sa.select(found.c.login).where(mine)).scalar()
        connection.execute(found.update().where(mine).values(login=None))
    return kept


@router.get("/set-up", dependencies=need(PUBLIC))
def show_set_up(here: Here, link: str = "") -> Response:
    """The page of a set-up link; looking at it does not use it up."""
    row = accounts.person_of_link(here.database, link)
    name = None if row is None else row["name"]
    return here.page("set_up.html", 200 if name else 404, name=name, link=link, shortest=passwords.SHORTEST)


@router.post("/set-up", dependencies=need(PUBLIC, signs_in=True))
def set_up(here: Here, link: Text, password: Text) -> Response:
    accounts.set_up(here.database, link, password)
    return here.redirect("/sign-in")


@router.post("/sign-out", dependencies=need("own account"))
def sign_out(here: Here) -> Response:
    sessions.end(here.database, here.cookie)
    reply = here.redirect("/sign-in")
    reply.delete_cookie(
        here.settings.cookie, path="/", secure=here.settings.secure, httponly=True, samesite="lax"
    )
    return reply


def sign_in_page(here: Here, status: int, fault: str) -> Response:
    settings = here.settings
    provider = None if settings.provider is None else settings.provider.name
    return here.page("sign_in.html", status, provider=provider, local=settings.local_accounts, fault=fault)


def enter(here: Here, person: str, claims: object) -> Response:
    with writing(here.database) as connection:
        secret = sessions.renew(connection, here.settings, here.cookie, person, claims)
    reply = here.redirect("/")
    keep_cookie(reply, here.settings, secret)
    return reply


def keep_cookie(
    reply: Response, settings: Settings, secret: str, name: str = "", hours: int | None = None
) -> None:
    """A cookie, that of the session unless named, for this host alone, out of scripts' reach, not sent along from
    other sites' forms."""
    reply.set_cookie(
        name or settings.cookie, secret, path="/", secure=settings.secure, httponly=True, samesite="lax",
        max_age=3600 * (hours or settings.most_hours),
    )  # fmt: skip
