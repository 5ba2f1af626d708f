"""Audit: the ledgers' logs and the portal's journal, their chains checked; heads to keep elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, BackgroundTasks, Form, Request
from starlette.responses import Response, StreamingResponse

from leeward.errors import BadInput, LeewardError
from leeward.portal import accounts, faults, journal, proposals, tries
from leeward.portal.backup import last_backup
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.logs import Wanted
from leeward.portal.pages.custody import show_link, tell_deciders
from leeward.portal.people import everybody, name_of
from leeward.portal.permissions import HOUSE_ROLES
from leeward.portal.rendering import page, redirect
from leeward.portal.store import fetch_one, tables, writing
from leeward.queries.ledger import auditing, families, spending
from leeward.queries.ledger.families import LedgerInconsistent

router = APIRouter(include_in_schema=False)
MOST_ENTRIES = 200


@router.get("/audit", dependencies=need("read log"))
def show_audit(
    request: Request,
    portal: ThisPortal,
    viewer: Asker,
    index: str = "",
    event: str = "",
    find: str = "",
    before: str = "",
    again: bool = False,
) -> Response:
    """The log with filters; a lead sees the entries of own projects. `again`: every entry is checked once more."""
    everything = viewer.reaches_all("read log")
    audits = [_audit_index(portal, row, again) for row in portal.indexes.rows()] if everything else []
    wanted = Wanted(portal.indexes, viewer, index, event, find)
    entries, following = wanted.part(before, MOST_ENTRIES, newest=True)
    own = journal.check(portal.database, again=again) if everything else None
    return page(
        request, "audit.html", audits=audits, entries=entries, journal=own, before=following,
        indexes=portal.indexes.rows(), chosen=index, event=event, find=find, again=again,
    )  # fmt: skip


@router.get("/audit/log.ndjson", dependencies=need("read log"))
def download_log(portal: ThisPortal, viewer: Asker, index: str = "") -> Response:
    """The same entries, oldest first, a line of JSON each."""

    def lines() -> Iterator[str]:
        place: str | None = ""
        while place is not None:
            entries, place = Wanted(portal.indexes, viewer, index).part(place, 10 * MOST_ENTRIES)
            yield from (json.dumps(each, sort_keys=True, ensure_ascii=False) + "\n" for each in entries)

    return StreamingResponse(
        lines(),
        media_type="application/x-ndjson",
        headers={"content-disposition": 'attachment; filename="log.ndjson"'},
    )


def _audit_index(portal: Portal, row: dict[str, Any], again: bool) -> dict[str, Any]:
    """A whole audit, or that the entries since the last look follow those that were checked, with the accounts; where
    they do not, a whole one says what is wrong."""
    try:
        session = portal.indexes.session(row["id"])
        with suppress(LedgerInconsistent):
            known = None if again else families.state_of_log(session.ledger, row["data_set"])
            if known is not None:
                return {**row, "fault": None, "passed": True, "entries": known.entries, "head": known.head}
        return {**row, **auditing.audit(session.ledger, row["data_set"]).to_json(), "fault": None}
    except LeewardError as error:
        return {**row, "fault": faults.reason_of(error)[0], "passed": False, "checks": [], "head": ""}


@router.get("/admin", dependencies=need("see administration"))
def show_accounts(request: Request, portal: ThisPortal, viewer: Asker, fault: str = "") -> Response:
    """Accounts with their roles, and how the portal is: health, and faults by their number."""
    mine = tables.sessions.c.id == viewer.session
    session = fetch_one(portal.database, sa.select(tables.sessions).where(mine))
    local = portal.settings.local_accounts
    refused = tries.refused_now(portal.database) if local else []
    accounts = everybody(portal.database)
    names = {tries.keyed_hash(portal.database, each["subject"]): each["name"] for each in accounts if refused}
    claims = None if session is None or session["claims"] is None else json.loads(session["claims"])
    return page(
        request,
        "admin.html",
        accounts=accounts,
        refused=refused,
        names=names,
        roles=HOUSE_ROLES,
        claims=claims,
        provider=portal.settings.provider,
        local=local,
        health=_health(portal),
        faults=faults.newest(portal.database, fault),
        fault=fault,
        backup=last_backup(portal.settings.folder),
        may=viewer.may("administer"),
        database="SQLite in the portal's folder"
        if portal.settings.database is None
        else portal.database.place,
    )


def _health(portal: Portal) -> list[tuple[str, str]]:
    """Of each index whether it answers, or why not."""
    found = []
    for row in portal.indexes.rows():
        try:
            spending.left(portal.indexes.session(row["id"]).ledger, row["data_set"], None)
            found.append((row["name"], "answers"))
        except LeewardError as error:
            found.append((row["name"], faults.reason_of(error)[0]))
    return found


@router.post("/admin/accounts", dependencies=need("administer"))
def make_account(request: Request, portal: ThisPortal, viewer: Asker, login: Text, name: Text) -> Response:
    """Make a local account, and show the link with which its owner sets a password."""
    if not portal.settings.local_accounts:
        raise BadInput("local accounts are switched off; people sign in at the provider.")
    login, name = name_of(login, "login name"), name_of(name)
    _, secret = accounts.make_account(portal.database, login, name, viewer.person)
    return show_link(request, portal, name, secret)


@router.post("/admin/tries", dependencies=need("administer"))
def forgive_tries(portal: ThisPortal, viewer: Asker, place: Text, name: Text = "") -> Response:
    """Let somebody sign in again who tried too often."""
    tries.forgive(portal.database, name, place, viewer.person)
    return redirect(portal, "/admin")


@router.post("/admin/accounts/{person}/roles", dependencies=need("administer"))
def propose_roles(
    portal: ThisPortal,
    viewer: Asker,
    later: BackgroundTasks,
    person: str,
    reason: Text,
    roles: Annotated[list[str], Form()] = [],  # noqa: B006  (FastAPI copies it)
) -> Response:
    """Propose somebody's roles of the house, with an open account."""
    proposals.propose_account(portal.database, viewer, person, roles, reason)
    return tell_deciders(portal, viewer, later, "account")


@router.post("/admin/accounts/{person}/link", dependencies=need("administer"))
def renew_link(
    request: Request, portal: ThisPortal, viewer: Asker, later: BackgroundTasks, person: str, reason: Text
) -> Response:
    """A new set-up link: at once for somebody without any role, else as a proposal."""
    account = next((each for each in everybody(portal.database) if each["id"] == person), None)
    if account is None or account["roles"] or account["projects"]:
        proposals.propose_reset(portal.database, viewer, person, reason)
        return tell_deciders(portal, viewer, later, "reset")
    with writing(portal.database) as connection:
        secret = accounts.reset(connection, person, viewer.person)
    return show_link(request, portal, account["name"], secret)


@router.post("/admin/accounts/{person}/close", dependencies=need("administer"))
def close_account(portal: ThisPortal, viewer: Asker, person: str) -> Response:
    """Close an account at once; two people open it again."""
    accounts.close(portal.database, viewer, person)
    return redirect(portal, "/admin")
