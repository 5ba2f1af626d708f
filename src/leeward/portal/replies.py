"""What a route replies with: a page, or the address of the next one; and an error's words for somebody at a form."""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import ValidationException
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse

from leeward.portal.guards import portal_of
from leeward.portal.permissions import Viewer
from leeward.portal.question import faults_of
from leeward.portal.rendering import render

FLAG: Final = re.compile(r"`?--([a-z-]+)`?")


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page for whoever asks."""
    portal = portal_of(request)
    viewer: Viewer | None = getattr(request.state, "viewer", None)
    common = {
        "viewer": viewer,
        "url": portal.url,
        "csrf": "" if viewer is None else viewer.csrf,
        "path": request.url.path,
        "request_id": request.state.request_id,
    }
    return HTMLResponse(render(template, **common, **values), status)


def redirect(request: Request, path: str) -> RedirectResponse:
    """To a page below the prefix, after a form was done."""
    return RedirectResponse(portal_of(request).url(path), 303)


def message_of(error: Exception) -> str:
    """An error's words for somebody at a form: `epsilon` instead of `--epsilon`."""
    if isinstance(error, HTTPException):
        return error.detail
    if isinstance(error, ValidationException):
        return faults_of(error.errors())
    text = FLAG.sub(lambda flag: flag[1].replace("-", " "), str(error))
    text = text.replace(
        "or yes to pay for it all the same", "or say below that it is to be paid all the same"
    )
    return text[:1].upper() + text[1:]
