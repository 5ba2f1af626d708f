"""Spending from the ledger: reserve before any data are read, store the answer, show what was stored.

A question is paid once. It is found again by its key, for every user; a charge whose answer was never stored (its
process died) is taken up by whoever asks the same question next, at no further cost: nothing of it was ever shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.budgets import check_user, has_room, terms_of
from leeward.queries.ledger.families import (
    BALANCES,
    Change,
    Replay,
    changing,
    own_accounts,
    state_of_log,
    terms_and_line,
)
from leeward.queries.ledger.opening import Ledger, reading
from leeward.queries.privacy.accounting import Budget, affordable, cost, spent_epsilon, to_epsilon

_account, _answer = tables.accounts.c, tables.answers.c
_among = _account.account.in_(sa.bindparam("among", expanding=True))
# Built once, see `families`.
HELD: Final = BALANCES.where(_among)
TAKE: Final = (
    tables.accounts.update()
    .where(_among, _account.spent + sa.bindparam("price", type_=sa.BigInteger) <= _account.most)
    .values(spent=_account.spent + sa.bindparam("price", type_=sa.BigInteger))
)
PAYLOADS: Final = sa.select(_answer.key, _answer.payload).where(
    _answer.data_set == sa.bindparam("data_set"), _answer.key.in_(sa.bindparam("keys", expanding=True))
)
# SQLite's is the same
CHARGED: Final = insert(tables.answers).on_conflict_do_nothing().returning(_answer.key)
STORE: Final = tables.answers.update().where(
    _answer.data_set == sa.bindparam("of"),
    _answer.key == sa.bindparam("question_key"),
    _answer.payload.is_(None),
)


class BudgetSpent(GuaranteeUnreachable):
    """What is left does not pay for the question."""


class NotAllotted(BudgetSpent):
    """The user, or the project, has no allotment on an index whose budget is not open to everybody."""


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
    left: int
    """Micro-ε that the user has left for one more answer."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """Remaining budget, in micro-ε of one more answer: for everybody, and for the user."""

    spent_epsilon: float
    """ε of all answers together, at the budget's δ."""
    anybody: int
    user: int


def find_answer(ledger: Ledger, data_set: str, key: str) -> str | None:
    """The stored answer to a question, if there is one."""
    return find_answers(ledger, data_set, [key]).get(key)


def find_answers(
    ledger: Ledger, data_set: str, keys: Sequence[str], payer: str | None = None
) -> dict[str, str]:
    """The stored answers to several questions, by key; those alone that the project `payer` paid, where one is given
    (as projects pay separately)."""
    with reading(ledger) as connection:
        stored = _answers(connection, data_set, keys)
    there = {key: payload for key, payload in stored.items() if payload is not None}
    if payer is None or not there:
        return there
    paid = paid_by(ledger, data_set, there, payer)
    return {key: payload for key, payload in there.items() if key in paid}


def paid_by(ledger: Ledger, data_set: str, keys: Iterable[str], project: str) -> set[str]:
    """The questions, among those of `keys`, that a project paid for, of an index whose projects pay separately."""
    known = state_of_log(ledger, data_set)
    return set() if known is None else {key for key in keys if (project, data_set, key) in known.payments}


def answers(ledger: Ledger, data_set: str) -> list[tuple[str, str]]:
    """The questions that were answered on a data set, each with the stored answer: texts as they are kept."""
    asked = sa.select(tables.answers.c.question, tables.answers.c.payload)
    given = asked.where(tables.answers.c.data_set == data_set, tables.answers.c.payload.is_not(None))
    with reading(ledger) as connection:
        return [(question, payload) for question, payload in connection.execute(given)]


def reserve(
    ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge], project: str | None = None
) -> list[Paid]:
    """Pay for all questions or for none: one conditional update takes the price of those that nobody paid yet.

    BudgetSpent where the data set, an ancestor, the project or the user has too little left; NotAllotted where a name
    has no allotment and needs one. Nothing is taken then. Not yet on the disk when it returns (see `writing`): only
    `store` makes an answer that may be shown.
    """
    check_user(user)
    if project is not None:
        check_user(project)
    try:
        return _reserve(ledger, data_set, user, charges, project)
    except BudgetSpent as error:
        refused = {
            "event": "refused",
            "data_set": data_set,
            "user": user,
            "questions": len(charges),
            "epsilon": sum(charge.epsilon for charge in charges),
            **({} if project is None else {"project": project}),
        }
        with changing(ledger, data_set) as change:
            change.append([refused])
        if isinstance(error, NotAllotted):
            raise
    free = left(ledger, data_set, user, project)
    whose = user if project is None else f"{user} in {project}"
    separately = project is not None and terms_of(ledger, data_set).charge_projects_separately
    total = "" if separately else f", {to_epsilon(free.anybody):g} remains in total"
    raise BudgetSpent(
        f"Not enough budget: {whose} has {to_epsilon(free.user):g} left{total}. Nothing was charged.  Use a smaller "
        "--epsilon, or ask something that was asked before, which costs nothing; budgets do not refill."
    )


