"""Budgets: given once, allotted to users below the cap of all, never refilled by themselves."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.families import (
    account_of,
    changing,
    check,
    error_of_move,
    family_of,
    family_terms,
    find_family,
    lock,
    remember_head,
)
from leeward.queries.ledger.opening import Ledger, reading, writing
from leeward.queries.privacy.accounting import Accounting, Budget, affordable

LONGEST_NAME: Final = 100
DEFAULTS: Final = ("none", "all")


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set and its budget. A descendant of `parent` spends from its ancestors' budgets too."""

    id: str
    budget: Budget
    parent: str | None = None
    unit: str = "patient"
    """What the budget protects: `patient`, or `note` (weaker where a patient has several)."""
    threshold: int | None = None
    """Noisy values below it are not shown. Public."""
    default_allotment: str = "none"
    """What a user without an allotment may spend: `none`, or `all` that is left for everybody."""
    charge_projects_separately: bool = False
    """Whether a project also pays for what another one paid before, so that neither price nor balance reveals it."""
    reason: str | None = None
    """Why these data get a budget of their own although they share patients with others; kept in the log."""

    def __post_init__(self) -> None:
        if self.default_allotment not in DEFAULTS:
            raise BadInput(f"`default_allotment` must be none or all; got {self.default_allotment!r}.")
        if self.charge_projects_separately and self.default_allotment != "none":
            raise BadInput("`charge_projects_separately` needs `default_allotment: none`: only projects pay.")
        if self.unit not in ("patient", "note"):
            raise BadInput(f"`unit` of a budget is patient or note; got {self.unit!r}.")
        if self.threshold is not None and self.threshold < 1:
            raise BadInput("`threshold` must be at least 1, or left out.")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms on which a data set is answered; public."""

    unit: str
    threshold: int | None
    total: int
    """The family's budget in micro-ε."""
    accounting: Accounting
    delta: float | None
    default_allotment: str = "all"
    charge_projects_separately: bool = False


def register(ledger: Ledger, data_set: DataSet) -> bool:
    """Give a data set its budget, once; True where it is new: a budget never refills. BadInput when it has another
    budget or parent already, or the parent is unknown or accounts differently."""
    with writing(ledger) as connection:
        known = find_family(connection, data_set.id)
        if known is not None:
            _same(connection, data_set, known)
            return False
        family = data_set.id if data_set.parent is None else _family_of_parent(connection, ledger, data_set)
        if data_set.parent is None:
            connection.execute(
                tables.families.insert().values(
                    family=data_set.id,
                    accounting=data_set.budget.accounting,
                    epsilon=data_set.budget.epsilon,
                    delta=data_set.budget.delta,
                    unit=data_set.unit,
                    entries=0,
                    head=chain.START,
                    arrived=True,
                    default_allotment=data_set.default_allotment,
                    separately=data_set.charge_projects_separately,
                )
            )
        row = lock(connection, ledger, family)
        before = check(connection, ledger, family, row.entries, row.head)
        connection.execute(
            tables.data_sets.insert().values(
                data_set=data_set.id,
                parent=data_set.parent,
                family=family,
                threshold=data_set.threshold,
            )
        )
        connection.execute(
            tables.accounts.insert().values(
                account=f"data:{data_set.id}", family=family, most=data_set.budget.limit, spent=0
            )
        )
        chain.append(connection, family, row.entries, row.head, [_opening_entry(data_set)], before.time)
    remember_head(ledger, data_set.id)
    return True


