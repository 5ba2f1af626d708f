"""My projects, and a project: members, plan, allotment, conversation."""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, BackgroundTasks, Form, Request
from starlette.responses import Response

from leeward.portal import notices, people, sessions, stopping
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.people import everybody
from leeward.portal.permissions import PUBLIC
from leeward.portal.rendering import page, redirect
from leeward.portal.store import fetch_all, tables

router = APIRouter(include_in_schema=False)


@router.get("/", dependencies=need("own account"))
def show_projects(request: Request, portal: ThisPortal, viewer: Asker) -> Response:
    """Projects as cards: index, answers, budget, members."""
    rows = people.projects_of(portal.database, viewer) if viewer.may("see projects") else []
    names_only = not viewer.memberships and viewer.house <= {"admin"}
    cards = [
        {
            **row,
            "balances": [] if names_only else portal.indexes.balances(row["id"]),
            "members": [] if names_only else people.members_of(portal.database, row["id"]),
            "answers": 0 if names_only else _answers(portal, row["id"]),
        }
        for row in rows
    ]
    accounts = everybody(portal.database) if viewer.may("make project") else []
    waiting = notices.waiting_for(portal.database, viewer)
    return page(
        request, "projects.html", cards=cards, accounts=accounts, names_only=names_only, waiting=waiting
    )


def _answers(portal: Portal, project: str) -> int:
    answers = tables.answers.c
    asked = sa.select(sa.func.count(answers.id).label("number")).where(answers.project == project)
    return sum(row["number"] for row in fetch_all(portal.database, asked))


@router.post("/projects", dependencies=need("make project"))
def make_project(
    portal: ThisPortal, viewer: Asker, name: Text, plan: Text, ethics: Text, lead: Text
) -> Response:
    project = people.make_project(portal.database, viewer, name, plan, ethics, lead)
    return redirect(portal, f"/projects/{project}")


@router.get("/projects/{project}", dependencies=need("see projects"))
def show_project(request: Request, portal: ThisPortal, viewer: Asker, project: str) -> Response:
    row = people.project_of(portal.database, viewer, project, "see projects")
    if not viewer.may_in("price", project) and viewer.house <= {"admin"}:
        return page(request, "project.html", project=row, names_only=True)
    own = [each for each in sessions.tokens_of(portal.database, viewer) if each["project"] == project]
    return page(
        request,
        "project.html",
        project=row,
        names_only=False,
        members=people.members_of(portal.database, project),
        balances=portal.indexes.balances(project),
        messages=people.conversation(portal.database, project),
        indexes=portal.indexes.rows(),
        tokens=own,
        new_token=None,
        member=project in viewer.memberships,
        stopped=stopping.stopped(portal.database).get(("project", project)),
    )


@router.post("/projects/{project}/members", dependencies=need("invite"))
def change_member(portal: ThisPortal, viewer: Asker, project: str, login: Text, role: Text) -> Response:
    """Invite somebody who has an account, change or take away a role."""
    people.project_of(portal.database, viewer, project, "invite")
    provider = portal.settings.provider
    issuer = None if provider is None else provider.issuer
    people.change_member(portal.database, viewer, project, login.strip(), role, issuer)
    return redirect(portal, f"/projects/{project}")


@router.post("/projects/{project}/messages", dependencies=need("ask allotment"))
def say(portal: ThisPortal, viewer: Asker, later: BackgroundTasks, project: str, text: Text) -> Response:
    """Say something to the custodians, such as a request for more; it grants nothing."""
    people.project_of(portal.database, viewer, project, "ask allotment")
    if people.say(portal.database, viewer, project, text):  # else the one before waits already
        members = [each["id"] for each in people.members_of(portal.database, project)]
        told = notices.holders(portal.database, ("custodian",)) if viewer.person in members else members
        portal.tell(later, told, "A message waits for you.", f"/projects/{project}", viewer)
    return redirect(portal, f"/projects/{project}")


@router.post("/projects/{project}/tokens", dependencies=need("price"))
def make_token(
    request: Request,
    portal: ThisPortal,
    viewer: Asker,
    project: str,
    scope: Text,
    name: Text,
    days: Annotated[int, Form()],
) -> Response:
    """Create a token of the viewer for a program; shown once."""
    row = people.project_of(portal.database, viewer, project, "price")
    made, secret = sessions.make_token(portal.database, viewer, project, scope, days, name)
    return page(
        request, "token.html", what=row["name"], back=f"/projects/{project}", token=made, secret=secret
    )


@router.post("/tokens/{token}/end", dependencies=need("own account"))
def end_token(portal: ThisPortal, viewer: Asker, token: str) -> Response:
    sessions.end_token(portal.database, viewer, token)
    return redirect(portal, "/")


@router.get("/help", dependencies=need(PUBLIC))
def show_help(request: Request) -> Response:
    return page(request, "help.html")
