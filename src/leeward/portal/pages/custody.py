"""For custodians: indexes with their budgets, and releases to publish."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl
import sqlalchemy as sa
from fastapi import APIRouter, BackgroundTasks, Form, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from leeward.errors import LeewardError
from leeward.portal import accounts, faults, notices, people, proposals, releases, stopping
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.models import Allotment
from leeward.portal.people import everybody
from leeward.portal.permissions import Viewer
from leeward.portal.rendering import page, redirect
from leeward.portal.store import Row, fetch_all, fetch_one, tables
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
        stopped=stopping.stopped(portal.database),
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
    portal: ThisPortal,
    viewer: Asker,
    later: BackgroundTasks,
    folder: Text,
    name: Text,
    reason: Text,
    ledger: Text = "",
) -> Response:
    proposals.propose_index(portal.indexes, viewer, folder, name, ledger, reason)
    return tell_deciders(portal, viewer, later, "index")


@router.post("/custody/allotments", dependencies=need("propose allotment"))
def propose_allotment(
    portal: ThisPortal, viewer: Asker, later: BackgroundTasks, allotment: Annotated[Allotment, Form()]
) -> Response:
    """Propose what a project may spend."""
    proposals.propose_allotment(portal.indexes, viewer, **allotment.model_dump())
    return tell_deciders(portal, viewer, later, "allotment")


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
    later: BackgroundTasks,
    folder: Text,
    name: Text,
    ends: Text,
    reason: Text,
    recipients: Annotated[list[str], Form()] = [],  # noqa: B006  (FastAPI copies it)
) -> Response:
    proposals.propose_release(portal.indexes, viewer, folder, name, recipients, ends, reason)
    return tell_deciders(portal, viewer, later, "release")


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
        stopped=stopping.stopped(portal.database).get(("release", row["id"])),
        recipients=releases.recipients_of(portal.database, row["id"]),
        downloads=seen,
        files=json.loads(row["files"]),
    )


@router.get("/custody/releases/{release}/report", dependencies=need("see custody"))
def show_report(portal: ThisPortal, viewer: Asker, release: str) -> Response:
    """The report, for a sandboxed frame: no script, nothing from elsewhere, no origin."""
    row = releases.release_of(portal.database, viewer, release)
    return HTMLResponse(releases.report_of(row), headers=REPORT_HEADERS)


@router.post("/custody/stop", dependencies=need("stop"))
def stop(
    portal: ThisPortal, viewer: Asker, later: BackgroundTasks, kind: Text, what: Text, reason: Text
) -> Response:
    """Stop downloads of a release, answers from an index, or questions of a project, at once."""
    stopping.stop(portal.database, viewer, kind, what, reason)
    told = notices.holders(portal.database, ("custodian", "approver"))
    portal.tell(later, told, f"A {kind} was stopped.", "/", viewer)
    return redirect(portal, PAGES[kind].format(what))


@router.post("/custody/start", dependencies=need("stop"))
def propose_start(
    portal: ThisPortal, viewer: Asker, later: BackgroundTasks, kind: Text, what: Text, reason: Text
) -> Response:
    """Propose to start again what was stopped."""
    proposals.propose_start(portal.database, viewer, kind, what, reason)
    return tell_deciders(portal, viewer, later, "start")


@router.post("/custody/releases/{release}/recipients/{person}/end", dependencies=need("stop"))
def end_access(portal: ThisPortal, viewer: Asker, release: str, person: str, reason: Text) -> Response:
    stopping.end_access(portal.database, viewer, release, person, reason)
    return redirect(portal, f"/custody/releases/{release}")


@router.post("/custody/allotments/lower", dependencies=need("stop"))
def lower_allotment(
    portal: ThisPortal, viewer: Asker, project: Text, index: Text, epsilon: Text, reason: Text
) -> Response:
    """Lower an allotment at once."""
    stopping.lower_allotment(portal.indexes, viewer, project, index, epsilon, reason)
    return redirect(portal, f"/projects/{project}")


PAGES: Final = {"release": "/custody/releases/{}", "index": "/custody/indexes", "project": "/projects/{}"}
"""Kind of what can be stopped -> its page."""


@router.get("/decisions", dependencies=need("see decisions"))
def show_decisions(request: Request, portal: ThisPortal, viewer: Asker, after: str = "") -> Response:
    """Proposals and decisions, with what somebody needs to know who decides."""
    found, following = proposals.proposals_of(portal.database, viewer, after)
    rows = [{**row, "context": _context(portal, row) if row["state"] == "open" else None} for row in found]
    return page(request, "decisions.html", proposals=rows, after=following, on_accounts=proposals.ACCOUNTS)


def _context(portal: Portal, row: Row) -> dict[str, Any] | None:
    """What an approver needs to know of an allotment: the project's plan and conversation, and who has what."""
    if row["kind"] != "allotment":
        return None
    project = fetch_one(
        portal.database, sa.select(tables.projects).where(tables.projects.c.id == row["project"])
    )
    index = row["body"]["index"]
    try:
        session = portal.indexes.session(index)
        data_set = session.index.meta.id
        found = {
            "total": session.terms.total,
            "spent": spending.left(session.ledger, data_set, None).spent_epsilon,
            "allotted": [each for each in budgets.allotments(session.ledger, data_set) if each.project],
        }
    except LeewardError as error:
        found = {"fault": type(error).__name__}
    names = fetch_all(portal.database, sa.select(tables.projects.c.id, tables.projects.c.name))
    return {
        "fault": None,
        **found,
        "project": project,
        "names": {each["id"]: each["name"] for each in names},
        "messages": people.conversation(portal.database, row["project"])[-MOST_MESSAGES:],
    }


