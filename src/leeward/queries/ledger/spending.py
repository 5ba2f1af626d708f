"""Spending from the ledger: reserve before any data are read, store the answer, show what was stored.

A question is paid once. It is found again by its key, for every user; a charge whose answer was never stored (its
process died) is taken up by whoever asks the same question next, at no further cost: nothing of it was ever shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.budgets import named
from leeward.queries.ledger.families import family_of, family_terms, line_of, lock, user_account
from leeward.queries.ledger.opening import Ledger, reading, writing
from leeward.queries.privacy.accounting import Budget, affordable, cost, shown, spent_epsilon


class BudgetSpent(GuaranteeUnreachable):
    """What is left does not pay for the question."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A question that is to be paid: its key, the question in words (no patient's data), and its price in micro-ε."""

    key: str
    question: str
    epsilon: int


@dataclass(frozen=True, kw_only=True)
class Paid:
    """A question that is paid. `payload` is the stored answer, None while there is none; `cost` is what this call took,
    in micro-ε."""

    key: str
    payload: str | None
    cost: int


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left, in micro-ε of one more answer: for everybody, and for the user."""

    spent_epsilon: float
    """ε of all answers together, at the budget's δ."""
    anybody: int
    user: int


def found(ledger: Ledger, data_set: str, key: str) -> str | None:
    """The stored answer to a question, if there is one."""
    answers = tables.answers.c
    with reading(ledger) as connection:
        asked = sa.select(answers.payload).where(answers.data_set == data_set, answers.key == key)
        payload: str | None = connection.execute(asked).scalar()
    return payload


def reserve(ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge]) -> list[Paid]:
    """Pay for all questions or for none: one conditional update takes the price of those that nobody paid yet.

    BudgetSpent where the data set, an ancestor or the user has too little left; nothing is taken then. Not yet on the
    disk when it returns (see `writing`): only `store` makes an answer that may be shown.
    """
    named(user)
    try:
        return _reserve(ledger, data_set, user, charges)
    except BudgetSpent:
        _refused(ledger, data_set, user, charges)
    free = left(ledger, data_set, user)
    raise BudgetSpent(
        f"The budget does not pay for this: {shown(free.user):g} is left for {user}, {shown(free.anybody):g} for "
        "everybody. Nothing was charged. Ask for less with a smaller --epsilon, or for something asked before, which "
        "costs nothing; budgets do not refill."
    )


def _reserve(ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge]) -> list[Paid]:
    with writing(ledger, durable=False) as connection:
        family = family_of(connection, ledger, data_set)
        entries, head = lock(connection, ledger, family)
        before = _answers(connection, data_set, [charge.key for charge in charges])
        new = {charge.key: charge for charge in charges if charge.key not in before}
        if new:
            accounting = family_terms(connection, family).accounting
            prices = {key: cost(charge.epsilon, accounting) for key, charge in new.items()}
            _take(connection, data_set, family, user, sum(prices.values()))
            moment = chain.now()
            connection.execute(
                tables.answers.insert(),
                [
                    {
                        "data_set": data_set,
                        "key": key,
                        "question": charge.question,
                        "epsilon": charge.epsilon,
                        "cost": prices[key],
                        "user": user,
                        "charged": moment,
                        "payload": None,
                    }
                    for key, charge in new.items()
                ],
            )
            bodies = [
                {
                    "event": "charged",
                    "data_set": data_set,
                    "user": user,
                    "key": key,
                    "question": charge.question,
                    "epsilon": charge.epsilon,
                    "cost": prices[key],
                }
                for key, charge in new.items()
            ]
            chain.append(connection, family, entries, head, bodies)
    seen: set[str] = set()
    paid = []
    for charge in charges:
        fresh = charge.key in new and charge.key not in seen
        seen.add(charge.key)
        paid.append(Paid(key=charge.key, payload=before.get(charge.key), cost=charge.epsilon if fresh else 0))
    return paid


