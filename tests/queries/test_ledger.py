"""The ledger, on SQLite and on PostgreSQL: caps, descendants, allotments, stored answers, the log and its audit."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from tests.postgres_fixture import postgres_server  # noqa: F401  # a fixture
from tests.waiting import LONG, wait_until

import leeward
from leeward.errors import BadInput
from leeward.portal.store.rows import new_row
from leeward.queries import ledger as books
from leeward.queries.ledger import (
    BudgetSpent,
    Charge,
    DataSet,
    Ledger,
    LedgerUnreachable,
    chain,
    direct,
    engines,
    families,
    opening,
    spending,
    tables,
)
from leeward.queries.ledger.chain import digest
from leeward.queries.ledger.opening import reading
from leeward.queries.ledger.tables import metadata
from leeward.queries.privacy.accounting import Budget, micro

SOURCE = Path(leeward.__file__).resolve().parents[1]


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """A folder, or the URL of a fresh database."""
    if request.param == "sqlite":
        return tmp_path
    return fresh_database(request.getfixturevalue("postgres"))


def fresh_database(server: str) -> str:
    name = f"ledger_{uuid.uuid4().hex}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def ledger(where: str | Path) -> Ledger:
    made = books.make_ledger(where)
    books.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    return made


def charge(text: str, epsilon: float = 0.5) -> Charge:
    return Charge(key=digest(text), question=text, epsilon=micro(epsilon))


def pay(ledger: Ledger, data_set: str, text: str, epsilon: float = 0.5, user: str = "ann") -> int:
    (paid,) = books.reserve(ledger, data_set, user, [charge(text, epsilon)])
    if paid.payload is None:
        books.store(ledger, data_set, {paid.key: f"answer to {text}"})
    return paid.cost


def left(ledger: Ledger, data_set: str = "all", user: str = "ann") -> float:
    return books.left(ledger, data_set, user).user / 1e6


def test_a_question_is_paid_once_by_whoever_asks(ledger: Ledger) -> None:
    assert pay(ledger, "all", "fever") == micro(0.5)
    assert pay(ledger, "all", "fever", user="bob") == 0
    assert books.found(ledger, "all", digest("fever")) == "answer to fever"
    assert left(ledger) == 1.5


def test_the_first_stored_answer_stays(ledger: Ledger) -> None:
    key = digest("fever")
    books.reserve(ledger, "all", "ann", [charge("fever")])
    assert books.store(ledger, "all", {key: "3"}) == {key: "3"}
    assert books.store(ledger, "all", {key: "4"}) == {key: "3"}
    assert books.found(ledger, "all", key) == "3"


def test_a_charge_without_an_answer_is_taken_up_at_no_cost(ledger: Ledger) -> None:
    books.reserve(ledger, "all", "ann", [charge("fever")])
    assert books.found(ledger, "all", digest("fever")) is None
    assert pay(ledger, "all", "fever", user="bob") == 0
    assert left(ledger) == 1.5


def test_no_answer_is_stored_without_its_charge(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="without a charge"):
        books.store(ledger, "all", {digest("fever"): "3"})
    assert books.found(ledger, "all", digest("fever")) is None


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
        books.reserve(ledger, "all", "ann", [charge("a", 0.6), charge("b", 0.6)])
    assert left(ledger) == 1
    paid = books.reserve(ledger, "all", "ann", [charge("known", 1), charge("a", 0.6), charge("a", 0.6)])
    assert [each.cost for each in paid] == [0, micro(0.6), 0]
    assert paid[0].payload == "answer to known"


def test_descendants_spend_the_cap_of_their_ancestors(ledger: Ledger) -> None:
    books.register(ledger, DataSet(id="child", parent="all", budget=Budget(epsilon=micro(2))))
    books.register(ledger, DataSet(id="grandchild", parent="child", budget=Budget(epsilon=micro(1))))
    books.register(ledger, DataSet(id="sibling", parent="all", budget=Budget(epsilon=micro(2))))
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
    assert books.audit(ledger, "child").passed


def test_the_same_question_of_another_data_set_is_another_question(ledger: Ledger) -> None:
    books.register(ledger, DataSet(id="child", parent="all", budget=Budget(epsilon=micro(2))))
    assert pay(ledger, "all", "fever") == pay(ledger, "child", "fever") == micro(0.5)


def test_a_budget_does_not_refill(ledger: Ledger, where: str | Path) -> None:
    pay(ledger, "all", "fever", 1.5)
    books.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
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
            books.register(ledger, other)
    assert left(books.make_ledger(where)) == 0.5


def test_allotments_lie_under_the_cap(ledger: Ledger) -> None:
    pay(ledger, "all", "before", 0.25)
    books.allot(ledger, "all", "ann", micro(0.75))
    assert left(ledger) == 0.5
    assert left(ledger, user="bob") == 1.75
    with pytest.raises(BudgetSpent, match=r"ann has 0\.5 left, 1\.75 remains"):
        pay(ledger, "all", "fever", 0.75)
    pay(ledger, "all", "fever", 0.5)
    pay(ledger, "all", "of bob", 1, user="bob")
    books.allot(ledger, "all", "ann", micro(2))  # raised by a person, not by time
    assert left(ledger) == 0.25  # the cap of all
    with pytest.raises(BadInput, match="less than what was spent"):
        books.allot(ledger, "all", "ann", micro(0.5))
    assert books.audit(ledger, "all").passed


def test_zcdp_lets_more_small_answers_through(where: str | Path) -> None:
    ledger = books.make_ledger(where)
    budget = Budget(epsilon=micro(1), accounting="zcdp", delta=1e-6)
    books.register(ledger, DataSet(id="all", default_allotment="all", budget=budget))
    small = [charge(f"q{i}", 0.01) for i in range(150)]  # 1.5 by plain sums
    books.reserve(ledger, "all", "ann", small)
    found = books.left(ledger, "all", "ann")
    assert 0.01 < found.spent_epsilon < 1
    assert 0.01 < found.user / 1e6 < 0.5
    with pytest.raises(BudgetSpent):
        pay(ledger, "all", "large", 0.5)
    assert books.audit(ledger, "all").passed
    with pytest.raises(BadInput, match="use its parent"):
        books.register(ledger, DataSet(id="child", parent="all", budget=Budget(epsilon=micro(0.1))))


def test_unknown_data_sets_and_parents(ledger: Ledger) -> None:
    for ask in (
        lambda: pay(ledger, "other", "fever"),
        lambda: books.left(ledger, "other", "ann"),
        lambda: books.terms_of(ledger, "other"),
        lambda: books.audit(ledger, "other"),
    ):
        with pytest.raises(LedgerUnreachable, match="No answer was given"):
            ask()
    assert not books.known(ledger, "other")
    with pytest.raises(BadInput, match="parent data set is not in this ledger"):
        books.register(ledger, DataSet(id="child", parent="none", budget=Budget(epsilon=1)))


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "x" * 101, "\x1b[2J"])
def test_names_that_are_none(ledger: Ledger, name: str) -> None:
    with pytest.raises(BadInput, match="--user"):
        books.reserve(ledger, "all", name, [charge("fever")])


@pytest.mark.parametrize("bad", [{"unit": "family"}, {"threshold": 0}])
def test_terms_that_are_none(bad: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        DataSet(id="x", default_allotment="all", budget=Budget(epsilon=1), **bad)  # type: ignore[arg-type]  # wrong on purpose


def test_terms_are_kept(ledger: Ledger) -> None:
    child = DataSet(id="child", parent="all", budget=Budget(epsilon=micro(1)), threshold=10)
    books.register(ledger, child)
    assert books.terms_of(ledger, "child").threshold == 10
    assert books.terms_of(ledger, "all").threshold is None
    assert books.terms_of(ledger, "all").unit == "patient"


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
    assert books.audit(ledger, "all").passed


def test_an_audit_finds_an_earlier_head(ledger: Ledger) -> None:
    head = books.audit(ledger, "all").head
    pay(ledger, "all", "fever")
    assert books.audit(ledger, "all", head).passed
    assert not books.audit(ledger, "all", "0" * 64).passed


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
    ledger = books.make_ledger(tmp_path)
    books.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    for text in ("fever", "cough"):
        pay(ledger, "all", text)
    assert books.audit(ledger, "all").passed
    name, statement = PLANTED[planted]
    with sqlite3.connect(tmp_path / books.EMBEDDED) as raw:
        raw.create_function("link", 4, chain.link)
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        assert raw.execute(statement).rowcount > 0
    found = books.audit(ledger, "all")
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
    ledger = books.make_ledger(tmp_path)
    books.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    pay(ledger, "all", "fever")
    with opening.reading(ledger) as connection:
        before = list(chain.entries_of(connection, "all"))
    bodies = [body for entry in before for body in change(json.loads(entry.body))]
    with sqlite3.connect(tmp_path / books.EMBEDDED) as raw:
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
    found = books.audit(ledger, "all")
    assert [check.name for check in found.checks if not check.passed] == [name], found


def test_a_log_written_anew_does_not_have_the_head_kept_elsewhere(tmp_path: Path) -> None:
    """The one forgery that a chain cannot see by itself: the whole ledger, made again."""
    heads = []
    for name in ("true", "forged"):
        folder = tmp_path / name
        folder.mkdir()
        ledger = books.make_ledger(folder)
        books.register(ledger, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
        pay(ledger, "all", name)
        heads.append(books.audit(ledger, "all").head)
    assert books.audit(ledger, "all").passed
    assert not books.audit(ledger, "all", heads[0]).passed


# -- statements for the driver ----


def test_the_driver_answers_as_sqlalchemy_does(ledger: Ledger) -> None:
    asked = sa.select(tables.families)
    with opening.reading(ledger) as slow, opening.reading_directly(ledger) as fast:
        expected = slow.execute(asked).one()
        found = fast.execute(asked)
        assert tuple(found.one()) == tuple(expected)
        assert found.one()._asdict() == expected._asdict()
        assert [type(value) for value in found.one()] == [type(value) for value in expected]
        assert fast.execute(asked.where(tables.families.c.family == "nobody")).first() is None


def test_what_fails_leaves_a_transaction_for_the_driver_as_it_was(ledger: Ledger) -> None:
    """A failure that is caught; one that is not; and a second row of the same key."""
    row = {"account": "user:all:eve", "family": "all", "most": 2, "spent": 0}
    insert = tables.accounts.insert()
    held = sa.select(tables.accounts.c.most).where(tables.accounts.c.account == row["account"])
    with opening.writing_directly(ledger) as connection:
        assert connection.execute(insert, row).rowcount == 1
        for wrong in (row, row | {"account": "user:all:cy", "spent": 3}):  # there already; above its most
            with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
                connection.execute(insert, wrong)
        assert connection.execute(new_row(tables.accounts), row | {"most": 9}).rowcount == 0
        assert connection.execute(held).scalar() == 2
    with pytest.raises(KeyboardInterrupt), opening.writing_directly(ledger) as connection:
        connection.execute(tables.accounts.update().values(most=7))
        raise KeyboardInterrupt
    with opening.reading_directly(ledger) as connection:
        assert connection.execute(held).scalar() == 2


def test_a_connection_keeps_few_statements_prepared(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MOST_PREPARED", 3)
    with opening.reading_directly(ledger) as connection:
        assert isinstance(connection, direct.Direct)
        for _ in range(2):
            assert [
                connection.execute(sa.select(sa.literal(each).label("it"))).scalar() for each in range(5)
            ] == list(range(5))
        for each in range(6):
            connection.execute(sa.select(*(sa.literal(n).label(f"n{n}") for n in range(each + 1))))
        assert len(connection.raw.info.get("prepared", {})) <= 3


# -- schema and places ----


def test_the_migrations_make_the_tables(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_later_schema_is_refused(ledger: Ledger, where: str | Path) -> None:
    with opening.writing(ledger) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerUnreachable, match="later version"):
        books.open_ledger(where)


def test_a_folder_without_a_ledger_answers_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreachable, match="nothing is answered"):
        books.open_ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []


def as_another_process(url: str) -> Ledger:
    """The same database with an engine of its own."""
    return books.make_ledger(f"{url}&application_name=elsewhere")


def test_a_lock_is_waited_for_longer_than_one_statement(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "STATEMENT_SECONDS", 1)
    states: list[str | None] = []
    monkeypatch.setattr(
        families, "state_of", lambda error: states.append(engines.state_of(error)) or states[-1]
    )
    made = books.make_ledger(url := fresh_database(postgres))
    books.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    with ThreadPoolExecutor(1) as pool:
        with families.changing(as_another_process(url), "all"):
            paid = pool.submit(pay, made, "all", "fever")
            wait_until(lambda: opening.CANCELED in states or paid.done(), "a statement ends while it waits")
            assert not paid.done()
        assert paid.result(timeout=LONG) == micro(0.5)


def test_reading_does_not_wait_for_those_who_wait_to_pay(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process has ten connections. However many of its threads wait for a family, whether they ask its first data
    set or one made from it, they hold two; who only reads needs a third."""
    made = books.make_ledger(url := fresh_database(postgres))
    books.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    books.register(made, DataSet(id="part", parent="all", budget=Budget(epsilon=micro(2))))
    for data_set in ("all", "part"):  # whose family is asked once in a process
        pay(made, data_set, "first", 0.1)
    pool: Any = made.engine.pool
    held, waiting = [], []
    real = opening._turn
    monkeypatch.setattr(opening, "_turn", lambda *given: waiting.append(given) or real(*given))
    sa.event.listen(made.engine, "checkout", lambda *given: held.append(pool.checkedout()))
    with ThreadPoolExecutor(13) as threads:
        with families.changing(as_another_process(url), "all"):
            waiting.clear()
            paid = [threads.submit(pay, made, ("all", "part")[i % 2], f"q{i}", 0.1) for i in range(12)]
            wait_until(lambda: len(waiting) == 12 and held, "all of them wait to pay")
            found = threads.submit(books.found, made, "all", digest("fever"))
            assert found.result(timeout=LONG) is None
        assert [each.result(timeout=LONG) for each in paid] == [micro(0.1)] * 12
    assert max(held) <= 3


