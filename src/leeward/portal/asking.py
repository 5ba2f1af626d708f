"""Price, rehearsal and paid answers of a project: the ledger charges and answers, this keeps which project asked."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from pydantic import TypeAdapter

from leeward.errors import BadInput, LeewardError
from leeward.portal import models, sets, words
from leeward.portal.indexes import Indexes
from leeward.portal.permissions import Viewer
from leeward.portal.question import Request, at_price, request_of, words_of
from leeward.portal.stopping import check_running, kind_stopped
from leeward.portal.store import new_id, now, reading, tables, writing
from leeward.portal.store.rows import Row, Unknown, fetch_one, fetch_part, known, new_row
from leeward.queries.answer.charged_query import Answer, answer_plans, price_of, stored_answers
from leeward.queries.answer.plan import IndexSession, Plan, check_noise, plan_query
from leeward.queries.ledger import spending
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import MICRO, micro, to_epsilon

MOST_IN_BATCH: Final = 100
PART: Final = 200
"""Answers in a part of their list."""
PACE: Final = 0.01
"""Counting takes a multiple of so many seconds."""

MOST_NUMBERS: Final = 50_000
"""Identifiers of rows of answers that stay in memory."""
PLAN: Final = TypeAdapter(Plan)

_allotment, _answer, _key = tables.allotments.c, tables.answers.c, tables.idempotency.c
_under = (_key.person == sa.bindparam("by")) & (_key.key == sa.bindparam("under"))
# Built once, see `queries.ledger.families`.
_one = sa.select(sa.literal_column("1").label("one")).subquery()
_ours = (_allotment.project == sa.bindparam("project")) & (_allotment.index == sa.bindparam("index"))
_stopped = kind_stopped(project=sa.bindparam("project"), index=sa.bindparam("index")).label("stopped")
ALLOTMENT: Final = sa.select(tables.allotments, _key.digest, _key.answers, _stopped).select_from(
    _one.outerjoin(tables.allotments, _ours).outerjoin(tables.idempotency, _under)
)
KEPT: Final = sa.select(_answer.key, _answer.id).where(
    _answer.project == sa.bindparam("project"),
    _answer.index == sa.bindparam("index"),
    _answer.key.in_(sa.bindparam("keys", expanding=True)),
)
KEEP: Final = new_row(tables.answers)
DONE: Final = new_row(tables.idempotency)


REHEARSAL: Final = 10
"""Questions that a rehearsal counts as: it takes a tenth of a second, a price some milliseconds."""


class TooMany(BadInput):
    """More questions in a minute than a person may ask; `wait`: seconds until the next."""

    def __init__(self, most: int, wait: float) -> None:
        super().__init__(f"more than {most} questions in a minute; ask again in {wait:.0f} seconds.")
        self.wait = wait


class Conflict(LeewardError):
    """An idempotency key that was used for another body."""


class NotEnough(spending.BudgetSpent):
    """The project's budget does not pay; `left` is what it has, in ε. What others spent is not told."""

    def __init__(self, left: float) -> None:
        super().__init__(
            f"the project has {left:g} left for one answer. Nothing was charged. Ask with less precision, or ask "
            "something that was asked before, which costs nothing; budgets do not refill."
        )
        self.left = left


class Expired(spending.BudgetSpent):
    """The project's allotment has ended."""


@dataclass(frozen=True)
class Once:
    """An idempotency key, and the digest of the body that it came with."""

    key: str
    digest: str


@dataclass(frozen=True)
class Priced:
    """A question with its price: everything known before payment."""

    request: Request
    plan: Plan
    said: models.Price
    """As programs get it: amounts in ε."""


