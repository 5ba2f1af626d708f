"""For custodians: indexes with their budgets, and releases to publish."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from leeward.errors import LeewardError
from leeward.portal import faults, proposals, releases
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.indexes import Unknown
from leeward.portal.models import Allotment
from leeward.portal.people import everybody
from leeward.portal.rendering import page, redirect
from leeward.portal.store import Row, fetch_all, tables
from leeward.queries.ledger import budgets, spending
from leeward.release import Release

router = APIRouter(include_in_schema=False)
REPORT_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; "
    "frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
}
"""A report is the work of other programs: it runs no script, loads nothing, and has no origin."""


@router.get("/custody/indexes", dependencies=need("see custody"))
def show_indexes(request: Request, portal: ThisPortal) -> Response:
    """Indexes: what is public, the cap, who could spend what; and what is not protected."""
    projects = fetch_all(portal.database, sa.select(tables.projects).order_by(tables.projects.c.name))
    allotments = fetch_all(portal.database, sa.select(tables.allotments))
    ends = {(each["project"], each["index"]): each["ends"] for each in allotments}
    names = {row["id"]: row["name"] for row in projects}
    rows = portal.indexes.rows()
    listed: list[dict[str, Any]] = []
    for row in rows:
        try:
            session = portal.indexes.session(row["id"])
            left = spending.left(session.ledger, row["data_set"], None)
            allotted = budgets.allotments(session.ledger, row["data_set"])
        except LeewardError as error:
            listed.append({**row, "fault": faults.reason_of(error)[0]})
        else:
            state = {"fault": None, "meta": session.index.meta, "terms": session.terms}
            listed.append({**row, **state, "left": left, "allotted": allotted})
    folders = _folders(portal.settings.index_folder, "index.json", rows)
    return page(
        request,
        "indexes.html",
        indexes=listed,
        projects=projects,
        names=names,
        ends=ends,
        folders=folders,
        ledgers=sorted(portal.settings.ledgers),
    )


def _folders(where: Path, mark: str, rows: Sequence[Row]) -> list[str]:
    """Folders that may be proposed: those that hold `mark` and are not known yet."""
    known = {Path(row["folder"]).name for row in rows}
    folders = where.iterdir() if where.is_dir() else ()
    return sorted(
        path.name for path in folders
        if path.name not in known and not path.is_symlink() and (path / mark).is_file()
    )  # fmt: skip


@router.post("/custody/indexes", dependencies=need("propose index"))
def propose_index(
    portal: ThisPortal, viewer: Asker, folder: Text, name: Text, reason: Text, ledger: Text = ""
) -> Response:
    proposals.propose_index(portal.indexes, viewer, folder, name, ledger, reason)
    return redirect(portal, "/decisions")


@router.post("/custody/allotments", dependencies=need("propose allotment"))
def propose_allotment(portal: ThisPortal, viewer: Asker, allotment: Annotated[Allotment, Form()]) -> Response:
    """Propose what a project may spend."""
    proposals.propose_allotment(portal.indexes, viewer, **allotment.model_dump())
    return redirect(portal, "/decisions")


@router.get("/custody/releases", dependencies=need("see custody"))
def show_releases(request: Request, portal: ThisPortal, viewer: Asker) -> Response:
    """Releases that were published, and folders that may be proposed."""
    rows = releases.visible(portal.database, viewer)
    accounts = everybody(portal.database)
    return page(
        request, "custody_releases.html", releases=rows, accounts=accounts,
        folders=_folders(portal.settings.release_folder, "share/release.json", rows),
    )  # fmt: skip


@router.post("/custody/releases", dependencies=need("propose release"))
def propose_release(
    portal: ThisPortal,
    viewer: Asker,
    folder: Text,
    name: Text,
    ends: Text,
    reason: Text,
    recipients: Annotated[list[str], Form()] = [],  # noqa: B006  (FastAPI copies it)
) -> Response:
    proposals.propose_release(portal.indexes, viewer, folder, name, recipients, ends, reason)
    return redirect(portal, "/decisions")


@router.get("/custody/releases/{release}", dependencies=need("see custody"))
def show_release(request: Request, portal: ThisPortal, viewer: Asker, release: str) -> Response:
    """A release: manifest, guarantee, verification, recipients, downloads, and its report in a frame."""
    row = releases.release_of(portal.database, viewer, release)
    return _release_page(request, portal, row, None)


@router.post("/custody/releases/{release}/verify", dependencies=need("see custody"))
def verify_release(request: Request, portal: ThisPortal, viewer: Asker, release: str) -> Response:
    """Verify it now, from its files alone."""
    found = releases.verify_again(portal.database, releases.release_of(portal.database, viewer, release))
    return _release_page(request, portal, releases.release_of(portal.database, viewer, release), found)


def _release_page(request: Request, portal: Portal, row: Row, verification: Any) -> Response:
    manifest = Release.open(row["folder"], compare=False).manifest
    names = {each["id"]: each["name"] for each in everybody(portal.database)}
    seen = [
        {**each, "name": names.get(each["person"], "")}
        for each in releases.downloads_of(portal.database, row["id"])
    ]
    return page(
        request,
        "release.html",
        release=row,
        manifest=manifest,
        text=json.dumps({key: manifest[key] for key in ("method", "parameters", "records")}, indent=2),
        verification=verification,
        recipients=releases.recipients_of(portal.database, row["id"]),
        downloads=seen,
        files=json.loads(row["files"]),
    )


@router.get("/custody/releases/{release}/report", dependencies=need("see custody"))
def show_report(portal: ThisPortal, viewer: Asker, release: str) -> Response:
    """The report, for a sandboxed frame: no script, nothing from elsewhere, no origin."""
    row = releases.release_of(portal.database, viewer, release)
    return HTMLResponse(releases.report_of(row), headers=REPORT_HEADERS)


@router.get("/decisions", dependencies=need("see decisions"))
def show_decisions(request: Request, portal: ThisPortal, viewer: Asker, after: str = "") -> Response:
    rows, following = proposals.proposals_of(portal.database, viewer, after)
    return page(request, "decisions.html", proposals=rows, after=following, may_confirm=viewer.may("confirm"))


@router.post("/decisions/{proposal}", dependencies=need("confirm"))
def decide(portal: ThisPortal, viewer: Asker, proposal: str, verdict: Text, reason: Text) -> Response:
    proposals.decide(portal.indexes, viewer, proposal, verdict, reason)
    return redirect(portal, "/decisions")


MOST_ITEMSETS = 500


@router.get("/releases", dependencies=need("download"))
def list_releases(request: Request, portal: ThisPortal, viewer: Asker) -> Response:
    rows = releases.visible(portal.database, viewer)
    listed = [
        {**row, "release": Release.open(row["folder"], compare=False), "paths": json.loads(row["files"])}
        for row in rows
    ]
    return page(request, "releases.html", releases=listed)


@router.get("/releases/{release}/files/{path:path}", dependencies=need("download"))
def download(portal: ThisPortal, viewer: Asker, release: str, path: str) -> Response:
    """A file of `share/`, by its entry in the manifest and its digest."""
    blocks = releases.read_file(portal.database, viewer, release, path)
    name = path.rsplit("/", 1)[-1].replace('"', "")
    return StreamingResponse(
        blocks, media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )  # fmt: skip


@router.get("/catalogue", dependencies=need("download"))
def show_catalogues(request: Request, portal: ThisPortal, viewer: Asker, find: str = "") -> Response:
    """Catalogues of itemsets that were published to me, with their noisy counts."""
    found = []
    for row in releases.visible(portal.database, viewer):
        release = Release.open(row["folder"], compare=False)
        if release.method != "notes" or "data/itemsets.parquet" not in json.loads(row["files"]):
            continue
        if not row["passed"]:
            raise Unknown
        table = release.table("itemsets.parquet").collect()
        rows = [(" & ".join(items), count) for items, count in table.iter_rows()]
        wanted = find.casefold()
        fitting = [each for each in rows if wanted in each[0].casefold()][:MOST_ITEMSETS]
        found.append({**row, "rows": fitting, "guarantee": release.guarantee})
    return page(request, "catalogue.html", catalogues=found, find=find)
