"""The ledger, on SQLite and on PostgreSQL: caps, descendants, allotments, stored answers, many who ask at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.queries.ledgers import charge, left, pay
from tests.waiting import LONG

import leeward
from leeward.errors import BadInput
from leeward.queries.ledger import auditing, budgets, families, opening, spending, tables
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.chain import digest
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable, reading, writing
from leeward.queries.ledger.spending import BudgetSpent
from leeward.queries.privacy.accounting import Budget, micro

SOURCE = Path(leeward.__file__).resolve().parents[1]


def test_a_question_is_paid_once_by_whoever_asks(ledger: Ledger) -> None:
    assert pay(ledger, "all", "fever") == micro(0.5)
    assert pay(ledger, "all", "fever", user="bob") == 0
    assert spending.find_answer(ledger, "all", digest("fever")) == "answer to fever"
    assert left(ledger) == 1.5


def test_the_first_stored_answer_stays(ledger: Ledger) -> None:
    key = digest("fever")
    spending.reserve(ledger, "all", "ann", [charge("fever")])
    assert spending.store(ledger, "all", {key: "3"}) == {key: "3"}
    assert spending.store(ledger, "all", {key: "4"}) == {key: "3"}
    assert spending.find_answer(ledger, "all", key) == "3"


def test_a_charge_without_an_answer_is_taken_up_at_no_cost(ledger: Ledger) -> None:
    spending.reserve(ledger, "all", "ann", [charge("fever")])
    assert spending.find_answer(ledger, "all", digest("fever")) is None
    assert pay(ledger, "all", "fever", user="bob") == 0
    assert left(ledger) == 1.5


def test_what_this_process_wrote_is_not_read_again(ledger: Ledger) -> None:
    pay(ledger, "all", "fever")
    read: list[str] = []

    @sa.event.listens_for(ledger.engine, "before_cursor_execute")
    def watch(connection: object, cursor: object, statement: str, *more: object) -> None:
        if statement.startswith("SELECT"):
            read.append(statement.partition("FROM ")[2].split()[0])

    pay(ledger, "all", "cough")
    assert read == ["families", "accounts"] * 2  # the lock and the balances of a charge, and of its answer
    read.clear()
    pay(ledger, "all", "cough")
    assert read == [
        "families",
        "accounts",
        "answers",
    ]  # what is stored is found in the charge's own transaction
    read.clear()
    families.forget(ledger)
    pay(ledger, "all", "rash")
    assert read.count("log") == 1


def test_a_charge_that_a_power_failure_took_is_made_again(where: str | Path, ledger: Ledger) -> None:
    """It is not yet on the disk when `reserve` returns: another database that lacks it is no older copy."""
    pay(ledger, "all", "fever")
    names = [table.name for table in tables.metadata.sorted_tables]
    with writing(ledger) as connection:
        kept = {
            name: connection.execute(sa.select(tables.metadata.tables[name])).mappings().all()
            for name in names
        }
    spending.reserve(ledger, "all", "ann", [charge("cough")])
    with writing(ledger) as connection:
        drop_triggers(connection)
        for name in reversed(names):
            connection.execute(tables.metadata.tables[name].delete())
        for name in names:
            connection.execute(tables.metadata.tables[name].insert(), [dict(row) for row in kept[name]])
    assert left(ledger) == 1.5
    assert pay(ledger, "all", "cough") == micro(0.5)
    assert left(ledger) == 1 and auditing.audit(ledger, "all").passed


def drop_triggers(connection: sa.Connection) -> None:
    """Let the log be changed, as whoever owns the database can."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("DROP TRIGGER log_is_append_only ON log")
        return
    for change in ("update", "delete"):
        connection.exec_driver_sql(f"DROP TRIGGER log_no_{change}")


def test_no_answer_is_stored_without_its_charge(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="without a charge"):
        spending.store(ledger, "all", {digest("fever"): "3"})
    assert spending.find_answer(ledger, "all", digest("fever")) is None


def test_the_cap_holds_to_the_last_micro(ledger: Ledger) -> None:
    for i in range(3):
        pay(ledger, "all", f"q{i}")
    with pytest.raises(BudgetSpent, match="Nothing was charged") as refusal:
        pay(ledger, "all", "too much", 0.500001)
    assert refusal.value.exit_code == 3
    assert left(ledger) == 0.5
    pay(ledger, "all", "the rest", 0.5)
    assert left(ledger) == 0
    with pytest.raises(BudgetSpent):
        pay(ledger, "all", "one micro", 1e-6)
    assert pay(ledger, "all", "q0") == 0  # what was asked before stays free


