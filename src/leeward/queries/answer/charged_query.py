"""Answer charged queries, with the steps in the order that protects privacy.

validate · canonical form · look for the stored answer · reserve the budget · draw the noise · read the data · store ·
hide what is below the public threshold · show. Whether a query is refused depends on its text, on what is public about
the index, and on the budget: never on the data. An answer that is not stored is never shown, and what is stored was
charged before; a process that dies on the way may waste budget, no more.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leeward.queries.answer.plan import IndexSession, Plan, Question, plan_query
from leeward.queries.index.counts import Index
from leeward.queries.ledger import budgets, spending
from leeward.queries.ledger.budgets import Terms
from leeward.queries.ledger.chain import digest, text_of
from leeward.queries.ledger.spending import Charge
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import to_epsilon

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """The answer to a question. `values` are the noisy counts (one, or one per bin), None where hidden."""

    plan: Plan
    values: tuple[int | float | None, ...]
    cost: int
    """Micro-ε that this call took from the budget: 0 when the answer was stored."""
    remaining: int
    """Micro-ε that the user has left for one more answer."""
    threshold: int | None

    @staticmethod
    def from_noisy(
        plan: Plan, noisy: Sequence[int | float], *, cost: int, remaining: int, terms: Terms
    ) -> Answer:
        """Build an answer from noisy values; those below the public threshold are hidden."""
        limit = terms.threshold
        values = tuple(None if limit is not None and value < limit else value for value in noisy)
        return Answer(plan=plan, values=values, cost=cost, remaining=remaining, threshold=limit)

    @property
    def half_width(self) -> float:
        """Half-width of the 95 % interval, exact for the mechanism."""
        return mechanism.half_width(self.plan.noise)

    @property
    def half_width_of_all(self) -> float:
        """Half-width of the 95 % intervals of all bins at once."""
        return mechanism.half_width_of_all(self.plan.noise, len(self.values))

    def interval(self, value: int | float | None) -> list[int | float] | None:
        """The 95 % interval around a value, from 0 up; None for a hidden one."""
        return None if value is None else around(value, self.half_width)

    @property
    def total(self) -> tuple[int | float, list[int | float]] | None:
        """The sum of a histogram's bins with its own 95 % interval; None where a bin is hidden, which it would tell."""
        shown = [value for value in self.values if value is not None]
        if self.plan.by is None or len(shown) < len(self.values):
            return None
        return sum(shown), around(sum(shown), mechanism.half_width_of_sum(self.plan.noise, len(shown)))

    def to_polars(self) -> pl.DataFrame:
        """One row a bin: `bin` (null without a histogram), `value`, `low`, `high` (its interval); null where hidden."""
        import polars as pl

        none: tuple[None, None] = (None, None)
        intervals = [self.interval(value) or none for value in self.values]
        bins = [None] if self.plan.by is None else self.plan.bins
        return pl.DataFrame(
            {
                "bin": pl.Series(bins, dtype=pl.String),
                "value": pl.Series(self.values, dtype=pl.Float64),
                "low": pl.Series([low for low, _ in intervals], dtype=pl.Float64),
                "high": pl.Series([high for _, high in intervals], dtype=pl.Float64),
            }
        )

    def __repr__(self) -> str:
        found = (
            self.values[0] if self.plan.by is None else dict(zip(self.plan.bins, self.values, strict=True))
        )
        return (
            f"<Answer {self.plan.query.canonical()}: {found}, 95 % within ± {self.half_width:g}; epsilon "
            f"{to_epsilon(self.plan.noise.epsilon):g} a {self.plan.unit}; remaining {to_epsilon(self.remaining):g}>"
        )

    def _repr_html_(self) -> str:
        return self.to_polars()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        found: dict[str, Any] = {"query": plan.query.canonical()}
        intervals = [self.interval(value) for value in self.values]
        if plan.by is None:
            found |= {"answer": self.values[0], "interval": intervals[0]}
        else:
            found |= {
                "by": plan.by,
                "answer": dict(zip(plan.bins, self.values, strict=True)),
                "interval": dict(zip(plan.bins, intervals, strict=True)),
                "half_width_of_all": self.half_width_of_all,
                "total": None if self.total is None else {"sum": self.total[0], "interval": self.total[1]},
            }
        return found | {
            "confidence": mechanism.CONFIDENCE,
            "epsilon": to_epsilon(plan.noise.epsilon),
            "likelihood_factor": mechanism.likelihood(plan.noise.epsilon),
            "unit": plan.unit,
            "counted": plan.counted,
            "mechanism": plan.noise.kind,
            "sensitivity": plan.noise.sensitivity,
            "expected_error": mechanism.mean_absolute_noise(plan.noise),
            "threshold": self.threshold,
            "vocabulary_public": plan.vocabulary_public,
            "stored": self.cost == 0,
            "cost": to_epsilon(self.cost),
            "remaining": to_epsilon(self.remaining),
        }


def around(value: int | float, half_width: float) -> list[int | float]:
    """An interval without what no count can be."""
    return [max(0, value - half_width), max(0, value + half_width)]


def answer_all(
    session: IndexSession, asked: Sequence[Question], user: str, project: str | None = None
) -> list[Answer]:
    """The answers to questions, all charged at once or, where the budget does not pay for all, none. One question
    has one price and one answer, for whoever asks. BudgetSpent, LedgerUnreachable, BadInput: nothing was answered."""
    budgets.check_user(user)
    return answer_plans(session, [plan_query(session, each) for each in asked], user, project)


