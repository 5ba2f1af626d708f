"""For custodians: indexes with their budgets, and releases to publish."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl
import sqlalchemy as sa
from fastapi import APIRouter, Form
from starlette.responses import HTMLResponse, Response, StreamingResponse

from leeward.errors import LeewardError
from leeward.portal import accounts, faults, notices, people, proposals, releases, stopping
from leeward.portal.guards import need
from leeward.portal.indexes import child_folder
from leeward.portal.models import Allotment
from leeward.portal.people import everybody
from leeward.portal.store import tables
from leeward.portal.store.rows import Row, fetch_all, names_of, row_of
from leeward.portal.visit import Here, Text, Texts, attached
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
def show_indexes(here: Here) -> Response:
    """Indexes: what is public, the cap, who could spend what; and what is not protected."""
    allotments = fetch_all(here.database, sa.select(tables.allotments))
    ends = {(each["project"], each["index"]): each["ends"] for each in allotments}
    rows = here.indexes.rows()
    listed: list[dict[str, Any]] = []
    for row in rows:
        try:
            session = here.indexes.session(row["id"])
            left = spending.left(session.ledger, row["data_set"], None)
            allotted = budgets.allotments(session.ledger, row["data_set"])
        except LeewardError as error:
            listed.append({**row, "fault": faults.reason_of(error)[0]})
        else:
            state = {"fault": None, "meta": session.index.meta, "terms": session.terms}
            listed.append({**row, **state, "left": left, "allotted": allotted})
    folders = _folders(here.settings.index_folder, "index.json", rows)
    return here.page(
        "indexes.html",
        indexes=listed,
        stopped=stopping.stopped(here.database),
        names=names_of(here.database, tables.projects),
        ends=ends,
        folders=folders,
        ledgers=sorted(here.settings.ledgers),
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
def propose_index(here: Here, folder: Text, name: Text, reason: Text, ledger: Text = "") -> Response:
    proposals.propose_index(here.indexes, here.viewer, folder, name, ledger, reason)
    return tell_deciders(here, "index")


@router.post("/custody/allotments", dependencies=need("propose allotment"))
def propose_allotment(here: Here, allotment: Annotated[Allotment, Form()]) -> Response:
    proposals.propose_allotment(here.indexes, here.viewer, **allotment.model_dump())
    return tell_deciders(here, "allotment")


@router.get("/custody/releases", dependencies=need("see custody"))
def show_releases(here: Here) -> Response:
    """Releases that were published, and folders that may be proposed."""
    rows = releases.visible(here.database, here.viewer)
    accounts = everybody(here.database)
    return here.page(
        "custody_releases.html", releases=rows, accounts=accounts,
        folders=_folders(here.settings.release_folder, "share/release.json", rows),
    )  # fmt: skip


@router.post("/custody/releases", dependencies=need("propose release"))
def propose_release(
    here: Here, folder: Text, name: Text, ends: Text, reason: Text, recipients: Texts
) -> Response:
    here.portal.check_counts(child_folder(here.settings.release_folder, folder))
    proposals.propose_release(here.indexes, here.viewer, folder, name, recipients, ends, reason)
    return tell_deciders(here, "release")


@router.get("/custody/releases/{release}", dependencies=need("see custody"))
def show_release(here: Here, release: str) -> Response:
    """A release: manifest, guarantee, verification, recipients, downloads, and its report in a frame."""
    return _release_page(here, release, None)


@router.post("/custody/releases/{release}/verify", dependencies=need("see custody"))
def verify_release(here: Here, release: str) -> Response:
    """Verify it now, from its files alone."""
    found = releases.verify_again(here.database, releases.release_of(here.database, here.viewer, release))
    return _release_page(here, release, found)


def _release_page(here: Here, release: str, verification: Any) -> Response:
    row = releases.release_of(here.database, here.viewer, release)
    manifest = Release.open(row["folder"], compare=False).manifest
    names = names_of(here.database, tables.people)
    downloads = releases.downloads_of(here.database, row["id"])
    return here.page(
        "release.html",
        release=row,
        manifest=manifest,
        text=json.dumps({key: manifest[key] for key in ("method", "parameters", "records")}, indent=2),
        verification=verification,
        stopped=stopping.stopped(here.database).get(("release", row["id"])),
        recipients=releases.recipients_of(here.database, row["id"]),
        downloads=[{**each, "name": names.get(each["person"], "")} for each in downloads],
        files=row["files"],
        together=releases.together_of(row["folder"]),
    )


@router.get("/custody/releases/{release}/report", dependencies=need("see custody"))
def show_report(here: Here, release: str) -> Response:
    """The report, for a sandboxed frame: no script, nothing from elsewhere, no origin."""
    row = releases.release_of(here.database, here.viewer, release)
    return HTMLResponse(releases.report_of(row), headers=REPORT_HEADERS)


@router.post("/custody/stop", dependencies=need("stop"))
def stop(here: Here, kind: Text, what: Text, reason: Text) -> Response:
    """Stop downloads of a release, answers from an index, or questions of a project, at once."""
    stopping.stop(here.database, here.viewer, kind, what, reason)
    told = notices.holders(here.database, ("custodian", "approver"))
    here.tell(told, f"A {kind} was stopped.", "/")
    return here.redirect(PAGES[kind].format(what))


@router.post("/custody/start", dependencies=need("stop"))
def propose_start(here: Here, kind: Text, what: Text, reason: Text) -> Response:
    proposals.propose_start(here.database, here.viewer, kind, what, reason)
    return tell_deciders(here, "start")


@router.post("/custody/releases/{release}/recipients/{person}/end", dependencies=need("stop"))
def end_access(here: Here, release: str, person: str, reason: Text) -> Response:
    stopping.end_access(here.database, here.viewer, release, person, reason)
    return here.redirect(f"/custody/releases/{release}")


@router.post("/custody/allotments/lower", dependencies=need("stop"))
def lower_allotment(here: Here, project: Text, index: Text, epsilon: Text, reason: Text) -> Response:
    stopping.lower_allotment(here.indexes, here.viewer, project, index, epsilon, reason)
    return here.redirect(f"/projects/{project}")


PAGES: Final = {"release": "/custody/releases/{}", "index": "/custody/indexes", "project": "/projects/{}"}
"""Kind of what can be stopped -> its page."""


@router.get("/decisions", dependencies=need("see decisions"))
def show_decisions(here: Here, after: str = "") -> Response:
    """Proposals and decisions, with what somebody needs to know who decides."""
    found, following = proposals.proposals_of(here.database, here.viewer, after)
    rows = [{**row, "context": _context(here, row) if row["state"] == "open" else None} for row in found]
    return here.page("decisions.html", proposals=rows, after=following, on_accounts=proposals.ACCOUNTS)


def _context(here: Here, row: Row) -> dict[str, Any] | None:
    """What an approver needs to know of a release: what it gives away together with earlier ones; of an allotment: the
    project's plan and conversation, and who has what."""
    if row["kind"] == "release" and here.viewer.may("see custody"):
        try:
            return releases.together_of(Path(row["body"]["folder"]))
        except LeewardError as error:
            return {"fault": faults.reason_of(error)[0]}
    if row["kind"] != "allotment":
        return None
    index = row["body"]["index"]
    try:
        session = here.indexes.session(index)
        data_set = session.index.meta.id
        found = {
            "total": session.terms.total,
            "spent": spending.left(session.ledger, data_set, None).spent_epsilon,
            "allotted": [each for each in budgets.allotments(session.ledger, data_set) if each.project],
        }
    except LeewardError as error:
        found = {"fault": type(error).__name__}
    return {
        "fault": None,
        **found,
        "project": row_of(here.database, tables.projects, row["project"]),
        "names": names_of(here.database, tables.projects),
        "messages": people.conversation(here.database, row["project"])[-MOST_MESSAGES:],
    }


