"""One's own account: password, second factor, sessions, tokens of the house."""

from __future__ import annotations

import io
from typing import Annotated

import segno
from fastapi import APIRouter, Form
from markupsafe import Markup
from starlette.responses import Response

from leeward.portal import accounts, passwords, sessions
from leeward.portal.guards import need
from leeward.portal.people import LOCAL
from leeward.portal.permissions import HOUSE_SCOPES
from leeward.portal.store import tables
from leeward.portal.store.rows import row_of
from leeward.portal.visit import Here, Text

router = APIRouter(include_in_schema=False)


@router.get("/account", dependencies=need("own account"))
def show_account(here: Here) -> Response:
    return _account_page(here, None)


def _account_page(here: Here, secret: str | None) -> Response:
    row = row_of(here.database, tables.people, here.viewer.person)
    return here.page(
        "account.html",
        local=row["issuer"] == LOCAL,
        provider=row["issuer"],
        sessions=accounts.sessions_of(here.database, here.viewer),
        factor=accounts.has_second_factor(here.database, here.viewer.person),
        secret=secret,
        picture=None if secret is None else _picture(secret, row["subject"]),
        shortest=passwords.SHORTEST,
        scopes=[scope for scope, permission in HOUSE_SCOPES.items() if here.viewer.reaches_all(permission)],
        tokens=[each for each in sessions.tokens_of(here.database, here.viewer) if not each["project"]],
    )


def _picture(secret: str, login: str) -> Markup:
    """The code that an app for one-time codes scans."""
    import pyotp

    drawn = io.BytesIO()
    address = pyotp.TOTP(secret).provisioning_uri(name=login, issuer_name="Leeward")
    segno.make(address).save(drawn, kind="svg", scale=4, light="white", xmldecl=False, title="Code to scan")
    return Markup(drawn.getvalue().decode())


@router.post("/account/password", dependencies=need("own account"))
def change_password(here: Here, old: Text, new: Text) -> Response:
    accounts.change_password(here.database, here.viewer, old, new, here.address)
    return here.redirect("/account")


@router.post("/account/second-factor", dependencies=need("own account"))
def begin_second_factor(here: Here, password: Text) -> Response:
    """Show a new secret, once; it counts after a code of it was entered."""
    accounts.check_password(here.database, here.viewer, password, here.address)
    secret = accounts.begin_second_factor(here.database, here.viewer)
    return _account_page(here, secret)


@router.post("/account/second-factor/confirm", dependencies=need("own account"))
def confirm_second_factor(here: Here, code: Text) -> Response:
    accounts.confirm_second_factor(here.database, here.viewer, code)
    return here.redirect("/account")


@router.post("/account/second-factor/remove", dependencies=need("own account"))
def remove_second_factor(here: Here, code: Text) -> Response:
    accounts.remove_second_factor(here.database, here.viewer, code, here.address)
    return here.redirect("/account")


@router.post("/account/tokens", dependencies=need("own account"))
def make_token(here: Here, scope: Text, name: Text, days: Annotated[int, Form()]) -> Response:
    """A token of the house for a program: monitoring or audit; shown once."""
    made, secret = sessions.make_token(here.database, here.viewer, "", scope, days, name)
    return here.page("token.html", what="the house", back="/account", token=made, secret=secret)


@router.post("/account/sign-out-elsewhere", dependencies=need("own account"))
def sign_out_elsewhere(here: Here) -> Response:
    accounts.sign_out_elsewhere(here.database, here.viewer)
    return here.redirect("/account")
