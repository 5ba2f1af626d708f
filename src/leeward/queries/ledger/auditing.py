"""Checks of `leeward audit` that the ledger is consistent; each reports what it compared."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.chain import Entry
from leeward.queries.ledger.families import (
    CHARGES,
    accounts_of_charge,
    family_of,
    family_terms,
    line_of,
    parents_of,
)
from leeward.queries.ledger.opening import Ledger, reading
from leeward.queries.privacy.accounting import Budget, compose, spent_epsilon, to_epsilon

ROUNDING = 1e-9
"""Relative tolerance: OpenDP composes in floating point and rounds up, so the ledger's integers may be lower."""


@dataclass(frozen=True)
class Check:
    """One comparison: its name, whether it held, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Audit:
    """Results of an audit of one family of data sets. `head` is the last hash: keep it elsewhere."""

    entries: int
    head: str
    spent: float
    """ε of all answers of the family together, at the budget's δ."""
    total: float
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, **vars(self), "checks": [vars(check) for check in self.checks]}


def audit(ledger: Ledger, data_set: str, expected: str | None = None) -> Audit:
    """Check the log, the accounts and the stored answers of a data set's family against each other. `expected`: a
    hash that an earlier audit printed; it has to be in the chain."""
    with reading(ledger, snapshot=True) as connection:
        family = family_of(connection, ledger, data_set)
        terms = family_terms(connection, family)
        entries = list(chain.entries_of(connection, family))
        parents = parents_of(connection, family)
        lines = {each: line_of(parents, each) for each in parents}
        answers = _rows(
            connection, sa.select(tables.answers).where(tables.answers.c.data_set.in_(list(lines)))
        )
        accounts = _rows(connection, sa.select(tables.accounts).where(tables.accounts.c.family == family))
    budget = Budget(epsilon=terms.epsilon, accounting=terms.accounting, delta=terms.delta)
    events = [json.loads(entry.body) for entry in entries if _is_object(entry.body)]
    charges = [event for event in events if event.get("event") == "charged"]
    spent = sum(row["spent"] for row in accounts if row["account"] == f"data:{family}")
    over = sum(not 0 <= row["spent"] <= row["most"] for row in accounts)
    checks = [
        _chain(entries, terms.entries, terms.head),
        _accounts(accounts, events, lines, family),
        Check("caps", not over, f"{over} accounts spent more than they may"),
        _composition(charges, budget),
        _answers(answers, charges, events),
    ]
    if expected is not None:
        checks.append(_find_head(entries, expected))
    total = to_epsilon(budget.epsilon)
    return Audit(len(entries), terms.head, spent_epsilon(spent, budget), total, tuple(checks))


def _chain(entries: list[Entry], count: int, head: str) -> Check:
    _, fault = chain.follow(entries, count, head)
    detail = f"{len(entries)} entries, each hash covers the one before" if fault is None else fault
    present = chain.now()
    later = [entry.time for entry in entries if entry.time > present]
    if later:  # true times cannot be told any more; nothing was paid twice for it
        detail += (
            f"; {len(later)} are dated later than now, from {later[0]} on: a clock ran ahead, and entries keep that "
            "time until it has come"
        )
    return Check("chain of hashes", fault is None, detail)


def _find_head(entries: list[Entry], expected: str) -> Check:
    place = next((entry.number for entry in entries if entry.hash == expected), None)
    detail = (
        f"it is entry {place}" if place is not None else "no entry has this hash: the log was written anew"
    )
    return Check("hash of an earlier audit", place is not None, detail)


def _accounts(
    accounts: list[dict[str, Any]], events: list[dict[str, Any]], lines: dict[str, list[str]], family: str
) -> Check:
    """Compare the spending of each account with its charges in the log."""
    due: Counter[str] = Counter()
    for event in events:
        if event.get("event") == "restored":
            due.update({name: max(0, spent - due[name]) for name, (_, spent) in event["accounts"].items()})
        if event.get("event") in CHARGES:
            accounts_of_it = accounts_of_charge(event, family, lines.get(event["data_set"], []))
            due.update(dict.fromkeys(accounts_of_it, event["cost"]))
    wrong = [row for row in accounts if row["spent"] != due[row["account"]]]
    detail = (
        f"{len(wrong)} of {len(accounts)} accounts hold another sum than the log"
        if wrong
        else f"{len(accounts)} accounts hold the sums of the log"
    )
    return Check("accounts", not wrong, detail)


def _composition(charges: list[dict[str, Any]], budget: Budget) -> Check:
    """Compare OpenDP's composition of all charged mechanisms with the sum in the log."""
    total = sum(charge["cost"] for charge in charges)
    proved = compose((charge["epsilon"] for charge in charges), budget.accounting)
    passed = abs(proved - total) <= 1 + len(charges) + ROUNDING * total
    unit = "micro-epsilon" if budget.accounting == "pure" else "1e-12 rho"
    detail = f"{proved} {unit} by OpenDP, {total} charged"
    if passed and proved > total:
        detail += " (the same but for rounding: OpenDP rounds up)"
    return Check("composition by OpenDP", passed, detail)


def _answers(
    answers: list[dict[str, Any]], charges: list[dict[str, Any]], events: list[dict[str, Any]]
) -> Check:
    """No answer without its charge, no charge without its question, and each answer is the one that was stored."""
    paid = {_name(charge): charge["cost"] for charge in charges}
    logged = {_name(event): event["digest"] for event in events if event.get("event") == "answered"}
    costs = {_name(row): row["cost"] for row in answers}
    digests = {_name(row): chain.digest(row["payload"]) for row in answers if row["payload"] is not None}
    there = costs.keys()
    unpaid = sum(paid.get(key) != cost for key, cost in costs.items())
    gone = len(paid.keys() - there)
    changed = sum(digests.get(key) != logged.get(key) for key in there)
    waiting = len(there - digests.keys())
    detail = (
        f"{len(there)} questions: {unpaid} without their charge, {gone} charges without a question, {changed} answers "
        f"changed; {waiting} paid and not answered"
    )
    return Check("answers", unpaid + gone + changed == 0 and len(paid) == len(charges), detail)


def _name(question: dict[str, Any]) -> tuple[str, str]:
    """Key of a question within its family."""
    return question["data_set"], question["key"]


def _rows(connection: sa.Connection, asked: sa.Select[Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(asked).mappings()]


def _is_object(body: str) -> bool:
    """Whether an entry can be read at all; one that cannot is the chain's to report."""
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
