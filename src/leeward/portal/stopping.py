"""Stopping what was opened: one custodian or approver stops at once, and two people start it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput, LeewardError
from leeward.portal import journal
from leeward.portal.indexes import Indexes
from leeward.portal.people import text_of
from leeward.portal.permissions import Viewer
from leeward.portal.store import Database, now, tables, writing
from leeward.portal.store.rows import Row, fetch_all, fetch_one, known, new_row, row_of
from leeward.queries.ledger import budgets
from leeward.queries.privacy.accounting import micro

KINDS: Final[Mapping[str, sa.Table]] = {
    "release": tables.releases,
    "index": tables.indexes,
    "project": tables.projects,
}
"""What can be stopped: downloads of a release, answers from an index, questions of a project."""


class Stopped(LeewardError):
    """What was asked for is stopped; nothing was charged or handed out."""


def stop(database: Database, viewer: Viewer, kind: str, what: str, reason: str) -> None:
    """Stop a release, an index or a project at once. BadInput for another kind, or where it is stopped already."""
    check_there(database, kind, what)
    row = {
        "kind": kind, "what": what, "person": viewer.person, "reason": text_of(reason, "the reason"), "time": now(),
    }  # fmt: skip
    with writing(database) as connection:
        if not connection.execute(new_row(tables.stops), row).rowcount:
            raise BadInput(f"this {kind} is stopped already.")
        journal.record(connection, "stopped", kind=kind, what=what, by=viewer.person)


def check_there(database: Database, kind: str, what: str) -> Row:
    """The row of what can be stopped; BadInput for another kind, Unknown for nothing."""
    if kind not in KINDS:
        raise BadInput(f"one can stop {', '.join(KINDS)}.")
    return row_of(database, KINDS[kind], what)


def start(connection: sa.Connection, kind: str, what: str, since: str) -> None:
    """Start again what was stopped at a time: the second person's part. BadInput where it runs, or was stopped again
    since, for what may be another reason."""
    stops = tables.stops.c
    this = (stops.kind == kind) & (stops.what == what) & (stops.time == since)
    if not connection.execute(tables.stops.delete().where(this)).rowcount:
        raise BadInput(f"this {kind} is not stopped, or was stopped again since this was proposed.")
    journal.record(connection, "started", kind=kind, what=what)


def stopped(database: Database) -> dict[tuple[str, str], Row]:
    """Everything that is stopped: (kind, identifier) -> who, when, why."""
    rows = fetch_all(database, sa.select(tables.stops))
    return {(row["kind"], row["what"]): row for row in rows}


def kind_stopped(**what: Any) -> sa.ScalarSelect[Any]:
    """The kind of what is stopped among these (kind=identifier); null where all run. A part of a question."""
    stops = tables.stops.alias("s").c
    asked = sa.or_(*((stops.kind == kind) & (stops.what == each) for kind, each in what.items()))
    return sa.select(sa.func.min(stops.kind)).where(asked).scalar_subquery()


def check_running(kind: str | None) -> None:
    """Stopped where `kind_stopped` found something."""
    if kind is not None:
        raise Stopped(f"this {kind} is stopped; nothing was charged. Ask a custodian.")


def end_access(database: Database, viewer: Viewer, release: str, person: str, reason: str) -> None:
    """End one recipient's access to a release at once; a new proposal may give it again."""
    reason = text_of(reason, "the reason")
    recipients = tables.recipients
    mine = (recipients.c.release == release) & (recipients.c.person == person)
    with writing(database) as connection:
        if not connection.execute(recipients.delete().where(mine)).rowcount:
            raise BadInput("this person has no access to this release.")
        journal.record(
            connection, "access ended", release=release, person=person, by=viewer.person, reason=reason
        )


def lower_allotment(
    indexes: Indexes, viewer: Viewer, project: str, index: str, epsilon: str, reason: str
) -> None:
    """Lower what a project may spend of an index, at once, at least to what it spent. BadInput for more than now: more
    takes a proposal."""
    reason = text_of(reason, "the reason")
    mine = (tables.allotments.c.project == project) & (tables.allotments.c.index == index)
    row = known(fetch_one(indexes.database, sa.select(tables.allotments).where(mine)))
    amount = micro(epsilon)
    if amount >= row["epsilon"]:
        raise BadInput(
            "this is not less than the project has; more takes a proposal that another person confirms."
        )
    session = indexes.session(index)
    budgets.allot(session.ledger, session.index.meta.id, project, amount, project=True)
    with writing(indexes.database) as connection:
        connection.execute(tables.allotments.update().where(mine).values(epsilon=amount))
        journal.record(
            connection, "allotment lowered", project=project, index=index, epsilon=amount, by=viewer.person,
            reason=reason,
        )  # fmt: skip
