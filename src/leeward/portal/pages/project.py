"""My projects, and a project: members, plan, allotment, conversation."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import Response

from leeward.portal import projects, tokens
from leeward.portal.guards import check_permission, need, portal_of, viewer_of
from leeward.portal.people import everybody
from leeward.portal.replies import page, redirect
from leeward.portal.running import Portal
from leeward.portal.store import fetch_all, reading, tables

router = APIRouter(include_in_schema=False)


@router.get("/", dependencies=need("own account"))
def mine(request: Request) -> Response:
    """Projects as cards: index, answers, budget, members."""
    portal, viewer = portal_of(request), viewer_of(request)
    rows = projects.projects_of(portal.database, viewer) if viewer.may("see projects") else []
    names_only = not viewer.memberships and viewer.house <= {"admin"}
    cards = [
        {
            **row,
            "balances": [] if names_only else portal.indexes.balances(row["id"]),
            "members": [] if names_only else projects.members_of(portal.database, row["id"]),
            "answers": 0 if names_only else _answers(portal, row["id"]),
        }
        for row in rows
    ]
    accounts = []
    if viewer.may("make project"):
        with reading(portal.database) as connection:
            accounts = everybody(connection)
    return page(request, "projects.html", cards=cards, accounts=accounts, names_only=names_only)


def _answers(portal: Portal, project: str) -> int:
    with reading(portal.database) as connection:
        asked = (
            sa.select(sa.func.count()).select_from(tables.answers).where(tables.answers.c.project == project)
        )
        return int(connection.execute(asked).scalar() or 0)


@router.post("/projects", dependencies=need("make project"))
def make(request: Request) -> Response:
    """A project with its lead."""
    form = request.state.form
    database, viewer = portal_of(request).database, viewer_of(request)
    project = projects.make_project(
        database, viewer, form["name"], form["plan"], form["ethics"], form["lead"]
    )
    return redirect(request, f"/projects/{project}")


@router.get("/projects/{project}", dependencies=need("see projects"))
def show(request: Request, project: str) -> Response:
    """A project."""
    portal, viewer = portal_of(request), viewer_of(request)
    row = projects.project_of(portal.database, viewer, project, "see projects")
    if not viewer.may_in("price", project) and viewer.house <= {"admin"}:
        return page(request, "project.html", project=row, names_only=True)
    with reading(portal.database) as connection:
        indexes = fetch_all(connection, sa.select(tables.indexes).order_by(tables.indexes.c.name))
    own = [each for each in tokens.tokens_of(portal.database, viewer) if each["project"] == project]
    return page(
        request,
        "project.html",
        project=row,
        names_only=False,
        members=projects.members_of(portal.database, project),
        balances=portal.indexes.balances(project),
        messages=projects.conversation(portal.database, project),
        indexes=indexes,
        tokens=own,
        new_token=None,
        member=project in viewer.memberships,
    )


@router.post("/projects/{project}/members", dependencies=need("invite"))
def members(request: Request, project: str) -> Response:
    """Invite somebody who has an account, change or take away a role."""
    portal, viewer, form = portal_of(request), viewer_of(request), request.state.form
    projects.project_of(portal.database, viewer, project, "invite")
    projects.change_member(portal.database, viewer, project, form["login"].strip(), form["role"])
    return redirect(request, f"/projects/{project}")


@router.post("/projects/{project}/messages", dependencies=need("ask allotment"))
def say(request: Request, project: str) -> Response:
    """Say something to the custodians, such as a request for more; it grants nothing."""
    portal, viewer = portal_of(request), viewer_of(request)
    projects.project_of(portal.database, viewer, project, "ask allotment")
    projects.say(portal.database, viewer, project, request.state.form["text"])
    return redirect(request, f"/projects/{project}")


@router.post("/projects/{project}/tokens", dependencies=need("price"))
def make_token(request: Request, project: str) -> Response:
    """A token of one's own for a program; shown once."""
    portal, viewer, form = portal_of(request), viewer_of(request), request.state.form
    row = projects.project_of(portal.database, viewer, project, "price")
    check_permission(viewer, "own account")
    days = int(form["days"]) if form["days"].isdecimal() and len(form["days"]) < 4 else 0
    made, secret = tokens.make_token(portal.database, viewer, project, form["scope"], days, form["name"])
    return page(request, "token.html", project=row, token=made, secret=secret)


@router.post("/tokens/{token}/end", dependencies=need("own account"))
def end_token(request: Request, token: str) -> Response:
    """End a token of one's own."""
    portal = portal_of(request)
    tokens.end_token(portal.database, viewer_of(request), token)
    return redirect(request, "/")