def _family_of_parent(connection: sa.Connection, ledger: Ledger, data_set: DataSet) -> str:
    family = find_family(connection, data_set.parent or "")
    if family is None:
        raise BadInput(
            f"{ledger.place}: the parent data set is not in this ledger. A derived data set spends its parent's "
            "budget, so both are kept in one ledger (--ledger)."
        )
    terms, budget = family_terms(connection, family), data_set.budget
    if (terms.accounting, terms.delta, terms.unit) != (budget.accounting, budget.delta, data_set.unit):
        raise BadInput(
            f"A derived data set must use its parent's accounting: {terms.accounting}, unit {terms.unit}"
            + ("" if terms.delta is None else f", delta {terms.delta}")
            + "."
        )
    if terms.separately != data_set.charge_projects_separately:
        raise BadInput("A derived data set charges projects as its parent does (charge_projects_separately).")
    if terms.separately and budget.limit < _most(connection, family):
        raise BadInput(
            "A derived data set of one that charges projects separately has at least its parent's budget: the end of a "
            "smaller one would tell of other projects. What is spent on it is spent on the parent too."
        )
    return family


def _most(connection: sa.Connection, data_set: str) -> int:
    asked = sa.select(tables.accounts.c.most).where(tables.accounts.c.account == f"data:{data_set}")
    return int(connection.execute(asked).scalar_one())


def _opening_entry(data_set: DataSet) -> dict[str, Any]:
    """First entry of the log. `nonce` makes each ledger's log unique, even for the same data at the same second."""
    body = {
        "event": "opened",
        "data_set": data_set.id,
        "parent": data_set.parent,
        "epsilon": data_set.budget.epsilon,
        "accounting": data_set.budget.accounting,
        "delta": data_set.budget.delta,
        "most": data_set.budget.limit,
        "unit": data_set.unit,
        "threshold": data_set.threshold,
        "default_allotment": data_set.default_allotment,
        "nonce": secrets.token_hex(8),
    }
    body |= {"charge_projects_separately": True} if data_set.charge_projects_separately else {}
    return body if data_set.reason is None else {**body, "reason": data_set.reason}


def allot(
    ledger: Ledger,
    data_set: str,
    name: str,
    epsilon: int,
    *,
    project: bool = False,
    within_cap: bool = False,
) -> None:
    """Let a user, or a project, spend at most `epsilon` (micro-ε, as one answer) on a data set's family, below the cap
    of all.

    It may be changed, never below what was spent. `within_cap`: BadInput where the allotments of all projects and names
    would add up to more than the cap, so that what a project was given is there when it asks. Where projects pay
    separately, what they have left together is never more than what all have left.
    """
    check_user(name)
    who = {"project": name} if project else {"for": name}
    with changing(ledger, data_set) as change:
        connection, family = change.connection, change.family
        terms = change.terms
        most = Budget(epsilon=epsilon, accounting=terms.accounting, delta=terms.delta).limit
        account = account_of(family, None if project else name, name if project else None)
        spent = change.known.paid[account]
        if most < spent:
            raise BadInput("An allotment cannot be less than what was spent already.")
        if within_cap:
            _check_within_cap(change.known.accounts, family, account, most)
        if (
            project
            and terms.separately
            and not has_room(change.known.accounts, family, most - spent, account)
        ):
            raise BadInput(
                "projects pay separately for this index, so what they have left together may not exceed what all have "
                "left. Allot less."
            )
        changed = connection.execute(
            tables.accounts.update().where(tables.accounts.c.account == account).values(most=most)
        ).rowcount
        if not changed:
            connection.execute(
                tables.accounts.insert().values(account=account, family=family, most=most, spent=spent)
            )
        change.append([{"event": "allotted", **who, "epsilon": epsilon, "most": most}])


def _check_within_cap(accounts: Mapping[str, list[int]], family: str, account: str, most: int) -> None:
    """BadInput where what projects and names are allotted, with `account` at `most`, exceeds the cap of all."""
    cap = accounts[f"data:{family}"][0]
    others = sum(
        most for name, (most, _) in accounts.items() if not name.startswith("data:") and name != account
    )
    if others + most > cap:
        raise BadInput(
            "the allotments of all projects and names would exceed the cap of all answers. Allot less, or state that "
            "the budget goes to whoever asks first."
        )


