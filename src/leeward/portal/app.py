"""The application: what it is made of, its routes, and what becomes of an error."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from leeward.errors import BadInput, LeewardError

try:
    from fastapi import APIRouter, BackgroundTasks, FastAPI, Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import PlainTextResponse, Response
except ImportError as error:
    raise BadInput(
        f"The portal needs {error.name}; install it with: pip install 'leeward[portal]'."
    ) from None

from leeward.portal import api, asking, faults, oidc, proposals, releases, stopping
from leeward.portal.asking import Asking
from leeward.portal.guards import Forbidden, Forged, Portal, SignInFirst, need, program_needs
from leeward.portal.indexes import Indexes
from leeward.portal.middleware import API, Gate, Metrics, write_log
from leeward.portal.models import PROBLEM, Problem
from leeward.portal.pages import ALL
from leeward.portal.permissions import PUBLIC
from leeward.portal.rendering import message_of
from leeward.portal.settings import Settings
from leeward.portal.store import open_store, reading
from leeward.portal.store.rows import Unknown
from leeward.portal.tries import TooManyTries
from leeward.portal.visit import Here, Visit
from leeward.queries.ledger.opening import LedgerUnreachable
from leeward.queries.ledger.spending import BudgetSpent

STATIC: Final = Path(__file__).parent / "static"

STATUSES: Final[dict[type[LeewardError], tuple[int, str]]] = {
    SignInFirst: (401, "Sign in first"),
    Forbidden: (403, "Not yours to do"),
    Forged: (403, "Form refused"),
    Unknown: (404, "Nothing here"),
    asking.Expired: (402, "The allotment has ended"),
    BudgetSpent: (402, "Not enough budget"),
    asking.TooMany: (429, "Too many questions"),
    TooManyTries: (429, "Too many tries"),
    proposals.SamePerson: (403, "Another person decides"),
    proposals.Decided: (409, "Decided already"),
    stopping.Stopped: (409, "Stopped"),
    asking.Conflict: (409, "Key used before"),
    releases.Refused: (409, "Not handed out"),
    oidc.SignInRefused: (403, "Sign-in refused"),
    LedgerUnreachable: (503, "Not available now"),
    BadInput: (422, "Something to correct"),
    LeewardError: (500, "Something went wrong"),
}
"""Kind of an error -> status and title; the first that fits."""

NOTHING_HERE: Final = "There is nothing at this address, or nothing for you."


def make_app(settings: Settings, withdrawn: Callable[[str], str | None] = lambda release: None) -> Gate:
    """The application. `withdrawn`: see `Portal`."""
    database = open_store(settings.folder, settings.database)
    indexes = Indexes(database, settings)
    provider = settings.provider
    client = None
    if provider is not None:
        client = oidc.Client(provider, f"{settings.origin}{settings.prefix}/sign-in/callback")
    metrics = Metrics()
    kinds = (LeewardError, HTTPException, RequestValidationError, ClientDisconnect, Exception)
    app = FastAPI(
        openapi_url=None, redirect_slashes=False, exception_handlers=dict.fromkeys(kinds, _error_response)
    )
    for router in routers():
        app.include_router(router)
    app.openapi = api.openapi  # type: ignore[method-assign]  # as FastAPI documents it
    app.state.portal = Portal(settings, database, indexes, Asking(indexes), metrics, client, withdrawn)
    return Gate(app, settings, metrics)


def routers() -> tuple[APIRouter, ...]:
    """Every router of the application: a route that is on none of them is not served."""
    return (api.router, *ALL, plumbing)


plumbing = APIRouter(include_in_schema=False)


@plumbing.api_route("/health/live", methods=["GET", "HEAD"], dependencies=need(PUBLIC))
def live() -> Response:
    return PlainTextResponse("alive")


@plumbing.api_route("/health/ready", methods=["GET", "HEAD"], dependencies=need(PUBLIC))
def ready(here: Here) -> Response:
    with reading(here.database) as connection:
        connection.exec_driver_sql("SELECT 1")
    return PlainTextResponse("ready")


@plumbing.get("/metrics", dependencies=program_needs("read metrics"))
def figures(here: Here) -> Response:
    return Response(here.portal.metrics.to_text(), media_type="text/plain; version=0.0.4")


@plumbing.get("/static/{name}", dependencies=need(PUBLIC))
def static(name: str) -> Response:
    found = static_files().get(name)
    if found is None:
        raise Unknown
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(found, media_type=kind, headers={"cache-control": "public, max-age=3600"})


@cache
def static_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in STATIC.iterdir() if path.is_file()}


def status_of(error: Exception) -> tuple[int, str]:
    if isinstance(error, HTTPException):
        return error.status_code, "Nothing here" if error.status_code in {404, 405} else "Refused"
    if isinstance(error, ClientDisconnect):  # nobody reads the reply, and it is no fault
        return 400, "Cannot be read"
    if isinstance(error, RequestValidationError):
        return (400, "Cannot be read") if error.errors()[0]["type"] == "json_invalid" else STATUSES[BadInput]
    return next(
        (found for kind, found in STATUSES.items() if isinstance(error, kind)), (500, "Something went wrong")
    )


async def _error_response(request: Request, error: Exception) -> Response:
    """An error as a page, or as problem+json (RFC 9457) for programs; never a stack, never a value of the data."""
    status, title = status_of(error)
    request.state.fault = type(error).__name__
    number, reason, here = request.state.request_id, None, Visit(request, BackgroundTasks(), Response())
    if status >= 500:  # its own words may name folders or databases
        reason, text = faults.reason_of(error)
        route = str(getattr(request.scope.get("route"), "path", "none"))
        await run_in_threadpool(faults.keep, here.database, number, route, error)
    else:
        text = NOTHING_HERE if status == 404 else message_of(error)
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if status == 429:
        headers["retry-after"] = f"{getattr(error, 'wait', 60):.0f}"
    facts: dict[str, Any] = {"fault": type(error).__name__, "message": str(error), "reason": reason}
    facts |= {"address": request.state.address} if status in {401, 403, 429} else {}
    facts |= {"frames": faults.frames_of(error)} if status == 503 else {}  # the gate tells those of others
    write_log("refused", request=number, status=status, **facts)
    if request.url.path.startswith(API):
        left = error.left if isinstance(error, asking.NotEnough) else None
        problem = Problem(title=title, status=status, detail=text, request=number, left=left)
        content = problem.model_dump_json(exclude_none=True)
        return Response(content, status, headers, media_type=PROBLEM)
    if isinstance(error, SignInFirst):
        if request.method == "GET" and "hx-request" not in request.headers:
            return here.redirect("/sign-in")
        text = "Your session has ended. Sign in again; what you wrote is not sent."
    reply = here.page("error.html", status, title=title, text=text)
    reply.headers.update(headers)
    return reply
