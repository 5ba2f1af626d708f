"""Abuse cases 26 to 45, beside the first list: about what came after it. Each says whether the attack succeeded."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import socketserver
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pyotp
import sqlalchemy as sa
from tests.portal.attacks import fresh_epsilon, key, number
from tests.portal.attacks_on_identity import reaches
from tests.portal.made import Bench, make_index, sign_in

from leeward.portal import accounts, notices, oidc, passwords, people, proposals, sessions, stopping, visit
from leeward.portal.guards import Portal
from leeward.portal.permissions import Viewer
from leeward.portal.settings import Notify, Provider
from leeward.portal.store import reading, tables, writing
from leeward.portal.store.rows import fetch_one
from leeward.queries.answer.plan import open_session
from leeward.queries.ledger import budgets

PASSWORD = "a password that leaked"


def somebody(bench: Bench, **given: Any) -> str:
    """A new local account with a password, signed in: its login name."""
    login = f"somebody{next(number)}"
    bench.ids[login], link = accounts.make_account(bench.portal.database, login, login.title(), **given)
    accounts.set_up(bench.portal.database, link, PASSWORD)
    sign_in(bench, login)
    return login


def open_proposal(bench: Bench, proposer: str) -> str:
    """The newest open proposal of somebody."""
    rows = proposals.proposals_of(bench.portal.database, bench.viewer("anna"))[0]
    theirs = [row for row in rows if row["proposer"] == bench.ids[proposer] and row["state"] == "open"]
    return str(theirs[0]["id"])


def proposes_an_allotment(bench: Bench, login: str, project: str = "two") -> str:
    form = {"epsilon": "0.01", "ends": "2099-01-01", "reason": "more", "first_come": "yes"}
    ours = {"project": bench.project[project], "index": bench.index}
    assert bench.post(login, "/custody/allotments", **ours, **form).status_code == 303
    return open_proposal(bench, login)


def confirms(bench: Bench, login: str, proposal: str) -> bool:
    """Whether somebody can confirm a proposal on the page of decisions."""
    return bool(
        bench.post(login, f"/decisions/{proposal}", verdict="confirmed", reason="yes").status_code == 303
    )


def stop(bench: Bench, login: str, kind: str, what: str) -> None:
    assert bench.post(login, "/custody/stop", kind=kind, what=what, reason="a mistake").status_code == 303


def start(bench: Bench, kind: str, what: str) -> None:
    """Two people start it, where it is stopped."""
    if (kind, what) in stopping.stopped(bench.portal.database):
        bench.post("carl", "/custody/start", kind=kind, what=what, reason="mended")
        assert confirms(bench, "clara", open_proposal(bench, "carl"))


@contextmanager
def changed(bench: Bench, **fields: Any) -> Iterator[None]:
    """A portal with other settings, or another provider."""
    state = bench.gate.app.state  # type: ignore[attr-defined]
    before: Portal = state.portal
    state.portal = dataclasses.replace(before, **fields)
    try:
        yield
    finally:
        state.portal = before


def uses_an_old_password_after_a_reset(bench: Bench) -> bool:
    """26: somebody's password leaked, but not the phone; its owner asks for a new set-up link, which takes the second
    factor away."""
    login = somebody(bench)
    database, owner = bench.portal.database, bench.viewer(login)
    codes = pyotp.TOTP(accounts.begin_second_factor(database, owner))
    accounts.confirm_second_factor(database, owner, codes.now())
    made = proposals.propose_reset(database, bench.viewer("ida"), owner.person, "lost the phone")
    assert proposals.decide(bench.portal.indexes, bench.viewer("anna"), made, "confirmed", "called back")
    thief = bench.client()
    thief.post("/sign-in", data={"login": login, "password": PASSWORD})
    return bool(thief.get("/api/v1/me").status_code == 200)


def shuts_somebody_out_by_a_second_factor(bench: Bench) -> bool:
    """27: a session that was left open; whoever finds it sets a second factor, which its owner does not have."""
    login = somebody(bench)
    reply = bench.post(login, "/account/second-factor", password="a guess")
    return re.search(r"<code>[A-Z2-7]{32}</code>", reply.text) is not None


def starts_what_was_stopped_again(bench: Bench) -> bool:
    """28: a proposal to start a project again is kept until it is stopped for another reason."""
    what = {"kind": "project", "what": bench.project["two"]}
    stop(bench, "anna", **what)
    kept = []
    for _ in range(2):
        assert bench.post("carl", "/custody/start", reason="mended", **what).status_code == 303
        kept.append(open_proposal(bench, "carl"))
    assert confirms(bench, "clara", kept[0])
    stop(bench, "anna", **what)
    started = confirms(bench, "clara", kept[1])
    start(bench, **what)
    return started


def opens_an_account_that_was_closed_since(bench: Bench) -> bool:
    """29: roles were proposed for somebody whose account was closed before they were confirmed."""
    login = somebody(bench)
    path = f"/admin/accounts/{bench.ids[login]}"
    assert bench.post("ida", f"{path}/roles", roles="auditor", reason="works here").status_code == 303
    assert bench.post("ida", f"{path}/close").status_code == 303
    confirms(bench, "anna", open_proposal(bench, "ida"))
    with reading(bench.portal.database) as connection:
        return people.viewer_of(connection, bench.ids[login]) is not None


def proposes_and_leaves(bench: Bench) -> bool:
    """30: a custodian's proposal waits while the role is taken away, then is half of a decision."""
    login = somebody(bench)
    with writing(bench.portal.database) as connection:
        people.set_house_roles(connection, bench.ids[login], ["custodian"], "test")
    waiting = proposes_an_allotment(bench, login)
    with writing(bench.portal.database) as connection:
        people.set_house_roles(connection, bench.ids[login], [], "test")
    return confirms(bench, "anna", waiting)


