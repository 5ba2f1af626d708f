"""Spending from the ledger: reserve before any data are read, store the answer, show what was stored.

A question is paid once. It is found again by its key, for every user; a charge whose answer was never stored (its
process died) is taken up by whoever asks the same question next, at no further cost: nothing of it was ever shown.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.budgets import named, require_room, terms_of
from leeward.queries.ledger.direct import Connection, among, values_of
from leeward.queries.ledger.families import changing, family_of, line_of, state_of_log
from leeward.queries.ledger.opening import Ledger, reading, reading_directly
from leeward.queries.ledger.replay import Replay, account_of
from leeward.queries.privacy.accounting import Budget, affordable, cost, shown, spent_epsilon

_accounts_of, _answers_of = tables.accounts.c, tables.answers.c
# Built once, see `families`.
PAYLOAD: Final = sa.select(_answers_of.payload).where(
    _answers_of.data_set == sa.bindparam("data_set"), _answers_of.key == sa.bindparam("key")
)
ANSWER: Final = tables.answers.insert()
STORE: Final = tables.answers.update().where(
    _answers_of.data_set == sa.bindparam("of"),
    _answers_of.key == sa.bindparam("question_key"),
    _answers_of.payload.is_(None),
)


@functools.lru_cache(maxsize=128)
def payloads_of(count: int) -> sa.Select[Any]:
    """The stored answers to so many questions."""
    return sa.select(_answers_of.key, _answers_of.payload).where(
        _answers_of.data_set == sa.bindparam("data_set"), among(_answers_of.key, count)
    )


@functools.lru_cache(maxsize=128)
def held(count: int) -> sa.Select[Any]:
    """What so many accounts hold."""
    return sa.select(_accounts_of.account, _accounts_of.most, _accounts_of.spent).where(
        among(_accounts_of.account, count)
    )


@functools.lru_cache(maxsize=128)
def standing(accounts: int, keys: int) -> sa.Select[Any]:
    """The family of a data set, once with each of so many accounts and stored answers that are there: a database that
    is a server takes longer to be asked than to answer."""
    of: sa.BindParameter[str] = sa.bindparam("data_set")
    sets = tables.data_sets.c
    there = tables.families.join(
        tables.data_sets, (sets.family == tables.families.c.family) & (sets.data_set == of)
    ).outerjoin(tables.accounts, among(_accounts_of.account, accounts))
    wanted = [*tables.families.c, sets.parent, _accounts_of.account, _accounts_of.most, _accounts_of.spent]
    if keys:
        asked = _answers_of.key.in_([sa.bindparam(f"key{each}") for each in range(keys)])
        there = there.outerjoin(tables.answers, (_answers_of.data_set == of) & asked)
        wanted += [_answers_of.key, _answers_of.payload]
    return sa.select(*wanted).select_from(there)


@functools.lru_cache(maxsize=128)
def taking(count: int) -> sa.Update:
    """The conditional update of so many accounts."""
    price: sa.BindParameter[int] = sa.bindparam("price", type_=sa.BigInteger)
    return (
        tables.accounts.update()
        .where(among(_accounts_of.account, count), _accounts_of.spent + price <= _accounts_of.most)
        .values(spent=_accounts_of.spent + price)
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


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left, in micro-ε of one more answer: for everybody, and for the user."""

    spent_epsilon: float
    """ε of all answers together, at the budget's δ."""
    anybody: int
    user: int


def found(
    ledger: Ledger, data_set: str, key: str, *, separately: bool = False, project: str | None = None
) -> str | None:
    """The stored answer to a question, if there is one; where projects pay `separately`, if this `project` paid it."""
    if separately and project is not None and not paid_by(ledger, data_set, key, project):
        return None
    with reading_directly(ledger) as connection:
        payload: str | None = connection.execute(PAYLOAD, {"data_set": data_set, "key": key}).scalar()
    return payload


def found_and_left(
    ledger: Ledger,
    data_set: str,
    keys: Sequence[str],
    user: str | None,
    project: str | None,
    *,
    separately: bool = False,
) -> tuple[dict[str, str], Left]:
    """`found` for several questions, those that have an answer, and `left`, with one connection."""
    with reading_directly(ledger) as connection:
        rows = _standing(connection, ledger, data_set, user, project, keys)
        remaining = _left(connection, rows, data_set, user, project)
    there = {row.key: row.payload for row in rows if row.payload is not None} if keys else {}
    if separately and project is not None:
        there = {key: payload for key, payload in there.items() if paid_by(ledger, data_set, key, project)}
    return there, remaining


