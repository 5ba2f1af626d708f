"""Authentication, permission and CSRF checks applied to every route."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from fastapi import Depends, Request, Security, params
from fastapi.concurrency import run_in_threadpool
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from leeward.errors import BadInput, LeewardError
from leeward.portal import releases, sessions
from leeward.portal.asking import Asking
from leeward.portal.indexes import Indexes
from leeward.portal.middleware import Metrics
from leeward.portal.oidc import Client
from leeward.portal.people import project_of
from leeward.portal.permissions import PERMISSIONS, PUBLIC, Viewer
from leeward.portal.settings import Settings
from leeward.portal.store import Database


@dataclass(frozen=True)
class Portal:
    """What all routes share: settings, database and open indexes."""

    settings: Settings
    database: Database
    indexes: Indexes
    asking: Asking
    metrics: Metrics
    provider: Client | None
    withdrawn: Callable[[str], str | None]
    """Why the register of the house counts a release no longer; None where it counts it, or there is no register."""

    def check_counts(self, folder: Path) -> None:
        """BadInput for a release that later ones are not compared with: the register has it as in nobody's hands."""
        entry = releases.together_of(folder)["entry"]
        why = None if entry is None else self.withdrawn(entry["facts"]["id"])
        if why is not None:
            raise BadInput(
                f"the register has this release as withdrawn ({why}), so later ones are not compared with it; release "
                "the data again."
            )

    def url(self, path: str) -> str:
        return f"{self.settings.prefix}{path}"


class SignInFirst(LeewardError):
    """Nobody is signed in."""


class Forbidden(LeewardError):
    """None of this person's roles has the permission."""


class Forged(LeewardError):
    """A form that did not come from our own page."""


def portal_of(request: Request) -> Portal:
    found: Portal = request.app.state.portal
    return found


def find_viewer(request: Request, secret: str | None = None) -> Viewer | None:
    """Who asks: from a token, where one was sent, else from the session's cookie. Nothing else in a request says who
    somebody is."""
    portal = portal_of(request)
    if secret is not None:
        return sessions.viewer_of_token(portal.database, secret)
    cookie = request.cookies.get(portal.settings.cookie, "")
    return sessions.viewer_of_session(portal.database, portal.settings, cookie) if cookie else None


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


def check_csrf(viewer: Viewer | None, given: object) -> None:
    """Forged where a form does not hold its session's own value."""
    wanted = viewer.csrf if viewer is not None else ""
    if not wanted or not secrets.compare_digest(wanted.encode(), str(given).encode()):
        raise Forged("this form is out of date; load the page again.")


READING: Final = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""


@dataclass(frozen=True)
class Need:
    """Dependency of a route: the viewer has the permission, and a change was sent from our own page."""

    permission: str
    signs_in: bool = False
    """Whether the form is one of signing in, before which there is no session."""

    def admit(self, request: Request, secret: str | None = None) -> Viewer | None:
        """Find who asks and, where the address names one, the project; check the permission, in the project too."""
        viewer = request.state.viewer = find_viewer(request, secret)
        if self.permission != PUBLIC:
            if viewer is None:
                raise SignInFirst("sign in first.")
            check_permission(viewer, self.permission)
            if (project := request.path_params.get("project")) is not None:
                database = portal_of(request).database
                request.state.project = project_of(database, viewer, project, self.permission)
        return viewer

    async def __call__(self, request: Request) -> None:
        viewer = await run_in_threadpool(self.admit, request)
        if request.method not in READING:
            check_origin(request)
            if not self.signs_in:
                check_csrf(viewer, (await request.form()).get("csrf", ""))


BEARER: Final = HTTPBearer(
    scheme_name="token",
    description="A token that a member made on the project's page, for one project.",
    auto_error=False,
)
SESSION: Final = APIKeyCookie(
    name="__Host-leeward",
    scheme_name="session",
    description="The cookie of somebody who is signed in (`leeward` where the portal is not behind TLS). A change "
    "needs the header X-CSRF-Token too.",
    auto_error=False,
)


class NeedOfProgram(Need):
    """The same on the interface for programs, where a token may say who asks."""

    async def __call__(  # type: ignore[override]  # FastAPI gives it what its signature asks for
        self,
        request: Request,
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
        session: Annotated[str | None, Security(SESSION)],
    ) -> None:
        secret = None if bearer is None else bearer.credentials.strip()
        viewer = await run_in_threadpool(self.admit, request, secret)
        if request.method not in READING and viewer is not None and viewer.token_scope is None:
            check_origin(request)
            check_csrf(viewer, request.headers.get("x-csrf-token", ""))


def need(permission: str, *, signs_in: bool = False) -> list[params.Depends]:
    """The dependencies of a page; a test requires them, or those of `program_needs`, of every route."""
    return [Depends(Need(permission, signs_in))]


def program_needs(permission: str) -> list[params.Depends]:
    """The dependencies of a route for programs."""
    return [Depends(NeedOfProgram(permission))]
