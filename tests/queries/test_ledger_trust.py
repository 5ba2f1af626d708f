"""A ledger that was edited, cut or put back from yesterday answers nothing; silent servers end; no password."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.postgres_fixture import running_postgres
from tests.queries.ledgers import ask
from tests.queries.made import five_notes, question, session_of
from tests.waiting import LONG, wait_until

from leeward.errors import BadInput
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import check_noise, open_session, plan_query
from leeward.queries.ledger import chain, engines, families, opening
from leeward.queries.ledger.engines import parse_url, place_of
from leeward.queries.ledger.families import LedgerInconsistent
from leeward.queries.ledger.opening import LedgerUnreachable


def edit(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "ledger.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_an_untouched_ledger_answers(folder: Path) -> None:
    assert ask(folder) == 3 and ask(folder) == 3


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE accounts SET spent = 0",),
        ("UPDATE accounts SET most = most * 2",),
        ("INSERT INTO accounts SELECT 'user:' || family || ':eve', family, 100, 0 FROM families",),
        ("DROP TRIGGER log_no_delete", "DELETE FROM log WHERE number = 2"),
        ("DROP TRIGGER log_no_delete", "DELETE FROM log WHERE number = 3"),
        (
            "DROP TRIGGER log_no_delete",
            "DELETE FROM log WHERE number > 1",
            "UPDATE families SET entries = 1, head = (SELECT hash FROM log WHERE number = 1)",
            "UPDATE accounts SET spent = 0",
        ),
        (
            "DROP TRIGGER log_no_update",
            "UPDATE log SET body = replace(body, '1000000', '1000') WHERE number = 2",
        ),
        ("UPDATE families SET head = replace(head, substr(head, 1, 1), 'x')",),
    ],
    ids=["spent", "most", "account", "middle", "end", "cut whole", "entry", "head"],
)
def test_edited_ledgers_are_refused(folder: Path, statements: tuple[str, ...]) -> None:
    edit(folder, *statements)
    with pytest.raises(LedgerInconsistent, match="No answer was given"):
        ask(folder)


@pytest.mark.parametrize("start", [0, 100], ids=["head", "pages"])
def test_a_damaged_file_is_told_as_that(folder: Path, start: int) -> None:
    file = folder / "ledger.db"
    content = bytearray(file.read_bytes())
    content[start:] = b"\xa5" * (len(content) - start)
    file.write_bytes(content)
    with pytest.raises(
        LedgerUnreachable, match=r"the ledger's file is damaged\. No answer was given"
    ) as told:
        ask(folder)
    assert "running" not in str(told.value)


def test_an_edit_while_a_session_is_open_is_refused(folder: Path) -> None:
    session = open_session(folder)
    edit(folder, "UPDATE accounts SET spent = 0")
    with pytest.raises(LedgerInconsistent, match="accounts differ"):
        answer_all(session, [question("chills", 1)], "ann")


def test_time_never_falls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "now", lambda: "1999-01-01T00:00:00+00:00")
    ask(folder)
    with sqlite3.connect(folder / "ledger.db") as connection:
        times = [time for (time,) in connection.execute("SELECT time FROM log ORDER BY number")]
    assert times == sorted(times) and times[0] > "2000"
    entry = chain.Entry(1, "1999-01-01T00:00:00+00:00", "{}", "")
    entry = chain.Entry(1, entry.time, entry.body, chain.link(chain.START, 1, entry.time, entry.body))
    assert "dated before" in str(chain.broken_link(entry, 1, chain.START, "2026-01-01T00:00:00+00:00"))


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_silent_server_is_an_error(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SILENT_SECONDS", 1)
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(opening.open_ledger, f"postgresql://ann@127.0.0.1:{silent}/ledger")
        with pytest.raises(LedgerUnreachable, match="cannot reach the ledger"):
            opened.result(timeout=LONG)
    assert engines.SILENT_SECONDS < 30


def test_a_full_server_is_asked_again(tmp_path: Path) -> None:
    """25 clients at once, 8 connections: PostgreSQL closes the others before it reads a word of theirs."""
    with running_postgres(connections=8) as url:
        families.close(opening.make_ledger(url))
        children = [child_that_opens(url, tmp_path / f"error {number}") for number in range(25)]
        running = set(children)

        def ended() -> bool:
            running.difference_update([child for child in running if os.waitpid(child, os.WNOHANG)[0]])
            return not running

        wait_until(ended, "every client has ended")
    assert [file.read_text() for file in tmp_path.iterdir()] == [""] * 25


def child_that_opens(url: str, result: Path) -> int:
    """The number of a new process that opens the ledger and writes its error, or nothing, into `result`."""
    child = os.fork()
    if child == 0:
        try:
            ledger = opening.open_ledger(url)
            with opening.reading(ledger):
                time.sleep(0.2)
            opening.release(ledger)
            result.write_text("")
        except BaseException as error:
            result.write_text(f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)
    return child


@pytest.fixture
def closing() -> Iterator[tuple[int, list[float]]]:
    """The port of a server that closes every connection at once, and when it did."""
    times: list[float] = []
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_each() -> None:
            while not done.is_set():
                server.accept()[0].close()
                times.append(time.monotonic())

        thread = threading.Thread(target=close_each, daemon=True)
        thread.start()
        yield server.getsockname()[1], times
        done.set()
        socket.create_connection(server.getsockname()).close()
        thread.join(LONG)


def test_a_server_that_only_closes_is_an_error(
    closing: tuple[int, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_SECONDS", 3)
    port, times = closing
    with pytest.raises(LedgerUnreachable, match=r"took no further connection for \d+ seconds"):
        opening.open_ledger(f"postgresql://ann@127.0.0.1:{port}/ledger")
    assert len(times) > 1 and times[-1] - times[0] < engines.BUSY_SECONDS


def test_a_full_server_is_waited_for_as_long_as_it_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All connections are in use for longer than a server is asked that only closes."""
    with running_postgres(connections=5) as url:
        ledger = opening.make_ledger(url)
        opening.release(ledger)
        monkeypatch.setattr(opening, "BUSY_SECONDS", 3)  # a busy server may only close, many times in a row
        often = SimpleNamespace(
            monotonic=time.monotonic, sleep=lambda seconds: time.sleep(min(seconds, 0.05))
        )
        monkeypatch.setattr(opening, "time", often)
        monkeypatch.setattr(opening, "SAID_SECONDS", 2)
        with ExitStack() as held, ThreadPoolExecutor(1) as pool:
            for _ in range(5):
                held.enter_context(opening.reading(ledger))
            waiting = pool.submit(open_elsewhere, url)
            time.sleep(4.5)
            assert not waiting.done()
            held.close()
            waiting.result(timeout=LONG)
        monkeypatch.setattr(opening, "CONNECTION_SECONDS", 1)
        with ExitStack() as held:
            for _ in range(5):
                held.enter_context(opening.reading(ledger))
            with pytest.raises(LedgerUnreachable, match=r"took no further connection for \d+ seconds"):
                open_elsewhere(url)
    assert "waiting for a free connection" in caplog.text


