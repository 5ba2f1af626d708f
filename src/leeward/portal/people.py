"""People, their roles and memberships. A person is (issuer, subject); names and addresses are only shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.permissions import HOUSE_ROLES, PROJECT_ROLES, Viewer
from leeward.portal.store import fetch_all, fetch_one, new_id, now, tables
from leeward.portal.store.rows import Row

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
    connection: sa.Connection, issuer: str, subject: str, name: str, email: str | None, make: bool = True
) -> Row | None:
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
        "active": True,
    }  # fmt: skip
    connection.execute(tables.people.insert().values(**row))
    journal.record(connection, "account made", person=row["id"], issuer=issuer)
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


def set_house_roles(connection: sa.Connection, person: str, roles: Iterable[str], by: str) -> None:
    """The roles of a person in the house, journaled."""
    wanted = sorted(set(roles))
    if not set(wanted) <= set(HOUSE_ROLES):
        raise BadInput(f"a role of the house is {', '.join(HOUSE_ROLES)}.")
    of_house = tables.house_roles
    before = connection.execute(sa.select(of_house.c.role).where(of_house.c.person == person)).scalars().all()
    if sorted(before) == wanted:
        return
    connection.execute(of_house.delete().where(of_house.c.person == person))
    for role in wanted:
        connection.execute(of_house.insert().values(person=person, role=role))
    journal.record(connection, "roles set", person=person, roles=wanted, by=by)


def set_member(connection: sa.Connection, project: str, person: str, role: str | None, by: str) -> None:
    """A person's role in a project; None takes it away."""
    if role is not None and role not in PROJECT_ROLES:
        raise BadInput(f"a role in a project is {' or '.join(PROJECT_ROLES)}.")
    members = tables.members
    connection.execute(members.delete().where(members.c.project == project, members.c.person == person))
    if role is not None:
        connection.execute(members.insert().values(project=project, person=person, role=role))
    journal.record(connection, "member set", project=project, person=person, role=role, by=by)


def names_of(connection: sa.Connection, people: Iterable[str]) -> dict[str, str]:
    """Person -> name."""
    wanted = set(people)
    rows = connection.execute(
        sa.select(tables.people.c.id, tables.people.c.name).where(tables.people.c.id.in_(wanted))
    )
    return {row.id: row.name for row in rows}


def everybody(connection: sa.Connection) -> list[Row]:
    """Every account with its roles."""
    rows = fetch_all(connection, sa.select(tables.people).order_by(tables.people.c.name))
    roles: dict[str, list[str]] = {}
    for each in fetch_all(connection, sa.select(tables.house_roles)):
        roles.setdefault(each["person"], []).append(each["role"])
    projects: dict[str, list[str]] = {}
    asked = sa.select(tables.members.c.person, tables.members.c.role, tables.projects.c.name).join(
        tables.projects, tables.projects.c.id == tables.members.c.project
    )
    for member in connection.execute(asked):
        projects.setdefault(member.person, []).append(f"{member.role} of {member.name}")
    return [
        {**row, "roles": sorted(roles.get(row["id"], [])), "projects": sorted(projects.get(row["id"], []))}
        for row in rows
    ]


def roles_from_claims(claims: Mapping[str, Any], claim: str, groups: Mapping[str, str]) -> list[str]:
    """The roles of the house that a provider's groups give; none where the claim is missing."""
    held = claims.get(claim)
    names = [held] if isinstance(held, str) else held if isinstance(held, list) else []
    return sorted({groups[name] for name in names if isinstance(name, str) and name in groups})