class Asking:
    """Questions of a project's members to an index: planned, priced, rehearsed, paid."""

    def __init__(self, indexes: Indexes) -> None:
        self.indexes = indexes
        self.database = indexes.database
        self._minute = RateLimitItemPerMinute(indexes.settings.questions_a_minute)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._numbers: dict[tuple[str, str, str], str] = {}

    def _count(self, viewer: Viewer, questions: int) -> None:
        """TooMany where a person asks, prices and rehearses more in a minute than is answered; each process counts."""
        if not self._limiter.hit(self._minute, viewer.person, cost=questions):
            reset = self._limiter.get_window_stats(self._minute, viewer.person).reset_time
            raise TooMany(self._minute.amount, max(1, reset - time.time()))

    def allotment(
        self, project: str, index: str, viewer: Viewer | None = None, once: Once | None = None
    ) -> Row:
        """A project's allotment of an index; Unknown if it has none. `stopped`: the kind of what is stopped of the two
        (null: both run). `answers`: what a person paid under a key (null: nothing yet); Conflict for another body under
        it."""
        by = {"by": "" if viewer is None else viewer.person, "under": "" if once is None else once.key}
        row = known(fetch_one(self.database, ALLOTMENT, project=project, index=index, **by))
        if once is not None and row["digest"] is not None:
            check_same_body(row, once)
        return known(None if row["project"] is None else row)

    def plan(self, session: IndexSession, request: Request) -> tuple[Request, Plan]:
        """A question checked against what is public, with ε from the wanted precision where that was given."""
        if request.epsilon is None and request.within is None:
            raise BadInput("say how exact the answer shall be: `within` so many patients, or an `epsilon`.")
        epsilon = MICRO if request.epsilon is None else micro(request.epsilon)
        plan = plan_query(session, at_price(request, epsilon))
        if request.epsilon is None and request.within is not None:
            epsilon = mechanism.epsilon_within(plan.noise.kind, plan.noise.sensitivity, request.within)
            plan = plan_query(session, at_price(request, epsilon))
        exact = f"{to_epsilon(epsilon):.6f}".rstrip("0").rstrip(".")
        return request.model_copy(update={"epsilon": exact, "within": None}), plan

    def _planned(
        self, session: IndexSession, allotment: Row, requests: Sequence[Request]
    ) -> list[tuple[Request, Plan]]:
        """The questions with the terms that saved sets of the project stand for, planned; none above its ceiling."""
        if any("@" in request.terms for request in requests):
            known = {row["name"]: row["terms"] for row in sets.sets_of(self.database, allotment["project"])}
            requests = [
                request_of(each.model_dump() | {"terms": sets.with_sets(each.terms, known)})
                for each in requests
            ]
        planned = [self.plan(session, request) for request in requests]
        for _, plan in planned:
            check_ceiling(plan, allotment["most_an_answer"])
        return planned

    def price(self, viewer: Viewer, project: str, index: str, requests: Sequence[Request]) -> list[Priced]:
        """Prices; nothing is charged."""
        self._count(viewer, len(requests))
        allotment = self.allotment(project, index)
        check_running(allotment["stopped"])
        session = self.indexes.session(index)
        found = []
        for exact, plan in self._planned(session, allotment, requests):
            price, left = price_of(session, [plan], viewer.person, project)
            noise, bins = plan.noise, len(plan.bins)
            said = models.Price(
                question=plan.query.canonical(), words=words_of(session, plan), epsilon=to_epsilon(noise.epsilon),
                price=to_epsilon(price), left=to_epsilon(left), left_after=to_epsilon(max(0, left - price)),
                enough=price <= left, half_width=mechanism.half_width(noise), confidence=mechanism.CONFIDENCE,
                bins=bins, half_width_of_all=mechanism.half_width_of_all(noise, bins),
                likelihood_factor=mechanism.likelihood(noise.epsilon), warning=words.warning_of(session, plan) or None,
            )  # fmt: skip
            found.append(Priced(exact, plan, said))
        return found

    def rehearse(self, viewer: Viewer, project: str, index: str, request: Request) -> tuple[Priced, Answer]:
        """The answer of made-up patients; nothing is charged."""
        from leeward.queries.answer.dry_run import dry_run_answers  # loads what makes an index

        self._count(viewer, REHEARSAL - 1)
        priced = self.price(viewer, project, index, [request])[0]
        answer = dry_run_answers(self.indexes.session(index), [priced.plan], viewer.person, project)[0]
        return priced, answer

    def pay(
        self, viewer: Viewer, project: str, index: str, requests: Sequence[Request], once: Once | None = None
    ) -> list[tuple[str, Answer]]:
        """Answers with their identifiers: all are charged or none; under a key they can be given again. Nothing was
        answered at BudgetSpent, Expired, Stopped, TooMany, Conflict, BadInput, LedgerUnreachable."""
        if not 1 <= len(requests) <= MOST_IN_BATCH:
            raise BadInput(f"a batch has 1 to {MOST_IN_BATCH} questions.")
        allotment = self.allotment(project, index, viewer, once)
        if allotment["answers"] is not None:
            with suppress(Unknown):  # lost with a newer copy of the ledger, and asked again
                paid = [self.answer(viewer, number) for number in allotment["answers"]]
                return [(row["id"], replace(answer, cost=row["cost"])) for row, answer in paid]
        self._count(viewer, len(requests))
        if allotment["ends"] < now():
            raise Expired(
                "The project's allotment has ended. Nothing was charged. Its lead may ask for a new one."
            )
        check_running(allotment["stopped"])
        session = self.indexes.session(index)
        planned = self._planned(session, allotment, requests)
        plans = [plan for _, plan in planned]
        stored = stored_answers(session, plans, project)
        new = [plan for request, plan in planned if not request.large_noise]
        if any(plan.key not in stored for plan in new):  # what is stored costs nothing
            check_noise(session, new)
        try:
            answers = answer_plans(session, plans, viewer.person, project, pace=PACE, stored=stored)
        except spending.BudgetSpent:
            left = spending.left(session.ledger, session.index.meta.id, viewer.person, project).user
            raise NotEnough(to_epsilon(left)) from None
        kept = self._keep(viewer, project, index, planned, answers, once)
        return [(kept[answer.plan.key], answer) for answer in answers]

    def _keep(
        self,
        viewer: Viewer,
        project: str,
        index: str,
        planned: Sequence[tuple[Request, Plan]],
        answers: Sequence[Answer],
        once: Once | None,
    ) -> dict[str, str]:
        """Which project asked: one row a question, however often it is asked. Returns the rows' identifiers by key.
        Nothing is written where every row is there and nothing was paid."""
        # what comes twice is paid once, first
        costs = {answer.plan.key: answer.cost for answer in reversed(answers)}
        paid = any(costs.values())
        ours = {"project": project, "index": index}
        kept = {
            key: self._numbers[found] for key in costs if (found := (project, index, key)) in self._numbers
        }
        if len(kept) < len(costs) and not paid:
            with reading(self.database) as connection:
                kept |= {row.key: row.id for row in connection.execute(KEPT, {**ours, "keys": list(costs)})}
        if len(kept) == len(costs) and not paid:
            return kept
        # A server may die alone, and with it what it holds in memory.
        durable = paid and self.database.engine.dialect.name != "sqlite"
        session = self.indexes.session(index)
        with writing(self.database, durable=durable) as connection:
            rows: list[Row] = [
                {
                    **ours, "key": plan.key, "id": new_id(),
                    "request": request.to_json(),
                    "question": words_of(session, plan), "person": viewer.person, "time": now(),
                    "cost": costs[plan.key], "plan": PLAN.dump_json(plan).decode(),
                }
                for request, plan in planned if plan.key not in kept
            ]  # fmt: skip
            for row in rows:
                if connection.execute(KEEP, row).rowcount:
                    kept[row["key"]] = row["id"]
            if missing := [key for key in costs if key not in kept]:  # another session was first
                kept |= {row.key: row.id for row in connection.execute(KEPT, {**ours, "keys": missing})}
            if once is not None and paid:
                numbers = [kept[plan.key] for _, plan in planned]
                done = {"person": viewer.person, "answers": numbers, "time": now(), **vars(once)}
                connection.execute(DONE, done)
        if len(self._numbers) > MOST_NUMBERS:
            self._numbers.clear()
        self._numbers.update({(project, index, key): number for key, number in kept.items()})
        return kept

    def answer(self, viewer: Viewer, answer: str) -> tuple[Row, Answer]:
        """A stored answer of a project whose answers this person may see; Unknown otherwise."""
        kept = tables.answers
        asked = sa.select(kept).where(kept.c.id == answer)
        projects = viewer.projects("see answers")
        if projects is not None:
            asked = asked.where(kept.c.project.in_(projects))
        row = known(fetch_one(self.database, asked))
        session = self.indexes.session(row["index"])
        if row["plan"] is None:  # from before plans were kept
            plan = self.plan(session, request_of(row["request"]))[1]
        else:
            plan = PLAN.validate_json(row["plan"])
        payload = spending.find_answer(session.ledger, session.index.meta.id, row["key"])
        if payload is None:
            raise Unknown
        left = spending.left(session.ledger, session.index.meta.id, viewer.person, row["project"]).user
        values = json.loads(payload)["values"]
        return row, Answer.from_noisy(plan, values, cost=0, remaining=left, terms=session.terms)

    def explain(self, row: Row, plan: Plan) -> list[str]:
        """What an answer, and all that its project paid for, say about one person, in words."""
        terms = self.indexes.session(row["index"]).terms
        paid = self.indexes.paid(row["index"], row["project"])
        return [
            words.of_answer(plan.noise.epsilon, plan.unit),
            words.of_project(paid, terms.unit, terms.delta),
        ]

    def answers_of(self, project: str, wanted: str, after: str) -> tuple[list[Row], str | None]:
        """Answers of a project with `wanted` in the question, newest first: a part, and after which the next begins."""
        asked = sa.select(tables.answers).where(_is_of(project, wanted))
        return fetch_part(self.database, asked, (_answer.time, _answer.id), after, PART)

    def total_of(self, project: str, wanted: str = "") -> Row:
        """How many those answers are, and what they cost together."""
        cost = sa.func.coalesce(sa.func.sum(_answer.cost), 0)
        asked: Any = sa.select(sa.func.count().label("number"), sa.cast(cost, sa.BigInteger).label("cost"))
        return known(fetch_one(self.database, asked.where(_is_of(project, wanted))))


def _is_of(project: str, wanted: str) -> sa.ColumnElement[bool]:
    found = _answer.project == project
    return found & _answer.question.icontains(wanted[:200], autoescape=True) if wanted else found


def check_ceiling(plan: Plan, most: int | None) -> None:
    """BadInput for an answer that costs more than one answer may, new or stored, so that a refusal tells nothing."""
    if most is None or plan.price <= most:
        return
    width = mechanism.half_width(replace(plan.noise, epsilon=max(1, most // plan.factor)))
    raise BadInput(
        f"one answer may cost at most ε {to_epsilon(most):g} in this project, which is within ± {width:,.4g}; this one "
        f"costs {to_epsilon(plan.price):g}. Ask for less precision."
    )


def check_same_body(allotment: Row, once: Once) -> None:
    """Conflict where something else was paid under a key."""
    if allotment["digest"] != once.digest:
        raise Conflict("this Idempotency-Key was used for another question; use a new one.")
