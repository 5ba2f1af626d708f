"""What is known of a fault: its number, code and frames, for an administrator; never a value."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tests.portal.made import Bench

import leeward as lw
from leeward.portal import faults
from leeward.portal.app import make_app
from leeward.portal.guards import Portal
from leeward.queries.ledger import families


@pytest.fixture(name="log")
def lines_of_the_log() -> Iterator[list[dict[str, Any]]]:
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(self.format(record)))

    logger, handler = logging.getLogger("leeward.portal"), Kept()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_administrator_finds_where_a_fault_happened(
    fresh: Bench, log: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> Any:
        canary = "canary in a local"
        try:
            raise KeyError(canary)
        except KeyError:
            raise ValueError(f"{canary}: canary in words") from None

    monkeypatch.setattr("leeward.portal.people.projects_of", broken)
    page = fresh.client("rita").get("/")
    number = page.headers["x-request-id"]
    assert page.status_code == 500 and number in page.text
    program = fresh.client("rita").get("/api/v1/projects")
    assert program.status_code == 500 and program.json()["request"] == program.headers["x-request-id"]
    (told,) = [each for each in log if each["event"] == "fault" and each["request"] == number]
    assert told["fault"] == told["frames"][0] == "ValueError" and "KeyError" in told["frames"]
    assert any(frame.endswith(" show_projects") and "pages/project.py:" in frame for frame in told["frames"])
    admin = fresh.client("ida").get("/admin", params={"fault": number}).text
    assert "show_projects" in admin and "ValueError" in admin and admin.count("<summary>20") == 1
    assert fresh.client("ida").get("/admin").text.count("<summary>20") == 2
    assert "None of this number" in fresh.client("ida").get("/admin", params={"fault": "0"}).text
    assert "canary" not in admin + page.text + program.text + json.dumps(log)


def again(bench: Bench) -> Bench:
    """The portal, started again."""
    gate: Any = make_app(bench.portal.settings)
    portal: Portal = gate.app.state.portal
    bench.gate, bench.portal = gate, portal
    return bench


def test_an_older_ledger_is_named_and_a_lost_answer_is_asked_again(
    fresh: Bench, log: list[dict[str, Any]]
) -> None:
    """In page, reply, log and health; after it was accepted, the same key gets an answer."""
    token, index = fresh.token("rita"), fresh.folder / "indexes" / "clinic"
    fresh.ask(token, "a", fresh.question("fever", "0.5"))
    families.close(fresh.portal.indexes.session(fresh.index).ledger)
    shutil.copy2(index / "ledger.db", fresh.folder / "older.db")
    lost = fresh.ask(again(fresh).token("rita"), "b", fresh.question("cough", "0.5"))
    assert lost.status_code == 201
    families.close(fresh.portal.indexes.session(fresh.index).ledger)
    for name in ("", "-wal", "-shm"):
        (index / f"ledger.db{name}").unlink(missing_ok=True)
    shutil.copy2(fresh.folder / "older.db", index / "ledger.db")
    reply = fresh.ask(again(fresh).token("rita"), "b", fresh.question("cough", "0.5"))
    assert reply.status_code == 503 and "older copy" in reply.json()["detail"]
    assert [each["reason"] for each in log if each["event"] == "refused"] == ["older copy"]
    assert "<dd>older copy</dd>" in fresh.client("ida").get("/admin").text
    assert fresh.client("rita").get(f"/answers/{lost.json()['id']}").status_code == 503
    lw.budget(index, accept_restored="the disk failed")
    same = fresh.ask(again(fresh).token("rita"), "b", fresh.question("cough", "0.5"))
    assert same.status_code == 201 and same.json()["id"] == lost.json()["id"]
    assert fresh.client("rita").get(f"/answers/{same.json()['id']}").status_code == 200
    assert fresh.ask(token, "b", fresh.question("cough", "0.5")).json()["answer"] == same.json()["answer"]


def test_a_database_that_is_silent_has_another_code(bench: Bench, log: list[dict[str, Any]]) -> None:
    from tests.portal.attacks_on_pages import broken_store

    with broken_store():
        reply = bench.ask(bench.token("rita"), "silent", bench.question("fever", "0.7"))
    assert reply.status_code == 503 and "does not answer" in reply.json()["detail"]
    (told,) = [each for each in log if each["event"] == "refused"]
    assert told["reason"] == "unreachable" and told["frames"][0] == "LedgerUnreachable"
    assert "disk is full" not in json.dumps(log) + reply.text
    assert reply.headers["x-request-id"] in bench.client("ida").get("/admin").text


def test_a_browser_that_goes_away_is_no_fault(fresh: Bench) -> None:
    """Somebody goes on to another page while a price is on its way; anybody could fill the list of faults so."""

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    sent: list[Any] = []
    settings = fresh.portal.settings
    headers = {"host": settings.host, "cookie": f"{settings.cookie}={fresh.cookies['rita']}"}
    scope = {
        "type": "http", "method": "POST", "path": f"/projects/{fresh.project['one']}/ask", "query_string": b"",
        "headers": [
            *((name.encode(), text.encode()) for name, text in headers.items()),
            (b"content-type", b"application/x-www-form-urlencoded"),
        ],
        "client": None, "scheme": "http", "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    asyncio.run(fresh.gate(scope, gone, send))
    assert sent[0]["status"] == 400
    assert faults.newest(fresh.portal.database) == []
