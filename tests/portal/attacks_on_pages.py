"""Abuse cases about pages, files, what is sent, and what is written down. Each says whether it succeeded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tests.portal.attacks import forget_tries, fresh_epsilon, key
from tests.portal.made import Bench

from leeward.portal import journal
from leeward.portal.middleware import LARGEST_BODY
from leeward.queries.ledger import auditing, opening


def injects_markup(bench: Bench) -> bool:
    """19: a project's message that is a script."""
    path = f"/projects/{bench.project['one']}"
    bench.post(
        "rita", f"{path}/messages", text="<script>alert(1)</script> {{7*7}} '\"><img src=x onerror=alert(1)>"
    )
    page = bench.client("lea").get(path).text
    return "<script>alert" in page or "<img src=x" in page or " 49 " in page


def injects_a_formula(bench: Bench) -> bool:
    """19: a cell of a spreadsheet that computes."""
    from leeward.portal.rendering import csv_of

    lines = csv_of(("a",), [['=HYPERLINK("https://evil.example")'], ["+1"], ["@x"], ["\t=1"]]).splitlines()
    return any(line.strip('"').lstrip().startswith(("=", "+", "@")) for line in lines[1:])


def turns_the_direction(bench: Bench) -> bool:
    """19: a mark that turns the direction of what follows."""
    path = f"/projects/{bench.project['one']}"
    bench.post("rita", f"{path}/messages", text="harmless \u202etxt.exe")
    return "\u202e" in bench.client("lea").get(path).text


def leaves_share(bench: Bench) -> bool:
    """20: paths that lead to custody/."""
    for path in ("../custody/report.html", "..%2fcustody%2freport.html", "data/../../custody/report.html",
                 "%2e%2e/custody/report.html", "/etc/passwd", "data"):  # fmt: skip
        found = bench.client("rita").get(f"/releases/{bench.release}/files/{path}")
        if found.status_code == 200:
            return True
    return False


def links_out_of_share(bench: Bench) -> bool:
    """20: a file of a published release that was replaced by a link to a copy of it elsewhere."""
    place = bench.folder / "releases" / "cohort" / "share" / "README.md"
    kept = place.read_bytes()
    elsewhere = bench.folder / "elsewhere.md"
    elsewhere.write_bytes(kept)
    place.unlink()
    place.symlink_to(elsewhere)
    try:
        return bench.client("rita").get(f"/releases/{bench.release}/files/README.md").status_code == 200
    finally:
        place.unlink()
        place.write_bytes(kept)


def runs_a_script_in_a_report(bench: Bench) -> bool:
    """21: a report with a script; whether the policy of its frame lets it run or gives it our origin."""
    reply = bench.client("carl").get(f"/custody/releases/{bench.release}/report")
    assert "<script>" in reply.text
    policy = reply.headers["content-security-policy"].split("; ")
    frame = bench.client("carl").get(f"/custody/releases/{bench.release}").text
    return (
        "sandbox" not in policy
        or "default-src 'none'" not in policy
        or '<iframe class="report" sandbox ' not in frame
    )


