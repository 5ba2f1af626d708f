"""Decisions by two people: a custodian proposes, an approver who is somebody else confirms, then it is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal import accounts, journal, releases, stopping
from leeward.portal.indexes import Indexes, child_folder
from leeward.portal.people import check_roles, name_of, set_house_roles, text_of, viewer_of
from leeward.portal.permissions import Viewer
from leeward.portal.store import Database, new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row, fetch_all, fetch_one, fetch_part, known, names_of, row_of
from leeward.queries.ledger import budgets
from leeward.queries.privacy.accounting import micro


class SamePerson(BadInput):
    """The proposer cannot confirm."""


class Decided(BadInput):
    """It was decided already."""


def propose_index(indexes: Indexes, viewer: Viewer, folder: str, name: str, ledger: str, reason: str) -> str:
    """Propose to answer questions from an index, with the cap and floor that its ledger has. `ledger`: its name in the
    settings; empty: the one in the index's folder."""
    path = child_folder(indexes.settings.index_folder, folder)
    place = indexes.settings.place_of_ledger(ledger or None)
    session = indexes.open(path, ledger or None)
    meta, terms = session.index.meta, session.terms
    check_new_data(indexes.database, meta.id)
    body = {
        "folder": str(path), "name": name_of(name, "index's name"), "ledger": ledger or None, "place": place,
        "data_set": meta.id, "parent": meta.parent, "epsilon_total": terms.total, "threshold": terms.threshold,
        "unit": terms.unit,
    }  # fmt: skip
    return _propose(indexes.database, viewer, "index", None, body, reason)


def check_new_data(database: Database, data_set: str) -> None:
    """BadInput for data that are answered already: another ledger would be a fresh budget for them."""
    names = tables.indexes.c
    row = fetch_one(database, sa.select(names.name).where(names.data_set == data_set))
    if row is not None:
        raise BadInput(
            f"these data are answered already, as {row['name']!r}, from the budget that they have."
        )


def propose_allotment(
    indexes: Indexes,
    viewer: Viewer,
    project: str,
    index: str,
    epsilon: str,
    ends: str,
    first_come: bool,
    reason: str,
    most_an_answer: str = "",
) -> str:
    """Propose what a project may spend of an index, until a date. `first_come`: allotments may add up to more than
    the cap, which then goes to whoever asks first. `most_an_answer`: the largest ε of one answer."""
    row = indexes.row(index)
    row_of(indexes.database, tables.projects, project)
    amount = micro(epsilon)
    if amount > indexes.session(index).terms.total:
        raise BadInput("an allotment is at most the cap of all answers.")
    most = micro(most_an_answer, "most_an_answer") if most_an_answer.strip() else None
    body = {"index": row["id"], "epsilon": amount, "ends": _date(ends), "first_come": first_come}
    body |= {"most_an_answer": most}
    return _propose(indexes.database, viewer, "allotment", project, body, reason)


def propose_release(
    indexes: Indexes, viewer: Viewer, folder: str, name: str, recipients: list[str], ends: str, reason: str
) -> str:
    """Propose to publish a release to recipients until a date. BadInput where it does not verify today."""
    if not recipients:
        raise BadInput("name at least one recipient for the release.")
    path = child_folder(indexes.settings.release_folder, folder)
    found = releases.inspect(path)
    if not names_of(indexes.database, tables.people).keys() >= set(recipients):
        raise BadInput("there is no account of one of the recipients.")
    body = {
        "folder": str(path), "name": name_of(name, "release's name"), "digest": found.digest,
        "recipients": sorted(recipients), "ends": _date(ends),
    }  # fmt: skip
    return _propose(indexes.database, viewer, "release", None, body, reason)