@pytest.mark.parametrize("error", [TimeoutError, struct.error, KeyError])
def test_a_connection_whose_answer_was_not_read_to_its_end_is_not_used_again(
    postgres: str, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The rest of that answer would be read as the answer to the next statement."""
    from pg8000.legacy import Cursor

    asked = "SELECT pg_backend_pid()"
    ledger = books.make_ledger(fresh_database(postgres))
    real = Cursor.execute

    def interrupted(cursor: Any, text: str, *more: Any, **options: Any) -> Any:
        real(cursor, text, *more, **options)
        if text == "SELECT 1 -- interrupted":
            raise error
        return cursor

    monkeypatch.setattr(Cursor, "execute", interrupted)
    seen = []
    with pytest.raises(LedgerUnreachable), opening.writing(ledger) as connection:
        seen.append(connection.exec_driver_sql(asked).scalar())
        connection.exec_driver_sql("SELECT 1 -- interrupted")
    for _ in range(12):  # more than the pool has
        with opening.reading(ledger) as connection:
            assert connection.exec_driver_sql(asked).scalar() not in seen
    assert len(seen) == 1


@pytest.mark.parametrize("error", [TimeoutError, struct.error, KeyError])
def test_a_statement_for_the_driver_that_was_interrupted_ends_its_connection_too(
    postgres: str, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    from pg8000.core import CoreConnection

    ledger = books.make_ledger(fresh_database(postgres))
    asked = sa.select(sa.func.pg_backend_pid().label("number"))
    real = CoreConnection.execute_named

    def interrupted(*given: Any) -> Any:
        real(*given)
        raise error

    with opening.reading_directly(ledger) as connection:
        seen = connection.execute(asked).scalar()
    with monkeypatch.context() as patched:
        patched.setattr(CoreConnection, "execute_named", interrupted)
        with pytest.raises(LedgerUnreachable), opening.writing_directly(ledger) as connection:
            connection.execute(asked)
    for _ in range(12):
        with opening.reading_directly(ledger) as connection:
            assert connection.execute(asked).scalar() != seen


def test_a_prepared_statement_whose_table_was_altered_is_prepared_anew(postgres: str) -> None:
    ledger = books.make_ledger(fresh_database(postgres))
    table = sa.Table("altered", sa.MetaData(), sa.Column("number", sa.Integer))
    asked = sa.select(table.c.number).where(table.c.number > 0)
    with opening.writing(ledger) as connection:
        connection.exec_driver_sql("CREATE TABLE altered AS SELECT 1 AS number")
    with opening.reading_directly(ledger) as connection:
        assert connection.execute(asked).scalar() == 1
    with opening.writing(ledger) as connection:
        connection.exec_driver_sql("ALTER TABLE altered ALTER number TYPE bigint")
    with pytest.raises(LedgerUnreachable), opening.reading_directly(ledger) as connection:
        connection.execute(asked)
    with opening.reading_directly(ledger) as connection:
        assert connection.execute(asked).scalar() == 1


def test_half_an_answer_to_a_new_connection_is_a_sentence(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pg8000.core import CoreConnection

    ledger = books.make_ledger(fresh_database(postgres))
    books.opening.release(ledger)

    def half(*arguments: Any, **options: Any) -> None:
        raise KeyError(b"?")

    monkeypatch.setattr(CoreConnection, "__init__", half)
    with pytest.raises(LedgerUnreachable, match="cannot read"), opening.reading(ledger):
        pass


def test_an_empty_database_is_no_ledger(postgres: str) -> None:
    with pytest.raises(LedgerUnreachable, match="no ledger of Leeward"):
        books.open_ledger(fresh_database(postgres))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://leeward:geheim@127.0.0.1:9/ledger",
        "sqlite:////nowhere/at/all.db",
        "mongodb://host/x",
        "postgresql+psycopg2x://host/x",
        "://",
    ],
)
def test_urls_that_lead_nowhere(url: str) -> None:
    with pytest.raises(BadInput) as refusal:
        books.open_ledger(url)
    assert "geheim" not in str(refusal.value)


def test_a_broken_file_answers_nothing(tmp_path: Path) -> None:
    (tmp_path / books.EMBEDDED).write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerUnreachable, match="cannot reach the ledger"):
        books.open_ledger(tmp_path)


# -- what a power failure leaves ----


def flushes(connection: Any) -> bool:
    """Whether this transaction is on the disk when it is committed, as the database itself says it."""
    if connection.dialect.name == "sqlite":
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        found = connection.exec_driver_sql("PRAGMA synchronous").scalar()
        assert found in (1, 2), (
            "NORMAL keeps the order of what is written, FULL flushes it; OFF keeps nothing"
        )
        return bool(found == 2)
    found = connection.exec_driver_sql("SHOW synchronous_commit").scalar()
    assert found in ("on", "off")
    return bool(found == "on")


@pytest.mark.parametrize("direct", [False, True], ids=["by sqlalchemy", "by the driver"])
def test_what_is_durable_is_flushed(ledger: Ledger, direct: bool) -> None:
    write = opening.writing_directly if direct else opening.writing
    for durable in (True, False, True):  # each says so itself, whatever the one before said
        with write(ledger, durable=durable) as connection:
            assert flushes(connection) == durable or (not direct and connection.dialect.name != "sqlite")
        with families.changing(ledger, "all", durable=durable) as change:
            assert flushes(change.connection) == durable
    with write(ledger) as connection:
        assert flushes(connection), "who does not say is flushed"


def test_answers_refusals_and_allotments_are_flushed_and_no_answer_before_its_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge is written before its answer, and the answer's flush is the charge's too."""
    seen: list[tuple[str, bool]] = []
    real = chain.append

    def append(connection: Any, family: str, entries: int, head: str, bodies: Any, after: str = "") -> Any:
        bodies = list(bodies)
        seen.extend((body["event"], flushes(connection)) for body in bodies)
        return real(connection, family, entries, head, bodies, after)

    monkeypatch.setattr(chain, "append", append)
    pay(ledger, "all", "fever")
    with pytest.raises(BudgetSpent):
        pay(ledger, "all", "too much", 5)
    books.allot(ledger, "all", "bob", micro(1))
    books.register(ledger, DataSet(id="part", parent="all", budget=Budget(epsilon=micro(1))))
    assert seen == [
        ("charged", False), ("answered", True), ("refused", True), ("allotted", True), ("opened", True),
    ]  # fmt: skip


# -- many at once ----

CLIENTS, EACH, PRICE = 100, 3, 0.03
AFFORDED = 66
"""2 / 0.03, whole."""


def rush(where: str | Path, ask: Callable[[Ledger, str], bool]) -> int:
    """100 clients, each with questions of its own, at once; how many were paid."""
    ledger = books.open_ledger(where)

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
    found = books.audit(ledger, "all")
    assert found.passed
    assert found.spent == pytest.approx(AFFORDED * PRICE)


CLIENTS_OF_A_PROCESS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from leeward.queries import ledger as books
from leeward.queries.ledger import BudgetSpent, Charge
ledger = books.open_ledger(sys.argv[1])
def client(number):
    paid = 0
    for i in range(3):
        key = f"process {sys.argv[2]}, client {number}, question {i}"
        try:
            books.reserve(ledger, "all", "rush", [Charge(key=key, question=key, epsilon=30000)])
            books.store(ledger, "all", {key: "3"})
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
    assert books.audit(ledger, "all").passed


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
    found = books.audit(ledger, "all")
    assert [check.name for check in found.checks if not check.passed] == ["caps"]


def test_the_constraint_is_a_second_lock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition of the update planted away the database itself refuses, and nothing is answered."""

    def take(connection: sa.Connection, *rest: object) -> None:
        connection.exec_driver_sql("UPDATE accounts SET spent = spent + 3000000")

    monkeypatch.setattr(spending, "_take", take)
    with pytest.raises(LedgerUnreachable, match=r"IntegrityError|ProgrammingError"):
        books.reserve(ledger, "all", "ann", [charge("fever")])
    assert left(ledger) == 2
