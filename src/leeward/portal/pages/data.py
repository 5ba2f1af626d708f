"""What there is to ask for, and requests from people without a project."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from leeward.errors import LeewardError
from leeward.portal import directory, notices
from leeward.portal.guards import need
from leeward.portal.visit import Fields, Here, Text

router = APIRouter(include_in_schema=False)


@router.get("/data", dependencies=need("own account"))
def show_data(here: Here) -> Response:
    """The indexes, as custodians describe them; for custodians, open requests too."""
    entries = []
    for row in here.indexes.rows():
        try:
            entries.append(directory.entry_of(here.indexes, row["id"]))
        except LeewardError:  # its ledger or folder cannot be asked now; the administrator's page says so
            continue
    requests = directory.open_requests(here.database) if here.viewer.may("make project") else []
    return here.page("directory.html", entries=entries, requests=requests, facts=directory.FACTS)


@router.post("/data/{index}", dependencies=need("make project"))
def describe(here: Here, index: str, fields: Fields) -> Response:
    directory.describe(here.database, here.viewer, index, dict(fields))
    return here.redirect("/data")


@router.post("/requests", dependencies=need("own account"))
def ask_for_project(here: Here, index: Text, text: Text) -> Response:
    directory.ask_for_project(here.database, here.viewer, index, text)
    told = notices.holders(here.database, ("custodian",))
    here.tell(told, "Somebody asks for a project.", "/data")
    return here.redirect("/data")


@router.post("/requests/{asked}/close", dependencies=need("make project"))
def close_request(here: Here, asked: str) -> Response:
    directory.close_request(here.database, here.viewer, asked)
    return here.redirect("/data")
