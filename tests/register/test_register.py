"""Entering, publishing, taking back; what an older, damaged or lost register stops; two custodians at once."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.postgres_fixture import postgres_server  # noqa: F401  # a fixture
from tests.register.made import entered, opened

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.queries.ledger.opening import LedgerUnreachable, writing
from leeward.register import entering, store
from leeward.register.head import OlderRegister, head_file
from leeward.register.store import Register, read_state


@pytest.fixture(params=["sqlite", "postgres"])
def register(request: pytest.FixtureRequest, tmp_path: Path) -> Register:
    if request.param == "sqlite":
        return opened(tmp_path)
    url = request.getfixturevalue("postgres")
    _drop(url)
    return opened(tmp_path, url)


def test_a_release_is_intended_then_released_then_withdrawn(register: Register) -> None:
    found = entered(register, range(20), published=False)
    assert read_state(register).releases[found.facts.id].status == "intended"
    entering.publish(found, Path("x"), share="s", content="c", source=None)
    known = read_state(register).find(found.facts.id[:4])
    assert (known.status, known.share, known.facts.patients) == ("released", "s", 20)
    entering.withdraw(register, found.facts.id, "Never sent.", "ann")
    assert read_state(register).find(found.facts.id).why == "Never sent."
    assert entered(register, range(19)).decisions == ()  # what nobody has counts no longer
    with pytest.raises(BadInput, match="withdrawn already"):
        entering.withdraw(register, found.facts.id, "Again.", "ann")
    with pytest.raises(BadInput, match="needs a reason"):
        entering.withdraw(register, found.facts.id, " ", "ann")
    assert all(check.passed for check in entering.audit(register)[0])


def test_overlaps_are_counted_with_every_release_that_counts(register: Register) -> None:
    first = entered(register, range(20))
    second = entered(register, range(100, 130), published=False)  # intended: counts
    third = entered(register, [*range(10), *range(100, 110)], reason="agreed")
    counted = {
        each.pair.old.facts.id: (each.pair.common, each.pair.only_new, each.pair.only_old)
        for each in third.decisions
    }
    assert counted == {first.facts.id: (10, 10, 10), second.facts.id: (10, 10, 20)}


def test_nothing_is_entered_that_is_refused_or_lacks_its_reason(register: Register) -> None:
    entered(register, range(20))
    with pytest.raises(GuaranteeUnreachable, match="19 patients in both, 0 only here, 1 only there"):
        entered(register, range(19), reason="agreed")
    with pytest.raises(BadInput, match="--reason"):
        entered(register, range(10, 30))
    assert len(read_state(register).releases) == 1


def test_recipients_that_may_not_pool_are_not_compared(register: Register) -> None:
    apart = replace(register, pools=(("uni",), ("firm",)))
    entered(apart, range(20), recipient="uni")
    assert entered(apart, range(19), recipient="firm").decisions == ()
    with pytest.raises(GuaranteeUnreachable):
        entered(apart, range(19), recipient="somebody")


def test_a_release_without_identifiers_counts_as_everybody(register: Register) -> None:
    entered(register, range(20))
    with pytest.raises(BadInput, match="complete overlap"):
        entered(register, None)
    entered(register, None, reason="agreed")
    with pytest.raises(BadInput, match="complete overlap"):
        entered(register, range(50, 90))


def test_versions_of_a_line_are_numbered(register: Register) -> None:
    first = entered(register, range(20), line="quarters")
    second = entered(register, range(30), line="quarters", follows=first.facts.id)
    assert [each.facts.version for each in (first, second)] == [1, 2]
    assert second.decisions[0].rule.name == "version"


def test_the_log_is_append_only(register: Register) -> None:
    entered(register, range(20))
    for change in ("UPDATE register_log SET body = '{}'", "DELETE FROM register_log"):
        with (
            pytest.raises(LedgerUnreachable, match="register of releases"),
            writing(register.database) as connection,
        ):
            connection.exec_driver_sql(change)
    assert all(check.passed for check in entering.audit(register)[0])


# -- a key that is lost, a head that is lost, an older register ----


def test_a_new_key_makes_earlier_releases_overlap_completely(tmp_path: Path) -> None:
    entered(opened(tmp_path), range(20))
    other = opened(tmp_path, key=b"n" * 32)
    with pytest.raises(BadInput, match="another or a lost key"):
        entered(other, range(500, 600))
    assert "1 that count as everybody" in entering.audit(other)[0][2].detail
    entered(other, range(500, 600), reason="The key was lost.")
    assert entered(other, range(700, 800), reason="As before.").decisions[1].rule.name == "disjoint"


def test_an_older_register_stops_every_release_until_it_is_repaired(tmp_path: Path) -> None:
    register = opened(tmp_path)
    first = entered(register, range(20))
    shutil.copy(tmp_path / "register.db", tmp_path / "old.db")
    shutil.copy(tmp_path / "register.db-wal", tmp_path / "old.db-wal")
    second = entered(register, range(100, 120))
    older = opened(tmp_path, f"sqlite:///{tmp_path}/old.db")
    for stopped in (
        lambda: entered(older, range(200, 220)),
        lambda: read_state(older),
        lambda: entering.withdraw(older, first.facts.id, "x", "ann"),
    ):
        with pytest.raises(OlderRegister, match="older or another copy"):
            stopped()
    assert [each.passed for each in entering.audit(older)[0]] == [False]
    found = entering.repair(older, [], lambda folder: {})
    assert (found["restored"], found["lost"]) == ([], [second.facts.id])
    with pytest.raises(BadInput, match="complete overlap"):  # nothing is forgotten
        entered(older, range(200, 220))
    entered(older, range(200, 220), reason="agreed")


def test_a_register_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    entered(opened(tmp_path), range(20))
    for file in tmp_path.glob("register.db*"):
        file.unlink()
    with pytest.raises(OlderRegister, match="entry 3 was seen before"):
        opened(tmp_path)


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_text("{")])
def test_without_the_remembered_head_nothing_is_released(tmp_path: Path, damage: Any) -> None:
    register = opened(tmp_path)
    entered(register, range(20))
    damage(head_file(tmp_path / "register.secret"))
    with pytest.raises(OlderRegister, match="leeward releases repair"):
        entered(register, range(100, 120))
    assert entering.repair(register, [], lambda folder: {})["lost"] == []
    entered(register, range(100, 120))


def test_a_later_head_is_never_replaced_by_an_earlier_one(tmp_path: Path) -> None:
    from leeward.register import head as heads

    register = opened(tmp_path)
    entered(register, range(20))
    entries = read_state(register).entries
    heads.remember(register.head, entries[:1], [])
    found = heads.read_head(register.head)
    assert found is not None and found.entries == len(entries)
    assert stat.S_IMODE(register.head.stat().st_mode) == 0o600


PLANTED = {
    "an entry changed": (
        "entries",
        "UPDATE register_log SET body = replace(body, '20', '21') WHERE number = 2",
    ),
    "an entry removed": ("entries", "DELETE FROM register_log WHERE number = 2"),
    "the last entry removed": ("entries", "DELETE FROM register_log WHERE number = 3"),
    "patients changed": ("patients", "UPDATE register_sketches SET hashes = zeroblob(160)"),
    "patients cut": ("patients", "UPDATE register_sketches SET hashes = substr(hashes, 1, 8)"),
    "patients removed": ("patients", "DELETE FROM register_sketches"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_the_audit_catches(tmp_path: Path, planted: str) -> None:
    register = opened(tmp_path)
    entered(register, range(20))
    name, statement = PLANTED[planted]
    with sqlite3.connect(tmp_path / "register.db") as raw:
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        assert raw.execute(statement).rowcount > 0
    assert name in [check.name for check in entering.audit(register)[0] if not check.passed]
    if planted != "patients changed":  # which only an audit reads so closely
        with pytest.raises(OlderRegister):
            entered(register, range(15, 40), reason="agreed")


def test_an_audit_finds_an_earlier_hash(tmp_path: Path) -> None:
    register = opened(tmp_path)
    _, head = entering.audit(register)
    entered(register, range(20))
    assert entering.audit(register, head)[0][-1].passed
    assert not entering.audit(register, "0" * 64)[0][-1].passed


def test_a_later_version_of_the_register_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(tmp_path)
    monkeypatch.setattr(store, "FORMAT", store.FORMAT - 1)
    with pytest.raises(BadInput, match="later version of Leeward"):
        opened(tmp_path)


# -- two custodians ----


def _enter_in_a_process(folder: str, url: str | None, start: int, barrier: Any, said: Any) -> None:
    register = opened(Path(folder), url)
    barrier.wait(timeout=120)
    try:
        found = entered(register, range(start, start + 40))
        said.put(("entered", found.facts.id, len(found.decisions)))
    except GuaranteeUnreachable as error:
        said.put(("refused", str(error), 0))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_of_two_at_once_the_second_sees_the_first(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each alone is allowed; beside the other it differs by one patient: one of them is refused, whichever."""
    url = request.getfixturevalue("postgres") if kind == "postgres" else None
    if url is not None:
        _drop(url)
    opened(tmp_path, url)
    context = multiprocessing.get_context("spawn")
    barrier, said = context.Barrier(2), context.Queue()
    both = [
        context.Process(target=_enter_in_a_process, args=(str(tmp_path), url, start, barrier, said))
        for start in (0, 1)
    ]
    for each in both:
        each.start()
    found = sorted(said.get(timeout=120)[0] for _ in both)
    for each in both:
        each.join(timeout=120)
    assert found == ["entered", "refused"]
    assert len(read_state(opened(tmp_path, url)).releases) == 1


def _drop(url: str) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "DROP TABLE IF EXISTS register_log, register_end, register_sketches CASCADE"
        )
        connection.exec_driver_sql("DROP FUNCTION IF EXISTS register_log_is_append_only")
    engine.dispose()


def test_no_identifier_is_in_any_file(tmp_path: Path) -> None:
    register = opened(tmp_path)
    import polars as pl

    from leeward.register import sketch
    from leeward.register.store import Facts

    made = sketch.sketch_of(pl.Series([f"canary-{number:06d}" for number in range(200)]), register.key)
    entering.enter(register, Facts(method="visits", k=5), made)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) >= 3
    for file in files:
        content = file.read_bytes()
        assert b"canary" not in content, file
        assert register.key not in content, file
    assert json.loads(head_file(tmp_path / "register.secret").read_text())["entries"] == 2