def paid_by(ledger: Ledger, data_set: str, key: str, project: str) -> bool:
    """Whether a project paid for a question, of an index whose projects pay separately."""
    known = state_of_log(ledger, data_set)
    return known is not None and (project, data_set, key) in known.payments


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
    named(user)
    if project is not None:
        named(project)
    try:
        return _reserve(ledger, data_set, user, charges, project)
    except BudgetSpent as error:
        _refused(ledger, data_set, user, charges, project)
        if isinstance(error, NotAllotted):
            raise
    free = left(ledger, data_set, user, project)
    whose = user if project is None else f"{user} in {project}"
    separately = project is not None and terms_of(ledger, data_set).charge_projects_separately
    total = "" if separately else f", {shown(free.anybody):g} remains in total"
    raise BudgetSpent(
        f"Not enough budget: {whose} has {shown(free.user):g} left{total}. Nothing was charged.  Use a smaller "
        "--epsilon, or ask something that was asked before, which costs nothing; budgets do not refill."
    )


def _reserve(
    ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge], project: str | None
) -> list[Paid]:
    with changing(ledger, data_set, durable=False) as change:
        connection, family = change.connection, change.family
        before = _answers(connection, data_set, [charge.key for charge in charges])
        new = {charge.key: charge for charge in charges if charge.key not in before}
        terms = change.terms
        again: dict[str, Charge] = {}
        if terms.separately and project is not None:
            payments = change.known.payments
            again = {
                charge.key: charge
                for charge in charges
                if charge.key not in new and (project, data_set, charge.key) not in payments
            }
        due = {**new, **again}
        if due:
            prices = {key: cost(charge.epsilon, terms.accounting) for key, charge in due.items()}
            line, own = _accounts(change.known, data_set, family, user, project, terms.default_allotment)
            fresh = sum(prices[key] for key in new)
            if terms.separately and project is None and new:
                _require_unallotted(change.known.accounts, family, fresh)
            if terms.separately and own:
                _take(connection, line, fresh)
                _take(connection, own, sum(prices.values()))
            else:
                _take(connection, [*line, *own], fresh)
            moment = chain.now()
            rows = [
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
            ]
            if rows:
                connection.execute(ANSWER, rows)
            change.append(
                {
                    "event": "charged" if key in new else "charged again",
                    "data_set": data_set,
                    "user": user,
                    "key": key,
                    "question": charge.question,
                    "epsilon": charge.epsilon,
                    "cost": prices[key],
                    **({} if project is None else {"project": project}),
                }
                for key, charge in due.items()
            )
    seen: set[str] = set()
    paid = []
    for charge in charges:
        takes = charge.key in due and charge.key not in seen
        seen.add(charge.key)
        paid.append(Paid(key=charge.key, payload=before.get(charge.key), cost=charge.epsilon if takes else 0))
    return paid


def _require_unallotted(accounts: Mapping[str, list[int]], family: str, price: int) -> None:
    """NotAllotted for a question outside of projects that would take what projects have left."""
    try:
        require_room(accounts, family, more=price)
    except BadInput:
        raise NotAllotted(
            "Not enough budget: what is left of this index is allotted to its projects, which pay separately. Nothing "
            "was charged. Ask in a project, or allot less."
        ) from None


def _accounts(
    known: Replay, data_set: str, family: str, user: str, project: str | None, default: str
) -> tuple[list[str], list[str]]:
    """Every account that pays, by the log, which the accounts were checked against: the data set and its ancestors; the
    project and the user. NotAllotted for a name without an allotment where it needs one."""
    own = account_of(family, user)
    of_project = None if project is None else account_of(family, None, project)
    named_ones = [name for name in (own, of_project) if name is not None]
    there = {name for name in named_ones if name in known.accounts}
    if of_project is not None and of_project not in there:
        raise NotAllotted(_without(f"the project {project}", f"--allot-project {project}=E"))
    if default == "none" and not there:
        raise NotAllotted(_without(user, f"--allot {user}=E"))
    return [f"data:{each}" for each in known.line(data_set)], sorted(there)


def _without(who: str, flag: str) -> str:
    return (
        f"Not enough budget: {who} has no allotment on this index. Nothing was charged. The custodian gives one with: "
        f"leeward budget INDEX {flag}"
    )


def _take(connection: Connection, ids: Sequence[str], price: int) -> None:
    """The conditional update. Every account has to have the price left, or the transaction leaves none touched."""
    taken = connection.execute(taking(len(ids)), {**values_of(ids), "price": price}).rowcount
    if taken != len(ids):
        raise BudgetSpent("the price is not left")  # rolls back; `reserve` says what is left then