def answer_plans(
    session: IndexSession,
    plans: Sequence[Plan],
    user: str,
    project: str | None = None,
    pace: float = 0.0,
    stored: Mapping[str, str] | None = None,
) -> list[Answer]:
    """As `answer_all`, for planned questions, whose price could be shown before. `stored`: their stored answers, if
    read. `pace`: counting takes a multiple of this many seconds, so that its duration does not reveal how much was
    counted."""
    stored = dict(stored_answers(session, plans, project) if stored is None else stored)
    costs: Counter[str] = Counter()
    open_plans = [plan for plan in plans if plan.key not in stored]
    if open_plans:
        data_set, separately = session.index.meta.id, session.terms.charge_projects_separately
        charges = [Charge(key=plan.key, question=plan.question, epsilon=plan.price) for plan in open_plans]
        paid = spending.reserve(session.ledger, data_set, user, charges, project)
        for each in paid:
            costs[each.key] += each.cost
            # Where projects pay separately, an answer that another one paid for is worked out again and dropped: how
            # long it takes does not tell that it was stored.
            if each.payload is not None and not separately:
                stored[each.key] = each.payload
        payloads = _work_out(session.index, open_plans, stored, pace)
        stored |= spending.store(session.ledger, data_set, payloads, separately=separately)
        _keep(session, stored, project)
        remaining = paid[-1].left
    else:
        remaining = spending.left(session.ledger, session.index.meta.id, user, project).user
    more: dict[str, Any] = {"remaining": remaining, "terms": session.terms}
    values = ((plan, json.loads(stored[plan.key])["values"]) for plan in plans)
    return [Answer.from_noisy(plan, own, cost=costs.pop(plan.key, 0), **more) for plan, own in values]


def price_of(
    session: IndexSession, plans: Sequence[Plan], user: str, project: str | None = None
) -> tuple[int, int]:
    """Price of questions now, and the user's remaining budget, in micro-ε. Charges nothing."""
    stored = stored_answers(session, plans, project)
    price = {plan.key: plan.price for plan in plans if plan.key not in stored}
    return sum(price.values()), spending.left(session.ledger, session.index.meta.id, user, project).user


MOST_KEPT: Final = 5000
"""Answers of an index that stay in memory."""


def stored_answers(session: IndexSession, plans: Sequence[Plan], project: str | None) -> dict[str, str]:
    """The answers that cost nothing more: those that are stored or, where projects pay separately, that this project
    paid. One that was seen before is not asked for again."""
    payer = _payer(session, project)
    found = {plan.key: there for plan in plans if (there := session.kept.get((plan.key, payer))) is not None}
    if missing := [plan.key for plan in plans if plan.key not in found]:
        more = spending.find_answers(session.ledger, session.index.meta.id, missing, payer)
        _keep(session, more, project)
        found |= more
    return found


def _keep(session: IndexSession, answers: Mapping[str, str], project: str | None) -> None:
    if len(session.kept) > MOST_KEPT:
        session.kept.clear()
    payer = _payer(session, project)
    session.kept.update({(key, payer): payload for key, payload in answers.items()})


def _payer(session: IndexSession, project: str | None) -> str | None:
    return project if session.terms.charge_projects_separately else None


def charge(
    session: IndexSession,
    question: Mapping[str, Any],
    epsilon: int,
    user: str,
    compute: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Charge `epsilon` (micro-ε) for another release, then compute and store it; the same question gets the stored
    result at no cost. `question` identifies it without data; `compute` must be private, with noise from `mechanism`."""
    text = text_of(question)
    key, data_set = digest(text), session.index.meta.id
    payload = spending.find_answer(session.ledger, data_set, key)
    if payload is None:
        charge = Charge(key=key, question=text, epsilon=epsilon)
        payload = spending.reserve(session.ledger, data_set, user, [charge])[0].payload
    if payload is None:
        payload = spending.store(session.ledger, data_set, {key: text_of(compute())})[key]
    found: dict[str, Any] = json.loads(payload)
    return found


def _work_out(index: Index, plans: Sequence[Plan], stored: Mapping[str, str], pace: float) -> dict[str, str]:
    """The noisy values of each question that is not stored, by key, after a multiple of `pace` seconds."""
    began = time.perf_counter()
    missing = {plan.key: plan for plan in plans if plan.key not in stored}
    found = noisy_values(index, list(missing.values()))
    if pace > 0 and missing:
        time.sleep(-(time.perf_counter() - began) % pace)
    return {key: text_of({"values": values}) for key, values in zip(missing, found, strict=True)}


def noisy_values(index: Index, plans: Sequence[Plan]) -> list[list[int | float]]:
    """Draw the noise for all questions, then read the data, which so cannot change the draws."""
    drawn = [mechanism.draw(plan.noise, len(plan.bins)) for plan in plans]
    return [
        [count + z for count, z in zip(_counts(index, plan), noise, strict=True)]
        for plan, noise in zip(plans, drawn, strict=True)
    ]


def _counts(index: Index, plan: Plan) -> list[int]:
    if plan.by is None:
        return [index.count(plan.query, plan.counted)]
    counts = index.count_by(plan.query, plan.by, plan.bins, plan.counted, plan.most)
    return [int(count) for count in counts]
