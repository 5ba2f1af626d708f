"""Signing in and out, and help."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from leeward.portal import journal, passwords, people, sessions
from leeward.portal.guards import need, portal_of
from leeward.portal.indexes import Unknown
from leeward.portal.oidc import SignInRefused
from leeward.portal.permissions import PUBLIC
from leeward.portal.replies import page, redirect
from leeward.portal.settings import Settings
from leeward.portal.store import now, tables, writing

router = APIRouter(include_in_schema=False)


@router.get("/sign-in", dependencies=need(PUBLIC))
def show(request: Request) -> Response:
    """The provider's button, and the local form where there are local accounts."""
    return _form(request, 200, "")


@router.post("/sign-in", dependencies=need(PUBLIC, signs_in=True))
def local(request: Request) -> Response:
    """Sign in with a password."""
    portal = portal_of(request)
    if not portal.settings.local_accounts:
        raise Unknown
    form = request.state.form
    login, password = form["login"][:200], form["password"]
    row = passwords.sign_in(portal.database, login, password, request.state.address)
    if row is None:
        return _form(
            request, 403, "Name and password do not fit. After five tries wait a quarter of an hour."
        )
    return _enter(request, row["id"], None)


@router.get("/sign-in/provider", dependencies=need(PUBLIC))
def begin(request: Request) -> Response:
    """To the provider; what belongs to this sign-in is kept in a session of this browser."""
    portal = portal_of(request)
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
def finish(request: Request, state: str = "", code: str = "") -> Response:
    """Back from the provider: the session that began it must be this one, once."""
    portal = portal_of(request)
    if portal.provider is None:
        raise Unknown
    secret = request.cookies.get(portal.settings.cookie, "")
    kept = take_login(request, secret)
    try:
        claims = portal.provider.finish(kept, state, code)
    except SignInRefused:
        with writing(portal.database) as connection:
            journal.record(connection, "sign-in failed", how="provider")
        raise
    settings = portal.provider.provider
    name, email = claims.get("name"), claims.get("email")
    shown = name if isinstance(name, str) and name.strip() else "(no name)"
    with writing(portal.database) as connection:
        row = people.admit(
            connection, settings.issuer, claims["sub"], shown[:100], email if isinstance(email, str) else None
        )
        if row is not None and settings.roles_claim is not None:
            roles = people.roles_from_claims(claims, settings.roles_claim, settings.roles)
            people.set_house_roles(connection, row["id"], roles, "provider")
    if row is None:
        raise SignInRefused("this account was closed")
    return _enter(request, row["id"], claims)


def take_login(request: Request, secret: str) -> str | None:
    """What the session kept for this sign-in, which is then gone; None where it began none."""
    if not secret:
        return None
    found = tables.sessions
    with writing(portal_of(request).database) as connection:
        mine = (found.c.id == sessions.hash_of(secret)) & found.c.login.is_not(None) & (found.c.ends > now())
        kept = connection.execute(sa.select(found.c.login).where(mine)).scalar()
        connection.execute(found.update().where(mine).values(login=None))
    return kept


@router.post("/sign-out", dependencies=need("own account"))
def leave(request: Request) -> Response:
    """End the session."""
    portal = portal_of(request)
    sessions.end(portal.database, request.cookies.get(portal.settings.cookie, ""))
    reply = redirect(request, "/sign-in")
    reply.delete_cookie(
        portal.settings.cookie, path="/", secure=portal.settings.secure, httponly=True, samesite="lax"
    )
    return reply


@router.get("/help", dependencies=need(PUBLIC))
def explain(request: Request) -> Response:
    """The method in plain words, its limits, and the words used."""
    return page(request, "help.html")


def _form(request: Request, status: int, fault: str) -> Response:
    settings = portal_of(request).settings
    provider = None if settings.provider is None else settings.provider.name
    return page(
        request, "sign_in.html", status, provider=provider, local=settings.local_accounts, fault=fault
    )


def _enter(request: Request, person: str, claims: object) -> Response:
    portal = portal_of(request)
    old = request.cookies.get(portal.settings.cookie)
    with writing(portal.database) as connection:
        secret = sessions.renew(connection, portal.settings, old, person, claims)
    reply = redirect(request, "/")
    keep_cookie(reply, portal.settings, secret)
    return reply


def keep_cookie(reply: Response, settings: Settings, secret: str) -> None:
    """A cookie for this host alone, out of scripts' reach, not sent along from other sites' forms."""
    reply.set_cookie(
        settings.cookie, secret, path="/", secure=settings.secure, httponly=True, samesite="lax",
        max_age=settings.most_hours * 3600,
    )  # fmt: skip
