"""A copy of a ledger that was put back, or that went another way, answers nothing; who can know it, and who is told."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.queries.ledgers import ask
from tests.queries.made import question

from leeward.errors import BadInput
from leeward.queries import state
from leeward.queries.answer.api import budget
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import open_session
from leeward.queries.ledger import auditing, families, opening
from leeward.queries.ledger.families import LedgerInconsistent


@pytest.mark.parametrize("kept", ["beside the index", "in the state folder"])
def test_yesterdays_ledger_is_refused_and_can_be_accepted(folder: Path, tmp_path: Path, kept: str) -> None:
    yesterday = tmp_path / "yesterday"
    shutil.copytree(folder, yesterday)
    assert ask(folder) == 3
    if kept == "beside the index":
        shutil.copy(yesterday / "ledger.db", folder / "ledger.db")
        (heads,) = state.state_folders("heads")
        shutil.rmtree(heads)
    else:
        shutil.rmtree(folder)
        shutil.copytree(yesterday, folder)
    with pytest.raises(LedgerInconsistent, match="older or another copy"):
        ask(folder, "headache")
    found = budget(folder, accept_restored="the disk was lost; copy of last night")
    assert found["spent"] == 2, "what was spent after the copy was made stays spent"
    assert ask(folder, "headache") == 2
    assert auditing.audit(opening.open_ledger(folder), open_session(folder).index.meta.id).passed
    with pytest.raises(BadInput, match="nothing to accept"):
        budget(folder, accept_restored="again")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the machine's accounts remember together; it is not there yet."""
    monkeypatch.delenv(state.VARIABLE)
    monkeypatch.setattr(state, "MACHINE", tmp_path / "machine")
    return tmp_path / "machine"


def restore_yesterday(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is paid by one account; then another one puts the whole folder of the index back."""
    yesterday = tmp_path / "yesterday"
    shutil.copytree(folder, yesterday)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of one account"))
    assert ask(folder) == 3
    shutil.rmtree(folder)
    shutil.copytree(yesterday, folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of another"))


def test_what_one_account_saw_another_knows_where_the_machine_remembers(
    folder: Path, tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.mkdir()
    machine.chmod(0o2770)
    restore_yesterday(folder, tmp_path, monkeypatch)
    with pytest.raises(LedgerInconsistent, match="older or another copy"):
        ask(folder, "headache")
    assert budget(folder, accept_restored="the disk was lost")["spent"] == 2
    assert ask(folder, "headache") == 2
    (kept,) = (machine / "heads").iterdir()
    assert [stat.S_IMODE(each.stat().st_mode) for each in (kept.parent, kept)] == [0o2770, 0o660]
    own = tmp_path / "of another" / "leeward" / "heads" / kept.name
    assert stat.S_IMODE(own.stat().st_mode) == 0o600 and own.read_bytes() == kept.read_bytes()


def test_an_account_that_has_nothing_to_compare_with_is_told(
    folder: Path,
    tmp_path: Path,
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without a folder of the machine's own a copy that another account puts back cannot be told from the newest."""
    restore_yesterday(folder, tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of one account"))
    caplog.clear()
    with pytest.raises(LedgerInconsistent):
        ask(folder, "headache")
    assert caplog.text == ""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of another"))
    head = auditing.audit(opening.open_ledger(folder), open_session(folder).index.meta.id).head
    assert "the first time" in caplog.text and head in caplog.text
    assert ask(folder, "headache") == 3
    caplog.clear()
    assert ask(folder, "nausea") == 2 and caplog.text == "", "it is told once: now there is something"


@pytest.mark.parametrize("named", [False, True], ids=["the machine's", "LEEWARD_STATE"])
def test_a_place_to_remember_that_cannot_be_used_is_an_error(
    folder: Path, machine: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    machine.mkdir()
    (machine / "heads").write_text("no folder")
    if named:
        monkeypatch.setenv(state.VARIABLE, str(machine))
    with pytest.raises(BadInput, match="cannot be written"):
        ask(folder)
    (machine / "heads").unlink()
    assert ask(folder) == 3


def test_an_older_head_does_not_take_the_place_of_a_newer_one(folder: Path) -> None:
    """Of two processes that both answered, the one that was first may remember last."""
    kept = [folder / "ledger.head", *(each for it in state.state_folders("heads") for each in it.iterdir())]
    first = families.Head(**json.loads(kept[0].read_text()))
    assert ask(folder) == 3
    now = [path.read_bytes() for path in kept]
    families.remember(opening.open_ledger(folder), first)
    assert [path.read_bytes() for path in kept] == now and len(kept) == 2


def test_a_copy_that_is_older_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    assert ask(folder) == 3
    with pytest.raises(LedgerInconsistent):
        ask(tmp_path / "copy", "headache")


@pytest.mark.parametrize("spent", [1, 2], ids=["as long", "longer"])
def test_a_copy_that_went_another_way_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spent: int
) -> None:
    """The same budget twice: some of it in a copy, under another account, which is then put in the ledger's place."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert ask(folder) == 3
    with monkeypatch.context() as another:
        another.setenv("LEEWARD_STATE", str(tmp_path / "state of another"))
        for text in ("headache", "fatigue")[:spent]:
            ask(copy, text)
        assert auditing.audit(opening.open_ledger(copy), open_session(copy).index.meta.id).passed
        families.close(opening.open_ledger(copy))
    lengths = [entries_of(each) for each in (folder, copy)]
    assert lengths[1] - lengths[0] == 2 * (spent - 1)
    (copy / "ledger.db").replace(folder / "ledger.db")
    with pytest.raises(LedgerInconsistent, match="older or another copy"):
        ask(folder, "nausea")
    (copy / "ledger.head").replace(folder / "ledger.head")  # the account's own memory is left
    with pytest.raises(LedgerInconsistent, match="older or another copy"):
        ask(folder, "nausea")


def entries_of(folder: Path) -> int:
    with sqlite3.connect(folder / "ledger.db") as connection:
        (number,) = connection.execute("SELECT max(number) FROM log").fetchone()
    return int(number)


def test_a_ledger_that_another_writes_to_while_it_is_opened_is_no_old_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(folder)
    real = families.check

    def and_another_writes(*given: Any) -> Any:
        known = real(*given)
        monkeypatch.setattr(families, "check", real)
        answer_all(session, [question("chills", 1)], "ben")  # and remembers a head that `known` is without
        return known

    monkeypatch.setattr(families, "check", and_another_writes)
    assert open_session(folder).terms == session.terms and families.check is real