def drop_whole_allotments(ledger: Ledger, data_set: str) -> None:
    """Lower to what it spent each name that was allotted the whole cap, as `leeward index` allots it to its maker, so
    that the cap is not promised twice."""
    with changing(ledger, data_set) as change:
        cap = change.known.accounts[f"data:{change.family}"][0]
        start = account_of(change.family, "")
        whole = {
            name: spent
            for name, (most, spent) in change.known.accounts.items()
            if name.startswith(start) and most >= cap > spent
        }
        for name, spent in whole.items():
            change.connection.execute(
                tables.accounts.update().where(tables.accounts.c.account == name).values(most=spent)
            )
        if whole:
            change.append(
                {"event": "allotted", "for": name.removeprefix(start), "most": spent,
                 "epsilon": affordable(spent, change.terms.accounting)}
                for name, spent in whole.items()
            )  # fmt: skip


def has_room(accounts: Mapping[str, list[int]], family: str, more: int, account: str | None = None) -> bool:
    """Whether projects (all but `account`) and `more` have left no more than all have together."""
    start = account_of(family, None, "")
    held = sum(
        most - spent for name, (most, spent) in accounts.items() if name.startswith(start) and name != account
    )
    cap, spent = accounts[f"data:{family}"]
    return held + more <= cap - spent


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What one user, or one project, may spend, in micro-ε of one answer."""

    user: str
    most: int
    left: int
    spent: int
    """In smallest units."""
    project: bool = False


def allotments(ledger: Ledger, data_set: str) -> list[Allotment]:
    accounts = tables.accounts.c
    with reading(ledger) as connection:
        family = family_of(connection, ledger, data_set)
        accounting = family_terms(connection, family).accounting
        rows = connection.execute(
            sa.select(tables.accounts).where(accounts.family == family).order_by(accounts.account)
        ).all()
    starts = {account_of(family, ""): False, account_of(family, None, ""): True}
    return [
        Allotment(
            user=row.account.removeprefix(start),
            most=affordable(row.most, accounting),
            left=affordable(row.most - row.spent, accounting),
            spent=row.spent,
            project=project,
        )
        for row in rows
        for start, project in starts.items()
        if row.account.startswith(start)
    ]


def terms_of(ledger: Ledger, data_set: str) -> Terms:
    """The terms on which a data set is answered; LedgerUnreachable for one that the ledger does not know."""
    with reading(ledger) as connection:
        row = family_terms(connection, family_of(connection, ledger, data_set))
        if row.moved is not None:
            raise error_of_move(ledger)
        asked = sa.select(tables.data_sets.c.threshold).where(tables.data_sets.c.data_set == data_set)
        threshold = connection.execute(asked).scalar()
    return Terms(
        unit=row.unit,
        threshold=threshold,
        total=row.epsilon,
        accounting=row.accounting,
        delta=row.delta,
        default_allotment=row.default_allotment,
        charge_projects_separately=row.separately,
    )


def check_user(user: str) -> str:
    if not user or len(user) > LONGEST_NAME or not user.isprintable() or user != user.strip():
        raise BadInput(f"`--user` must be a name of 1 to {LONGEST_NAME} printable characters.")
    return user


def _same(connection: sa.Connection, data_set: DataSet, family: str) -> None:
    row = connection.execute(
        sa.select(tables.data_sets).where(tables.data_sets.c.data_set == data_set.id)
    ).one()
    most = _most(connection, data_set.id)
    terms, budget = family_terms(connection, family), data_set.budget
    there = (row.parent, row.threshold, most, terms.accounting, terms.unit, terms.separately)
    if there != (
        data_set.parent, data_set.threshold, budget.limit, budget.accounting, data_set.unit,
        data_set.charge_projects_separately,
    ):  # fmt: skip
        raise BadInput(
            "This data set has a budget already, on other terms: budgets are given once and do not refill."
        )