def open_elsewhere(url: str) -> None:
    """Open a ledger with an engine of its own, as another process has."""
    families.close(opening.open_ledger(f"{url}&application_name=elsewhere"))


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/ledger",
        f"postgresql://ann@127.0.0.1:1/ledger?password={SECRET}",
        f"postgresql://ann:{SECRET}@x@127.0.0.1:1/ledger",
        f"postgresql://ann:{SECRET}@127.0.0.1:port/ledger",
        f"nosuch://ann:{SECRET}@127.0.0.1/ledger",
    ],
)
def test_no_password_in_a_message(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(BadInput) as refused:
        opening.open_ledger(url)
    assert SECRET not in str(refused.value) and SECRET not in caplog.text


def test_the_place_shows_no_secret() -> None:
    url = parse_url(f"postgresql://ann@h/ledger?password={SECRET}&sslpassword={SECRET}&unix_sock=x")
    assert url.password == SECRET
    assert place_of(url) == "postgresql+pg8000://ann:***@h/ledger?unix_sock=x"


def test_passwords_come_from_the_environment_and_the_passfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passfile = tmp_path / "pgpass"
    passfile.write_text("h:5432:other:ann:wrong\n*:*:ledger:ann:a\\:b\n")
    passfile.chmod(0o600)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    assert parse_url("postgresql://ann@h/ledger").password == "a:b"
    assert parse_url("postgresql://bob@h/ledger").password is None
    passfile.chmod(0o644)
    assert parse_url("postgresql://ann@h/ledger").password is None, "one that others can read is not read"
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert parse_url("postgresql://ann@h/ledger").password == SECRET
    assert parse_url("postgresql://ann:own@h/ledger").password == "own"


def test_ledgers_are_their_owners_alone(tmp_path: Path, folder: Path) -> None:
    families.close(opening.make_ledger(f"sqlite:///{tmp_path / 'l.db'}"))
    for path in (tmp_path / "l.db", folder / "ledger.db", folder / "ledger.head"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_one_engine_a_database(folder: Path) -> None:
    assert opening.open_ledger(folder).engine is opening.open_ledger(folder).engine
    other = folder / "aside.db"
    shutil.copy(folder / "ledger.db", other)
    first = opening.open_ledger(folder).engine
    other.replace(folder / "ledger.db")
    assert opening.open_ledger(folder).engine is not first, "another file in its place is another database"


def test_noise_larger_than_most_counts_is_not_sold_unasked(folder: Path) -> None:
    session = open_session(folder)
    check_noise(session, [plan_query(session, question("fever", 0.01))])
    with pytest.raises(BadInput, match="--yes"):
        check_noise(session, [plan_query(session, question("fever", 0.001))])


def test_noise_is_compared_with_the_number_of_patients_that_is_stated(tmp_path: Path) -> None:
    """Within ± 29 at 0.1 and ± 299 at 0.01; by age a bin has a hundredth of the patients."""
    small = session_of(five_notes(), tmp_path / "small", about=60)
    check_noise(small, [plan_query(small, question("fever", 0.1))])
    with pytest.raises(BadInput, match="off by up to"):
        check_noise(small, [plan_query(small, question("fever", 0.01))])
    large = session_of(five_notes(), tmp_path / "large", about=5000)
    check_noise(large, [plan_query(large, question("fever", 0.001))])
    check_noise(large, [plan_query(large, question("fever", 0.1))])
    with pytest.raises(BadInput, match="off by up to"):
        check_noise(large, [plan_query(large, question("fever", 0.1, by="age", when="2009-04"))])