def test_a_batch_is_paid_whole_or_not_at_all(ledger: Ledger) -> None:
    pay(ledger, "all", "known", 1)
    with pytest.raises(BudgetSpent):
        spending.reserve(ledger, "all", "ann", [charge("a", 0.6), charge("b", 0.6)])
    assert left(ledger) == 1
    paid = spending.reserve(ledger, "all", "ann", [charge("known", 1), charge("a", 0.6), charge("a", 0.6)])
    assert [each.cost for each in paid] == [0, micro(0.6), 0]
    assert paid[0].payload == "answer to known"


def test_descendants_spend_the_cap_of_their_ancestors(ledger: Ledger) -> None:
    budgets.register(ledger, DataSet(id="child", parent="all", budget=Budget(epsilon=micro(2))))
    budgets.register(ledger, DataSet(id="grandchild", parent="child", budget=Budget(epsilon=micro(1))))
    budgets.register(ledger, DataSet(id="sibling", parent="all", budget=Budget(epsilon=micro(2))))
    pay(ledger, "grandchild", "fever", 0.75)
    assert [left(ledger, each) for each in ("all", "child", "grandchild", "sibling")] == [
        1.25,
        1.25,
        0.25,
        1.25,
    ]
    with pytest.raises(BudgetSpent):
        pay(ledger, "grandchild", "cough")  # its own cap
    pay(ledger, "sibling", "fever", 1.25)
    for data_set in ("all", "child", "grandchild", "sibling"):
        with pytest.raises(BudgetSpent):  # the cap of all
            pay(ledger, data_set, "cough", 0.01)
    assert auditing.audit(ledger, "child").passed


def test_the_same_question_of_another_data_set_is_another_question(ledger: Ledger) -> None:
    budgets.register(ledger, DataSet(id="child", parent="all", budget=Budget(epsilon=micro(2))))
    assert pay(ledger, "all", "fever") == pay(ledger, "child", "fever") == micro(0.5)


def test_a_budget_does_not_refill(ledger: Ledger, where: str | Path) -> None:
    pay(ledger, "all", "fever", 1.5)
    budgets.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    assert left(ledger) == 0.5
    for other in (
        DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(4))),
        DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2)), unit="note"),
        DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2)), threshold=5),
        DataSet(
            id="all", default_allotment="all", budget=Budget(epsilon=micro(2), accounting="zcdp", delta=1e-6)
        ),
    ):
        with pytest.raises(BadInput, match="already"):
            budgets.register(ledger, other)
    assert left(opening.make_ledger(where)) == 0.5


def test_allotments_lie_under_the_cap(ledger: Ledger) -> None:
    pay(ledger, "all", "before", 0.25)
    budgets.allot(ledger, "all", "ann", micro(0.75))
    assert left(ledger) == 0.5
    assert left(ledger, user="bob") == 1.75
    with pytest.raises(BudgetSpent, match=r"ann has 0\.5 left, 1\.75 remains"):
        pay(ledger, "all", "fever", 0.75)
    pay(ledger, "all", "fever", 0.5)
    pay(ledger, "all", "of bob", 1, user="bob")
    budgets.allot(ledger, "all", "ann", micro(2))  # raised by a person, not by time
    assert left(ledger) == 0.25  # the cap of all
    with pytest.raises(BadInput, match="less than what was spent"):
        budgets.allot(ledger, "all", "ann", micro(0.5))
    assert auditing.audit(ledger, "all").passed


def test_zcdp_lets_more_small_answers_through(where: str | Path) -> None:
    ledger = opening.make_ledger(where)
    budget = Budget(epsilon=micro(1), accounting="zcdp", delta=1e-6)
    budgets.register(ledger, DataSet(id="all", default_allotment="all", budget=budget))
    small = [charge(f"q{i}", 0.01) for i in range(150)]  # 1.5 by plain sums
    spending.reserve(ledger, "all", "ann", small)
    found = spending.left(ledger, "all", "ann")
    assert 0.01 < found.spent_epsilon < 1
    assert 0.01 < found.user / 1e6 < 0.5
    with pytest.raises(BudgetSpent):
        pay(ledger, "all", "large", 0.5)
    assert auditing.audit(ledger, "all").passed
    with pytest.raises(BadInput, match="use its parent"):
        budgets.register(ledger, DataSet(id="child", parent="all", budget=Budget(epsilon=micro(0.1))))


def test_unknown_data_sets_and_parents(ledger: Ledger) -> None:
    for ask in (
        lambda: pay(ledger, "other", "fever"),
        lambda: spending.left(ledger, "other", "ann"),
        lambda: budgets.terms_of(ledger, "other"),
        lambda: auditing.audit(ledger, "other"),
    ):
        with pytest.raises(LedgerUnreachable, match="No answer was given"):
            ask()
    with pytest.raises(BadInput, match="parent data set is not in this ledger"):
        budgets.register(ledger, DataSet(id="child", parent="none", budget=Budget(epsilon=1)))


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "x" * 101, "\x1b[2J"])
def test_names_that_are_none(ledger: Ledger, name: str) -> None:
    with pytest.raises(BadInput, match="--user"):
        spending.reserve(ledger, "all", name, [charge("fever")])


