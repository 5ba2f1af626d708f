"""`leeward query`, `audit` and `budget`: what they print, what they refuse, and with which status."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.postgres_fixture import postgres_server  # noqa: F401  # a fixture
from tests.queries.ledgers import fresh_database
from tests.queries.made import TERMS, five_notes, session_of

from leeward.cli.main import COMMANDS, status_of
from leeward.queries.privacy import mechanism

SORE = ("sore throat & fever", "--when", "2009-04..2009-06", "--zip", "1230*", "--epsilon", "0.5")

Said = tuple[int, str, str]


@pytest.fixture
def index(tmp_path: Path) -> str:
    session_of(five_notes(), tmp_path / "index").ledger.engine.dispose()
    return str(tmp_path / "index")


@pytest.fixture
def lw(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: str) -> Said:
        status = status_of(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def asked(lw: Callable[..., Said], *arguments: str) -> dict[str, Any]:
    status, out, err = lw("query", *arguments, "--json")
    assert status == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_command_of_the_contract(lw: Callable[..., Said], index: str) -> None:
    found = asked(lw, index, *SORE)
    assert {"answer", "epsilon", "interval", "unit", "remaining"} <= set(found)
    assert (found["epsilon"], found["unit"], found["remaining"]) == (0.5, "patient", 4.5)
    assert found["interval"][0] <= max(0, found["answer"]) <= found["interval"][1]
    again = asked(
        lw, index, "fever & Sore Throat", "--zip=1230*", "--epsilon", "0.5", "--when=2009-4..2009-06"
    )
    assert (again["answer"], again["remaining"], again["stored"]) == (found["answer"], 4.5, True)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (("--when", "2009-04", "--age", "9", "--gender", "F", "--zip", "12301"), 2),
        (("--when", "2009-04", "--zip", "12301"), 3),
        (("--when", "2009-04..2009-06", "--zip", "1230*"), 5),
        (("--where", "when=2009-04", "--where", "zip=12301"), 3),
    ],
)
def test_the_three_counts_of_the_paper(
    lw: Callable[..., Said],
    index: str,
    monkeypatch: pytest.MonkeyPatch,
    conditions: tuple[str, ...],
    expected: int,
) -> None:
    monkeypatch.setattr(mechanism, "draw", lambda noise, size: [0] * size)
    assert asked(lw, index, "sore throat & fever", *conditions, "--epsilon", "0.5")["answer"] == expected


def test_a_person_sees_the_price_first_then_answer_interval_and_rest(
    lw: Callable[..., Said], index: str
) -> None:
    status, out, err = lw("query", index, *SORE, "--user", "ann")
    assert status == 0
    assert err == "leeward: this costs 0.5 for counts within ± 6 of the true ones (95 %); ann has 5 left.\n"
    assert re.search(r"-?\d+ patients? \(95 % interval \d+ to \d+\)", out)
    assert "protects each patient with epsilon 0.5 (geometric, sensitivity 1); cost 0.5; remaining 4.5" in out
    assert lw("query", index, *SORE, "--user", "bob")[2] == "leeward: asked before: this costs nothing.\n"


def test_notes_cost_more_and_say_why(lw: Callable[..., Said], index: str) -> None:
    status, out, err = lw("query", index, "fever", "--epsilon", "0.5", "--unit", "note", "--user", "ann")
    assert status == 0
    assert "this costs 2 (a patient may have 4 notes, and the budget protects patients)" in err
    assert re.search(r"\bnotes? \(95 %", out)  # the noisy count may be 1


def test_a_histogram(lw: Callable[..., Said], index: str) -> None:
    found = asked(lw, index, "fever", "--by", "when", "--when", "2009-04..2009-05", "--epsilon", "0.5")
    assert list(found["answer"]) == list(found["interval"]) == ["2009-04", "2009-05"]
    assert found["sensitivity"] == 2
    assert asked(lw, index, "fever", "--by", "when", "--epsilon", "0.5", "--most", "1")["sensitivity"] == 1


def test_a_batch(lw: Callable[..., Said], index: str, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text(
        "fever --when 2009-04\n# a remark\n\n'sore throat & fever' --epsilon 0.25 --by gender\n",
        encoding="utf-8",
    )
    found = asked(lw, index, "--batch", str(file), "--epsilon", "0.1")
    assert [each["epsilon"] for each in found["answers"]] == [0.1, 0.25]
    assert list(found["answers"][1]["answer"]) == ["f", "m"]
    assert found["remaining"] == 4.65


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fevr --epsilon 1", "Nearest known: 'fever'"),
        ("fever --when 2009-04..", "line 2: `when`: malformed range"),
        ("fever --epsilon x", "line 2: `epsilon`"),
        ("'fever", "line 2: No closing quotation"),
        ("fever --most", "line 2: --most"),
    ],
)
def test_a_batch_with_a_mistake_charges_nothing(
    lw: Callable[..., Said], index: str, tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "questions.txt"
    file.write_text(f"fever\n{line}\n", encoding="utf-8")
    status, out, err = lw("query", index, "--batch", str(file), "--epsilon", "1")
    assert (status, out) == (2, "")
    assert message in err
    assert json.loads(lw("budget", index, "--json")[1])["spent"] == 0


def test_a_dry_run_charges_nothing(lw: Callable[..., Said], index: str) -> None:
    found = asked(lw, index, *SORE, "--dry-run")
    assert (found["dry_run"], found["cost"], found["remaining"]) == (True, 0.5, 5)
    assert "made-up patients" in lw("query", index, *SORE, "--dry-run")[1]
    assert asked(lw, index, *SORE)["stored"] is False


REFUSED: dict[str, tuple[int, tuple[str, ...], str]] = {
    "unknown term": (2, ("fevr", "--epsilon", "1"), "Nearest known: 'fever'"),
    "epsilon 0": (2, ("fever", "--epsilon", "0"), "`epsilon` must be a number above 0"),
    "epsilon below 0": (2, ("fever", "--epsilon", "-1"), "`epsilon` must be a number above 0"),
    "epsilon NaN": (2, ("fever", "--epsilon", "nan"), "`epsilon` must be a number above 0"),
    "epsilon infinite": (2, ("fever", "--epsilon", "inf"), "`epsilon` must be a number above 0"),
    "no epsilon": (2, ("fever",), "--epsilon"),
    "budget spent": (3, ("fever", "--epsilon", "5.1"), "Nothing was charged"),
    "malformed range": (2, ("fever", "--epsilon", "1", "--when", "2009-04.."), "malformed range"),
    "backward range": (2, ("fever", "--epsilon", "1", "--when", "2009-06..2009-04"), "backwards"),
    "wildcard in the middle": (
        2,
        ("fever", "--epsilon", "1", "--zip", "1*01"),
        "can only be the last character",
    ),
    "unknown condition": (2, ("fever", "--epsilon", "1", "--hospital", "x"), "no quasi-identifier"),
    "two conditions": (2, ("fever", "--epsilon", "1", "--zip", "1*", "--zip", "2*"), "two conditions"),
    "no term": (2, ("--epsilon", "1", "--zip", "1*"), "one text of terms"),
    "two texts": (2, ("fever", "cough", "--epsilon", "1"), "one text of terms"),
    "paper mode": (2, ("fever", "--epsilon", "1", "--mode", "paper"), "replication study alone"),
    "no name": (2, ("fever", "--epsilon", "1", "--user", ""), "--user"),
    "ledger unreachable": (
        2,
        ("fever", "--epsilon", "1", "--ledger", "postgresql://leeward:geheim@127.0.0.1:9/x"),
        "No answer was given",
    ),
    "ledger of nothing": (
        2,
        ("fever", "--epsilon", "1", "--ledger", "sqlite:///none.db"),
        "No answer was given",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_refusals(lw: Callable[..., Said], index: str, mistake: str) -> None:
    expected, arguments, message = REFUSED[mistake]
    status, out, err = lw("query", index, *arguments)
    assert (status, out) == (expected, "")
    assert message in err
    assert "geheim" not in err
    assert json.loads(lw("budget", index, "--json")[1])["spent"] == 0


def test_an_index_of_another_version(lw: Callable[..., Said], index: str) -> None:
    head = Path(index) / "index.json"
    text = json.loads(head.read_text(encoding="utf-8"))
    head.write_text(json.dumps(text | {"version": 99}), encoding="utf-8")
    status, out, err = lw("query", index, *SORE)
    assert (status, out) == (2, "")
    assert "an index of version 99" in err


def test_an_index_whose_ledger_is_gone(lw: Callable[..., Said], index: str) -> None:
    for file in Path(index).glob("ledger.db*"):
        file.unlink()
    status, out, err = lw("query", index, *SORE)
    assert (status, out) == (2, "")
    assert "nothing is answered" in err


def test_audit(lw: Callable[..., Said], index: str) -> None:
    asked(lw, index, *SORE)
    status, out, _ = lw("audit", index)
    assert status == 0
    assert out.count("passed") == 5
    assert "spent   epsilon 0.5 of 5" in out
    head = json.loads(lw("audit", index, "--json")[1])["head"]
    assert lw("audit", index, "--expect", head)[0] == 0
    status, out, err = lw("audit", index, "--expect", "0" * 64)
    assert status == 4
    assert "FAILED  hash of an earlier audit" in out
    assert "is inconsistent" in err


def test_budget_allotments_and_the_move_to_postgresql(
    lw: Callable[..., Said], index: str, postgres: str
) -> None:
    asked(lw, index, *SORE, "--user", "ann")
    status, out, _ = lw("budget", index, "--allot", "ann=1", "--allot", "bob=0.25")
    assert status == 0
    assert "epsilon 0.5 of 5 spent, for each patient; one more answer may cost 4.5" in out
    assert "ann: 0.5 left of 1" in out
    assert lw("query", index, "fever", "--epsilon", "0.75", "--user", "ann")[0] == 3
    url = fresh_database(postgres)
    status, _, err = lw("query", index, "fever", "--epsilon", "0.1", "--ledger", url)
    assert status == 2
    assert "no ledger of Leeward" in err
    moved = json.loads(lw("budget", index, "--move-to", url, "--json")[1])
    assert (moved["spent"], moved["remaining"]) == (0.5, 4.5)
    assert asked(lw, index, *SORE, "--ledger", url)["stored"]
    assert asked(lw, index, "fever", "--epsilon", "0.25", "--user", "bob", "--ledger", url)["remaining"] == 0
    status, out, err = lw("query", index, "cough", "--epsilon", "0.1")
    assert (status, out) == (2, "")
    assert "has moved to another ledger" in err
    assert lw("audit", index, "--ledger", url)[0] == 0


def test_index_query_and_audit_with_a_budget_in_postgresql(
    lw: Callable[..., Said], tmp_path: Path, postgres: str
) -> None:
    url, out = fresh_database(postgres), tmp_path / "index"
    five_notes().write_parquet(tmp_path / "notes.parquet")
    (tmp_path / "terms.txt").write_text("\n".join(TERMS.terms), encoding="utf-8")
    flags = ("--terms", str(tmp_path / "terms.txt"), "--epsilon-total", "1", "--ledger", url, "-o", str(out))
    status, _, err = lw("index", str(tmp_path / "notes.parquet"), *flags)
    assert status == 0, err
    assert not (out / "ledger.db").exists()
    assert asked(lw, str(out), *SORE, "--ledger", url)["remaining"] == 0.5
    assert lw("query", str(out), "fever", "--epsilon", "0.6", "--ledger", url)[0] == 3
    assert lw("query", str(out), "fever", "--epsilon", "0.1")[0] == 2  # it has no ledger of its own
    assert lw("audit", str(out), "--ledger", url)[0] == 0


@pytest.mark.parametrize("bad", ["ann", "ann=", "ann=nan", "=1"])
def test_bad_allotments(lw: Callable[..., Said], index: str, bad: str) -> None:
    assert lw("budget", index, "--allot", bad)[0] == 2


def test_the_commands_are_in_the_table() -> None:
    assert {"query", "audit", "budget"} <= set(COMMANDS)