MOST_MESSAGES: Final = 5


def show_link(request: Request, portal: Portal, name: str, secret: str) -> Response:
    """A set-up link, shown once to whoever hands it over."""
    address = accounts.address_of(portal.settings, secret)
    return page(request, "link.html", name=name, address=address)


@router.post("/decisions/{proposal}", dependencies=need("confirm"))
def decide(
    request: Request, portal: ThisPortal, viewer: Asker, later: BackgroundTasks, proposal: str, verdict: Text,
    reason: Text,
) -> Response:  # fmt: skip
    return _decide(request, portal, viewer, later, proposal, verdict, reason)


@router.post("/admin/decisions/{proposal}", dependencies=need("confirm accounts"))
def decide_on_account(
    request: Request, portal: ThisPortal, viewer: Asker, later: BackgroundTasks, proposal: str, verdict: Text,
    reason: Text,
) -> Response:  # fmt: skip
    """Confirm or decline roles of the house and set-up links; nothing else, as administrators may do this."""
    return _decide(request, portal, viewer, later, proposal, verdict, reason, proposals.ACCOUNTS)


def _decide(
    request: Request, portal: Portal, viewer: Viewer, later: BackgroundTasks, proposal: str, verdict: str,
    reason: str, kinds: Collection[str] = proposals.KINDS,
) -> Response:  # fmt: skip
    row = proposals.proposal_of(portal.database, proposal, kinds)
    link = proposals.decide(portal.indexes, viewer, proposal, verdict, reason)
    portal.tell(later, [row["proposer"]], f"A proposal of yours was {verdict}.", "/decisions", viewer)
    if link is not None:
        return show_link(request, portal, json.loads(row["body"])["name"], link)
    return redirect(portal, "/decisions")


@router.post("/decisions/{proposal}/withdraw", dependencies=need("see decisions"))
def withdraw(portal: ThisPortal, viewer: Asker, proposal: str, reason: Text) -> Response:
    """Take back a proposal of one's own."""
    stopping.withdraw(portal.database, viewer, proposal, reason)
    return redirect(portal, "/decisions")


def tell_deciders(portal: Portal, viewer: Viewer, later: BackgroundTasks, kind: str) -> Response:
    """After a proposal: tell whoever decides, and show it among the decisions."""
    told = notices.deciders(portal.database, kind)
    portal.tell(
        later, told, f"A proposal waits for your decision: {proposals.KINDS[kind]}.", "/decisions", viewer
    )
    return redirect(portal, "/decisions")


MOST_ITEMSETS = 500
ITEMSETS: Final = "data/itemsets.parquet"


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
        if release.method != "notes" or ITEMSETS not in json.loads(row["files"]):
            continue
        if not row["passed"] or row["stopped"]:
            continue
        with suppress(releases.Refused), releases.confirmed_copy(row, ITEMSETS)[0] as copy:
            rows = [(" & ".join(items), count) for items, count in pl.read_parquet(copy).iter_rows()]
            wanted = find.casefold()
            fitting = [each for each in rows if wanted in each[0].casefold()][:MOST_ITEMSETS]
            found.append({**row, "rows": fitting, "guarantee": release.guarantee})
    return page(request, "catalogue.html", catalogues=found, find=find)
