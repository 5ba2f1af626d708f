"""One's own account: password, second factor, sessions; and the page of a set-up link."""

from __future__ import annotations

import io
import json
from typing import Annotated

import segno
import sqlalchemy as sa
from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from leeward.errors import BadInput
from leeward.portal import accounts, passwords, sessions
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.pages.project import enter, sign_in_page
from leeward.portal.people import LOCAL
from leeward.portal.permissions import HOUSE_SCOPES, PUBLIC, Viewer
from leeward.portal.rendering import page, redirect
from leeward.portal.store import fetch_one, now, reading, tables

router = APIRouter(include_in_schema=False)


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


@router.get("/account", dependencies=need("own account"))
def show_account(request: Request, portal: ThisPortal, viewer: Asker) -> Response:
    return _account_page(request, portal, viewer, None)


def _account_page(request: Request, portal: Portal, viewer: Viewer, secret: str | None) -> Response:
    person = sa.select(tables.people).where(tables.people.c.id == viewer.person)
    with reading(portal.database) as connection:
        row = fetch_one(connection, person)
        factor = accounts.has_second_factor(connection, viewer.person)
    assert row is not None  # the viewer
    return page(
        request,
        "account.html",
        local=row["issuer"] == LOCAL,
        provider=row["issuer"],
        sessions=accounts.sessions_of(portal.database, viewer),
        factor=factor,
        secret=secret,
        picture=None if secret is None else _picture(secret, row["subject"]),
        shortest=passwords.SHORTEST,
        scopes=[scope for scope, permission in HOUSE_SCOPES.items() if viewer.reaches_all(permission)],
        tokens=[each for each in sessions.tokens_of(portal.database, viewer) if not each["project"]],
    )


def _picture(secret: str, login: str) -> Markup:
    """The code that an app for one-time codes scans."""
    import pyotp

    drawn = io.BytesIO()
    address = pyotp.TOTP(secret).provisioning_uri(name=login, issuer_name="Leeward")
    segno.make(address).save(drawn, kind="svg", scale=4, light="white", xmldecl=False, title="Code to scan")
    return Markup(drawn.getvalue().decode())


@router.post("/account/password", dependencies=need("own account"))
def change_password(request: Request, portal: ThisPortal, viewer: Asker, old: Text, new: Text) -> Response:
    accounts.change_password(portal.database, viewer, old, new, request.state.address)
    return redirect(portal, "/account")


@router.post("/account/second-factor", dependencies=need("own account"))
def begin_second_factor(request: Request, portal: ThisPortal, viewer: Asker) -> Response:
    """Show a new secret, once; it counts after a code of it was entered."""
    if not portal.settings.local_accounts:
        raise BadInput("you sign in at your institution; add a second factor there.")
    secret = accounts.begin_second_factor(portal.database, viewer)
    return _account_page(request, portal, viewer, secret)


@router.post("/account/second-factor/confirm", dependencies=need("own account"))
def confirm_second_factor(portal: ThisPortal, viewer: Asker, code: Text) -> Response:
    accounts.confirm_second_factor(portal.database, viewer, code)
    return redirect(portal, "/account")


@router.post("/account/second-factor/remove", dependencies=need("own account"))
def remove_second_factor(request: Request, portal: ThisPortal, viewer: Asker, code: Text) -> Response:
    accounts.remove_second_factor(portal.database, viewer, code, request.state.address)
    return redirect(portal, "/account")


@router.post("/account/tokens", dependencies=need("own account"))
def make_token(
    request: Request, portal: ThisPortal, viewer: Asker, scope: Text, name: Text, days: Annotated[int, Form()]
) -> Response:
    """A token of the house for a program: monitoring or audit; shown once."""
    made, secret = sessions.make_token(portal.database, viewer, "", scope, days, name)
    return page(request, "token.html", what="the house", back="/account", token=made, secret=secret)


@router.post("/account/sign-out-elsewhere", dependencies=need("own account"))
def sign_out_elsewhere(portal: ThisPortal, viewer: Asker) -> Response:
    accounts.sign_out_elsewhere(portal.database, viewer)
    return redirect(portal, "/account")
