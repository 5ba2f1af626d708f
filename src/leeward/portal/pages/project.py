"""My projects, and a project: members, plan, allotment, conversation."""

from __future__ import annotations

import json
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, BackgroundTasks, Form, Request
from starlette.responses import RedirectResponse, Response

from leeward.portal import accounts, journal, notices, passwords, people, sessions, stopping, tries
from leeward.portal.guards import Asker, Portal, Text, ThisPortal, need
from leeward.portal.indexes import Unknown
from leeward.portal.oidc import SignInRefused, address_of
from leeward.portal.people import everybody
from leeward.portal.permissions import PUBLIC
from leeward.portal.rendering import page, redirect
from leeward.portal.settings import Settings
from leeward.portal.store import fetch_all, now, reading, tables, writing

router = APIRouter(include_in_schema=False)
KNOWN_HOURS = 90 * 24
"""How long a browser keeps the cookie that somebody signed in by a name with it."""


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
    people.say(portal.database, viewer, project, text)
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


@router.get("/sign-in", dependencies=need(PUBLIC))
def show_sign_in(request: Request, portal: ThisPortal) -> Response:
    """The provider's button, and the local form where there are local accounts."""
    return sign_in_page(request, portal, 200, "")


@router.post("/sign-in", dependencies=need(PUBLIC, signs_in=True))
def sign_in(request: Request, portal: ThisPortal, login: Text, password: Text) -> Response:
    if not portal.settings.local_accounts:
        raise Unknown
    login, known = login[:200], f"{portal.settings.cookie}-known"
    cookie = request.cookies.get(known, "")
    row = passwords.sign_in(portal.database, login, password, request.state.address, cookie)
    if row is None:
        fault = "Name and password do not fit. After five tries wait a quarter of an hour."
        return sign_in_page(request, portal, 403, fault)
    with reading(portal.database) as connection:
        second = accounts.has_second_factor(connection, row["id"])
    if second:
        reply: Response = page(request, "code.html", fault="")
        with writing(portal.database) as connection:
            kept = json.dumps({"person": row["id"]})
            keep_cookie(reply, portal.settings, sessions.begin(connection, portal.settings, None, login=kept))
    else:
        reply = enter(request, portal, row["id"], None)
    keep_cookie(reply, portal.settings, tries.cookie_of(portal.database, login), known, KNOWN_HOURS)
    return reply


@router.get("/sign-in/provider", dependencies=need(PUBLIC))
def begin_at_provider(portal: ThisPortal) -> Response:
    """To the provider; what belongs to this sign-in is kept in a session of this browser."""
    if portal.provider is None:
        raise Unknown
    begun = portal.provider.begin()
    with writing(portal.database, durable=False) as connection:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.ends < now()))
        secret = sessions.begin(connection, portal.settings, None, login=begun.kept)
    reply = RedirectResponse(begun.address, 303)
    keep_cookie(reply, portal.settings, secret)
    return reply


@router.get("/sign-in/callback", dependencies=need(PUBLIC))
def return_from_provider(request: Request, portal: ThisPortal, state: str = "", code: str = "") -> Response:
    """Back from the provider: the session that began it must be this one, once."""
    if portal.provider is None:
        raise Unknown
    secret = request.cookies.get(portal.settings.cookie, "")
    kept = take_login(portal, secret)
    try:
        claims = portal.provider.finish(kept, state, code)
    except SignInRefused:
        with writing(portal.database) as connection:
            journal.record(connection, "sign-in failed", how="provider")
        raise
    settings = portal.provider.provider
    name = claims.get("name")
    shown = name if isinstance(name, str) and name.strip() else "(no name)"
    with writing(portal.database) as connection:
        row = people.admit(connection, settings.issuer, claims["sub"], shown[:100], address_of(claims))
        if row is not None and settings.roles_claim is not None:
            roles = people.roles_from_claims(claims, settings.roles_claim, settings.roles)
            people.set_house_roles(connection, row["id"], roles, "provider")
    if row is None:
        raise SignInRefused("this account was closed")
    return enter(request, portal, row["id"], claims)


def take_login(portal: Portal, secret: str) -> str | None:
    """Remove and return the session's state of this sign-in; None if it began none."""
    if not secret:
        return None
    found = tables.sessions
    with writing(portal.database) as connection:
        mine = (found.c.id == sessions.hash_of(secret)) & found.c.login.is_not(None) & (found.c.ends > now())
        kept = connection.execute(sa.select(found.c.login).where(mine)).scalar()
        connection.execute(found.update().where(mine).values(login=None))
    return kept


@router.post("/sign-out", dependencies=need("own account"))
def sign_out(request: Request, portal: ThisPortal) -> Response:
    sessions.end(portal.database, request.cookies.get(portal.settings.cookie, ""))
    reply = redirect(portal, "/sign-in")
    reply.delete_cookie(
        portal.settings.cookie, path="/", secure=portal.settings.secure, httponly=True, samesite="lax"
    )
    return reply


@router.get("/help", dependencies=need(PUBLIC))
def show_help(request: Request) -> Response:
    return page(request, "help.html")


def sign_in_page(request: Request, portal: Portal, status: int, fault: str) -> Response:
    settings = portal.settings
    provider = None if settings.provider is None else settings.provider.name
    return page(
        request, "sign_in.html", status, provider=provider, local=settings.local_accounts, fault=fault
    )


def enter(request: Request, portal: Portal, person: str, claims: object) -> Response:
    old = request.cookies.get(portal.settings.cookie)
    with writing(portal.database) as connection:
        secret = sessions.renew(connection, portal.settings, old, person, claims)
    reply = redirect(portal, "/")
    keep_cookie(reply, portal.settings, secret)
    return reply


def keep_cookie(
    reply: Response, settings: Settings, secret: str, name: str = "", hours: int | None = None
) -> None:
    """A cookie, that of the session unless named, for this host alone, out of scripts' reach, not sent along from
    other sites' forms."""
    reply.set_cookie(
        name or settings.cookie, secret, path="/", secure=settings.secure, httponly=True, samesite="lax",
        max_age=3600 * (hours or settings.most_hours),
    )  # fmt: skip
