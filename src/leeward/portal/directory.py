"""What there is to ask for: a page for each index, and requests from people who have no project yet."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import journal
from leeward.portal.indexes import Indexes, public_facts
from leeward.portal.people import text_of
from leeward.portal.permissions import Viewer
from leeward.portal.store import Database, new_id, now, tables, writing
from leeward.portal.store.rows import Row, Unknown, fetch_all, row_of

FACTS: Final = ("description", "years", "codebook", "contact")
"""What a custodian says of an index, in words; `codebook` is an address or a citation, `contact` whom to ask."""
MOST_REQUESTS: Final = 5
"""Open requests of one person."""


def describe(database: Database, viewer: Viewer, index: str, facts: dict[str, str]) -> None:
    """Say what an index holds, for everybody who may sign in; Unknown for no index."""
    said = {name: text_of(facts[name], name) for name in FACTS if facts.get(name, "").strip()}
    mine = tables.indexes.c.id == index
    with writing(database) as connection:
        if not connection.execute(tables.indexes.update().where(mine).values(about=said)).rowcount:
            raise Unknown
        journal.record(connection, "index described", index=index, by=viewer.person)


def entry_of(indexes: Indexes, index: str) -> dict[str, Any]:
    """An index for its page in the directory: what custodians say of it, and what is public; no count of patients."""
    row = indexes.row(index)
    said = row["about"] or {}
    return {"id": row["id"], "name": row["name"], **{name: said.get(name) for name in FACTS},
            **public_facts(indexes.session(index)).model_dump()}  # fmt: skip


def ask_for_project(database: Database, viewer: Viewer, index: str, text: str) -> None:
    """Ask the custodians for a project that may question an index. BadInput after five open requests."""
    row_of(database, tables.indexes, index)
    row = {
        "id": new_id(), "person": viewer.person, "index": index, "text": text_of(text, "the request"), "time": now(),
        "closed": None,
    }  # fmt: skip
    requests = tables.requests
    mine = (requests.c.person == viewer.person) & requests.c.closed.is_(None)
    with writing(database) as connection:
        if len(connection.execute(sa.select(requests.c.id).where(mine)).all()) >= MOST_REQUESTS:
            raise BadInput(f"you have {MOST_REQUESTS} open requests; wait for an answer to one of them.")
        connection.execute(requests.insert().values(**row))
        journal.record(connection, "project asked for", request=row["id"], by=viewer.person)


def open_requests(database: Database) -> list[Row]:
    """Requests that no custodian has closed, oldest first."""
    requests, people, indexes = tables.requests, tables.people.c, tables.indexes.c
    asked = (
        sa.select(requests, people.name.label("person_name"), indexes.name.label("index_name"))
        .join(tables.people, people.id == requests.c.person)
        .join(tables.indexes, indexes.id == requests.c.index)
        .where(requests.c.closed.is_(None))
        .order_by(requests.c.time)
    )
    return fetch_all(database, asked)


def close_request(database: Database, viewer: Viewer, request: str) -> None:
    """Close a request that was dealt with, by a project or in another way; Unknown for none that is open."""
    requests = tables.requests
    mine = (requests.c.id == request) & requests.c.closed.is_(None)
    with writing(database) as connection:
        if not connection.execute(requests.update().where(mine).values(closed=now())).rowcount:
            raise Unknown
        journal.record(connection, "request closed", request=request, by=viewer.person)
