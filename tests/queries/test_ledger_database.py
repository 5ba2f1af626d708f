"""The ledger's database: transactions, the schema, connections and locks, and what is flushed."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from tests.queries.ledgers import fresh_database, pay
from tests.waiting import LONG, wait_until

from leeward.errors import BadInput
from leeward.portal.store.rows import new_row
from leeward.queries.ledger import budgets, chain, engines, families, opening, spending, tables
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.chain import digest
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable
from leeward.queries.ledger.spending import BudgetSpent
from leeward.queries.ledger.tables import metadata
from leeward.queries.privacy.accounting import Budget, micro

# -- transactions ----


def test_what_fails_leaves_a_transaction_as_it_was(ledger: Ledger) -> None:
    """A failure that is caught; one that is not; and a second row of the same key."""
    row = {"account": "user:all:eve", "family": "all", "most": 2, "spent": 0}
    insert = tables.accounts.insert()
    held = sa.select(tables.accounts.c.most).where(tables.accounts.c.account == row["account"])
    with opening.writing(ledger) as connection:
        assert connection.execute(insert, row).rowcount == 1
        for wrong in (row, row | {"account": "user:all:cy", "spent": 3}):  # there already; above its most
            with pytest.raises(sa.exc.DBAPIError), connection.begin_nested():
                connection.execute(insert, wrong)
        assert connection.execute(new_row(tables.accounts), row | {"most": 9}).rowcount == 0
        assert connection.execute(held).scalar() == 2
    with pytest.raises(KeyboardInterrupt), opening.writing(ledger) as connection:
        connection.execute(tables.accounts.update().values(most=7))
        raise KeyboardInterrupt
    with opening.reading(ledger) as connection:
        assert connection.execute(held).scalar() == 2


# -- schema and places ----


def test_the_migrations_make_the_tables(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_later_schema_is_refused(ledger: Ledger, where: str | Path) -> None:
    with opening.writing(ledger) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerUnreachable, match="later version"):
        opening.open_ledger(where)


def test_a_folder_without_a_ledger_answers_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreachable, match="nothing is answered"):
        opening.open_ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []


def as_another_process(url: str) -> Ledger:
    """The same database with an engine of its own."""
    return opening.make_ledger(f"{url}&application_name=elsewhere")


def test_a_lock_is_waited_for_longer_than_one_statement(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "STATEMENT_SECONDS", 1)
    states: list[str | None] = []
    monkeypatch.setattr(
        opening, "state_of", lambda error: states.append(engines.state_of(error)) or states[-1]
    )
    made = opening.make_ledger(url := fresh_database(postgres))
    budgets.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
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
    made = opening.make_ledger(url := fresh_database(postgres))
    budgets.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    budgets.register(made, DataSet(id="part", parent="all", budget=Budget(epsilon=micro(2))))
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
            found = threads.submit(spending.find_answer, made, "all", digest("fever"))
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
    ledger = opening.make_ledger(fresh_database(postgres))
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


def test_half_an_answer_to_a_new_connection_is_a_sentence(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pg8000.core import CoreConnection

    ledger = opening.make_ledger(fresh_database(postgres))
    opening.release(ledger)

    def half(*arguments: Any, **options: Any) -> None:
        raise KeyError(b"?")

    monkeypatch.setattr(CoreConnection, "__init__", half)
    with pytest.raises(LedgerUnreachable, match="cannot read"), opening.reading(ledger):
        pass


def test_an_empty_database_is_no_ledger(postgres: str) -> None:
    with pytest.raises(LedgerUnreachable, match="no ledger of Leeward"):
        opening.open_ledger(fresh_database(postgres))


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
        opening.open_ledger(url)
    assert "geheim" not in str(refusal.value)


def test_a_broken_file_answers_nothing(tmp_path: Path) -> None:
    (tmp_path / opening.EMBEDDED).write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerUnreachable, match="file is damaged"):
        opening.open_ledger(tmp_path)


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


def test_what_is_durable_is_flushed(ledger: Ledger) -> None:
    for durable in (True, False, True):  # each says so itself, whatever the one before said
        with opening.writing(ledger, durable=durable) as connection:
            assert flushes(connection) == durable
        with families.changing(ledger, "all", durable=durable) as change:
            assert flushes(change.connection) == durable
    with opening.writing(ledger) as connection:
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
    budgets.allot(ledger, "all", "bob", micro(1))
    budgets.register(ledger, DataSet(id="part", parent="all", budget=Budget(epsilon=micro(1))))
    assert seen == [
        ("charged", False), ("answered", True), ("refused", True), ("allotted", True), ("opened", True),
    ]  # fmt: skip
