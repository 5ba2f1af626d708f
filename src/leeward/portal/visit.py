"""A request as a route sees it: the portal, who asks, the project of its address, and the replies to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import BackgroundTasks, Depends, Form, Request, Response
from pydantic import AfterValidator
from starlette.responses import HTMLResponse, RedirectResponse

from leeward.portal.guards import portal_of
from leeward.portal.notices import tell
from leeward.portal.permissions import Viewer
from leeward.portal.rendering import render
from leeward.portal.store.rows import Row


class Visit:
    """A request, and what a route needs to reply to it."""

    def __init__(self, request: Request, later: BackgroundTasks, response: Response) -> None:
        """`later`: what is done once the reply is sent; `response`: status and headers of one given as a model."""
        self.request, self.later, self.response = request, later, response
        self.portal = portal_of(request)
        self.settings, self.database = self.portal.settings, self.portal.database
        self.indexes, self.asking = self.portal.indexes, self.portal.asking
        self.viewer: Viewer = request.state.viewer
        """Who asks, as the guard found; None only where the route needs no permission and nobody is signed in."""
        self.project: Row = request.state.project
        """The project in the address, in which the viewer has the permission of the route."""
        self.cookie = request.cookies.get(self.settings.cookie, "")
        """The session's cookie; empty where there is none."""
        self.address: str = request.state.address

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        common = {
            "viewer": self.viewer,
            "url": self.portal.url,
            "csrf": self.viewer.csrf if self.viewer else "",
            "path": self.request.url.path,
            "request_id": self.request.state.request_id,
            "project": self.project,
        }
        return HTMLResponse(render(template, **common, **values), status)

    def redirect(self, path: str) -> RedirectResponse:
        """To a page below the prefix, after a form was done."""
        return RedirectResponse(self.portal.url(path), 303)

    def tell(self, people: Iterable[str], what: str, path: str) -> None:
        """Tell people, once the reply is sent, of something that waits for them; not whoever did it."""
        if self.settings.notify is not None:
            told = list(people), what, path, self.viewer.person
            self.later.add_task(tell, self.database, self.settings, *told)


async def _visit(request: Request, later: BackgroundTasks, response: Response) -> Visit:
    return Visit(request, later, response)


async def _fields(request: Request) -> Mapping[str, str]:
    return {name: text for name, text in (await request.form()).items() if isinstance(text, str)}


Here = Annotated[Visit, Depends(_visit)]
Fields = Annotated[Mapping[str, str], Depends(_fields)]
"""All fields of a form whose names depend on an index."""
Texts = Annotated[list[str], Form(default_factory=list)]
Text = Annotated[str, Form(), AfterValidator(lambda text: text.replace("\r\n", "\n"))]
"""A field of a form."""


def attached(name: str) -> dict[str, str]:
    """Headers of a reply that a browser saves as a file."""
    return {"content-disposition": f'attachment; filename="{name}"'}
