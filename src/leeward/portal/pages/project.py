"""My projects, and a project: members, plan, allotment, conversation."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from leeward.portal import journal, passwords, people, sessions
from leeward.portal.guards import Portal, check_permission, need, portal_of, viewer_of
from leeward.portal.indexes import Unknown
from leeward.portal.oidc import SignInRefused
from leeward.portal.people import everybody
from leeward.portal.permissions import PUBLIC
from leeward.portal.rendering import page, redirect
from leeward.portal.settings import Settings
from leeward.portal.store import fetch_all, now, tables, writing

router = APIRouter(include_in_schema=False)


@router.get("/", dependencies=need("own account"))
def show_projects(request: Request) -> Response:
    """Projects as cards: index, answers, budget, members."""
    portal, viewer = portal_of(request), viewer_of(request)
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
    return page(request, "projects.html", cards=cards, accounts=accounts, names_only=names_only)


def _answers(portal: Portal, project: str) -> int:
    answers = tables.answers.c
    asked = sa.select(sa.func.count(answers.id).label("number")).where(answers.project == project)
    return sum(row["number"] for row in fetch_all(portal.database, asked))


@router.post("/projects", dependencies=need("make project"))
def make_project(request: Request) -> Response:
    form = request.state.form
    database, viewer = portal_of(request).database, viewer_of(request)
    project = people.make_project(database, viewer, form["name"], form["plan"], form["ethics"], form["lead"])
    return redirect(request, f"/projects/{project}")


@router.get("/projects/{project}", dependencies=need("see projects"))
def show_project(request: Request, project: str) -> Response:
    portal, viewer = portal_of(request), viewer_of(request)
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
    )


@router.post("/projects/{project}/members", dependencies=need("invite"))
def change_member(request: Request, project: str) -> Response:
    """Invite somebody who has an account, change or take away a role."""
    portal, viewer, form = portal_of(request), viewer_of(request), request.state.form
    people.project_of(portal.database, viewer, project, "invite")
    people.change_member(portal.database, viewer, project, form["login"].strip(), form["role"])
    return redirect(request, f"/projects/{project}")


@router.post("/projects/{project}/messages", dependencies=need("ask allotment"))
def say(request: Request, project: str) -> Response:
    """Say something to the custodians, such as a request for more; it grants nothing."""
    portal, viewer = portal_of(request), viewer_of(request)
    people.project_of(portal.database, viewer, project, "ask allotment")
    people.say(portal.database, viewer, project, request.state.form["text"])
    return redirect(request, f"/projects/{project}")


@router.post("/projects/{project}/tokens", dependencies=need("price"))
def make_token(request: Request, project: str) -> Response:
    """Create a token of the viewer for a program; shown once."""
    portal, viewer, form = portal_of(request), viewer_of(request), request.state.form
    row = people.project_of(portal.database, viewer, project, "price")
    check_permission(viewer, "own account")
    days = int(form["days"]) if form["days"].isdecimal() and len(form["days"]) < 4 else 0
    made, secret = sessions.make_token(portal.database, viewer, project, form["scope"], days, form["name"])
    return page(request, "token.html", project=row, token=made, secret=secret)


@router.post("/tokens/{token}/end", dependencies=need("own account"))
def end_token(request: Request, token: str) -> Response:
    portal = portal_of(request)
    sessions.end_token(portal.database, viewer_of(request), token)
    return redirect(request, "/")


@router.get("/sign-in", dependencies=need(PUBLIC))
def show_sign_in(request: Request) -> Response:
    """The provider's button, and the local form where there are local accounts."""
    return _sign_in_page(request, 200, "")


@router.post("/sign-in", dependencies=need(PUBLIC, signs_in=True))
def sign_in(request: Request) -> Response:
    portal = portal_of(request)
    if not portal.settings.local_accounts:
        raise Unknown
    form = request.state.form
    login, password = form["login"][:200], form["password"]
    row = passwords.sign_in(portal.database, login, password, request.state.address)
    if row is None:
        return _sign_in_page(
            request, 403, "Name and password do not fit. After five tries wait a quarter of an hour."
        )
    return _enter(request, row["id"], None)


@router.get("/sign-in/provider", dependencies=need(PUBLIC))
def begin_at_provider(request: Request) -> Response:
    """To the provider; what belongs to this sign-in is kept in a session of this browser."""
    portal = portal_of(request)
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
def return_from_provider(request: Request, state: str = "", code: str = "") -> Response:
    """Back from the provider: the session that began it must be this one, once."""
    portal = portal_of(request)
    if portal.provider is None:
        raise Unknown
    secret = request.cookies.get(portal.settings.cookie, "")
    kept = take_login(request, secret)
    try:
        claims = portal.provider.finish(kept, state, code)
    except SignInRefused:
        with writing(portal.database) as connection:
            journal.record(connection, "sign-in failed", how="provider")
        raise
    settings = portal.provider.provider
    name, email = claims.get("name"), claims.get("email")
    shown = name if isinstance(name, str) and name.strip() else "(no name)"
    with writing(portal.database) as connection:
        row = people.admit(
            connection, settings.issuer, claims["sub"], shown[:100], email if isinstance(email, str) else None
        )
        if row is not None and settings.roles_claim is not None:
            roles = people.roles_from_claims(claims, settings.roles_claim, settings.roles)
            people.set_house_roles(connection, row["id"], roles, "provider")
    if row is None:
        raise SignInRefused("this account was closed")
    return _enter(request, row["id"], claims)


def take_login(request: Request, secret: str) -> str | None:
    """Remove and return the session's state of this sign-in; None if it began none."""
    if not secret:
        return None
    found = tables.sessions
    with writing(portal_of(request).database) as connection:
        mine = (found.c.id == sessions.hash_of(secret)) & found.c.login.is_not(None) & (found.c.ends > now())
        kept = connection.execute(sa.select(found.c.login).where(mine)).scalar()
        connection.execute(found.update().where(mine).values(login=None))
    return kept


@router.post("/sign-out", dependencies=need("own account"))
def sign_out(request: Request) -> Response:
    portal = portal_of(request)
    sessions.end(portal.database, request.cookies.get(portal.settings.cookie, ""))
    reply = redirect(request, "/sign-in")
    reply.delete_cookie(
        portal.settings.cookie, path="/", secure=portal.settings.secure, httponly=True, samesite="lax"
    )
    return reply


@router.get("/help", dependencies=need(PUBLIC))
def show_help(request: Request) -> Response:
    return page(request, "help.html")


def _sign_in_page(request: Request, status: int, fault: str) -> Response:
    settings = portal_of(request).settings
    provider = None if settings.provider is None else settings.provider.name
    return page(
        request, "sign_in.html", status, provider=provider, local=settings.local_accounts, fault=fault
    )


def _enter(request: Request, person: str, claims: object) -> Response:
    portal = portal_of(request)
    old = request.cookies.get(portal.settings.cookie)
    with writing(portal.database) as connection:
        secret = sessions.renew(connection, portal.settings, old, person, claims)
    reply = redirect(request, "/")
    keep_cookie(reply, portal.settings, secret)
    return reply


def keep_cookie(reply: Response, settings: Settings, secret: str) -> None:
    """A cookie for this host alone, out of scripts' reach, not sent along from other sites' forms."""
    reply.set_cookie(
        settings.cookie, secret, path="/", secure=settings.secure, httponly=True, samesite="lax",
        max_age=settings.most_hours * 3600,
    )  # fmt: skip