def starts_the_index_of_ones_own_project(bench: Bench) -> bool:
    """31: an approver who is in a project starts again the index that it asks."""
    change = people.change_member
    what = {"kind": "index", "what": bench.index}
    database, lea = bench.portal.database, bench.viewer("lea")
    change(database, lea, bench.project["one"], bench.ids["anna"], "researcher")
    stop(bench, "carl", **what)
    assert bench.post("carl", "/custody/start", reason="mended", **what).status_code == 303
    started = confirms(bench, "anna", open_proposal(bench, "carl"))
    change(database, lea, bench.project["one"], bench.ids["anna"], "none")
    start(bench, **what)
    return started


def wakes_a_token_up(bench: Bench) -> bool:
    """32: a token of somebody who was taken out of a project, and is invited again a year later."""
    login, one = somebody(bench), bench.project["one"]
    path = f"/projects/{one}/members"
    assert bench.post("lea", path, login=login, role="researcher").status_code == 303
    token = bench.token(login)
    assert reaches(bench, token)
    for role in ("none", "researcher"):
        assert bench.post("lea", path, login=login, role=role).status_code == 303
    return reaches(bench, token)


def ends_tokens_with_a_token_to_read(bench: Bench) -> bool:
    """33: a program that was given a token to read ends those of the night's work."""
    reads, works = bench.token("rita", scope="read"), bench.token("rita")
    (its,) = [
        each["id"]
        for each in sessions.tokens_of(bench.portal.database, bench.viewer("rita"))
        if works.startswith(each["start"])
    ]
    bench.client().delete(f"/api/v1/tokens/{its}", headers={"authorization": f"Bearer {reads}"})
    return not reaches(bench, works)


def is_invited_in_the_place_of_an_address(bench: Bench) -> bool:
    """34: an administrator makes a local account whose login name is the address of somebody at the provider."""
    address = f"professor{next(number)}@hospital.example"
    ghost, _ = accounts.make_account(bench.portal.database, address, "Professor")
    provider = Provider(issuer="https://issuer.example", client_id="leeward")
    settings = dataclasses.replace(bench.portal.settings, provider=provider)
    with changed(bench, settings=settings):
        form = {"login": address, "role": "researcher"}
        bench.post("lea", f"/projects/{bench.project['one']}/members", **form)
    return bool(bench.project["one"] in viewer_of(bench, ghost).memberships)


def viewer_of(bench: Bench, person: str) -> Viewer:
    with reading(bench.portal.database) as connection:
        found = people.viewer_of(connection, person)
    assert found is not None
    return found


