"""Ledgers on both databases, and an index whose ledger was spent from, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres_fixture import postgres_server
from tests.queries.ledgers import fresh_database
from tests.queries.made import five_notes, question, session_of

from leeward.queries.answer.charged_query import answer_all
from leeward.queries.ledger import budgets, families, opening
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.opening import Ledger
from leeward.queries.privacy.accounting import Budget, micro

assert postgres_server  # pytest finds the fixture here


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """A folder, or the URL of a fresh database."""
    if request.param == "sqlite":
        return tmp_path
    return fresh_database(request.getfixturevalue("postgres"))


@pytest.fixture
def ledger(where: str | Path) -> Ledger:
    """A ledger with a budget of 2 that is everybody's."""
    made = opening.make_ledger(where)
    budgets.register(made, DataSet(id="all", default_allotment="all", budget=Budget(epsilon=micro(2))))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of which epsilon 1 of 5 was spent, with nothing open."""
    session = session_of(five_notes(), tmp_path / "index")
    answer_all(session, [question("fever", 1)], "ann")
    families.close(session.ledger)
    return tmp_path / "index"
