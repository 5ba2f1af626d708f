"""What there is to ask for, and requests from people without a project."""

from __future__ import annotations

from fastapi import APIRouter, BackgroundTasks, Request
from starlette.responses import Response

from leeward.errors import LeewardError
from leeward.portal import directory, notices
from leeward.portal.guards import Asker, Fields, Text, ThisPortal, need
from leeward.portal.rendering import page, redirect

router = APIRouter(include_in_schema=False)


@router.get("/data", dependencies=need("own account"))
def show_data(request: Request, portal: ThisPortal, viewer: Asker) -> Response:
    """The indexes, as custodians describe them; for custodians, open requests too."""
    entries = []
    for row in portal.indexes.rows():
        try:
            entries.append(directory.entry_of(portal.indexes, row["id"]))
        except LeewardError:  # its ledger or folder cannot be asked now; the administrator's page says so
            continue
    requests = directory.open_requests(portal.database) if viewer.may("make project") else []
    return page(request, "directory.html", entries=entries, requests=requests, facts=directory.FACTS)


@router.post("/data/{index}", dependencies=need("make project"))
def describe(portal: ThisPortal, viewer: Asker, index: str, fields: Fields) -> Response:
    """Say what an index holds."""
    directory.describe(portal.database, viewer, index, dict(fields))
    return redirect(portal, "/data")


@router.post("/requests", dependencies=need("own account"))
def ask_for_project(
    portal: ThisPortal, viewer: Asker, later: BackgroundTasks, index: Text, text: Text
) -> Response:
    directory.ask_for_project(portal.database, viewer, index, text)
    told = notices.holders(portal.database, ("custodian",))
    portal.tell(later, told, "Somebody asks for a project.", "/data", viewer)
    return redirect(portal, "/data")


@router.post("/requests/{asked}/close", dependencies=need("make project"))
def close_request(portal: ThisPortal, viewer: Asker, asked: str) -> Response:
    directory.close_request(portal.database, viewer, asked)
    return redirect(portal, "/data")
