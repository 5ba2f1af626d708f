"""What stands before every route: who asks, whether they may, and that a form came from our own page.

The permission belongs to the function, not to its address: `guard` puts it on the route together with the check, and a
test asks that no route is without.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request

from leeward.errors import BadInput, LeewardError
from leeward.portal import sessions, tokens
from leeward.portal.permissions import PERMISSIONS, PUBLIC, Viewer

if TYPE_CHECKING:
    from leeward.portal.running import Portal

MOST_FIELDS: Final = 200
API: Final = "/api/"


class SignInFirst(LeewardError):
    """Nobody is signed in."""


class Forbidden(LeewardError):
    """None of this person's roles has the permission."""


class Forged(LeewardError):
    """A form that did not come from our own page."""


class Malformed(BadInput):
    """A body that cannot be read."""


def portal_of(request: Request) -> Portal:
    """The running portal."""
    found: Portal = request.app.state.portal
    return found


def viewer_of(request: Request) -> Viewer:
    """Who asks, on a route that needs a permission."""
    found: Viewer = request.state.viewer
    return found


def find_viewer(request: Request) -> Viewer | None:
    """Who asks: from the session's cookie, or on the interface for programs from a token. Nothing else in a request
    says who somebody is."""
    portal = portal_of(request)
    if request.url.path.startswith(API):
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return tokens.viewer_of_token(portal.database, secret.strip())
    secret = request.cookies.get(portal.settings.cookie, "")
    return sessions.viewer_of_session(portal.database, portal.settings, secret) if secret else None


def check_permission(viewer: Viewer, permission: str) -> None:
    """Forbidden where no role of this person has the permission anywhere."""
    if not viewer.may(permission):
        raise Forbidden(
            f"none of your roles may do this ({PERMISSIONS[permission][0]}). Ask an administrator which role you need."
        )


def need(request: Request, permission: str) -> None:
    """The check of a permission before a route's function runs."""
    viewer = find_viewer(request)
    request.state.viewer = viewer
    if permission == PUBLIC:
        return
    if viewer is None:
        raise SignInFirst("sign in first.")
    check_permission(viewer, permission)


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


async def take_body(request: Request) -> None:
    """Receive the body, of bounded size and time, without looking at it: who asks is not known yet."""
    request.state.body = await request.body()


def read_form(request: Request, signs_in: bool) -> None:
    """The fields of a form that changes something, checked to come from our own page."""
    body: bytes = request.state.body
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )  # fmt: skip
    except (ValueError, UnicodeDecodeError):
        raise Malformed("this form cannot be read.") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    request.state.form = {name: values[-1] for name, values in fields.items()}
    request.state.lists = fields
    check_origin(request)
    if not signs_in:
        check_csrf(request, request.state.form.get("csrf", ""))


def read_json(request: Request) -> None:
    """The JSON body of a program's request; with a session instead of a token, checked to come from our own page."""
    body: bytes = request.state.body
    try:
        request.state.json = json.loads(body) if body else {}
    except (ValueError, RecursionError, UnicodeDecodeError):
        raise Malformed("the body is no JSON, or is nested too deep.") from None
    viewer: Viewer | None = request.state.viewer
    if viewer is not None and viewer.token_scope is None:
        check_origin(request)
        check_csrf(request, request.headers.get("x-csrf-token", ""))


def guard(
    router: APIRouter, method: str, path: str, permission: str, *, signs_in: bool = False, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function on the router, with its permission before it and, where it changes something, the check of its
    form. All of it runs in one thread, one after the other."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def guarded(request: Request, **arguments: Any) -> Any:
            need(request, permission)
            if method != "GET" and path.startswith(API):
                read_json(request)
            elif method != "GET":
                read_form(request, signs_in)
            return function(request, **arguments)

        guarded.__dict__["permission"] = permission
        more.setdefault("include_in_schema", path.startswith(API))
        more.setdefault("response_model", None)
        before = [] if method == "GET" else [Depends(take_body)]
        router.add_api_route(path, guarded, methods=[method], dependencies=before, **more)
        return function

    return put