def sends_too_much(bench: Bench) -> bool:
    """22: a body that is too large, by its own word and without one."""
    large = "x" * (LARGEST_BODY + 1)
    said = bench.client("rita").post(
        "/api/v1/questions", content=large, headers={"content-type": "application/json"}
    )

    def pieces() -> Any:
        for _ in range(LARGEST_BODY // 1000 + 2):
            yield b"x" * 1000

    unsaid = bench.client("rita").post("/api/v1/questions", content=pieces())
    return said.status_code != 413 or unsaid.status_code != 413


def sends_many_fields(bench: Bench) -> bool:
    """22: a form of very many fields."""
    body = "&".join(f"a{each}=" for each in range(5000))
    headers = {"content-type": "application/x-www-form-urlencoded"}
    reply = bench.client("rita").post(f"/projects/{bench.project['one']}/ask", content=body, headers=headers)
    return reply.status_code != 400


def sends_slowly(bench: Bench) -> bool:
    """22: a body that never ends to arrive."""
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(1)
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    host = bench.portal.settings.host.encode()
    scope = {
        "type": "http", "method": "POST", "path": "/sign-in", "query_string": b"",
        "headers": [(b"host", host), (b"content-type", b"application/x-www-form-urlencoded")],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "scheme": "http", "http_version": "1.1", "app": None,
    }  # fmt: skip
    asyncio.run(bench.gate(scope, receive, send))
    return statuses != [408]


def dies_between(bench: Bench) -> bool:
    """24: the database is gone when the answer is to be stored; whether an answer is shown that is not stored."""
    body = bench.question("fever", fresh_epsilon())
    token, same = bench.token("rita"), key()
    with broken_store():
        reply = bench.ask(token, same, body)
    if reply.status_code != 503:
        return True
    before = bench.spent()
    again = bench.ask(token, same, body)
    return again.status_code not in (200, 201) or bench.spent() != before


class broken_store:
    """The ledger's connection fails from the moment an answer is to be stored."""

    def __enter__(self) -> None:
        from leeward.queries.ledger import spending

        self.real = spending.changing

        def gone(ledger: Any, data_set: str, **options: Any) -> Any:
            if options.get("durable", True):
                raise opening.LedgerUnreachable("the disk is full")
            return self.real(ledger, data_set, **options)

        spending.changing = gone  # type: ignore[assignment]

    def __exit__(self, *error: object) -> None:
        from leeward.queries.ledger import spending

        spending.changing = self.real


def edits_the_balance(bench: Bench) -> bool:
    """25: somebody with the database sets what was spent to nothing; whether questions are answered on."""
    import sqlite3

    session = bench.portal.indexes.session(bench.index)
    bench.ask(bench.token("rita"), key(), bench.question("fever", fresh_epsilon()))
    file = sqlite3.connect(bench.folder / "indexes" / "clinic" / "ledger.db")
    before = file.execute("SELECT account, spent FROM accounts").fetchall()
    try:
        with file:
            file.execute("UPDATE accounts SET spent = 0")
        answered = bench.ask(bench.token("rita"), key(), bench.question("fever", fresh_epsilon())).status_code
        passed = auditing.audit(session.ledger, session.index.meta.id).passed
    finally:
        with file:
            file.executemany("UPDATE accounts SET spent = ? WHERE account = ?", [(s, a) for a, s in before])
        file.close()
    return answered != 503 or passed


def edits_the_journal(bench: Bench) -> bool:
    """25: somebody with the database edits the portal's journal."""
    import sqlite3

    assert journal.check(bench.portal.database)[0].passed
    file = sqlite3.connect(bench.folder / "portal.db")
    (before,) = file.execute("SELECT body FROM portal_journal WHERE number = 1").fetchone()
    with file:
        for name in ("update", "delete"):
            file.execute(f"DROP TRIGGER IF EXISTS journal_no_{name}")
        file.execute("UPDATE portal_journal SET body = '{}' WHERE number = 1")
    passed = journal.check(bench.portal.database)[0].passed
    with file:
        file.execute("UPDATE portal_journal SET body = ? WHERE number = 1", (before,))
    file.close()
    return passed


def edits_the_end_of_the_journal(bench: Bench) -> bool:
    """25: somebody with the database edits the last entry of the journal, or one in its middle, and makes that entry's
    own hash anew."""
    import sqlite3

    from leeward.queries.ledger import chain

    file = sqlite3.connect(bench.folder / "portal.db")
    for name in ("update", "delete"):
        file.execute(f"DROP TRIGGER IF EXISTS journal_no_{name}")
    (last,) = file.execute("SELECT max(number) FROM portal_journal").fetchone()
    change = "UPDATE portal_journal SET body = ?, hash = ? WHERE number = ?"
    passed = []
    for number in (last, last // 2):
        asked = "SELECT time, body, hash FROM portal_journal WHERE number = ?"
        time, body, kept = file.execute(asked, (number,)).fetchone()
        (before,) = file.execute("SELECT hash FROM portal_journal WHERE number = ?", (number - 1,)).fetchone()
        edited = body.replace("event", "event ", 1)
        with file:
            file.execute(change, (edited, chain.link(before, number, time, edited), number))
        passed.append(journal.check(bench.portal.database)[0].passed)
        with file:
            file.execute(change, (body, kept, number))
    file.close()
    return any(passed)


def reads_the_log(bench: Bench) -> bool:
    """25: whether the log, or the figures, hold what was asked, a token, a password or an error's words."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    logger, handler = logging.getLogger("leeward.portal"), Kept()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        token = bench.token("rita")
        bench.ask(token, key(), bench.question("canaryterm", "0.2"))
        bench.ask(token, key(), bench.question("fever", "0.2", conditions={"canaryqid": "1"}))
        bench.client().post("/sign-in", data={"login": "canarylogin", "password": "canarypassword"})
        bench.client("rita").get("/answers/canaryanswer")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        forget_tries(bench)
    figures = bench.client("ida").get("/metrics").text
    assert lines and "leeward_portal_requests_total" in figures
    text = "\n".join(lines) + figures
    return "canary" in text or token in text or bench.cookies["rita"] in text