@pytest.mark.parametrize("bad", [{"unit": "family"}, {"threshold": 0}])
def test_terms_that_are_none(bad: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        DataSet(id="x", default_allotment="all", budget=Budget(epsilon=1), **bad)  # type: ignore[arg-type]  # wrong on purpose


def test_terms_are_kept(ledger: Ledger) -> None:
    child = DataSet(id="child", parent="all", budget=Budget(epsilon=micro(1)), threshold=10)
    budgets.register(ledger, child)
    assert budgets.terms_of(ledger, "child").threshold == 10
    assert budgets.terms_of(ledger, "all").threshold is None
    assert budgets.terms_of(ledger, "all").unit == "patient"


# -- many at once ----

CLIENTS, EACH, PRICE = 100, 3, 0.03
AFFORDED = 66
"""2 / 0.03, whole."""


def rush(where: str | Path, ask: Callable[[Ledger, str], bool]) -> int:
    """100 clients, each with questions of its own, at once; how many were paid."""
    ledger = opening.open_ledger(where)

    def client(number: int) -> int:
        return sum(ask(ledger, f"client {number}, question {i}") for i in range(EACH))

    with ThreadPoolExecutor(CLIENTS) as threads:
        return sum(threads.map(client, range(CLIENTS)))


def bought(ledger: Ledger, text: str) -> bool:
    try:
        return pay(ledger, "all", text, PRICE, user="rush") > 0
    except BudgetSpent:
        return False


def test_100_clients_never_overspend(ledger: Ledger, where: str | Path) -> None:
    assert rush(where, bought) == AFFORDED
    assert left(ledger) == pytest.approx(2 - AFFORDED * PRICE)
    found = auditing.audit(ledger, "all")
    assert found.passed
    assert found.spent == pytest.approx(AFFORDED * PRICE)


CLIENTS_OF_A_PROCESS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from leeward.queries.ledger import auditing, budgets, families, opening, spending, tables
from leeward.queries.ledger.spending import BudgetSpent, Charge
ledger = opening.open_ledger(sys.argv[1])
def client(number):
    paid = 0
    for i in range(3):
        key = f"process {sys.argv[2]}, client {number}, question {i}"
        try:
            spending.reserve(ledger, "all", "rush", [Charge(key=key, question=key, epsilon=30000)])
            spending.store(ledger, "all", {key: "3"})
            paid += 1
        except BudgetSpent:
            pass
    return paid
with ThreadPoolExecutor(25) as threads:
    print(sum(threads.map(client, range(25))))
"""


def test_100_clients_in_four_processes_never_overspend(ledger: Ledger, where: str | Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENTS_OF_A_PROCESS, str(where), str(number)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        for number in range(4)
    ]
    paid = [int(process.communicate(timeout=LONG)[0]) for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert sum(paid) == AFFORDED
    assert auditing.audit(ledger, "all").passed


def test_100_clients_with_one_question_pay_once(ledger: Ledger, where: str | Path) -> None:
    assert rush(where, lambda ledger, text: bought(ledger, text.split(", ")[1])) == EACH
    assert left(ledger) == pytest.approx(2 - EACH * PRICE)


def test_the_rush_catches_a_check_before_the_update(
    ledger: Ledger, where: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: look at what is left, then take it, in two steps and without the constraint. It overspends."""

    def take_later(connection: sa.Connection, *rest: object) -> None:
        if ledger.engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        connection.exec_driver_sql(f"UPDATE accounts SET spent = spent + {micro(PRICE)}")

    if ledger.engine.dialect.name != "sqlite":
        with opening.writing(ledger) as connection:
            connection.exec_driver_sql("ALTER TABLE accounts DROP CONSTRAINT never_overspent")
    monkeypatch.setattr(spending, "_take", take_later)

    def asked(ledger: Ledger, text: str) -> bool:
        with reading(ledger) as connection:  # before the transaction
            most, spent = connection.exec_driver_sql("SELECT most, spent FROM accounts").one()
        return spent + micro(PRICE) <= most and bought(ledger, text)

    assert rush(where, asked) > AFFORDED
    found = auditing.audit(ledger, "all")
    assert [check.name for check in found.checks if not check.passed] == ["caps"]


def test_the_constraint_is_a_second_lock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition of the update planted away the database itself refuses, and nothing is answered."""

    def take(connection: sa.Connection, *rest: object) -> None:
        connection.exec_driver_sql("UPDATE accounts SET spent = spent + 3000000")

    monkeypatch.setattr(spending, "_take", take)
    with pytest.raises(LedgerUnreachable, match=r"IntegrityError|ProgrammingError"):
        spending.reserve(ledger, "all", "ann", [charge("fever")])
    assert left(ledger) == 2
