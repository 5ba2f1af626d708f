"""What waits for whom, notices by mail and webhook, and the directory of what there is to ask for."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.portal.made import Bench

from leeward.errors import BadInput
from leeward.portal import directory, notices, people, proposals
from leeward.portal.settings import Notify
from leeward.portal.store.rows import Unknown


class Mailbox(socketserver.StreamRequestHandler):
    """A mail server that keeps what it is sent."""

    def handle(self) -> None:
        def say(text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        box: list[str] = self.server.box  # type: ignore[attr-defined]
        say("220 test")
        while line := self.rfile.readline().decode().strip():
            word = line[:4].upper()
            if word == "DATA":
                say("354 go on")
                lines = []
                while (text := self.rfile.readline().decode()) != ".\r\n":
                    lines.append(text)
                box.append("".join(lines))
            elif word == "QUIT":
                say("221 bye")
                return
            say("250 ok")


class Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        box: list[str] = self.server.box  # type: ignore[attr-defined]
        box.append(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(params=[Mailbox, Hook], name="served")
def served_box(request: pytest.FixtureRequest) -> Iterator[tuple[Notify, list[str]]]:
    kind = HTTPServer if request.param is Hook else socketserver.TCPServer
    with kind(("127.0.0.1", 0), request.param) as server:
        server.box = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"127.0.0.1:{server.server_address[1]}"
        if request.param is Hook:
            yield Notify(webhook=f"http://{place}/hook"), server.box  # type: ignore[attr-defined]
        else:
            yield Notify(mail=f"smtp://{place}", sender="leeward@hospital.example"), server.box  # type: ignore[attr-defined]
        server.shutdown()


def texts(bench: Bench, login: str) -> list[str]:
    return [each.text for each in notices.waiting_for(bench.portal.database, bench.viewer(login))]


def test_a_proposal_waits_for_its_deciders(fresh: Bench) -> None:
    assert texts(fresh, "anna") == []
    proposals.propose_allotment(
        fresh.portal.indexes,
        fresh.viewer("clara"),
        fresh.project["one"],
        fresh.index,
        "5",
        "2099-01-01",
        False,
        "x",
    )
    assert texts(fresh, "anna") == ["A decision: allot to a project."]
    assert (
        texts(fresh, "clara") == texts(fresh, "ida") == []
    )  # who proposed, and who decides on accounts alone
    proposals.propose_account(fresh.portal.database, fresh.viewer("ida"), fresh.ids["rob"], ["auditor"], "x")
    assert len(texts(fresh, "anna")) == 2
    assert texts(fresh, "ida") == []


def test_a_message_waits_for_the_other_side(fresh: Bench) -> None:
    """M3: a request for budget reached nobody."""
    database, one = fresh.portal.database, fresh.project["one"]
    people.say(database, fresh.viewer("lea"), one, "Please allot 5 more.")
    assert texts(fresh, "carl") == ["A message in Project one."]
    assert texts(fresh, "rita") == texts(fresh, "rob") == texts(fresh, "audrey") == []
    people.say(database, fresh.viewer("carl"), one, "Proposed.")
    assert texts(fresh, "carl") == []
    assert texts(fresh, "rita") == texts(fresh, "lea") == ["A message in Project one."]


def test_an_allotment_that_ends_waits_for_the_lead(fresh: Bench) -> None:
    assert texts(fresh, "lea") == []
    fresh.allot("one", 4, days=5)
    assert [text[:33] for text in texts(fresh, "lea")] == ["An allotment of Project one ends "]
    assert texts(fresh, "rita") == []


def test_somebody_without_a_project_asks_for_one(fresh: Bench) -> None:
    database, nobody = fresh.portal.database, fresh.viewer("nobody")
    directory.describe(
        database,
        fresh.viewer("carl"),
        fresh.index,
        {"description": "Notes of a clinic", "contact": "data office"},
    )
    entry = directory.entry_of(fresh.portal.indexes, fresh.index)
    assert (entry["name"], entry["description"], entry["years"]) == ("Clinic", "Notes of a clinic", None)
    assert not {"ledger", "folder", "patients"} & set(entry)
    directory.ask_for_project(database, nobody, fresh.index, "I study coughs.")
    assert texts(fresh, "carl") == ["Nobody asks for a project."]
    request = directory.open_requests(database)[0]
    assert (request["person_name"], request["index_name"]) == ("Nobody", "Clinic")
    directory.close_request(database, fresh.viewer("carl"), request["id"])
    assert texts(fresh, "carl") == []
    for wrong in (request["id"], "none"):
        with pytest.raises(Unknown):
            directory.close_request(database, fresh.viewer("carl"), wrong)
    with pytest.raises(Unknown):
        directory.ask_for_project(database, nobody, "none", "x")
    for _ in range(directory.MOST_REQUESTS):
        directory.ask_for_project(database, nobody, fresh.index, "again")
    with pytest.raises(BadInput, match="open requests"):
        directory.ask_for_project(database, nobody, fresh.index, "again")


def test_a_notice_says_where_and_nothing_else(fresh: Bench, served: tuple[Notify, list[str]]) -> None:
    notify, box = served
    settings = replace(fresh.portal.settings, notify=notify)
    to = notices.deciders(fresh.portal.database, "allotment")
    notices.tell(
        fresh.portal.database,
        settings,
        to,
        "A proposal waits for your decision.",
        "/decisions",
        but=fresh.ids["clara"],
    )
    assert len(box) == 1
    said = json.loads(box[0])["text"] if box[0].startswith("{") else box[0]
    assert "http://127.0.0.1:8000/decisions" in said
    if notify.mail:
        assert "To: anna@hospital.example" in said and "clara" not in said


def test_a_server_that_does_not_answer_stops_nothing(fresh: Bench, caplog: pytest.LogCaptureFixture) -> None:
    for notify in (
        Notify(mail="smtp://127.0.0.1:9", sender="a@b"),
        Notify(webhook="http://127.0.0.1:9/hook"),
    ):
        settings = replace(fresh.portal.settings, notify=notify)
        notices.tell(fresh.portal.database, settings, [fresh.ids["anna"]], "Something waits.", "/")
    assert [json.loads(each.message)["event"] for each in caplog.records] == ["notice not sent"] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"mail": "http://mail.example", "sender": "a@b"},
        {"mail": "smtps://mail.example"},
        {"webhook": "http://chat.example/hook"},
    ],
)
def test_a_setting_that_would_not_work_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="notify"):
        Notify(**wrong)  # type: ignore[arg-type]
