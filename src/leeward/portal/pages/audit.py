"""Audit: the ledgers' logs and the portal's journal, their chains checked; heads to keep elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from leeward.errors import BadInput, LeewardError
from leeward.portal import accounts, faults, journal, proposals, tries
from leeward.portal.backup import last_backup
from leeward.portal.guards import need
from leeward.portal.logs import Wanted
from leeward.portal.pages.custody import show_link, tell_deciders
from leeward.portal.people import everybody, name_of
from leeward.portal.permissions import HOUSE_ROLES
from leeward.portal.store import tables, writing
from leeward.portal.store.rows import names_of, row_of
from leeward.portal.visit import Here, Text, Texts, attached
from leeward.queries.ledger import auditing, families, spending
from leeward.queries.ledger.families import LedgerInconsistent

router = APIRouter(include_in_schema=False)
MOST_ENTRIES = 200


@router.get("/audit", dependencies=need("read log"))
def show_audit(
    here: Here, index: str = "", event: str = "", find: str = "", before: str = "", again: bool = False
) -> Response:
    """The log with filters; a lead sees the entries of own projects. `again`: every entry is checked once more."""
    everything = here.viewer.reaches_all("read log")
    audits = [_audit_index(here, row, again) for row in here.indexes.rows()] if everything else []
    wanted = Wanted(here.indexes, here.viewer, index, event, find)
    entries, following = wanted.part(before, MOST_ENTRIES, newest=True)
    own = journal.check(here.database, again=again) if everything else None
    named = (tables.people, tables.projects, tables.indexes, tables.releases)
    names = {key: name for table in named for key, name in names_of(here.database, table).items()}
    return here.page(
        "audit.html", audits=audits, entries=entries, names=names, journal=own, before=following,
        indexes=here.indexes.rows(), chosen=index, event=event, find=find, again=again,
    )  # fmt: skip


@router.get("/audit/log.ndjson", dependencies=need("read log"))
def download_log(here: Here, index: str = "") -> Response:
    """The same entries, oldest first, a line of JSON each."""

    def lines() -> Iterator[str]:
        place: str | None = ""
        while place is not None:
            entries, place = Wanted(here.indexes, here.viewer, index).part(place, 10 * MOST_ENTRIES)
            yield from (json.dumps(each, sort_keys=True, ensure_ascii=False) + "\n" for each in entries)

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=attached("log.ndjson"))


def _audit_index(here: Here, row: dict[str, Any], again: bool) -> dict[str, Any]:
    """A whole audit, or that the entries since the last look follow those that were checked, with the accounts; where
    they do not, a whole one says what is wrong."""
    try:
        session = here.indexes.session(row["id"])
        with suppress(LedgerInconsistent):
            known = None if again else families.state_of_log(session.ledger, row["data_set"])
            if known is not None:
                return {**row, "fault": None, "passed": True, "entries": known.entries, "head": known.head}
        return {**row, **auditing.audit(session.ledger, row["data_set"]).to_json(), "fault": None}
    except LeewardError as error:
        return {**row, "fault": faults.reason_of(error)[0], "passed": False, "checks": [], "head": ""}


@router.get("/admin", dependencies=need("see administration"))
def show_accounts(here: Here, fault: str = "") -> Response:
    """Accounts with their roles, and how the portal is: health, and faults by their number."""
    local = here.settings.local_accounts
    refused = tries.refused_now(here.database) if local else []
    accounts = everybody(here.database)
    names = {tries.keyed_hash(here.database, each["subject"]): each["name"] for each in accounts if refused}
    return here.page(
        "admin.html",
        accounts=accounts,
        refused=refused,
        names=names,
        roles=HOUSE_ROLES,
        claims=row_of(here.database, tables.sessions, str(here.viewer.session))["claims"],
        provider=here.settings.provider,
        local=local,
        health=_health(here),
        faults=faults.newest(here.database, fault),
        fault=fault,
        backup=last_backup(here.settings.folder),
        may=here.viewer.may("administer"),
        database="SQLite in the portal's folder" if here.settings.database is None else here.database.place,
    )


def _health(here: Here) -> list[tuple[str, str]]:
    """Of each index whether it answers, or why not."""
    found = []
    for row in here.indexes.rows():
        try:
            spending.left(here.indexes.session(row["id"]).ledger, row["data_set"], None)
            found.append((row["name"], "answers"))
        except LeewardError as error:
            found.append((row["name"], faults.reason_of(error)[0]))
    return found


@router.post("/admin/accounts", dependencies=need("administer"))
def make_account(here: Here, login: Text, name: Text) -> Response:
    """Make a local account, and show the link with which its owner sets a password."""
    if not here.settings.local_accounts:
        raise BadInput("local accounts are switched off; people sign in at the provider.")
    login, name = name_of(login, "login name"), name_of(name)
    _, secret = accounts.make_account(here.database, login, name, here.viewer.person)
    return show_link(here, name, secret)


@router.post("/admin/tries", dependencies=need("administer"))
def forgive_tries(here: Here, place: Text, name: Text = "") -> Response:
    """Let somebody sign in again who tried too often."""
    tries.forgive(here.database, name, place, here.viewer.person)
    return here.redirect("/admin")


@router.post("/admin/accounts/{person}/roles", dependencies=need("administer"))
def propose_roles(here: Here, person: str, reason: Text, roles: Texts) -> Response:
    proposals.propose_account(here.database, here.viewer, person, roles, reason)
    return tell_deciders(here, "account")


@router.post("/admin/accounts/{person}/link", dependencies=need("administer"))
def renew_link(here: Here, person: str, reason: Text) -> Response:
    """A new set-up link: at once for somebody without any role, else as a proposal."""
    account = next((each for each in everybody(here.database) if each["id"] == person), None)
    if account is None or account["roles"] or account["projects"]:
        proposals.propose_reset(here.database, here.viewer, person, reason)
        return tell_deciders(here, "reset")
    with writing(here.database) as connection:
        secret = accounts.reset(connection, person, here.viewer.person)
    return show_link(here, account["name"], secret)


@router.post("/admin/accounts/{person}/close", dependencies=need("administer"))
def close_account(here: Here, person: str) -> Response:
    """Close an account at once; two people open it again."""
    accounts.close(here.database, here.viewer, person)
    return here.redirect("/admin")
