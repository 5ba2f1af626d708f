"""Saved sets of terms: `@diabetes` in a question of the project stands for what was saved under the name.

A question is planned, paid and kept with the terms themselves, so that the same set asked twice is one answer, and a
set that is changed later changes no answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.permissions import Viewer
from leeward.portal.store import Database, now, tables, writing
from leeward.portal.store.rows import Row, fetch_all
from leeward.queries.language.query import fold, parse

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
LONGEST: Final = 20_000
"""Characters of a question with its sets in it."""
PARTS: Final = re.compile(r'("[^"]*"|[&|!()])')
_set = tables.sets.c


def sets_of(database: Database, project: str) -> list[Row]:
    """A project's sets, by name."""
    return fetch_all(database, sa.select(tables.sets).where(_set.project == project).order_by(_set.name))


def save_set(database: Database, viewer: Viewer, project: str, name: str, terms: str) -> str:
    """Save terms under a name, in the place of what was there; the name, folded. BadInput for a name or terms that
    cannot be read."""
    name = fold(name).removeprefix("@")
    if not NAME.fullmatch(name):
        raise BadInput("a set's name has up to 40 letters, digits, - and _, and begins with a letter.")
    terms = with_sets(terms, {row["name"]: row["terms"] for row in sets_of(database, project)}).strip()
    parse(terms)
    row = {"project": project, "name": name, "terms": terms, "person": viewer.person, "changed": now()}
    with writing(database) as connection:
        kept = insert(tables.sets).values(**row)
        connection.execute(kept.on_conflict_do_update(index_elements=["project", "name"], set_=row))
        journal.record(connection, "set saved", project=project, by=viewer.person)
    return name


def remove_set(database: Database, viewer: Viewer, project: str, name: str) -> None:
    with writing(database) as connection:
        gone = connection.execute(tables.sets.delete().where(_set.project == project, _set.name == name))
        if gone.rowcount:
            journal.record(connection, "set removed", project=project, by=viewer.person)


def with_sets(text: str, sets: Mapping[str, str]) -> str:
    """A question's terms with what each set stands for, in parentheses. BadInput for a set that there is not, and where
    it gets too long."""
    found = ""
    for part in PARTS.split(text):
        found += _expanded(part, sets)
        if len(found) > LONGEST:
            raise BadInput(f"with its sets, a question has at most {LONGEST:,} characters.")
    return found


def _expanded(part: str, sets: Mapping[str, str]) -> str:
    name = fold(part).removeprefix("@")
    if not fold(part).startswith("@"):
        return part
    if name not in sets:
        known = ", ".join(f"@{each}" for each in sorted(sets)) or "none"
        raise BadInput(
            f"this project has no set @{name}; it has {known}. Put a term that begins with @ in quotes."
        )
    return part.replace(part.strip(), f"({sets[name]})")