def _refused(
    ledger: Ledger, data_set: str, user: str, charges: Sequence[Charge], project: str | None
) -> None:
    with changing(ledger, data_set) as change:
        change.append(
            [
                {
                    "event": "refused",
                    "data_set": data_set,
                    "user": user,
                    "questions": len(charges),
                    "epsilon": sum(charge.epsilon for charge in charges),
                    **({} if project is None else {"project": project}),
                }
            ]
        )


def store(
    ledger: Ledger, data_set: str, payloads: dict[str, str], *, separately: bool = False
) -> dict[str, str]:
    """Store answers to paid questions, on the disk, and return those that are stored: of two answers to one question
    the first stays, the other is nobody's. `separately`: that it stayed is an entry too, so that an answer that was
    stored before costs the same work.

    BadInput for a question that was never paid.
    """
    with changing(ledger, data_set) as change:
        connection = change.connection
        kept = {}
        for key, payload in payloads.items():
            given = {"of": data_set, "question_key": key, "payload": payload}
            changed = connection.execute(STORE, given).rowcount
            if changed:
                kept[key] = payload
        others = [key for key in payloads if key not in kept]
        stored = _answers(connection, data_set, others) if others else {}
        logged = {**kept, **({key: text for key, text in stored.items() if text} if separately else {})}
        if logged:
            bodies = [
                {"event": "answered", "data_set": data_set, "key": key, "digest": chain.digest(payload)}
                for key, payload in logged.items()
            ]
            change.append(bodies)
    for key in others:
        payload_before = stored.get(key)
        if payload_before is None:
            raise BadInput("An answer without a charge is never stored; reserve its budget first.")
        kept[key] = payload_before
    return kept


def left(ledger: Ledger, data_set: str, user: str | None, project: str | None = None) -> Left:
    """What is left for everybody and for a user, in a project (None: somebody without an allotment)."""
    with reading_directly(ledger) as connection:
        rows = _standing(connection, ledger, data_set, user, project)
        return _left(connection, rows, data_set, user, project)


def _standing(
    connection: Connection,
    ledger: Ledger,
    data_set: str,
    user: str | None,
    project: str | None,
    keys: Sequence[str] = (),
) -> list[Any]:
    """The rows of `standing`: with the accounts that pay if the data set is the first of its family."""
    wanted = [f"data:{data_set}", *_names(data_set, user, project)]
    given = {f"key{place}": key for place, key in enumerate(keys)}
    asked = standing(len(wanted), len(keys))
    rows = list(connection.execute(asked, {"data_set": data_set, **values_of(wanted), **given}))
    if not rows:
        family_of(connection, ledger, data_set)  # says that there is none
    return rows


def _left(
    connection: Connection, rows: list[Any], data_set: str, user: str | None, project: str | None
) -> Left:
    """What is left, by the rows of `_standing`."""
    terms, accounts, line = rows[0], rows, [f"data:{data_set}"]
    names = _names(terms.family, user, project)
    if terms.parent is not None:
        line = [f"data:{each}" for each in line_of(connection, data_set)]
        wanted = [*line, *names]
        accounts = list(connection.execute(held(len(wanted)), values_of(wanted)))
    spent = {row.account: row.spent for row in accounts}
    free = {row.account: row.most - row.spent for row in accounts if row.account is not None}
    everybody = min(free[each] for each in line)
    allotted = [free[name] for name in names if name in free]
    needs_one = terms.default_allotment == "none" or project is not None
    own = min([everybody, *allotted]) if allotted or not needs_one else 0
    if project is not None and names[-1] not in free:
        own = 0
    budget = Budget(epsilon=terms.epsilon, accounting=terms.accounting, delta=terms.delta)
    return Left(
        spent_epsilon=spent_epsilon(spent[f"data:{terms.family}"], budget),
        anybody=affordable(everybody, budget.accounting),
        user=affordable(own, budget.accounting),
    )


def _names(family: str, user: str | None, project: str | None) -> list[str]:
    """The accounts of a user and of a project."""
    names = [] if user is None else [account_of(family, user)]
    return names if project is None else [*names, account_of(family, None, project)]


def _answers(connection: Connection, data_set: str, keys: Sequence[str]) -> dict[str, str | None]:
    rows = connection.execute(payloads_of(len(keys)), {"data_set": data_set, **values_of(keys)})
    return {row.key: row.payload for row in rows}