MOST_MESSAGES: Final = 5


def show_link(here: Here, name: str, secret: str) -> Response:
    """A set-up link, shown once to whoever hands it over."""
    address = accounts.address_of(here.settings, secret)
    return here.page("link.html", name=name, address=address)


@router.post("/decisions/{proposal}", dependencies=need("confirm"))
def decide(here: Here, proposal: str, verdict: Text, reason: Text) -> Response:
    row = proposals.proposal_of(here.database, proposal, proposals.KINDS)
    if verdict == "confirmed" and row["kind"] == "release":
        here.portal.check_counts(Path(row["body"]["folder"]))
    link = proposals.decide(here.indexes, here.viewer, proposal, verdict, reason)
    here.tell([row["proposer"]], f"A proposal of yours was {verdict}.", "/decisions")
    if link is not None:
        return show_link(here, row["body"]["name"], link)
    return here.redirect("/decisions")


@router.post("/admin/decisions/{proposal}", dependencies=need("confirm accounts"))
def decide_on_account(here: Here, proposal: str, verdict: Text, reason: Text) -> Response:
    """Confirm or decline roles of the house and set-up links; nothing else, as administrators may do this."""
    proposals.proposal_of(here.database, proposal, proposals.ACCOUNTS)
    return decide(here, proposal, verdict, reason)


