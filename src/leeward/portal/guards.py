"""What stands before every route: who asks, whether they may, and that a form came from our own page.

The permission belongs to the function, not to its address: `guard` puts it on the route together with the check, and a
test asks that no route is without.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import secrets
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from leeward.errors import BadInput, LeewardError
from leeward.portal import sessions, tokens
from leeward.portal.permissions import PERMISSIONS, PUBLIC, Viewer

if TYPE_CHECKING:
    from leeward.portal.running import Portal

MOST_FIELDS: Final = 200
WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
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
    router: APIRouter,
    method: str,
    path: str,
    permission: str,
    *,
    signs_in: bool = False,
    often: bool = False,
    **more: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function on the router, with its permission before it and, where it changes something, the check of its
    form. All of it runs in one thread, one after the other; what programs ask `often`, in one of a few."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def guarded(request: Request, **arguments: Any) -> Any:
            need(request, permission)
            if method != "GET" and path.startswith(API):
                read_json(request)
            elif method != "GET":
                read_form(request, signs_in)
            return function(request, **arguments)

        guarded.__dict__["permission"], guarded.__dict__["often"] = permission, often
        more.setdefault("include_in_schema", path.startswith(API))
        more.setdefault("response_model", None)
        router.add_api_route(path, guarded, methods=[method], **more)
        return function

    return put


class Served:
    """A guarded function as an ASGI application: the body is received, then all of it runs in one thread.

    FastAPI describes the routes, and its layers, which take 0.2 ms of a request, are left out. Short work is done by
    few threads: the more there are that want the interpreter, the more often whoever has it must hand it over.
    """

    def __init__(self, path: str, function: Callable[..., Any]) -> None:
        self.path, self.function, self.often = path, function, function.__dict__["often"]
        self.kinds = {
            name: each.annotation
            for name, each in inspect.signature(function, eval_str=True).parameters.items()
            if name != "request"
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        # Of bounded size and time, and nobody looks at it: who asks is not known yet.
        request.state.body = b"" if scope["method"] == "GET" else await request.body()
        answer = partial(self.function, request, **self._arguments(request))
        if self.often:
            response = await asyncio.get_running_loop().run_in_executor(portal_of(request).threads, answer)
        else:
            response = await run_in_threadpool(answer)
        await response(scope, receive, send)

    def _arguments(self, request: Request) -> dict[str, Any]:
        """The function's arguments from the address. BadInput for a number that is none."""
        if not self.kinds:
            return {}
        given = {**request.query_params, **request.path_params}
        found: dict[str, Any] = {name: given[name] for name in self.kinds if name in given}
        for name, text in found.items():
            if self.kinds[name] is int:
                if not WHOLE.fullmatch(text):
                    raise BadInput(f"`{name}` is a whole number.")
                found[name] = int(text)
        return found


def served(router: APIRouter) -> Iterator[Route]:
    """The routes of a router, as they are served: each for its own methods alone."""
    for described in router.routes:
        assert isinstance(described, Route) and described.methods is not None  # `guard` put it there
        route = Route(described.path, Served(described.path, described.endpoint), name=described.name)
        route.methods = set(described.methods)
        yield route