def propose_start(database: Database, viewer: Viewer, kind: str, what: str, reason: str) -> str:
    """Propose to start again a release, an index or a project that was stopped."""
    row = stopping.check_there(database, kind, what)
    stop = stopping.stopped(database).get((kind, what))
    if stop is None:
        raise BadInput(f"this {kind} is not stopped.")
    people = [each["id"] for each in releases.recipients_of(database, what)]
    body = {"kind": kind, "what": what, "name": row["name"], "recipients": people}
    body |= {"since": stop["time"], "because": stop["reason"]}
    return _propose(database, viewer, "start", what if kind == "project" else None, body, reason)


def propose_account(
    database: Database, viewer: Viewer, person: str, roles: Iterable[str], reason: str
) -> str:
    """Propose the roles that somebody has in the house, with an open account."""
    wanted = check_roles(roles)
    account = _account(database, viewer, person)
    body = {"person": person, "name": account["name"], "roles": wanted, "active": account["active"]}
    return _propose(database, viewer, "account", None, body, reason)


def propose_reset(database: Database, viewer: Viewer, person: str, reason: str) -> str:
    """Propose a new set-up link for somebody who lost a password or a second factor."""
    body = {"person": person, "name": _account(database, viewer, person)["name"]}
    return _propose(database, viewer, "reset", None, body, reason)


def _account(database: Database, viewer: Viewer, person: str) -> Row:
    if person == viewer.person:
        raise BadInput("you cannot change your own account here; ask another administrator.")
    return row_of(database, tables.people, person)


def _propose(
    database: Database, viewer: Viewer, kind: str, project: str | None, body: dict[str, Any], reason: str
) -> str:
    row = {
        "id": new_id(), "kind": kind, "project": project, "body": body,
        "proposer": viewer.person, "reason": text_of(reason, "the reason"), "created": now(), "state": "open",
    }  # fmt: skip
    with writing(database) as connection:
        connection.execute(tables.proposals.insert().values(**row))
        journal.record(connection, "proposed", proposal=row["id"], kind=kind, by=viewer.person)
    return str(row["id"])


def proposal_of(database: Database, proposal: str, kinds: Collection[str]) -> Row:
    """A proposal of one of these kinds; Unknown otherwise."""
    proposals = tables.proposals.c
    mine = (proposals.id == proposal) & proposals.kind.in_(kinds)
    return known(fetch_one(database, sa.select(tables.proposals).where(mine)))


def decide(indexes: Indexes, viewer: Viewer, proposal: str, verdict: str, reason: str) -> str | None:
    """Confirm or decline, or withdraw one's own, with a reason; what is confirmed is done in the same transaction.
    Returns the secret of a set-up link where one was made. SamePerson for the proposer and for whoever is not
    independent; Decided where it is not open any more; BadInput where it cannot be done now."""
    if verdict not in {"confirmed", "declined", "withdrawn"}:
        raise BadInput("a proposal is confirmed or declined.")
    reason = text_of(reason, "the reason")
    proposals = tables.proposals
    row = proposal_of(indexes.database, proposal, KINDS)
    if verdict != "withdrawn":
        check_independent(indexes.database, viewer, row)
    elif viewer.person != row["proposer"]:
        raise BadInput("you have no open proposal of this name.")
    if verdict == "confirmed":
        check_proposer(indexes.database, row)
    if verdict == "confirmed" and row["kind"] == "release":  # takes seconds: before anything is locked
        row["found"] = releases.inspect(Path(row["body"]["folder"]))
    with writing(indexes.database) as connection:
        changed = connection.execute(
            proposals.update()
            .where(proposals.c.id == proposal, proposals.c.state == "open")
            .values(state=verdict, decider=viewer.person, answer=reason, decided=now())
        ).rowcount
        if not changed:
            raise Decided("this was decided already.")
        journal.record(connection, verdict, proposal=proposal, kind=row["kind"], by=viewer.person)
        if verdict != "confirmed":
            return None
        return KINDS[row["kind"]].do(connection, indexes, {**row, "decider": viewer.person})


