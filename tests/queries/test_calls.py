"""What the commands do, one call does: indexing, budgets, audits and the catalogue through the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.queries.made import five_notes

from leeward.errors import BadInput
from leeward.queries.answer.api import audit, budget, login_name, query
from leeward.queries.ledger.spending import BudgetSpent, NotAllotted
from leeward.runs.index import index
from leeward.runs.itemsets import itemsets


@pytest.fixture
def made(tmp_path: Path) -> Path:
    out = tmp_path / "index"
    done = index(five_notes(), out, epsilon_total=5, terms="lexicon", domains={"gender": ["f", "m"]})
    assert (done["rows"], done["patients"], done["epsilon_total"], done["vocabulary_public"]) == (
        5,
        5,
        5.0,
        True,
    )
    return out


def test_a_frame_is_indexed_asked_and_audited(made: Path) -> None:
    assert query(made, "fever", epsilon=0.5).remaining == 4_500_000
    told = budget(made, allot={"ann": 1, "bob": "0.25"})
    assert (told["spent"], told["remaining"]) == (0.5, 4.5)
    assert told["allotments"] == [
        {"user": "ann", "most": 1.0, "left": 1.0},
        {"user": "bob", "most": 0.25, "left": 0.25},
        {"user": login_name(), "most": 5.0, "left": 4.5},
    ], "whoever indexes may spend everything"
    with pytest.raises(NotAllotted, match="eve has no allotment"):
        query(made, "chills", epsilon=0.5, user="eve")
    budget(made, allot_project={"flu": 0.75})
    assert query(made, "chills", epsilon=0.5, user="eve", project="flu").remaining == 250_000
    with pytest.raises(BudgetSpent, match=r"eve in flu has 0\.25 left"):
        query(made, "headache", epsilon=0.5, user="eve", project="flu")
    with pytest.raises(NotAllotted, match="project other has no allotment"):
        query(made, "headache", epsilon=0.5, user="ann", project="other")
    assert audit(made).passed and audit(made, expect=audit(made).head).passed
    assert not audit(made, expect="0" * 64).passed


def test_a_catalogue_is_returned_and_written(made: Path, tmp_path: Path) -> None:
    prices: list[str] = []
    first = itemsets(made, epsilon=1, max_size=1, tell=prices.append)
    again = itemsets(made, tmp_path / "catalogue", epsilon=1, max_size=1, tell=prices.append)
    assert first["itemsets"] == again["itemsets"] and again["remaining"] == 4.0
    assert prices[0].startswith("this costs 1;") and prices[1].startswith("this was paid for")
    assert (tmp_path / "catalogue" / "custody" / "report.html").is_file()


def test_an_unknown_option_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no option `rows`"):
        index(five_notes(), tmp_path / "index", epsilon_total=5, rows=3)
    with pytest.raises(BadInput, match="in a table of notes, a row"):
        index(five_notes(), tmp_path / "index", epsilon_total=5, row="visit")
    assert list(tmp_path.iterdir()) == []
