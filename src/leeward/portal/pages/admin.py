"""Administration: accounts, roles, what the provider said about me, health and the age of the backup."""

from __future__ import annotations

import json

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import Response

from leeward.errors import BadInput, LeewardError
from leeward.portal import journal, passwords
from leeward.portal.backup import last_backup
from leeward.portal.guards import need, portal_of, viewer_of
from leeward.portal.people import everybody, name_of, set_house_roles
from leeward.portal.permissions import HOUSE_ROLES
from leeward.portal.replies import page, redirect
from leeward.portal.running import Portal
from leeward.portal.store import fetch_one, now, reading, tables, writing

router = APIRouter(include_in_schema=False)


@router.get("/admin", dependencies=need("see administration"))
def show(request: Request) -> Response:
    """Accounts with their roles, and how the portal is."""
    portal, viewer = portal_of(request), viewer_of(request)
    with reading(portal.database) as connection:
        accounts = everybody(connection)
        session = fetch_one(
            connection, sa.select(tables.sessions).where(tables.sessions.c.id == viewer.session)
        )
    claims = None if session is None or session["claims"] is None else json.loads(session["claims"])
    return page(
        request,
        "admin.html",
        accounts=accounts,
        roles=HOUSE_ROLES,
        claims=claims,
        provider=portal.settings.provider,
        local=portal.settings.local_accounts,
        health=_health(portal),
        backup=last_backup(portal.settings.folder),
        may=viewer.may("administer"),
        database="SQLite in the portal's folder"
        if portal.settings.database is None
        else portal.database.place,
    )


def _health(portal: Portal) -> list[tuple[str, str]]:
    found = []
    for row in portal.indexes.rows():
        try:
            portal.indexes.session(row["id"])
            found.append((row["name"], "answers"))
        except LeewardError as error:
            found.append((row["name"], type(error).__name__))
    return found


@router.post("/admin/accounts", dependencies=need("administer"))
def make_account(request: Request) -> Response:
    """A local account."""
    portal, form = portal_of(request), request.state.form
    if not portal.settings.local_accounts:
        raise BadInput("local accounts are switched off; people sign in at the provider.")
    login, name = name_of(form["login"], "login name"), name_of(form["name"])
    passwords.make_account(portal.database, login, name, form["password"], viewer_of(request).person)
    return redirect(request, "/admin")


@router.post("/admin/accounts/{person}", dependencies=need("administer"))
def change_account(request: Request, person: str) -> Response:
    """Roles of the house of somebody else, and whether the account is open."""
    portal, viewer, form = portal_of(request), viewer_of(request), request.state.form
    if person == viewer.person:
        raise BadInput("nobody changes their own roles; another administrator does.")
    wanted = [role for role in request.state.lists.get("roles", []) if role]
    active = form.get("active") == "yes"
    with writing(portal.database) as connection:
        changed = connection.execute(
            tables.people.update().where(tables.people.c.id == person).values(active=active)
        ).rowcount
        if not changed:
            raise BadInput("there is no such account.")
        set_house_roles(connection, person, wanted, viewer.person)
        journal.record(
            connection, "account opened" if active else "account closed", person=person, by=viewer.person
        )
        if not active:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.person == person))
            connection.execute(
                tables.tokens.update().where(tables.tokens.c.person == person).values(revoked=now())
            )
    return redirect(request, "/admin")
