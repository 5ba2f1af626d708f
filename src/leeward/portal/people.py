"""People, their roles and memberships. A person is (issuer, subject); names and addresses are only shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.permissions import HOUSE_ROLES, PROJECT_ROLES, Viewer
from leeward.portal.store import Database, new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row, Unknown, fetch_all, fetch_one, row_of

LONGEST = 100
LOCAL = "local"
"""The issuer of accounts that are kept here."""


def name_of(text: str, what: str = "name") -> str:
    """A name that can be shown; BadInput otherwise."""
    text = text.strip()
    if not text or len(text) > LONGEST or not text.isprintable():
        raise BadInput(f"the {what} must have 1 to {LONGEST} printable characters.")
    return text


def admit(
    connection: sa.Connection, issuer: str, subject: str, name: str, email: str | None, make: bool = True,
    maker: str | None = None,
) -> Row | None:  # fmt: skip
    """The person with this issuer and subject, made on the first sign-in; None for a closed account (or `make` False
    and nobody there)."""
    people = tables.people.c
    asked = sa.select(tables.people).where(people.issuer == issuer, people.subject == subject)
    found = fetch_one(connection, asked)
    if found is not None:
        if found["active"]:
            connection.execute(
                tables.people.update().where(people.id == found["id"]).values(name=name, email=email)
            )
        return found if found["active"] else None
    if not make:
        return None
    row: Row = {
        "id": new_id(), "issuer": issuer, "subject": subject, "name": name, "email": email, "created": now(),
        "active": True, "maker": maker,
    }  # fmt: skip
    connection.execute(tables.people.insert().values(**row))
    journal.record(connection, "account made", person=row["id"], issuer=issuer, by=maker)
    return row


def viewer_of(connection: sa.Connection, person: str, **more: Any) -> Viewer | None:
    """A person with roles and memberships as they are now; None for nobody or a closed account."""
    people, roles, members = tables.people.c, tables.house_roles.c, tables.members.c
    row = connection.execute(sa.select(people.name).where(people.id == person, people.active)).first()
    if row is None:
        return None
    house = connection.scalars(sa.select(roles.role).where(roles.person == person))
    joined = connection.execute(sa.select(members.project, members.role).where(members.person == person))
    return Viewer(person, row.name, frozenset(house), {each.project: each.role for each in joined}, **more)


def check_roles(roles: Iterable[str]) -> list[str]:
    """Roles of the house, sorted; BadInput for another."""
    if not (wanted := set(roles)) <= set(HOUSE_ROLES):
        raise BadInput(f"a role of the house is {', '.join(HOUSE_ROLES)}.")
    return sorted(wanted)


def set_house_roles(connection: sa.Connection, person: str, roles: Iterable[str], by: str) -> None:
    wanted = check_roles(roles)
    of_house = tables.house_roles
    before = connection.execute(sa.select(of_house.c.role).where(of_house.c.person == person)).scalars().all()
    if sorted(before) == wanted:
        return
    connection.execute(of_house.delete().where(of_house.c.person == person))
    end_link(connection, person)
    for role in wanted:
        connection.execute(of_house.insert().values(person=person, role=role))
    journal.record(connection, "roles set", person=person, roles=wanted, by=by)


def end_link(connection: sa.Connection, person: str) -> None:
    """End a set-up link that was not used: whoever made it could otherwise take a role that was given since."""
    connection.execute(tables.links.delete().where(tables.links.c.person == person))


def end_tokens(connection: sa.Connection, person: str, project: str | None = None) -> None:
    """End a person's tokens, or those for a project."""
    tokens = tables.tokens
    mine = tokens.c.person == person
    if project is not None:
        mine &= tokens.c.project == project
    connection.execute(tokens.update().where(mine, tokens.c.revoked.is_(None)).values(revoked=now()))


def set_member(connection: sa.Connection, project: str, person: str, role: str | None, by: str) -> None:
    """A person's role in a project; None takes it away."""
    if role is not None and role not in PROJECT_ROLES:
        raise BadInput(f"a role in a project is {' or '.join(PROJECT_ROLES)}.")
    members = tables.members
    connection.execute(members.delete().where(members.c.project == project, members.c.person == person))
    if role is None:
        end_tokens(connection, person, project)  # or they would work again for somebody who is invited again
    else:
        end_link(connection, person)
        connection.execute(members.insert().values(project=project, person=person, role=role))
    journal.record(connection, "member set", project=project, person=person, role=role, by=by)


def everybody(database: Database) -> list[Row]:
    members, projects = tables.members.c, tables.projects.c
    asked = sa.select(members.person, members.role, projects.name).join(
        tables.projects, projects.id == members.project
    )
    with reading(database) as connection:
        rows = fetch_all(connection, sa.select(tables.people).order_by(tables.people.c.name))
        held = [(each.person, each.role) for each in connection.execute(sa.select(tables.house_roles))]
        joined = [(each.person, f"{each.role} of {each.name}") for each in connection.execute(asked)]
    return [
        {
            **row,
            "roles": sorted(role for person, role in held if person == row["id"]),
            "projects": sorted(text for person, text in joined if person == row["id"]),
        }
        for row in rows
    ]