def has_the_portal_hash(bench: Bench) -> bool:
    """35: a stranger sends set-up links that are none: each password costs 19 MiB and some hundredths of a second."""
    done: list[str] = []
    real = passwords.hash_of_new
    passwords.hash_of_new = lambda password: (done.append(password), real(password))[1]  # type: ignore[assignment]
    try:
        for _ in range(3):
            form = {"link": f"none{next(number)}", "password": PASSWORD}
            bench.client().post("/set-up", data=form)
    finally:
        passwords.hash_of_new = real
    return bool(done)


def waits_for_a_silent_provider(bench: Bench) -> bool:
    """36: strangers press the provider's button while it does not answer: each request waits ten seconds in a thread
    that others need."""
    asked: list[str] = []
    real = httpx.get

    def get(url: str, **more: Any) -> Any:
        asked.append(url)
        raise httpx.ConnectTimeout("silent")

    client = oidc.Client(Provider(issuer="https://silent.example", client_id="leeward"), "callback")
    httpx.get = get
    try:
        with changed(bench, provider=client):
            statuses = {bench.client().get("/sign-in/provider").status_code for _ in range(5)}
    finally:
        httpx.get = real
    assert statuses == {403}
    return len(asked) > 1


def fills_the_journal(bench: Bench) -> bool:
    """37: a stranger comes back from the provider again and again without having been there: each time is an entry
    that nobody may ever remove."""
    client = oidc.Client(Provider(issuer="https://silent.example", client_id="leeward"), "callback")
    before = entries(bench)
    with changed(bench, provider=client):
        for each in range(30):
            bench.client().get(f"/sign-in/callback?state=s{each}&code=c")
    return entries(bench) - before > 20


def entries(bench: Bench) -> int:
    end = fetch_one(bench.portal.database, sa.select(tables.journal_end))
    assert end is not None
    return int(end["entries"])


def asks_for_a_set_a_thousand_times(bench: Bench) -> bool:
    """38: a saved set of 19,000 characters, which a question names again and again."""
    path = f"/projects/{bench.project['one']}/sets"
    assert bench.post("rita", path, terms="x" * 19_000, set_name="long").status_code == 303
    form = {"index": bench.index, "terms": " | ".join(["@long"] * 2000), "epsilon": "0.1"}
    tracemalloc.start()
    bench.post("rita", f"/projects/{bench.project['one']}/ask", **form)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bench.post("rita", path, remove="long")
    return most > 30_000_000


class Refusing(socketserver.StreamRequestHandler):
    """A mail server that knows no Anna."""

    def handle(self) -> None:
        box: list[str] = self.server.box  # type: ignore[attr-defined]
        self.wfile.write(b"220 test\r\n")
        while line := self.rfile.readline().decode().strip():
            if line.upper().startswith("DATA"):
                self.wfile.write(b"354 go on\r\n")
                while self.rfile.readline() != b".\r\n":
                    continue
            if line.upper().startswith("RCPT") and "anna" not in line:
                box.append(line)
            self.wfile.write(b"550 unknown\r\n" if "anna" in line else b"250 ok\r\n")


def keeps_others_from_being_told(bench: Bench) -> bool:
    """39: a webhook that is gone, and an address that the mail server does not take, before another's."""
    with socketserver.TCPServer(("127.0.0.1", 0), Refusing) as server:
        server.box = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        mail = f"smtp://127.0.0.1:{server.server_address[1]}"
        notify = Notify(mail=mail, sender="leeward@hospital.example", webhook="http://127.0.0.1:9/hook")
        settings = dataclasses.replace(bench.portal.settings, notify=notify)
        told = [bench.ids["anna"], bench.ids["clara"]]
        try:
            notices.tell(bench.portal.database, settings, told, "Something waits.", "/")
        except Exception as error:
            assert "anna" in str(error) or isinstance(error, OSError)
        server.shutdown()
        return not any("clara" in line for line in server.box)  # type: ignore[attr-defined]


def fills_mailboxes(bench: Bench) -> bool:
    """40: a member says ten things, and every custodian gets ten mails."""
    told: list[str] = []
    real = visit.tell
    visit.tell = lambda *arguments: told.append(arguments[3])  # type: ignore[assignment]
    notify = Notify(webhook="https://chat.hospital.example/hook")
    settings = dataclasses.replace(bench.portal.settings, notify=notify)
    try:
        with changed(bench, settings=settings):
            for each in range(10):
                path = f"/projects/{bench.project['two']}/messages"
                assert bench.post("rob", path, text=f"more, please ({each})").status_code == 303
    finally:
        visit.tell = real
    return len(told) > 1


