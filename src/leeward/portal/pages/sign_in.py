"""Signing in, by a password and a code or at the provider, setting a first password, and signing out."""

from __future__ import annotations

import json

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from leeward.portal import accounts, journal, passwords, people, sessions, tries
from leeward.portal.guards import Portal, Text, ThisPortal, need
from leeward.portal.indexes import Unknown
from leeward.portal.oidc import SignInRefused, address_of
from leeward.portal.permissions import PUBLIC
from leeward.portal.rendering import page, redirect
from leeward.portal.settings import Settings
from leeward.portal.store import fetch_one, now, reading, tables, writing

router = APIRouter(include_in_schema=False)
KNOWN_HOURS = 90 * 24
"""How long a browser keeps the cookie that somebody signed in by a name with it."""


@router.get("/sign-in", dependencies=need(PUBLIC))
def show_sign_in(request: Request, portal: ThisPortal) -> Response:
    """The provider's button, and the local form where there are local accounts."""
    return sign_in_page(request, portal, 200, "")


@router.post("/sign-in", dependencies=need(PUBLIC, signs_in=True))
def sign_in(request: Request, portal: ThisPortal, login: Text, password: Text) -> Response:
    if not portal.settings.local_accounts:
        raise Unknown
    login, known = login[:200], f"{portal.settings.cookie}-known"
    cookie = request.cookies.get(known, "")
    row = passwords.sign_in(portal.database, login, password, request.state.address, cookie)
    if row is None:
        fault = "Name and password do not fit. After five tries wait a quarter of an hour."
        return sign_in_page(request, portal, 403, fault)
    with reading(portal.database) as connection:
        second = accounts.has_second_factor(connection, row["id"])
    if second:
        reply: Response = page(request, "code.html", fault="")
        with writing(portal.database) as connection:
            kept = json.dumps({"person": row["id"]})
            keep_cookie(reply, portal.settings, sessions.begin(connection, portal.settings, None, login=kept))
    else:
        reply = enter(request, portal, row["id"], None)
    keep_cookie(reply, portal.settings, tries.cookie_of(portal.database, login), known, KNOWN_HOURS)
    return reply


@router.post("/sign-in/code", dependencies=need(PUBLIC, signs_in=True))
def enter_code(request: Request, portal: ThisPortal, code: Text) -> Response:
    """The second step of signing in: the session that the password began, and a one-time code."""
    mine = sessions.hash_of(request.cookies.get(portal.settings.cookie, ""))
    found = tables.sessions.c
    begun = fetch_one(portal.database, sa.select(tables.sessions).where(found.id == mine, found.ends > now()))
    state = json.loads((begun or {}).get("login") or "{}")
    if "person" not in state:
        return sign_in_page(request, portal, 403, "Begin again with your password.")
    if not accounts.check_code(portal.database, state["person"], code, request.state.address):
        return page(request, "code.html", 403, fault="This code does not fit, or was used before.")
    return enter(request, portal, state["person"], None)


@router.get("/sign-in/provider", dependencies=need(PUBLIC))
def begin_at_provider(portal: ThisPortal) -> Response:
    """To the provider; what belongs to this sign-in is kept in a session of this browser."""
    if portal.provider is None:
        raise Unknown
    begun = portal.provider.begin()
    with writing(portal.database, durable=False) as connection:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.ends < now()))
        secret = sessions.begin(connection, portal.settings, None, login=begun.kept)
    reply = RedirectResponse(begun.address, 303)
    keep_cookie(reply, portal.settings, secret)
    return reply


@router.get("/sign-in/callback", dependencies=need(PUBLIC))
def return_from_provider(request: Request, portal: ThisPortal, state: str = "", code: str = "") -> Response:
    """Back from the provider: the session that began it must be this one, once."""
    if portal.provider is None:
        raise Unknown
    secret = request.cookies.get(portal.settings.cookie, "")
    kept = take_login(portal, secret)
    try:
        claims = portal.provider.finish(kept, state, code)
    except (
        SignInRefused
    ):  # anybody can come back with anything: the journal takes no more than of failed passwords
        tries.begin(
            portal.database, tries.keyed_hash(portal.database, state), f"provider, {request.state.address}"
        )
        with writing(portal.database) as connection:
            journal.record(connection, "sign-in failed", how="provider")
        raise
    settings = portal.provider.provider
    name = claims.get("name")
    shown = name if isinstance(name, str) and name.strip() else "(no name)"
    with writing(portal.database) as connection:
        row = people.admit(connection, settings.issuer, claims["sub"], shown[:100], address_of(claims))
        if row is not None and settings.roles_claim is not None:
            roles = people.roles_from_claims(claims, settings.roles_claim, settings.roles)
            people.set_house_roles(connection, row["id"], roles, "provider")
    if row is None:
        raise SignInRefused("this account was closed")
    return enter(request, portal, row["id"], claims)


def take_login(portal: Portal, secret: str) -> str | None:
    """Remove and return the session's state of this sign-in; None if it began none."""
    if not secret:
        return None
    found = tables.sessions
    with writing(portal.database) as connection:
        mine = (found.c.id == sessions.hash_of(secret)) & found.c.login.is_not(None) & (found.c.ends > now())
        kept = connection.execute(sa.select(found.c.login).where(mine)).scalar()
        connection.execute(found.update().where(mine).values(login=None))
    return kept


@router.get("/set-up", dependencies=need(PUBLIC))
def show_set_up(request: Request, portal: ThisPortal, link: str = "") -> Response:
    """The page of a set-up link; looking at it does not use it up."""
    with reading(portal.database) as connection:
        row = accounts.person_of_link(connection, link)
    name = None if row is None else row["name"]
    return page(
        request, "set_up.html", 200 if name else 404, name=name, link=link, shortest=passwords.SHORTEST
    )


@router.post("/set-up", dependencies=need(PUBLIC, signs_in=True))
def set_up(portal: ThisPortal, link: Text, password: Text) -> Response:
    accounts.set_up(portal.database, link, password)
    return redirect(portal, "/sign-in")


@router.post("/sign-out", dependencies=need("own account"))
def sign_out(request: Request, portal: ThisPortal) -> Response:
    sessions.end(portal.database, request.cookies.get(portal.settings.cookie, ""))
    reply = redirect(portal, "/sign-in")
    reply.delete_cookie(
        portal.settings.cookie, path="/", secure=portal.settings.secure, httponly=True, samesite="lax"
    )
    return reply


def sign_in_page(request: Request, portal: Portal, status: int, fault: str) -> Response:
    settings = portal.settings
    provider = None if settings.provider is None else settings.provider.name
    return page(
        request, "sign_in.html", status, provider=provider, local=settings.local_accounts, fault=fault
    )


def enter(request: Request, portal: Portal, person: str, claims: object) -> Response:
    old = request.cookies.get(portal.settings.cookie)
    with writing(portal.database) as connection:
        secret = sessions.renew(connection, portal.settings, old, person, claims)
    reply = redirect(portal, "/")
    keep_cookie(reply, portal.settings, secret)
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
