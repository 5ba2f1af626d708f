"""Projects: members, a plan, messages, and what they were allotted."""

from __future__ import annotations

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.indexes import Unknown
from leeward.portal.people import name_of, set_member
from leeward.portal.permissions import Viewer
from leeward.portal.store import Database, fetch_all, fetch_one, new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row

LONGEST_TEXT = 4000


def text_of(text: str, what: str, least: int = 1) -> str:
    """A text of a form, with line breaks; BadInput where it is missing or too long."""
    text = text.strip().replace("\r\n", "\n").replace("\x00", "")
    if not least <= len(text) <= LONGEST_TEXT:
        raise BadInput(f"{what} must have {least} to {LONGEST_TEXT:,} characters.")
    return text


def make_project(database: Database, viewer: Viewer, name: str, plan: str, ethics: str, lead: str) -> str:
    """A project with its lead; returns its identifier."""
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
    with reading(database) as connection:
        return fetch_all(connection, asked)


def project_of(database: Database, viewer: Viewer, project: str, permission: str) -> Row:
    """A project in which a permission is held; Unknown for another one and for none, in the same words."""
    check_project(viewer, project, permission)
    with reading(database) as connection:
        found = fetch_one(connection, sa.select(tables.projects).where(tables.projects.c.id == project))
    if found is None:
        raise Unknown
    return found


def check_project(viewer: Viewer, project: str, permission: str) -> None:
    """Unknown for a project in which a permission is not held."""
    if not viewer.may_in(permission, project):
        raise Unknown


def members_of(database: Database, project: str) -> list[Row]:
    """Members with their names and roles."""
    members, people = tables.members, tables.people
    asked = (
        sa.select(people.c.id, people.c.name, members.c.role)
        .join(members, members.c.person == people.c.id)
        .where(members.c.project == project)
        .order_by(members.c.role, people.c.name)
    )
    with reading(database) as connection:
        return fetch_all(connection, asked)


def change_member(database: Database, viewer: Viewer, project: str, login: str, role: str) -> None:
    """Invite somebody who has an account (by login name or address, exactly), or take a role away (`none`).

    BadInput for nobody; a lead stays until there is another one.
    """
    people, members = tables.people, tables.members
    if role not in {"researcher", "lead", "none"}:
        raise BadInput("a role in a project is researcher or lead.")
    with writing(database) as connection:
        asked = sa.select(people).where(
            people.c.active, (people.c.subject == login) | (people.c.email == login) | (people.c.id == login)
        )
        found = fetch_all(connection, asked)
        if len(found) != 1:
            raise BadInput(
                "there is no one account with this login name or address; only people with one are invited."
            )
        person = found[0]["id"]
        leads = connection.execute(
            sa.select(members.c.person).where(members.c.project == project, members.c.role == "lead")
        ).scalars().all()  # fmt: skip
        if role != "lead" and leads == [person]:
            raise BadInput("a project keeps a lead; name another one first.")
        set_member(connection, project, person, None if role == "none" else role, viewer.person)


def say(database: Database, viewer: Viewer, project: str, text: str) -> None:
    """A message in a project's conversation with its custodians."""
    row = {
        "id": new_id(), "project": project, "person": viewer.person, "time": now(),
        "text": text_of(text, "the message"),
    }  # fmt: skip
    with writing(database) as connection:
        connection.execute(tables.messages.insert().values(**row))


def conversation(database: Database, project: str) -> list[Row]:
    """What was said in a project, oldest first."""
    messages, people = tables.messages, tables.people
    asked = (
        sa.select(messages.c.time, messages.c.text, people.c.name)
        .join(people, people.c.id == messages.c.person)
        .where(messages.c.project == project)
        .order_by(messages.c.time)
    )
    with reading(database) as connection:
        return fetch_all(connection, asked)
