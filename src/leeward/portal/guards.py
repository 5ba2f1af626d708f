"""Authentication, permission and CSRF checks applied to every route."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request, params
from fastapi.concurrency import run_in_threadpool

from leeward.errors import BadInput, LeewardError
from leeward.portal import sessions
from leeward.portal.asking import Asking
from leeward.portal.indexes import Indexes
from leeward.portal.middleware import Metrics
from leeward.portal.oidc import Client
from leeward.portal.permissions import PERMISSIONS, PUBLIC, Viewer
from leeward.portal.settings import Settings
from leeward.portal.store import Database

MOST_FIELDS: Final = 200
API: Final = "/api/"


@dataclass(frozen=True)
class Portal:
    """What all routes share: settings, database and open indexes."""

    settings: Settings
    database: Database
    indexes: Indexes
    asking: Asking
    metrics: Metrics
    provider: Client | None

    def url(self, path: str) -> str:
        return f"{self.settings.prefix}{path}"


class SignInFirst(LeewardError):
    """Nobody is signed in."""


class Forbidden(LeewardError):
    """None of this person's roles has the permission."""


class Forged(LeewardError):
    """A form that did not come from our own page."""


class Malformed(BadInput):
    """A body that cannot be read."""


class Form(dict[str, str]):
    """The fields of a form; one that was not sent is empty."""

    def __missing__(self, name: str) -> str:
        return ""


def portal_of(request: Request) -> Portal:
    found: Portal = request.app.state.portal
    return found


def viewer_of(request: Request) -> Viewer:
    """The authenticated viewer, on a route that needs a permission."""
    found: Viewer = request.state.viewer
    return found


def find_viewer(request: Request) -> Viewer | None:
    """Who asks: from the session's cookie, or on the interface for programs from a token. Nothing else in a request
    says who somebody is."""
    portal = portal_of(request)
    if request.url.path.startswith(API):
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return sessions.viewer_of_token(portal.database, secret.strip())
    secret = request.cookies.get(portal.settings.cookie, "")
    return sessions.viewer_of_session(portal.database, portal.settings, secret) if secret else None


def check_permission(viewer: Viewer, permission: str) -> None:
    """Forbidden where no role of this person has the permission anywhere."""
    if not viewer.may(permission):
        raise Forbidden(
            f"none of your roles may do this ({PERMISSIONS[permission][0]}). Ask an administrator which role you need."
        )


def check_origin(request: Request) -> None:
    """Forged where a browser says that the form came from elsewhere."""
    origin = request.headers.get("origin")
    if origin is not None and origin.lower() != portal_of(request).settings.origin:
        raise Forged("this form did not come from this portal.")
    if origin is None and request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise Forged("this form did not come from this portal.")


def check_csrf(request: Request, given: str) -> None:
    """Forged where a form does not hold its session's own value."""
    viewer: Viewer | None = request.state.viewer
    wanted = viewer.csrf if viewer is not None else ""
    if not wanted or not secrets.compare_digest(wanted.encode(), given.encode()):
        raise Forged("this form is out of date; load the page again.")


@dataclass(frozen=True)
class Need:
    """Dependency of a route: the viewer has the permission, and a change was sent from our own page."""

    permission: str
    signs_in: bool = False
    """Whether the form is one of signing in, before which there is no session."""

    async def __call__(self, request: Request) -> None:
        viewer = request.state.viewer = await run_in_threadpool(find_viewer, request)
        if self.permission != PUBLIC:
            if viewer is None:
                raise SignInFirst("sign in first.")
            check_permission(viewer, self.permission)
        if request.method == "GET":
            return
        if not request.url.path.startswith(API):
            read_form(request, await request.body())
            check_origin(request)
            if not self.signs_in:
                check_csrf(request, request.state.form["csrf"])
        elif viewer is not None and viewer.token_scope is None:
            check_origin(request)
            check_csrf(request, request.headers.get("x-csrf-token", ""))


def need(permission: str, *, signs_in: bool = False) -> list[params.Depends]:
    """The dependencies of a route; a test requires them of every route."""
    return [Depends(Need(permission, signs_in))]


def read_form(request: Request, body: bytes) -> None:
    """The fields of a form that changes something. Malformed for a body that is none."""
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )  # fmt: skip
    except (ValueError, UnicodeDecodeError):
        raise Malformed("this form cannot be read.") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    request.state.form = Form({name: values[-1] for name, values in fields.items()})
    request.state.lists = fields