@router.post("/decisions/{proposal}/withdraw", dependencies=need("see decisions"))
def withdraw(here: Here, proposal: str, reason: Text) -> Response:
    proposals.decide(here.indexes, here.viewer, proposal, "withdrawn", reason)
    return here.redirect("/decisions")


def tell_deciders(here: Here, kind: str) -> Response:
    """After a proposal: tell whoever decides, and show it among the decisions."""
    told = notices.deciders(here.database, kind)
    here.tell(told, f"A proposal waits for your decision: {proposals.KINDS[kind].title}.", "/decisions")
    return here.redirect("/decisions")


MOST_ITEMSETS = 500
ITEMSETS: Final = "data/itemsets.parquet"


@router.get("/releases", dependencies=need("download"))
def list_releases(here: Here) -> Response:
    rows = releases.visible(here.database, here.viewer)
    listed = [
        {**row, "release": Release.open(row["folder"], compare=False), "paths": row["files"]} for row in rows
    ]
    return here.page("releases.html", releases=listed)


@router.get("/releases/{release}/files/{path:path}", dependencies=need("download"))
def download(here: Here, release: str, path: str) -> Response:
    """A file of `share/`, by its entry in the manifest and its digest."""
    blocks = releases.read_file(here.database, here.viewer, release, path)
    name = path.rsplit("/", 1)[-1].replace('"', "")
    return StreamingResponse(blocks, media_type="application/octet-stream", headers=attached(name))


@router.get("/catalogue", dependencies=need("download"))
def show_catalogues(here: Here, find: str = "") -> Response:
    """Catalogues of itemsets that were published to me, with their noisy counts."""
    found = []
    for row in releases.visible(here.database, here.viewer):
        release = Release.open(row["folder"], compare=False)
        if release.method != "notes" or ITEMSETS not in row["files"]:
            continue
        if not row["passed"] or row["stopped"]:
            continue
        with suppress(releases.Refused), releases.confirmed_copy(row, ITEMSETS)[0] as copy:
            rows = [(" & ".join(items), count) for items, count in pl.read_parquet(copy).iter_rows()]
            wanted = find.casefold()
            fitting = [each for each in rows if wanted in each[0].casefold()][:MOST_ITEMSETS]
            found.append({**row, "rows": fitting, "guarantee": release.guarantee})
    return here.page("catalogue.html", catalogues=found, find=find)
