"""Audit: the ledgers' logs and the portal's journal, their chains checked; heads to keep elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from leeward.errors import LeewardError
from leeward.portal import journal
from leeward.portal.guards import need, portal_of, viewer_of
from leeward.portal.permissions import Viewer
from leeward.portal.replies import page
from leeward.portal.running import Portal
from leeward.portal.store import reading
from leeward.queries import ledger as books
from leeward.queries.ledger import chain
from leeward.queries.ledger.families import family_of
from leeward.queries.ledger.opening import reading as reading_ledger

router = APIRouter(include_in_schema=False)
SHOWN = 200


@router.get("/audit", dependencies=need("read log"))
def show(request: Request, index: str = "", event: str = "", find: str = "") -> Response:
    """The log with filters; a lead sees the entries of own projects."""
    portal, viewer = portal_of(request), viewer_of(request)
    everything = viewer.reaches_all("read log")
    audits = [_audit(portal, row) for row in portal.indexes.rows()] if everything else []
    entries = [each for each in entries_of(portal, viewer, index) if _fits(each, event, find)]
    own = journal.check(portal.database) if everything else None
    return page(
        request, "audit.html", audits=audits, entries=entries[-SHOWN:][::-1], count=len(entries), journal=own,
        indexes=portal.indexes.rows(), chosen=index, event=event, find=find,
    )  # fmt: skip


@router.get("/audit/log.ndjson", dependencies=need("read log"))
def export(request: Request, index: str = "") -> Response:
    """The same entries, a line of JSON each."""
    portal, viewer = portal_of(request), viewer_of(request)

    def lines() -> Iterator[str]:
        for each in entries_of(portal, viewer, index):
            yield json.dumps(each, sort_keys=True, ensure_ascii=False) + "\n"

    return StreamingResponse(
        lines(),
        media_type="application/x-ndjson",
        headers={"content-disposition": 'attachment; filename="log.ndjson"'},
    )


def _audit(portal: Portal, row: dict[str, Any]) -> dict[str, Any]:
    try:
        session = portal.indexes.session(row["id"])
        return {**row, **books.audit(session.ledger, row["data_set"]).to_json(), "fault": None}
    except LeewardError as error:
        return {**row, "fault": type(error).__name__, "passed": False, "checks": [], "head": ""}


def entries_of(portal: Portal, viewer: Viewer, index: str = "") -> list[dict[str, Any]]:
    """Entries of the ledgers' logs, and of the journal for whoever may see all; oldest first."""
    mine = viewer.projects("read log")
    found: list[dict[str, Any]] = []
    for row in portal.indexes.rows():
        if index not in ("", row["id"]):
            continue
        try:
            session = portal.indexes.session(row["id"])
            with reading_ledger(session.ledger) as connection:
                family = family_of(connection, session.ledger, row["data_set"])
                logged = list(chain.entries_of(connection, family))
        except LeewardError:
            continue
        found += [_plain(entry, row["name"]) for entry in logged]
    if mine is not None:
        found = [each for each in found if each.get("project") in mine]
    elif index in ("", "portal"):
        with reading(portal.database) as connection:
            found += [_plain(entry, "portal") for entry in journal.entries(connection)]
    return sorted(found, key=lambda each: (each["time"], each["log"], each["number"]))


def _plain(entry: chain.Entry, log: str) -> dict[str, Any]:
    try:
        body = json.loads(entry.body)
    except ValueError:
        body = {"event": "cannot be read"}
    return {**body, "log": log, "number": entry.number, "time": entry.time, "hash": entry.hash}


def _fits(entry: dict[str, Any], event: str, find: str) -> bool:
    return (
        event in ("", entry.get("event"))
        and find.casefold() in json.dumps(entry, ensure_ascii=False).casefold()
    )