def roles_from_claims(claims: Mapping[str, Any], claim: str, groups: Mapping[str, str]) -> list[str]:
    """The roles of the house that a provider's groups give; none where the claim is missing."""
    held = claims.get(claim)
    names = [held] if isinstance(held, str) else held if isinstance(held, list) else []
    return sorted({groups[name] for name in names if isinstance(name, str) and name in groups})


LONGEST_TEXT = 4000


def text_of(text: str, what: str, least: int = 1) -> str:
    """A text of a form, with line breaks; BadInput where it is missing or too long."""
    text = text.strip().replace("\r\n", "\n").replace("\x00", "")
    if not least <= len(text) <= LONGEST_TEXT:
        raise BadInput(f"{what} must have {least} to {LONGEST_TEXT:,} characters.")
    return text


def make_project(database: Database, viewer: Viewer, name: str, plan: str, ethics: str, lead: str) -> str:
    row = {
        "id": new_id(), "name": name_of(name, "project's name"), "plan": text_of(plan, "the plan"),
        "ethics": name_of(ethics, "ethics number"), "created": now(),
    }  # fmt: skip
    with writing(database) as connection:
        if fetch_one(connection, sa.select(tables.people).where(tables.people.c.id == lead)) is None:
            raise BadInput("there is no account of this lead.")
        connection.execute(tables.projects.insert().values(**row))
        journal.record(connection, "project made", project=row["id"], by=viewer.person)
        set_member(connection, row["id"], lead, "lead", viewer.person)
    return row["id"]


def projects_of(database: Database, viewer: Viewer, permission: str = "see projects") -> list[Row]:
    """The projects in which a permission is held, by name; filtered by membership in the database."""
    asked = sa.select(tables.projects).order_by(tables.projects.c.name)
    mine = viewer.projects(permission)
    if mine is not None:
        asked = asked.where(tables.projects.c.id.in_(mine))
    return fetch_all(database, asked)


def project_of(database: Database, viewer: Viewer, project: str, permission: str) -> Row:
    """A project in which a permission is held; Unknown for another one and for none, in the same words."""
    check_project(viewer, project, permission)
    return row_of(database, tables.projects, project)


def check_project(viewer: Viewer, project: str, permission: str) -> None:
    """Unknown for a project in which a permission is not held."""
    if not viewer.may_in(permission, project):
        raise Unknown


def with_people(table: sa.Table, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Columns of a table of what people are or did, with each one's identifier and name."""
    people = tables.people.c
    return sa.select(people.id, people.name, *columns).join(table, table.c.person == people.id)


def members_of(database: Database, project: str) -> list[Row]:
    members = tables.members.c
    asked = with_people(tables.members, members.role).where(members.project == project)
    return fetch_all(database, asked.order_by(members.role, tables.people.c.name))


def change_member(
    database: Database, viewer: Viewer, project: str, login: str, role: str, issuer: str | None = None
) -> None:
    """Invite somebody who has an account (by the exact login name of a local one, or an address that the provider
    `issuer` verified), or take a role away (`none`). BadInput for nobody; a lead stays until there is another one."""
    people, members = tables.people, tables.members
    if role not in {"researcher", "lead", "none"}:
        raise BadInput("a role in a project is researcher or lead.")
    with writing(database) as connection:
        asked = sa.select(people).where(people.c.active, (people.c.id == login) | _called(login, issuer))
        found = fetch_all(connection, asked)
        if len(found) != 1:
            raise BadInput(
                "there is no one account with this login name or address; only people with one are invited."
            )
        person = found[0]["id"]
        if person == viewer.person and role != "none" and viewer.memberships.get(project) != "lead":
            raise BadInput("you cannot invite yourself; ask the project's lead.")
        leads = connection.execute(
            sa.select(members.c.person).where(members.c.project == project, members.c.role == "lead")
        ).scalars().all()  # fmt: skip
        if role != "lead" and leads == [person]:
            raise BadInput("a project needs a lead; appoint another one first.")
        set_member(connection, project, person, None if role == "none" else role, viewer.person)


def _called(login: str, issuer: str | None) -> sa.ColumnElement[bool]:
    """Who is invited by a login name or, where there is a provider, by the address that it verified: an administrator
    can make a local account whose login name is somebody's address."""
    people = tables.people.c
    if issuer is not None and "@" in login:
        return (people.email == login) & (people.issuer == issuer)
    return (people.subject == login) & (people.issuer == LOCAL)


def say(database: Database, viewer: Viewer, project: str, text: str) -> bool:
    """Say something in a project's conversation; whether somebody else had the last word, or nobody."""
    row = {
        "id": new_id(), "project": project, "person": viewer.person, "time": now(),
        "text": text_of(text, "the message"),
    }  # fmt: skip
    messages = tables.messages.c
    said = sa.select(messages.person).where(messages.project == project)
    with writing(database) as connection:
        last = connection.scalar(said.order_by(messages.time.desc()).limit(1))
        connection.execute(tables.messages.insert().values(**row))
    return last != viewer.person


def conversation(database: Database, project: str) -> list[Row]:
    messages = tables.messages.c
    asked = with_people(tables.messages, messages.time, messages.text).where(messages.project == project)
    return fetch_all(database, asked.order_by(messages.time))
