"""The portal's defences against the abuse cases, each taken away: then its attack has to succeed."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.requests import Request

from leeward.portal import (
    accounts,
    asking,
    guards,
    middleware,
    notices,
    passwords,
    people,
    proposals,
    releases,
    rendering,
    sessions,
    stopping,
)
from leeward.portal.permissions import Viewer
from leeward.queries.ledger import chain, families, spending

Patch = pytest.MonkeyPatch


def nothing(*arguments: Any, **more: Any) -> None:
    """A defence that is gone."""


def without(module: object, name: str) -> Callable[[Patch], None]:
    """What makes a module's function do nothing."""
    return lambda patch: patch.setattr(module, name, nothing)


def believes_a_header(patch: Patch) -> None:
    real = guards.find_viewer

    def find(request: Any, secret: str | None = None) -> Any:
        viewer = real(request, secret)
        claimed = request.headers.get("x-user")
        return dataclasses.replace(viewer, person=claimed) if viewer and claimed else viewer

    patch.setattr(guards, "find_viewer", find)


def keeps_the_session(patch: Patch) -> None:
    def renew(connection: Any, settings: Any, old: str | None, person: str, claims: Any = None) -> str:
        from leeward.portal.store import from_now, tables

        ours = tables.sessions.c.id == sessions.hash_of(old or "")
        changed = connection.execute(
            tables.sessions.update().where(ours).values(person=person, ends=from_now(hours=8))
        )
        assert changed.rowcount
        return old or ""

    patch.setattr(sessions, "renew", renew)


def renews_without_ending(patch: Patch) -> None:
    real = sessions.renew
    patch.setattr(
        sessions, "renew", lambda connection, settings, old, *more: real(connection, settings, None, *more)
    )


def takes_any_number_of_fields(patch: Patch) -> None:
    real = Request.form
    patch.setattr(Request, "form", lambda request, **limits: real(request, max_fields=10**6))


def never_idle(patch: Patch) -> None:
    real = sessions.from_now
    patch.setattr(sessions, "from_now", lambda **length: "" if min(length.values()) < 0 else real(**length))


def remembers_no_end(patch: Patch) -> None:
    """A token's membership is not looked at, and leaving a project does not end its tokens."""
    looks_not_at(patch, "m.project")
    patch.setattr(people, "end_tokens", nothing)


def looks_not_at(patch: Patch, column: str) -> None:
    """The token's owner is found without a look at `column`."""
    asked = sessions.BEARER
    assert isinstance(asked.whereclause, sa.BooleanClauseList)
    kept = [each for each in asked.whereclause.clauses if column not in str(each)]
    assert len(kept) == len(asked.whereclause.clauses) - 1
    without = sa.select(*asked.selected_columns).select_from(*asked.get_final_froms()).where(*kept)
    patch.setattr(sessions, "BEARER", without)


def believes_every_origin(patch: Patch) -> None:
    patch.setattr(guards, "check_origin", nothing)
    patch.setattr(guards, "check_csrf", nothing)


def forgets_the_scope(patch: Patch) -> None:
    real = Viewer.may
    patch.setattr(
        Viewer,
        "may",
        lambda viewer, permission: real(dataclasses.replace(viewer, token_scope=None), permission),
    )


def opens_again(patch: Patch) -> None:
    real, one_at_a_time = proposals.decide, threading.Lock()

    def decide(indexes: Any, viewer: Any, proposal: str, verdict: str, reason: str) -> None:
        from leeward.portal.store import tables, writing

        with one_at_a_time:
            with writing(indexes.database) as connection:
                this = tables.proposals.c.id == proposal
                connection.execute(tables.proposals.update().where(this).values(state="open"))
            real(indexes, viewer, proposal, verdict, reason)

    patch.setattr(proposals, "decide", decide)


def takes_nothing(patch: Patch) -> None:
    patch.setattr(spending, "_take", nothing)
    patch.setattr(spending, "_left", lambda *a: spending.Left(spent_epsilon=0, anybody=10**9, user=10**9))
    patch.setattr(families, "check", lambda *a: unchecked(*a))
    unchecked = unchecked_replay()


def unchecked_replay() -> Callable[..., Any]:
    """The replay of a log without the comparison with the accounts."""

    def check(connection: Any, ledger: Any, family: str, entries: int, head: str) -> Any:
        known = families.Replay()
        for entry in chain.entries_of(connection, family):
            assert known.take(family, entry) is None
        return known

    return check


def prices_every_spelling(patch: Patch) -> None:
    real = asking.plan_query

    def plan(session: Any, question: Any) -> Any:
        return dataclasses.replace(real(session, question), key=secrets.token_hex(32))

    patch.setattr(asking, "plan_query", plan)


def no_slots(patch: Patch) -> None:
    patch.setattr(asking, "PACE", 0.0)