def check_proposer(database: Database, proposal: Row) -> None:
    """BadInput where whoever proposed it may not any more: then it is one person's decision."""
    with reading(database) as connection:
        proposer = viewer_of(connection, proposal["proposer"])
    if proposer is None or not proposer.may(KINDS[proposal["kind"]].permission):
        raise BadInput(
            "whoever proposed this may not any more; decline it, and let somebody else propose it."
        )


def check_independent(database: Database, viewer: Viewer, proposal: Row) -> None:
    """Raise SamePerson where the decider proposed it, profits from it, or depends on the proposer by an account."""
    if viewer.person == proposal["proposer"]:
        raise SamePerson("whoever proposed does not decide; another person has to.")
    if viewer.memberships.keys() & projects_that_profit(database, proposal):
        raise SamePerson("you are a member of a project that profits; somebody who is not has to decide.")
    body = proposal["body"]
    if viewer.person == body.get("person") or viewer.person in body.get("recipients", ()):
        raise SamePerson("this is about you; somebody else has to decide.")
    people = tables.people.c
    asked = sa.select(tables.people).where(people.id.in_([viewer.person, proposal["proposer"]]))
    rows = {row["id"]: row for row in fetch_all(database, asked)}
    mine, theirs = rows[viewer.person], rows[proposal["proposer"]]
    one_made = mine["maker"] is not None and mine["maker"] == theirs["maker"] and mine["confirmer"] is None
    if one_made or mine["maker"] == theirs["id"] or theirs["maker"] == mine["id"]:
        raise SamePerson(
            "one administrator made both accounts, so this would be one person's decision; somebody else has to decide."
        )


def projects_that_profit(database: Database, proposal: Row) -> set[str]:
    """The project that a proposal is about; of an index that is to start again, those that may ask it."""
    allotted = tables.allotments.c
    asked = sa.select(allotted.project).where(allotted.index == proposal["body"].get("what"))
    return {proposal["project"], *(row["project"] for row in fetch_all(database, asked))}


def _do_index(connection: sa.Connection, indexes: Indexes, proposal: Row) -> None:
    body = proposal["body"]
    session = indexes.open(Path(body["folder"]), body["ledger"])
    meta, terms = session.index.meta, session.terms
    if (meta.id, terms.total, terms.threshold) != (
        body["data_set"],
        body["epsilon_total"],
        body["threshold"],
    ):
        raise BadInput("the index is another one than the one that was proposed.")
    row = {
        "id": new_id(), "data_set": meta.id, "name": body["name"], "folder": body["folder"], "ledger": body["ledger"],
        "opened": now(),
    }  # fmt: skip
    try:
        with connection.begin_nested():
            connection.execute(tables.indexes.insert().values(**row))
    except sa.exc.IntegrityError:
        raise BadInput("these data are answered already, from the budget that they have.") from None
    journal.record(connection, "index opened", index=row["id"], data_set=meta.id)
    budgets.drop_whole_allotments(session.ledger, meta.id)


def _do_allotment(connection: sa.Connection, indexes: Indexes, proposal: Row) -> None:
    body, project = proposal["body"], proposal["project"]
    session = indexes.session(body["index"])
    within = not body["first_come"]
    budgets.allot(
        session.ledger, session.index.meta.id, project, body["epsilon"], project=True, within_cap=within
    )
    allotments = tables.allotments
    mine = (allotments.c.project == project) & (allotments.c.index == body["index"])
    connection.execute(allotments.delete().where(mine))
    row = {"project": project, **{name: body[name] for name in ("index", "epsilon", "ends")}}
    row["most_an_answer"] = body.get("most_an_answer")
    connection.execute(allotments.insert().values(**row))
    journal.record(connection, "allotted", **row)


def _do_release(connection: sa.Connection, indexes: Indexes, proposal: Row) -> None:
    found: releases.Found = proposal["found"]
    body = proposal["body"]
    if found.digest != body["digest"]:
        raise BadInput("the release was changed after it was proposed.")
    releases.check_not_stopped(connection, found.digest)
    release = new_id()
    connection.execute(
        tables.releases.insert().values(
            id=release, name=body["name"], folder=body["folder"], digest=found.digest, files=found.files,
            published=now(), verified=now(), passed=True,
        )
    )  # fmt: skip
    for person in body["recipients"]:
        connection.execute(
            tables.recipients.insert().values(release=release, person=person, ends=body["ends"])
        )
    journal.record(connection, "published", release=release, digest=found.digest, to=body["recipients"])


