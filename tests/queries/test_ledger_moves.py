"""A budget moves to another ledger with all that was spent, once, whatever dies on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres_fixture import postgres_server  # noqa: F401  # a fixture
from tests.queries.ledgers import charge, fresh_database, left, pay

from leeward.errors import BadInput
from leeward.queries.ledger import auditing, budgets, moving, opening, spending
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.chain import digest
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable
from leeward.queries.privacy.accounting import Budget, micro


@pytest.fixture
def old(tmp_path: Path) -> Ledger:
    made = opening.make_ledger(tmp_path)
    budgets.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    budgets.register(made, DataSet(id="a child", parent="all", budget=Budget(epsilon=micro(2))))
    budgets.allot(made, "all", "ann", micro(1))
    pay(made, "all", "fever")
    pay(made, "a child", "fever", 0.25)
    spending.reserve(made, "all", "bob", [charge("charged only", 0.25)])
    return made


def test_everything_moves(old: Ledger, postgres: str) -> None:
    before = auditing.audit(old, "all")
    new = opening.make_ledger(fresh_database(postgres))
    moving.move(old, new, "a child")
    for data_set in ("all", "a child"):
        assert (left(new, data_set), left(new, data_set, "bob")) == (0.25, 1)
    assert pay(new, "all", "fever") == 0
    assert spending.find_answer(new, "all", digest("fever")) == "answer to fever"
    assert pay(new, "all", "charged only", 0.25) == 0
    pay(new, "a child", "cough", 0.25)
    assert auditing.audit(new, "all", before.head).passed


def test_the_old_ledger_is_closed(old: Ledger, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    moving.move(old, opening.make_ledger(tmp_path / "new"), "all")
    for ask in (
        lambda: pay(old, "all", "cough"),
        lambda: spending.store(old, "all", {digest("charged only"): "3"}),
        lambda: budgets.allot(old, "all", "bob", micro(1)),
        lambda: budgets.terms_of(old, "all"),
    ):
        with pytest.raises(LedgerUnreachable, match="has moved to another ledger"):
            ask()


def test_it_moves_to_one_place_only_and_once(old: Ledger, tmp_path: Path) -> None:
    for name in ("new", "other"):
        (tmp_path / name).mkdir()
    new = opening.make_ledger(tmp_path / "new")
    moving.move(old, new, "all")
    pay(new, "all", "cough", user="bob")
    moving.move(old, new, "all")  # again: nothing happens
    assert left(new, user="bob") == 0.5
    with pytest.raises(BadInput, match=r"has moved to .* already"):
        moving.move(old, opening.make_ledger(tmp_path / "other"), "all")


@pytest.mark.parametrize("step", [1, 2, 3])
def test_dying_on_the_way_refills_nothing(
    old: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The process dies at its first, second or third transaction; the same move again finishes it."""
    (tmp_path / "new").mkdir()
    new = opening.make_ledger(tmp_path / "new")
    true, calls = moving.writing, [0]

    def dying(ledger: Ledger):  # type: ignore[no-untyped-def]  # a context manager, as it is
        calls[0] += 1
        if calls[0] == step:
            raise KeyboardInterrupt
        return true(ledger)

    with monkeypatch.context() as patched:
        patched.setattr(moving, "writing", dying)
        with pytest.raises(KeyboardInterrupt):
            moving.move(old, new, "all")
    if step == 1:
        assert pay(old, "all", "cough", 0.01, "bob")
    else:
        with pytest.raises(LedgerUnreachable):
            pay(old, "all", "cough", 0.01, "bob")
    moving.move(old, new, "all")
    assert auditing.audit(new, "all").passed
    assert left(new, user="bob") == (0.99 if step == 1 else 1)


def test_what_arrived_and_was_lost_is_not_made_again(old: Ledger, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    new = opening.make_ledger(tmp_path / "new")
    moving.move(old, new, "all")
    pay(new, "all", "cough", 1, user="bob")
    new.engine.dispose()
    for file in (tmp_path / "new").iterdir():
        file.unlink()
    with pytest.raises(LedgerUnreachable, match="not made again from an old copy"):
        moving.move(old, opening.make_ledger(tmp_path / "new"), "all")
