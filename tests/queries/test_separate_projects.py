"""`charge_projects_separately`: a project pays as if it were alone, and the cap of all pays each question once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.queries.ledger import auditing, budgets, families, moving, opening, spending
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.chain import digest
from leeward.queries.ledger.opening import Ledger
from leeward.queries.ledger.spending import BudgetSpent, Charge, NotAllotted
from leeward.queries.privacy.accounting import Budget, micro

number = itertools.count()


def open_new(folder: Path, cap: float = 2, **more: Any) -> Ledger:
    place = folder / str(next(number))
    place.mkdir()
    ledger = opening.make_ledger(place)
    terms = {"charge_projects_separately": True, **more}
    budgets.register(ledger, DataSet(id="all", budget=Budget(epsilon=micro(cap)), **terms))
    return ledger


def allot(ledger: Ledger, **most: float) -> None:
    for project, epsilon in most.items():
        budgets.allot(ledger, "all", project, micro(epsilon), project=True)


def pay(ledger: Ledger, text: str, epsilon: float, project: str | None, user: str = "ann") -> int:
    """What it costs; the answer is stored."""
    charge = Charge(key=digest(f"{text} {epsilon}"), question=text, epsilon=micro(epsilon))
    (paid,) = spending.reserve(ledger, "all", user, [charge], project)
    (stored,) = spending.store(ledger, "all", {paid.key: f"answer {next(number)}"}, separately=True).values()
    assert stored == spending.find_answer(ledger, "all", charge.key)
    return paid.cost


def left(ledger: Ledger, project: str | None) -> int:
    return spending.left(ledger, "all", "ann", project).user


def test_each_project_pays_and_the_cap_pays_once(tmp_path: Path) -> None:
    ledger = open_new(tmp_path)
    allot(ledger, one=1, two=1)
    assert [pay(ledger, "fever", 0.5, project) for project in ("one", "two", "one")] == [500_000, 500_000, 0]
    assert (left(ledger, "one"), left(ledger, "two")) == (500_000, 500_000)
    assert spending.left(ledger, "all", None).anybody == 1_500_000
    found = auditing.audit(ledger, "all")
    assert found.passed and found.spent == 0.5, found.checks
    with pytest.raises(BudgetSpent) as refused:
        pay(ledger, "cough", 0.6, "two")
    assert "in total" not in str(refused.value) and left(ledger, "two") == 500_000
    families.close(ledger)  # the next check reads the log anew
    assert spending.paid_by(ledger, "all", [digest("fever 0.5")], "two")
    assert not spending.paid_by(ledger, "all", [digest("fever 0.5")], "three")
    (tmp_path / "elsewhere").mkdir()
    target = opening.make_ledger(tmp_path / "elsewhere")
    moving.move(ledger, target, "all")
    assert auditing.audit(target, "all").passed
    assert pay(target, "fever", 0.5, "one") == 0, "what was paid stays paid after a move"
    assert budgets.terms_of(target, "all").charge_projects_separately


QUESTIONS = st.tuples(st.sampled_from(["one", "two", "three"]), st.sampled_from(["fever", "cough", "rash"]))


@settings(max_examples=6, deadline=None)
@given(asked=st.lists(QUESTIONS, min_size=3, max_size=8))
def test_what_a_project_sees_does_not_depend_on_others(
    asked: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Prices, refusals and balances of project one are those that it would see alone; the audit agrees."""

    def seen(questions: list[tuple[str, str]]) -> list[tuple[int, int]]:
        ledger = open_new(tmp_path_factory.mktemp("ledger"), cap=1)
        allot(ledger, one=0.5, two=0.25, three=0.25)
        found = []
        for project, text in questions:
            try:
                cost = pay(ledger, text, 0.2, project)
            except BudgetSpent:
                cost = -1
            found.append((cost, left(ledger, project)))
        assert auditing.audit(ledger, "all").passed
        return found

    own = [place for place, (who, _) in enumerate(asked) if who == "one"]
    together = seen(asked)
    assert [together[place] for place in own] == seen([asked[place] for place in own])


def test_projects_never_have_more_left_than_all(tmp_path: Path) -> None:
    ledger = open_new(tmp_path)
    allot(ledger, one=1.5)
    with pytest.raises(BadInput, match="may not exceed"):
        allot(ledger, two=0.6)
    allot(ledger, two=0.3)
    budgets.allot(ledger, "all", "ann", micro(2))
    with pytest.raises(NotAllotted, match="allotted to its projects"):
        pay(ledger, "fever", 0.3, None)
    assert pay(ledger, "fever", 0.2, None) == 200_000, "what no project was allotted"
    assert pay(ledger, "rash", 1.5, "one", user="bob") == 1_500_000
    assert left(ledger, "two") == 300_000 and auditing.audit(ledger, "all").passed


def test_projects_may_hold_what_all_have_left_and_not_what_was_spent(tmp_path: Path) -> None:
    ledger = open_new(tmp_path)
    allot(ledger, one=1.5)
    pay(ledger, "fever", 1, "one")
    with pytest.raises(BadInput, match="may not exceed"):
        allot(ledger, two=0.6)  # 0.5 is left to one, 1 to all
    allot(ledger, two=0.5)


def test_terms_that_would_tell_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="only projects pay"):
        open_new(tmp_path, default_allotment="all")
    ledger = open_new(tmp_path)
    budget = Budget(epsilon=micro(2))
    with pytest.raises(BadInput, match="on other terms"):
        budgets.register(ledger, DataSet(id="all", budget=budget))
    for more, message in (
        ({"charge_projects_separately": False}, "as its parent does"),
        ({"budget": Budget(epsilon=micro(1))}, "at least its parent's budget"),
    ):
        terms: dict[str, Any] = {"budget": budget, "charge_projects_separately": True, **more}
        with pytest.raises(BadInput, match=message):
            budgets.register(ledger, DataSet(id="child", parent="all", **terms))
    budgets.register(
        ledger, DataSet(id="child", parent="all", budget=budget, charge_projects_separately=True)
    )


def test_an_entry_that_charges_again_without_a_price_is_found(tmp_path: Path) -> None:
    """The log is the ledger: a second project's account that was not charged differs from it."""
    import sqlalchemy as sa

    from leeward.queries.ledger.families import LedgerInconsistent

    ledger = open_new(tmp_path)
    allot(ledger, one=1, two=1)
    pay(ledger, "fever", 0.5, "one")
    pay(ledger, "fever", 0.5, "two")
    with ledger.engine.begin() as connection:
        connection.execute(sa.text("UPDATE accounts SET spent = 0 WHERE account = 'project:all:two'"))
    assert not auditing.audit(ledger, "all").passed
    with pytest.raises(LedgerInconsistent):
        pay(ledger, "cough", 0.1, "two")
