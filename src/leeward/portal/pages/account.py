"""One's own account: password, second factor, sessions, tokens of the house."""

from __future__ import annotations

import io
from typing import Annotated

import segno
import sqlalchemy as sa
from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from starlette.responses import Response

from leeward.portal import accounts, passwords, sessions
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.people import LOCAL
from leeward.portal.permissions import HOUSE_SCOPES, Viewer
from leeward.portal.rendering import page, redirect
from leeward.portal.store import fetch_one, reading, tables

router = APIRouter(include_in_schema=False)


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
def begin_second_factor(request: Request, portal: ThisPortal, viewer: Asker, password: Text) -> Response:
    """Show a new secret, once; it counts after a code of it was entered."""
    accounts.check_password(portal.database, viewer, password, request.state.address)
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