def _reserve(
    ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge], project: str | None
) -> list[Paid]:
    with changing(ledger, data_set, durable=False) as change:
        connection, terms, payments = change.connection, change.terms, change.known.payments
        asked: dict[str, dict[str, Any]] = {
            charge.key: {
                "data_set": data_set, "user": user, "key": charge.key, "question": charge.question,
                "epsilon": charge.epsilon, "cost": cost(charge.epsilon, terms.accounting),
            }
            for charge in charges
        }  # fmt: skip
        now = chain.now()
        new = set(connection.scalars(CHARGED, [{**each, "charged": now} for each in asked.values()]))
        before = _answers(connection, data_set, sorted(asked.keys() - new)) if new != asked.keys() else {}
        pays_again = terms.separately and project is not None
        due = {
            key: each
            for key, each in asked.items()
            if key in new or (pays_again and (project, data_set, key) not in payments)
        }
        if due:
            _charge(change, data_set, user, project, {key: each["cost"] for key, each in due.items()}, new)
            whose = {} if project is None else {"project": project}
            change.append(
                {"event": "charged" if key in new else "charged again", **each, **whose}
                for key, each in due.items()
            )
        free = _left(terms, change.known.line(data_set), user, project, change.known.accounts).user
    return [
        Paid(
            key=charge.key,
            payload=before.get(charge.key),
            cost=0 if due.pop(charge.key, None) is None else charge.epsilon,
            left=free,
        )
        for charge in charges
    ]


def _charge(
    change: Change, data_set: str, user: str, project: str | None, prices: Mapping[str, int], new: set[str]
) -> None:
    """Take the prices of questions, of what is not `new` only from the project and the user."""
    connection, family, terms = change.connection, change.family, change.terms
    line, own = _accounts(change.known, data_set, family, user, project, terms.default_allotment)
    fresh = sum(prices[key] for key in new)
    outside = terms.separately and project is None and new
    if outside and not has_room(change.known.accounts, family, fresh):
        raise NotAllotted(
            "Not enough budget: what is left of this index is allotted to its projects, which pay separately. Nothing "
            "was charged. Ask in a project, or allot less."
        )
    if terms.separately and own:
        _take(connection, line, fresh)
        _take(connection, own, sum(prices.values()))
    else:
        _take(connection, [*line, *own], fresh)


def _accounts(
    known: Replay, data_set: str, family: str, user: str, project: str | None, default: str
) -> tuple[list[str], list[str]]:
    """Every account that pays, by the log, which the accounts were checked against: the data set and its ancestors; the
    project and the user. NotAllotted for a name without an allotment where it needs one."""
    own = own_accounts(family, user, project)
    there = [name for name in own if name in known.accounts]
    if project is not None and own[-1] not in there:
        raise NotAllotted(_without(f"the project {project}", f"--allot-project {project}=E"))
    if default == "none" and not there:
        raise NotAllotted(_without(user, f"--allot {user}=E"))
    return [f"data:{each}" for each in known.line(data_set)], sorted(there)


def _without(who: str, flag: str) -> str:
    return (
        f"Not enough budget: {who} has no allotment on this index. Nothing was charged. The custodian gives one with: "
        f"leeward budget INDEX {flag}"
    )


def _take(connection: sa.Connection, ids: Sequence[str], price: int) -> None:
    """Take the price from all accounts by a conditional update, or from none if one has too little left."""
    taken = connection.execute(TAKE, {"among": ids, "price": price}).rowcount
    if taken != len(ids):
        raise BudgetSpent("the price is not left")  # rolls back; `reserve` says what is left then


def store(
    ledger: Ledger, data_set: str, payloads: dict[str, str], *, separately: bool = False
) -> dict[str, str]:
    """Store answers to paid questions, on the disk, and return those that are stored: of two answers to one question
    the first stays, the other is nobody's. `separately`: that it stayed is an entry too, so that an answer that was
    stored before costs the same work.

    BadInput for a question that was never paid.
    """
    with changing(ledger, data_set) as change:
        kept = {}
        for key, payload in payloads.items():
            given = {"of": data_set, "question_key": key, "payload": payload}
            if change.connection.execute(STORE, given).rowcount:
                kept[key] = payload
        others = payloads.keys() - kept.keys()
        stored = _answers(change.connection, data_set, sorted(others)) if others else {}
        before = {key: payload for key, payload in stored.items() if payload}
        if logged := kept | (before if separately else {}):
            change.append(
                {"event": "answered", "data_set": data_set, "key": key, "digest": chain.digest(payload)}
                for key, payload in logged.items()
            )
    if others - before.keys():
        raise BadInput("An answer without a charge is never stored; reserve its budget first.")
    return kept | before


def left(ledger: Ledger, data_set: str, user: str | None, project: str | None = None) -> Left:
    """Remaining budget for everybody and for a user, in a project (None: somebody without an allotment)."""
    terms, line = terms_and_line(ledger, data_set)
    names = [*(f"data:{each}" for each in line), *own_accounts(terms.family, user, project)]
    with reading(ledger) as connection:
        held = {row.account: (row.most, row.spent) for row in connection.execute(HELD, {"among": names})}
    return _left(terms, line, user, project, held)


def _left(
    terms: Any,
    line: Sequence[str],
    user: str | None,
    project: str | None,
    accounts: Mapping[str, Sequence[int]],
) -> Left:
    """What is left by accounts: account -> (most, spent)."""
    free = {name: most - spent for name, (most, spent) in accounts.items()}
    names = own_accounts(terms.family, user, project)
    everybody = min(free[f"data:{each}"] for each in line)
    allotted = [free[name] for name in names if name in free]
    lacks_project = project is not None and names[-1] not in free
    if lacks_project or (not allotted and terms.default_allotment == "none"):
        allotted = [0]
    budget = Budget(epsilon=terms.epsilon, accounting=terms.accounting, delta=terms.delta)
    return Left(
        spent_epsilon=spent_epsilon(accounts[f"data:{terms.family}"][1], budget),
        anybody=affordable(everybody, budget.accounting),
        user=affordable(min([everybody, *allotted]), budget.accounting),
    )


def _answers(connection: sa.Connection, data_set: str, keys: Sequence[str]) -> dict[str, str | None]:
    rows = connection.execute(PAYLOADS, {"data_set": data_set, "keys": keys})
    return {row.key: row.payload for row in rows}