def counts_over_no_line(patch: Patch) -> None:
    patch.setattr(spending, "_accounts", _without_the_data(spending._accounts))
    patch.setattr(families, "check", unchecked_replay())


def _without_the_data(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: ([], real(*arguments)[1])


def gives_to_everybody(patch: Patch) -> None:
    real = spending._accounts
    patch.setattr(spending, "_accounts", lambda *arguments: real(*arguments[:-1], "all"))


def forgets_membership(patch: Patch) -> None:
    patch.setattr(Viewer, "may_in", lambda viewer, permission, project: True)


def sees_every_project(patch: Patch) -> None:
    patch.setattr(Viewer, "projects", lambda viewer, permission: None)


def sorts_by_count(patch: Patch) -> None:
    import gc

    from leeward.portal import terms
    from leeward.queries.index.counts import Index
    from leeward.queries.language.query import parse

    real = terms.search

    def search(known: Any, text: str, most: int = 20) -> Any:
        every = (each for each in gc.get_objects() if isinstance(each, Index))
        index = next(each for each in every if each.terms is known)
        found = real(known, text, most)
        return sorted(found, key=lambda each: -index.count(index.resolve(parse(each.name))))

    patch.setattr(terms, "search", search)


def prints_as_it_is(patch: Patch) -> None:
    patch.setattr(rendering.environment(), "autoescape", False)
    patch.setattr(rendering.environment(), "cache", None)


def opens_any_path(patch: Patch) -> None:
    def read(database: Any, viewer: Any, release: str, path: str) -> Any:
        row = releases.release_of(database, viewer, release)
        return iter([(Path(row["folder"]) / "share" / path).read_bytes()])

    patch.setattr(releases, "read_file", read)


def follows_links(patch: Patch) -> None:
    def copy(share: Path, path: str) -> Any:
        import hashlib

        file = (share / path).open("rb")
        digest = hashlib.sha256(file.read()).hexdigest()
        file.seek(0)
        return file, digest

    patch.setattr(releases, "copy_of", copy)
    patch.setattr(
        "leeward.release.reading.require_plain_files", lambda folder: None
    )  # nor does what opens it


def shows_before_it_stores(patch: Patch) -> None:
    patch.setattr(
        "leeward.queries.answer.charged_query.spending.store",
        lambda ledger, data_set, payloads, **more: payloads,
    )


def logs_everything(patch: Patch) -> None:
    class Everything:
        def __contains__(self, name: object) -> bool:
            return True

    patch.setattr(middleware, "ALLOWED", Everything())


def keeps_secrets(patch: Patch) -> None:
    patch.setattr(sessions, "hash_of", lambda secret: secret)


def resets_by_a_link_alone(patch: Patch) -> None:
    def reset(connection: Any, person: str, by: str) -> str:
        accounts.drop_second_factor(connection, person, by)
        return accounts.new_link(connection, person, by)

    patch.setattr(accounts, "reset", reset)


def starts_whatever_is_stopped(patch: Patch) -> None:
    from leeward.portal.store import tables

    def start(connection: Any, kind: str, what: str, since: str) -> None:
        stops = tables.stops
        assert connection.execute(stops.delete().where(stops.c.kind == kind, stops.c.what == what)).rowcount

    patch.setattr(stopping, "start", start)


def opens_whatever_is_closed(patch: Patch) -> None:
    from leeward.portal.store import tables

    real = proposals.KINDS["account"]

    def do(connection: Any, indexes: Any, row: Any) -> str | None:
        this = tables.people.c
        active = connection.scalar(sa.select(this.active).where(this.id == row["body"]["person"]))
        return real.do(connection, indexes, row | {"body": row["body"] | {"active": active}})

    patch.setattr(proposals, "KINDS", {**proposals.KINDS, "account": dataclasses.replace(real, do=do)})


def takes_a_login_name_for_an_address(patch: Patch) -> None:
    real = people._called
    patch.setattr(people, "_called", lambda login, issuer: real(login, issuer) | real(login, None))


def hashes_before_it_looks(patch: Patch) -> None:
    real = accounts.set_up

    def set_up(database: Any, secret: str, password: str) -> str:
        passwords.hash_of_new(password)
        return real(database, secret, password)

    patch.setattr(accounts, "set_up", set_up)


def fails_together(patch: Patch) -> None:
    from contextlib import nullcontext

    patch.setattr(notices, "failing_alone", nullcontext)


def tells_of_every_message(patch: Patch) -> None:
    real = people.say
    patch.setattr(people, "say", lambda *arguments: real(*arguments) or True)


def opens_what_is_there(patch: Patch) -> None:
    def copy(row: Any, path: str) -> Any:
        return (Path(row["folder"]) / "share" / path).open("rb"), ""

    patch.setattr(releases, "confirmed_copy", copy)