def _take(connection: sa.Connection, data_set: str, family: str, user: str, price: int) -> None:
    """The one conditional update. Every account has to have the price left, or none is touched."""
    accounts = tables.accounts.c
    ids = [f"data:{each}" for each in line_of(connection, data_set)]
    allotment = user_account(family, user)
    if connection.execute(sa.select(accounts.account).where(accounts.account == allotment)).first():
        ids.append(allotment)
    taken = connection.execute(
        tables.accounts.update()
        .where(accounts.account.in_(ids), accounts.spent + price <= accounts.most)
        .values(spent=accounts.spent + price)
    ).rowcount
    if taken != len(ids):
        raise BudgetSpent("the price is not left")  # rolls back; `reserve` says what is left then


def _refused(ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge]) -> None:
    with writing(ledger) as connection:
        family = family_of(connection, ledger, data_set)
        entries, head = lock(connection, ledger, family)
        body = {
            "event": "refused",
            "data_set": data_set,
            "user": user,
            "questions": len(charges),
            "epsilon": sum(charge.epsilon for charge in charges),
        }
        chain.append(connection, family, entries, head, [body])


def store(ledger: Ledger, data_set: str, payloads: dict[str, str]) -> dict[str, str]:
    """Store answers to paid questions, on the disk, and return those that are stored: of two answers to one question
    the first stays, the other is nobody's.

    BadInput for a question that was never paid.
    """
    answers = tables.answers.c
    with writing(ledger) as connection:
        family = family_of(connection, ledger, data_set)
        entries, head = lock(connection, ledger, family)
        kept = {}
        for key, payload in payloads.items():
            changed = connection.execute(
                tables.answers.update()
                .where(answers.data_set == data_set, answers.key == key, answers.payload.is_(None))
                .values(payload=payload)
            ).rowcount
            if changed:
                kept[key] = payload
        if kept:
            bodies = [
                {"event": "answered", "data_set": data_set, "key": key, "digest": chain.digest(payload)}
                for key, payload in kept.items()
            ]
            chain.append(connection, family, entries, head, bodies)
        others = [key for key in payloads if key not in kept]
        stored = _answers(connection, data_set, others) if others else {}
    for key in others:
        payload_before = stored.get(key)
        if payload_before is None:
            raise BadInput("An answer without a charge is never stored; reserve its budget first.")
        kept[key] = payload_before
    return kept


def left(ledger: Ledger, data_set: str, user: str | None) -> Left:
    """What is left for everybody and for a user (None: somebody without an allotment)."""
    with reading(ledger) as connection:
        return _left(connection, family_of(connection, ledger, data_set), data_set, user)


def _left(connection: sa.Connection, family: str, data_set: str, user: str | None) -> Left:
    terms = family_terms(connection, family)
    accounts = tables.accounts.c
    ids = [f"data:{each}" for each in line_of(connection, data_set)]
    allotment = "" if user is None else user_account(family, user)
    rows = connection.execute(
        sa.select(accounts.account, accounts.most, accounts.spent).where(
            accounts.account.in_([*ids, allotment])
        )
    ).all()
    free = {row.account: row.most - row.spent for row in rows}
    everybody = min(free[each] for each in ids)
    own = min(everybody, free.get(allotment, everybody))
    budget = Budget(epsilon=terms.epsilon, accounting=terms.accounting, delta=terms.delta)
    spent = next(row.spent for row in rows if row.account == f"data:{family}")
    return Left(
        spent_epsilon=spent_epsilon(spent, budget),
        anybody=affordable(everybody, budget.accounting),
        user=affordable(own, budget.accounting),
    )


def _answers(connection: sa.Connection, data_set: str, keys: Sequence[str]) -> dict[str, str | None]:
    answers = tables.answers.c
    rows = connection.execute(
        sa.select(answers.key, answers.payload).where(answers.data_set == data_set, answers.key.in_(keys))
    )
    return {row.key: row.payload for row in rows}
