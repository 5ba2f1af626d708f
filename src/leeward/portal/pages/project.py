"""My projects, and a project: members, plan, allotment, conversation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from leeward.portal import notices, people, sessions, stopping
from leeward.portal.guards import need
from leeward.portal.people import everybody
from leeward.portal.permissions import PUBLIC
from leeward.portal.visit import Here, Text

router = APIRouter(include_in_schema=False)


@router.get("/", dependencies=need("own account"))
def show_projects(here: Here) -> Response:
    """Projects as cards: index, answers, budget, members."""
    rows = people.projects_of(here.database, here.viewer) if here.viewer.may("see projects") else []
    names_only = not here.viewer.memberships and here.viewer.house <= {"admin"}
    cards = [
        {
            **row,
            "balances": [] if names_only else here.indexes.balances(row["id"]),
            "members": [] if names_only else people.members_of(here.database, row["id"]),
            "answers": 0 if names_only else here.asking.total_of(row["id"])["number"],
        }
        for row in rows
    ]
    accounts = everybody(here.database) if here.viewer.may("make project") else []
    waiting = notices.waiting_for(here.database, here.viewer)
    return here.page("projects.html", cards=cards, accounts=accounts, names_only=names_only, waiting=waiting)


@router.post("/projects", dependencies=need("make project"))
def make_project(here: Here, name: Text, plan: Text, ethics: Text, lead: Text) -> Response:
    project = people.make_project(here.database, here.viewer, name, plan, ethics, lead)
    return here.redirect(f"/projects/{project}")


@router.get("/projects/{project}", dependencies=need("see projects"))
def show_project(here: Here, project: str) -> Response:
    if not here.viewer.may_in("price", project) and here.viewer.house <= {"admin"}:
        return here.page("project.html", names_only=True)
    own = [each for each in sessions.tokens_of(here.database, here.viewer) if each["project"] == project]
    return here.page(
        "project.html",
        names_only=False,
        members=people.members_of(here.database, project),
        balances=here.indexes.balances(project),
        messages=people.conversation(here.database, project),
        indexes=here.indexes.rows(),
        tokens=own,
        member=project in here.viewer.memberships,
        stopped=stopping.stopped(here.database).get(("project", project)),
    )


@router.post("/projects/{project}/members", dependencies=need("invite"))
def change_member(here: Here, project: str, login: Text, role: Text) -> Response:
    """Invite somebody who has an account, change or take away a role."""
    provider = here.settings.provider
    issuer = None if provider is None else provider.issuer
    people.change_member(here.database, here.viewer, project, login.strip(), role, issuer)
    return here.redirect(f"/projects/{project}")


@router.post("/projects/{project}/messages", dependencies=need("ask allotment"))
def say(here: Here, project: str, text: Text) -> Response:
    """Say something to the custodians, such as a request for more; it grants nothing."""
    if people.say(here.database, here.viewer, project, text):  # else the one before waits already
        members = [each["id"] for each in people.members_of(here.database, project)]
        told = notices.holders(here.database, ("custodian",)) if here.viewer.person in members else members
        here.tell(told, "A message waits for you.", f"/projects/{project}")
    return here.redirect(f"/projects/{project}")


@router.post("/projects/{project}/tokens", dependencies=need("price"))
def make_token(here: Here, project: str, scope: Text, name: Text, days: Annotated[int, Form()]) -> Response:
    """Create a token of the viewer for a program; shown once."""
    made, secret = sessions.make_token(here.database, here.viewer, project, scope, days, name)
    what, back = here.project["name"], f"/projects/{project}"
    return here.page("token.html", what=what, back=back, token=made, secret=secret)


@router.post("/tokens/{token}/end", dependencies=need("own account"))
def end_token(here: Here, token: str) -> Response:
    sessions.end_token(here.database, here.viewer, token)
    return here.redirect("/")


@router.get("/help", dependencies=need(PUBLIC))
def show_help(here: Here) -> Response:
    return here.page("help.html")
