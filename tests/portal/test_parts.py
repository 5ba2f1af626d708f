"""Long lists are read a part at a time, and sums are of all."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa
from tests.portal.made import Bench

from leeward.portal import asking, journal, proposals
from leeward.portal.store import new_id, tables, writing
from leeward.queries.answer.plan import open_session
from leeward.queries.ledger import chain, families
from leeward.queries.ledger.families import LedgerInconsistent


def all_parts(client: Any, path: str) -> list[list[dict[str, Any]]]:
    """Each part of a list, by the links from one to the next."""
    parts: list[list[dict[str, Any]]] = []
    while path:
        reply = client.get(path)
        assert reply.status_code == 200, reply.text
        parts.append(reply.json())
        link = re.fullmatch(r'<(.*)>; rel="next"', reply.headers.get("link", ""))
        path = link[1] if link else ""
    return parts


def many_answers(bench: Bench, number: int, project: str = "one") -> list[str]:
    """Rows of answers, some of one moment; the identifiers, oldest first."""
    ids = [new_id() for _ in range(number)]
    with writing(bench.portal.database) as connection:
        for place, each in enumerate(ids):
            row = {
                "id": each, "project": bench.project[project], "index": bench.index, "key": f"{project} {place}",
                "request": "{}", "question": f"fever {place}", "person": bench.ids["rita"],
                "time": f"2026-01-01T00:00:{place // 3:02d}.000+00:00", "cost": 1000,
            }  # fmt: skip
            connection.execute(tables.answers.insert().values(**row))
    return ids


def test_every_answer_is_reached_and_the_sum_is_of_all(fresh: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PART", 10)
    ids, others = many_answers(fresh, 25), many_answers(fresh, 25, "two")
    client, path = fresh.client("rita"), f"/projects/{fresh.project['one']}/answers"
    parts = all_parts(client, f"/api/v1{path}")
    assert [len(part) for part in parts] == [10, 10, 5]
    assert {row["id"] for part in parts for row in part} == set(ids)
    times = [row["time"] for part in parts for row in part]
    assert times == sorted(times, reverse=True)
    page = client.get(path).text
    assert "25 answers, ε 0.025 in all" in page and page.count('href="/answers/') == 10
    following = re.search(r'rel="next" href="(\?[^"]*)"', page)
    assert following is not None
    second = client.get(path + following[1].replace("&amp;", "&")).text
    assert "25 answers" in second and second.count('href="/answers/') == 10
    found = all_parts(client, f"/api/v1{path}?find=fever+1")  # fever 1, and 10 to 19
    assert [len(part) for part in found] == [10, 1]
    assert "11 answers, ε 0.011" in client.get(f"{path}?find=fever+1").text
    assert (
        client.get(f"/api/v1{path}?after={others[-1]}").json() == []
    )  # nothing is told of another project's


def test_every_decision_is_reached_and_open_ones_come_first(
    fresh: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "PART", 4)
    for number in range(7):
        fresh.allot("one", 4 + number / 10)
    ends = {"ends": "2099-01-01", "reason": "more"}
    for _ in range(2):
        fresh.post(
            "carl",
            "/custody/allotments",
            project=fresh.project["one"],
            index=fresh.index,
            epsilon="5",
            **ends,
        )
    parts = all_parts(fresh.client("anna"), "/api/v1/proposals")
    assert [len(part) for part in parts] == [4, 4, 3]  # with the index and the first allotment
    states = [row["state"] for part in parts for row in part]
    assert states == ["open"] * 2 + ["confirmed"] * 9
    assert len({row["id"] for part in parts for row in part}) == 11
    assert "Older decisions" in fresh.client("anna").get("/decisions").text


def test_every_entry_of_the_logs_is_reached(fresh: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leeward.portal.api.MOST_ENTRIES", 7)
    monkeypatch.setattr("leeward.portal.pages.audit.MOST_ENTRIES", 7)
    token = fresh.token("rita")
    for number, terms in enumerate(("fever", "cough", "rash")):
        assert fresh.ask(token, f"k{number}", fresh.question(terms, "0.5")).status_code == 201
    client = fresh.client("audrey")
    lines = [json.loads(line) for line in client.get("/audit/log.ndjson").text.splitlines()]
    whole = [(each["log"], each["number"]) for each in lines]
    assert len(whole) == len(set(whole)) == len(fresh.log()) + journal_length(fresh)
    parts = all_parts(client, "/api/v1/log")
    assert len(parts) > 3 and max(map(len, parts)) == 7
    assert [(each["log"], each["number"]) for part in parts for each in part] == whole
    later = all_parts(client, "/api/v1/log?after=3")
    assert [each["number"] for part in later for each in part] == [n for _, n in whole if n > 3]
    own = all_parts(fresh.client("lea"), "/api/v1/log")  # a lead: of own projects
    project = fresh.project["one"]
    assert {each["project"] for part in own for each in part} == {project}
    assert sum(map(len, own)) == sum(
        each.get("project") == project for each in lines if each["log"] != "portal"
    )
    assert all_parts(fresh.client("rob"), "/api/v1/log") == [[]]
    seen, page = [], client.get("/audit?event=charged").text
    assert page.count("</td><td>charged</td>") == 3
    path = "/audit"
    while path:
        page = client.get(path).text
        seen += re.findall(r'<td>(Clinic|portal)</td><td class="n">(\d+)</td>', page)
        following = re.search(r'rel="next" href="(\?[^"]*)"', page)
        path = "/audit" + following[1].replace("&amp;", "&") if following else ""
    assert [(log, int(number)) for log, number in seen] == whole[::-1]


def test_the_audit_page_reads_what_is_new_and_everything_when_asked(fresh: Bench) -> None:
    token, client = fresh.token("rita"), fresh.client("audrey")
    assert fresh.ask(token, "a", fresh.question("fever", "0.5")).status_code == 201
    follows, fault = "Each entry follows the one before", "FAILED: stop answering from this index"
    assert follows in client.get("/audit").text
    changed = {
        fresh.folder / "indexes" / "clinic" / "ledger.db": "log",
        fresh.folder / "portal.db": "portal_journal",
    }
    for path, table in changed.items():
        with closing(sqlite3.connect(path)) as file, file:
            for (trigger,) in file.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                file.execute(f"DROP TRIGGER {trigger}")
            file.execute(f"UPDATE {table} SET body = replace(body, ':', ': ') WHERE number = 2")
    page = client.get("/audit").text  # old entries were checked before, and are not read
    assert follows in page and fault not in page
    assert fresh.ask(token, "b", fresh.question("cough", "0.5")).status_code == 201
    assert follows in client.get("/audit").text
    page = client.get("/audit?again=true").text
    assert fault in page and page.count("entry 2 was changed, or one before it") == 2
    with pytest.raises(LedgerInconsistent, match="entry 2 was changed"):  # and at start
        families.close(fresh.portal.indexes.session(fresh.index).ledger)
        open_session(fresh.folder / "indexes" / "clinic")
    page = client.get("/audit").text  # what cannot be taken up is audited whole
    assert fault in page and "entry 2 was changed, or one before it" in page


def test_a_journal_that_was_cut_is_found_by_the_next_look(fresh: Bench) -> None:
    assert journal.check(fresh.portal.database)[0].passed
    with writing(fresh.portal.database) as connection:
        for trigger in ("journal_no_update", "journal_no_delete"):
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger}")
        last = connection.scalar(sa.select(sa.func.max(tables.journal.c.number)))
        before = connection.scalar(
            sa.select(tables.journal.c.hash).where(tables.journal.c.number == last - 1)
        )
        connection.execute(tables.journal.delete().where(tables.journal.c.number == last))
        connection.execute(tables.journal_end.update().values(entries=last - 1, head=before))
    assert journal.check(fresh.portal.database)[0].passed  # it agrees with itself
    assert not journal.check(fresh.portal.database, again=False)[0].passed


def journal_length(bench: Bench) -> int:
    return int(journal.check(bench.portal.database)[0].detail.split()[0])


def test_a_text_of_an_entry_is_no_event_and_no_project() -> None:
    """Filters look for a piece of the JSON of an entry, which no text in it can hold."""
    forged = {"event": "asked", "question": 'x","project":"one","event":"charged', "time": '"project":"one"'}
    body = chain.text_of(forged)
    assert '"event":"asked"' in body
    assert '"project":"one"' not in body and '"event":"charged"' not in body


def test_the_python_client_reads_every_part(fresh: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.portal.served import serving

    import leeward as lw
    from leeward.portal.app import make_app
    from leeward.portal.settings import Settings

    monkeypatch.setattr(asking, "PART", 10)
    ids = many_answers(fresh, 25)
    with serving(
        lambda port: make_app(Settings(folder=fresh.folder, public_url=f"http://127.0.0.1:{port}", slot=0))
    ) as port:
        portal = lw.connect(f"http://127.0.0.1:{port}", token=fresh.token("rita"))
        assert {each["id"] for each in portal.answers()} == set(ids)