def _do_start(connection: sa.Connection, indexes: Indexes, proposal: Row) -> None:
    body = proposal["body"]
    stopping.start(connection, body["kind"], body["what"], body.get("since", ""))


def _do_account(connection: sa.Connection, indexes: Indexes, proposal: Row) -> None:
    body, people = proposal["body"], tables.people
    as_proposed = (people.c.id == body["person"]) & (people.c.active == body.get("active", True))
    opened = people.update().where(as_proposed).values(active=True, confirmer=proposal["decider"])
    if not connection.execute(opened).rowcount:
        raise BadInput("this account was closed or opened after this was proposed; propose it again.")
    set_house_roles(connection, body["person"], body["roles"], proposal["decider"])


def _do_reset(connection: sa.Connection, indexes: Indexes, proposal: Row) -> str:
    return accounts.reset(connection, proposal["body"]["person"], proposal["decider"])


@dataclass(frozen=True)
class Kind:
    """A kind of proposal."""

    title: str
    permission: str
    """Of whoever proposes it."""
    do: Callable[[sa.Connection, Indexes, Row], str | None]
    """Do what was confirmed, in the transaction of the decision; the secret of a set-up link where one was made."""


KINDS: Final[Mapping[str, Kind]] = {
    "index": Kind("answer questions from an index", "propose index", _do_index),
    "allotment": Kind("allot to a project", "propose allotment", _do_allotment),
    "release": Kind("publish a release to recipients", "propose release", _do_release),
    "start": Kind("start again what was stopped", "stop", _do_start),
    "account": Kind("give roles of the house, open an account", "administer", _do_account),
    "reset": Kind("a new set-up link", "administer", _do_reset),
}
ACCOUNTS: Final = frozenset(name for name, kind in KINDS.items() if kind.permission == "administer")
"""What an administrator proposes, and an approver or another administrator decides."""
PART: Final = 200
"""Proposals in a part of their list."""


def proposals_of(database: Database, viewer: Viewer, after: str = "") -> tuple[list[Row], str | None]:
    """Proposals and decisions that a person may see, open ones first, then the newest, with names too: a part, and
    after which one the next begins."""
    proposals = tables.proposals
    open_first = sa.case((proposals.c.state == "open", 1), else_=0).label("open")
    asked = sa.select(proposals)
    mine = viewer.projects("see decisions")
    if mine is not None:
        kinds = ACCOUNTS if viewer.may("administer") else ()
        asked = asked.where(proposals.c.project.in_(mine) | proposals.c.kind.in_(kinds))
    rows, following = fetch_part(
        database, asked, (open_first, proposals.c.created, proposals.c.id), after, PART
    )
    people, projects, indexes = (
        names_of(database, table) for table in (tables.people, tables.projects, tables.indexes)
    )
    named = [
        {
            **row,
            "what": KINDS[row["kind"]].title,
            "project_name": projects.get(row["project"] or ""),
            "index_name": indexes.get(row["body"].get("index", "")),
            "recipient_names": [people.get(person, "") for person in row["body"].get("recipients", ())],
            "proposer_name": people.get(row["proposer"], ""),
            "decider_name": people.get(row["decider"] or "", ""),
        }
        for row in rows
    ]
    return named, following


def _date(text: str) -> str:
    """The end of a day, `YYYY-MM-DD`, that is not over; BadInput otherwise."""
    from datetime import UTC, date, datetime

    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadInput("an end is a date such as 2027-03-31.") from None
    if not datetime.now(UTC).date() <= day:
        raise BadInput("the end is over already.")
    return f"{day.isoformat()}T23:59:59.999+00:00"
