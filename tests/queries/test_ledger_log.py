"""The ledger's log: what it tells, and that its audit finds what was changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.queries.ledgers import pay

from leeward.queries.ledger import auditing, budgets, chain, opening
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable, reading
from leeward.queries.ledger.spending import BudgetSpent
from leeward.queries.privacy.accounting import Budget, micro

# -- the log ----


def test_the_log_tells_what_happened(ledger: Ledger) -> None:
    pay(ledger, "all", "fever")
    with pytest.raises(BudgetSpent):
        pay(ledger, "all", "too much", 5)
    with reading(ledger) as connection:
        bodies = [row[0] for row in connection.exec_driver_sql("SELECT body FROM log ORDER BY number")]
    events = [
        event
        for body in bodies
        for event in ("opened", "charged", "answered", "refused")
        if f'"{event}"' in body
    ]
    assert events == ["opened", "charged", "answered", "refused"]
    assert "too much" not in "".join(bodies)  # what was refused was never resolved, and is not written down


@pytest.mark.parametrize("change", ["UPDATE log SET body = '{}'", "DELETE FROM log"])
def test_the_log_is_append_only(ledger: Ledger, change: str) -> None:
    with pytest.raises(LedgerUnreachable), opening.writing(ledger) as connection:
        connection.exec_driver_sql(change)
    assert auditing.audit(ledger, "all").passed


def test_an_audit_tells_times_that_are_yet_to_come(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "later than now" not in auditing.audit(ledger, "all").checks[0].detail
    with monkeypatch.context() as ahead:
        ahead.setattr(chain, "now", lambda: "2126-11-23T16:07:46+00:00")
        pay(ledger, "all", "fever")
    pay(ledger, "all", "cough")
    audit = auditing.audit(ledger, "all")
    assert audit.passed
    assert "; 4 are dated later than now, from 2126-11-23T16:07:46+00:00 on" in audit.checks[0].detail


def test_an_audit_says_that_opendp_rounds_up(ledger: Ledger) -> None:
    for number in range(3):
        pay(ledger, "all", f"question {number}", 0.2)
    (found,) = (each for each in auditing.audit(ledger, "all").checks if each.name == "composition by OpenDP")
    proved, charged = (int(word) for word in found.detail.split() if word.isdigit())
    assert (
        found.passed
        and proved > charged
        and found.detail.endswith("(the same but for rounding: OpenDP rounds up)")
    )


def test_an_audit_finds_an_earlier_head(ledger: Ledger) -> None:
    head = auditing.audit(ledger, "all").head
    pay(ledger, "all", "fever")
    assert auditing.audit(ledger, "all", head).passed
    assert not auditing.audit(ledger, "all", "0" * 64).passed


REHASHED = """
UPDATE log SET (body, hash) = (
    SELECT now.body || ' ', link(coalesce(before.hash, ''), now.number, now.time, now.body || ' ')
    FROM log AS now LEFT JOIN log AS before ON before.number = now.number - 1 WHERE now.number = log.number
) WHERE number = {number}
"""
"""An entry with other bytes, whose hash is right for them and for the entry before it."""

# Each needs a custodian's own hand in the database; each has to be seen.
PLANTED = {
    "an entry changed": (
        "chain of hashes",
        "UPDATE log SET body = replace(body, '500000', '400000') WHERE number = 2",
    ),
    "an entry changed, with its own hash made anew": ("chain of hashes", REHASHED.format(number="2")),
    "the last entry changed, with its own hash made anew": (
        "chain of hashes",
        REHASHED.format(number="(SELECT max(number) FROM log)"),
    ),
    "an entry removed": ("chain of hashes", "DELETE FROM log WHERE number = 2"),
    "the last entry removed": (
        "chain of hashes",
        "DELETE FROM log WHERE number = (SELECT max(number) FROM log)",
    ),
    "a time changed": ("chain of hashes", "UPDATE log SET time = '2020-01-01' WHERE number = 3"),
    "a budget refilled": ("accounts", "UPDATE accounts SET spent = 0"),
    "a stored answer changed": ("answers", "UPDATE answers SET payload = 'other' WHERE question = 'fever'"),
    "an answer removed": ("answers", "DELETE FROM answers WHERE question = 'fever'"),
    "an answer nobody paid": (
        "answers",
        "INSERT INTO answers SELECT data_set, 'k', 'q', 1, 1, 'x', charged, 'free' FROM answers LIMIT 1",
    ),
    "a price lowered": ("answers", "UPDATE answers SET cost = 1 WHERE question = 'fever'"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_the_audit_catches(tmp_path: Path, planted: str) -> None:
    ledger = opening.make_ledger(tmp_path)
    budgets.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    for text in ("fever", "cough"):
        pay(ledger, "all", text)
    assert auditing.audit(ledger, "all").passed
    name, statement = PLANTED[planted]
    with sqlite3.connect(tmp_path / opening.EMBEDDED) as raw:
        raw.create_function("link", 4, chain.link)
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        assert raw.execute(statement).rowcount > 0
    found = auditing.audit(ledger, "all")
    assert not found.passed
    assert name in [check.name for check in found.checks if not check.passed]


def lower_a_price(event: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**event, "cost": 100_000}] if event["event"] == "charged" else [event]


def charge_twice(event: dict[str, Any]) -> list[dict[str, Any]]:
    return [event, event] if event["event"] == "charged" else [event]


@pytest.mark.parametrize(
    ("change", "spent", "name"),
    [(lower_a_price, 100_000, "composition by OpenDP"), (charge_twice, 1_000_000, "answers")],
    ids=["a price below what its noise costs", "a question that is charged twice"],
)
def test_a_ledger_that_is_written_anew_and_agrees_with_itself_still_has_to_add_up(
    tmp_path: Path, change: Callable[[dict[str, Any]], list[dict[str, Any]]], spent: int, name: str
) -> None:
    """The log with right hashes, accounts and answers as it says: one check is left."""
    ledger = opening.make_ledger(tmp_path)
    budgets.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    pay(ledger, "all", "fever")
    with opening.reading(ledger) as connection:
        before = list(chain.entries_of(connection, "all"))
    bodies = [body for entry in before for body in change(json.loads(entry.body))]
    with sqlite3.connect(tmp_path / opening.EMBEDDED) as raw:
        raw.execute("DROP TRIGGER log_no_delete")
        raw.execute("DELETE FROM log")
        head = chain.START
        for number, body in enumerate(bodies, 1):
            text, time = chain.text_of(body), before[0].time
            head = chain.link(head, number, time, text)
            raw.execute("INSERT INTO log VALUES ('all', ?, ?, ?, ?)", (number, time, text, head))
        raw.execute("UPDATE families SET entries = ?, head = ?", (len(bodies), head))
        raw.execute("UPDATE accounts SET spent = ?", (spent,))
        raw.execute("UPDATE answers SET cost = ?", (min(spent, 500_000),))
    found = auditing.audit(ledger, "all")
    assert [check.name for check in found.checks if not check.passed] == [name], found


def test_a_log_written_anew_does_not_have_the_head_kept_elsewhere(tmp_path: Path) -> None:
    """The one forgery that a chain cannot see by itself: the whole ledger, made again."""
    heads = []
    for name in ("true", "forged"):
        folder = tmp_path / name
        folder.mkdir()
        ledger = opening.make_ledger(folder)
        budgets.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
        pay(ledger, "all", name)
        heads.append(auditing.audit(ledger, "all").head)
    assert auditing.audit(ledger, "all").passed
    assert not auditing.audit(ledger, "all", heads[0]).passed