def changes_a_catalogue(bench: Bench) -> bool:
    """41: the file of a published catalogue is another one than the one that two people confirmed."""
    import polars as pl

    from leeward.runs.itemsets import itemsets

    name = f"catalogue{next(number)}"
    place = bench.folder / "releases" / name
    make_index(bench.folder / name, shift=next(number))
    session = open_session(bench.folder / name)
    budgets.allot(session.ledger, session.index.meta.id, "carl", 1_000_000)
    itemsets(bench.folder / name, place, epsilon=1, user="carl", threshold=1)
    people_named = [bench.ids["rita"]]
    made = proposals.propose_release(
        bench.portal.indexes, bench.viewer("carl"), name, name, people_named, "2099-01-01", "x"
    )
    assert confirms(bench, "anna", made)
    assert name in bench.client("rita").get("/catalogue").text
    file = place / "share" / "data" / "itemsets.parquet"
    schema = pl.read_parquet_schema(file)
    pl.DataFrame([[["a secret of canary-7"], 1]], schema=schema, orient="row").write_parquet(file)
    return "canary-7" in bench.client("rita").get("/catalogue").text


def publishes_what_is_stopped(bench: Bench) -> bool:
    """42: a release that was stopped is proposed as a new one, which no one has stopped."""
    stop(bench, "anna", "release", bench.release)
    form = {"folder": "cohort", "name": "Cohort, again", "ends": "2099-01-01", "reason": "as before"}
    assert bench.post("carl", "/custody/releases", recipients=bench.ids["rita"], **form).status_code == 303
    published = confirms(bench, "clara", open_proposal(bench, "carl"))
    start(bench, "release", bench.release)
    return published


def confirms_at_once(bench: Bench) -> bool:
    """43: two approvers confirm one proposal at the same moment; whether it is done twice."""
    waiting = proposes_an_allotment(bench, "carl")
    before = entries(bench)

    async def together() -> list[int]:
        transport = httpx.ASGITransport(bench.gate)
        base = bench.portal.settings.public_url
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            sent = [
                client.post(
                    f"/decisions/{waiting}",
                    data={"csrf": bench.csrf[login], "verdict": "confirmed", "reason": "yes"},
                    headers={"cookie": f"{bench.portal.settings.cookie}={bench.cookies[login]}"},
                )
                for login in ("anna", "clara")
            ]
            return [reply.status_code for reply in await asyncio.gather(*sent)]

    statuses = asyncio.run(together())
    assert 303 in statuses
    return statuses.count(303) > 1 or entries(bench) - before != 2  # confirmed, allotted


def pays_after_a_stop(bench: Bench) -> bool:
    """44: a project is stopped between a price and its payment."""
    form = {"index": bench.index, "terms": "fever", "epsilon": fresh_epsilon(), "large_noise": "yes"}
    path = f"/projects/{bench.project['one']}"
    assert "Left after" in bench.post("rita", f"{path}/ask", **form, do="review").text
    stop(bench, "anna", "project", bench.project["one"])
    before = bench.spent()
    paid = bench.post("rita", f"{path}/answers", **form).status_code == 303 or bench.spent() != before
    start(bench, "project", bench.project["one"])
    return paid


def repeats_a_key_of_a_project_that_was_left(bench: Bench) -> bool:
    """45: somebody who was taken out of a project sends a request again that it paid for, with the key and a token of
    another project."""
    login = somebody(bench)
    for project in ("one", "two"):
        people.change_member(
            bench.portal.database, bench.viewer("carl"), bench.project[project], login, "researcher"
        )
    same, body = key(), bench.question("fever", fresh_epsilon(), large_noise=True)
    first = bench.ask(bench.token(login), same, body)
    assert first.status_code == 201
    token = bench.token(login, "two")
    people.change_member(bench.portal.database, bench.viewer("carl"), bench.project["one"], login, "none")
    again = bench.ask(token, same, body)
    return bool(again.status_code < 300 and json.loads(again.text)["answer"] == first.json()["answer"])
