"""The abuse cases of the portal's design as programs: each says whether the attack succeeded."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
from tests.portal.made import Bench, make_index

from leeward.portal import journal, proposals, sessions, tokens
from leeward.portal.middleware import LARGEST_BODY
from leeward.portal.terms import search
from leeward.queries import ledger as books
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import Question
from leeward.queries.language.query import parse

Attack = Callable[[Bench], bool]
number = iter(range(10**9))


def key() -> str:
    """A new idempotency key."""
    return f"k{next(number)}"


def fresh_epsilon() -> str:
    """A price that was not asked for yet, so that the question is new."""
    return f"{0.01 + next(number) / 1e6:.6f}"


def claims_to_be_another(bench: Bench) -> bool:
    """1: a header, a field or the environment says who asks."""
    token, other = bench.token("rita"), bench.ids["carl"]
    before = len(bench.log())
    for header in ("x-user", "x-forwarded-user", "remote-user", "leeward-user"):
        bench.ask(token, key(), bench.question(epsilon=fresh_epsilon()), **{header: other})
    bench.ask(token, key(), bench.question(epsilon=fresh_epsilon(), user=other))
    bench.client("rita", **{"x-user": other}).get("/api/v1/me")
    return any(event.get("user") == other for event in bench.log()[before:])


def fixes_a_session(bench: Bench) -> bool:
    """4: a session that the attacker knows before its victim signs in with it."""
    from leeward.portal.store import writing

    with writing(bench.portal.database) as connection:
        known = sessions.begin(connection, bench.portal.settings, None)
        sessions.renew(connection, bench.portal.settings, known, bench.ids["rita"])
    thief = bench.client()
    thief.cookies.set(bench.portal.settings.cookie, known)
    return thief.get("/api/v1/me").status_code == 200


def uses_a_cookie_after_sign_out(bench: Bench) -> bool:
    """4: a cookie that was stolen before its owner signed out."""
    from tests.portal.made import sign_in

    stolen = bench.cookies["rita"]
    bench.post("rita", "/sign-out")
    thief = bench.client()
    thief.cookies.set(bench.portal.settings.cookie, stolen)
    reached = thief.get("/api/v1/me").status_code == 200
    sign_in(bench, "rita")
    return reached


def uses_an_idle_session(bench: Bench) -> bool:
    """4: a session that nobody used for half an hour."""
    from tests.portal.made import sign_in

    from leeward.portal.store import tables, writing

    with writing(bench.portal.database) as connection:
        connection.execute(
            tables.sessions.update()
            .where(tables.sessions.c.person == bench.ids["rita"])
            .values(seen="2020-01-01T00:00:00.000+00:00")
        )
    reached = bench.client("rita").get("/api/v1/me").status_code == 200
    sign_in(bench, "rita")
    return reached


def uses_a_session_past_its_end(bench: Bench) -> bool:
    """4: a session that was kept busy until it was over."""
    from leeward.portal.store import now, tables, writing

    def set_end(ends: str) -> None:
        with writing(bench.portal.database) as connection:
            mine = tables.sessions.c.id == sessions.hash_of(bench.cookies["rita"])
            connection.execute(tables.sessions.update().where(mine).values(seen=now(), ends=ends))

    set_end("2020-01-01T00:00:00.000+00:00")
    reached = bench.client("rita").get("/api/v1/me").status_code == 200
    set_end("2099-01-01T00:00:00.000+00:00")
    return reached


def uses_an_ended_token(bench: Bench) -> bool:
    """13: a token that its owner ended, as it had leaked."""
    token = bench.token("rita")
    assert reaches(bench, token)
    (made,) = [
        each
        for each in tokens.tokens_of(bench.portal.database, bench.viewer("rita"))
        if token.startswith(each["start"])
    ]
    assert bench.post("rita", f"/tokens/{made['id']}/end").status_code == 303
    return reaches(bench, token) or spends(bench, token)


def uses_a_token_past_its_end(bench: Bench) -> bool:
    """13: a token whose days are over."""
    from leeward.portal.store import tables, writing

    token = bench.token("rita")
    assert reaches(bench, token)
    with writing(bench.portal.database) as connection:
        mine = tables.tokens.c.digest == sessions.hash_of(token)
        connection.execute(tables.tokens.update().where(mine).values(ends="2020-01-01T00:00:00.000+00:00"))
    return reaches(bench, token) or spends(bench, token)


def spends_with_a_token_to_read(bench: Bench) -> bool:
    """13: a token that was handed out to read only pays for a question, or for a batch of them."""
    token, before = bench.token("rita", scope="read"), bench.spent()
    assert reaches(bench, token)
    body = bench.question("fever", fresh_epsilon(), large_noise=True)
    headers = {"authorization": f"Bearer {token}"}
    assert bench.client().post("/api/v1/questions:price", json=body, headers=headers).status_code == 200
    asked = {"terms": "fever", "epsilon": fresh_epsilon(), "large_noise": True}
    batch = {"project": bench.project["one"], "index": bench.index, "questions": [asked]}
    statuses = [bench.ask(token, key(), body).status_code]
    headers["idempotency-key"] = key()
    statuses.append(bench.client().post("/api/v1/batches", json=batch, headers=headers).status_code)
    return statuses != [403, 403] or bench.spent() != before


def reaches(bench: Bench, token: str) -> bool:
    """Whether a token says who somebody is."""
    headers = {"authorization": f"Bearer {token}"}
    return bench.client().get("/api/v1/me", headers=headers).status_code == 200


def spends(bench: Bench, token: str) -> bool:
    """Whether a token pays for a question."""
    before = bench.spent()
    bench.ask(token, key(), bench.question("fever", fresh_epsilon(), large_noise=True))
    return bench.spent() != before


def uses_a_closed_account(bench: Bench) -> bool:
    """13: somebody who left, with a session and a token from before that nobody took away."""
    from leeward.portal.store import tables, writing

    token = bench.token("lea")
    people = tables.people

    def open_or_close(active: bool) -> None:
        with writing(bench.portal.database) as connection:
            mine = people.c.id == bench.ids["lea"]
            connection.execute(people.update().where(mine).values(active=active))

    open_or_close(False)
    try:
        by_cookie = bench.client("lea").get("/api/v1/me").status_code == 200
        return by_cookie or reaches(bench, token) or spends(bench, token)
    finally:
        open_or_close(True)


def decides_again(bench: Bench) -> bool:
    """17: an allotment that one approver declined is confirmed later by another, and one that was confirmed is done a
    second time, after it was lowered."""
    done = []
    for first in ("declined", "confirmed"):
        ends = {"ends": "2099-01-01", "reason": "more"}
        form = {"project": bench.project["two"], "index": bench.index, "first_come": "yes", **ends}
        bench.post("carl", "/custody/allotments", epsilon="2", **form)
        waiting = [
            each["id"]
            for each in proposals.proposals_of(bench.portal.database, bench.viewer("anna"))
            if each["proposer"] == bench.ids["carl"] and each["state"] == "open"
        ]
        path = f"/decisions/{waiting[0]}"
        assert bench.post("anna", path, verdict=first, reason="now").status_code == 303
        bench.allot("two", 1, first_come=True)
        before = len(bench.log())
        status = bench.post("clara", path, verdict="confirmed", reason="again").status_code
        done.append(status == 303 or len(bench.log()) != before)
    return any(done)


def posts_from_another_site(bench: Bench) -> bool:
    """5: another site's form, which has the session's own value, for example from a leaked page."""
    form = {"csrf": bench.csrf["rita"], "index": bench.index, "terms": "fever", "epsilon": fresh_epsilon()}
    path = f"/projects/{bench.project['one']}/answers"
    return (
        bench.client("rita").post(path, data=form, headers={"origin": "https://evil.example"}).status_code
        == 303
    )


def posts_without_the_form(bench: Bench) -> bool:
    """5: a form that does not know the session's own value, from a browser that sends no origin."""
    form = {"csrf": "guessed", "index": bench.index, "terms": "fever", "epsilon": fresh_epsilon()}
    path = f"/projects/{bench.project['one']}/answers"
    return bench.client("rita").post(path, data=form).status_code == 303


def spends_by_a_link(bench: Bench) -> bool:
    """5: a link that pays."""
    before = bench.spent()
    query = {"index": bench.index, "terms": "fever", "epsilon": fresh_epsilon(), "do": "review"}
    bench.client("rita").get(f"/projects/{bench.project['one']}/ask", params=query)
    bench.client("rita").get(f"/projects/{bench.project['one']}/answers", params=query)
    return bench.spent() != before


def names_another_host(bench: Bench) -> bool:
    """6: a malformed Host header."""
    for host in ("127.0.0.1:8000/sign-in?", "evil.example", "127.0.0.1:8000@evil.example"):
        if bench.client("rita").get("/api/v1/me", headers={"host": host}).status_code == 200:
            return True
    return False


def asks_at_once(bench: Bench, questions: int = 30, paid: int = 8) -> bool:
    """7: many questions at the same moment against a budget for few; fewer here than in benchmarks/portal_load.py."""
    token = bench.token("rob", "two")
    bench.allot("two", round(paid * 0.1, 2))

    async def together() -> list[int]:
        transport = httpx.ASGITransport(bench.gate)
        async with httpx.AsyncClient(
            transport=transport, base_url=bench.portal.settings.public_url
        ) as client:
            asked = [
                client.post(
                    "/api/v1/questions",
                    json=bench.question("fever", "0.1", project="two", conditions={"age": f"{each}..99"}),
                    headers={"authorization": f"Bearer {token}", "idempotency-key": key()},
                )
                for each in range(questions)
            ]
            return [reply.status_code for reply in await asyncio.gather(*asked)]

    statuses = asyncio.run(together())
    return (statuses.count(201), statuses.count(402)) != (paid, questions - paid)


def reuses_a_key(bench: Bench) -> bool:
    """8: the same idempotency key for another question."""
    token, same = bench.token("rita"), key()
    first = bench.ask(token, same, bench.question("fever", fresh_epsilon()))
    assert first.status_code == 201
    return bench.ask(token, same, bench.question("cough", fresh_epsilon())).status_code != 409


def averages(bench: Bench, spellings: int = 40) -> bool:
    """9: many spellings of one question, by several people and tokens, to average the noise away."""
    epsilon = fresh_epsilon()
    terms = ("fever & cough", "cough&fever", "  Cough &  pyrexia", "FEVER & cough & fever")
    months = ("2025-01..2025-06", "2025-0*", "2025-1..2025-6")
    asked = [
        (text + " " * blanks, when)
        for blanks in range(
            -(-spellings // 8)
        )  # a hidden answer is like another: enough spellings to see a shown one
        for text in terms
        for when in months
        if when != "2025-0*"
    ]
    seen = set()
    for place, (text, when) in enumerate(asked[:spellings]):
        token = bench.token(("rita", "lea")[place % 2])
        body = bench.question(text, epsilon, conditions={"when": when}, large_noise=True)
        seen.add(json.dumps(bench.ask(token, key(), body).json()["interval"]))
    return len(seen) > 1


def measures_the_time(bench: Bench) -> bool:
    """10: counting takes 4 ms longer for one question than for the other, by a clock of the test's own that nothing
    else moves; whether replies tell the two apart. Real replies are timed in benchmarks/portal_load.py."""
    token = bench.token("rita")
    times = []
    for terms in ("fever", "rash"):
        began = CLOCK.now
        body = bench.question(terms, fresh_epsilon(), large_noise=True)
        assert bench.ask(token, key(), body).status_code == 201
        times.append(round(CLOCK.now - began, 6))
    return times[0] != times[1]


class Clock:
    """A clock that stands still but for work and waiting that are put on it."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


CLOCK = Clock()


def tracks(bench: Bench, questions: int = 16) -> bool:
    """11: overlapping questions, whose differences would give single patients; whether some are not paid."""
    token = bench.token("lea")
    left = bench.client().get(
        f"/api/v1/projects/{bench.project['one']}", headers={"authorization": f"Bearer {token}"}
    )
    price = left.json()["indexes"][0]["left"] / 10
    statuses = [
        bench.ask(
            token,
            key(),
            bench.question("fever", f"{price:.6f}", conditions={"age": f"0..{each}"}, large_noise=True),
        ).status_code
        for each in range(20, 20 + questions)
    ]
    return statuses.count(201) > 10 or statuses.count(402) < questions - 11


def colludes(bench: Bench) -> bool:
    """12: two projects whose allotments add up to more than the cap."""
    bench.allot("one", 10, first_come=True)
    bench.allot("two", 10, first_come=True)
    asked = {"one": ("rita", "fever", "cough", "rash"), "two": ("rob", "headache", "chill", "fever & cough")}
    for project, (login, *questions) in asked.items():
        for terms in questions:
            bench.ask(bench.token(login, project), key(), bench.question(terms, "3", project=project))
    return bench.spent() > 10_000_000


def learns_what_others_asked(bench: Bench, patch: Any) -> bool:
    """A member compares a question that another project paid with one that nobody asked: its price before, cost,
    balance and code of the reply, how often data were counted, and how many entries the ledger wrote for it."""
    from leeward.queries.answer import charged_query

    counted: list[str] = []
    real = charged_query._counts

    def count(index: Any, plan: Any) -> list[int]:
        counted.append("once")
        return real(index, plan)

    patch.setattr(charged_query, "_counts", count)
    token, other = bench.token("rob", "two"), bench.token("rita")
    prices = [fresh_epsilon(), fresh_epsilon()]
    assert bench.ask(other, key(), bench.question("cough", prices[0], large_noise=True)).status_code == 201
    seen = []
    for epsilon in prices:
        body = bench.question("cough", epsilon, project="two", large_noise=True)
        headers = {"authorization": f"Bearer {token}"}
        priced = bench.client().post("/api/v1/questions:price", json=body, headers=headers).json()
        counted.clear()
        before = len(bench.log())
        reply = bench.ask(token, key(), body)
        paid = round(priced["left"] - reply.json()["remaining"], 6)
        seen.append((
            priced["price"] == float(epsilon), priced["enough"], reply.status_code, reply.json()["stored"],
            reply.json()["cost"] == float(epsilon), paid == float(epsilon), len(counted), len(bench.log()) - before,
        ))  # fmt: skip
    return seen[0] != seen[1]


def spends_without_an_allotment(bench: Bench) -> bool:
    """13: a new name, at the ledger itself."""
    session = bench.portal.indexes.session(bench.index)
    asked = Question(query=parse("fever"), epsilon=10_000 + next(number))
    try:
        answer_all(session, [asked], f"new-{next(number)}")
    except books.BudgetSpent:
        return False
    return True


def spends_of_another_project(bench: Bench) -> bool:
    """13: somebody with an account and no project spends a project's budget."""
    headers = {
        "x-csrf-token": bench.csrf["rob"],
        "origin": bench.portal.settings.origin,
        "idempotency-key": key(),
    }
    body = bench.question("fever", fresh_epsilon())
    return bench.client("rob").post("/api/v1/questions", json=body, headers=headers).status_code == 201


def indexes_again(bench: Bench) -> bool:
    """14: the same data in another folder, with a ledger that is new."""
    place = bench.folder / "indexes" / f"again{next(number)}"
    make_index(place)
    form = {"folder": place.name, "name": "Again", "reason": "more budget"}
    return bench.post("carl", "/custody/indexes", **form).status_code == 303


def allots_too_much(bench: Bench) -> bool:
    """15: allotments that add up to more than the cap, not stated as first come."""
    try:
        bench.allot("two", 8)
    except Exception as error:
        assert "exceed the cap" in str(error)
        return False
    return True


def reads_another_projects_answer(bench: Bench) -> bool:
    """16: an answer by its link, in a list, in a search."""
    reply = bench.ask(bench.token("rita"), key(), bench.question("fever", fresh_epsilon()))
    theirs = reply.json()["id"]
    paths = [f"/answers/{theirs}", f"/answers/{theirs}/answer.json", f"/api/v1/answers/{theirs}"]
    paths.append(f"/projects/{bench.project['one']}/answers?find=fever")
    unknown = bench.client("rob").get(f"/answers/{'0' * 32}")
    for path in paths:
        found = bench.client("rob").get(path)
        if found.status_code != 404 or ("/api/" not in path and len(found.content) != len(unknown.content)):
            return True
    return False


def calls_a_custodians_route(bench: Bench) -> bool:
    """17: a lead raises the allotment of an own project."""
    form = {
        "project": bench.project["one"], "index": bench.index, "epsilon": "10", "ends": "2099-01-01", "reason": "mine",
    }  # fmt: skip
    return bench.post("lea", "/custody/allotments", **form).status_code == 303


def confirms_ones_own(bench: Bench) -> bool:
    """17: somebody who is custodian and approver confirms what she proposed."""
    ends = {"ends": "2099-01-01", "reason": "mine"}
    bench.post(
        "clara",
        "/custody/allotments",
        project=bench.project["two"],
        index=bench.index,
        epsilon="0.01",
        **ends,
    )
    mine = [
        each["id"]
        for each in proposals.proposals_of(bench.portal.database, bench.viewer("clara"))
        if each["proposer"] == bench.ids["clara"] and each["state"] == "open"
    ]
    return bench.post("clara", f"/decisions/{mine[0]}", verdict="confirmed", reason="mine").status_code == 303


def searches_for_what_is_there(bench: Bench) -> bool:
    """18: whether the order of terms that are found depends on the data."""
    from leeward.portal import terms as found_by
    from leeward.queries.index.counts import Index

    other = bench.folder / f"other{next(number)}"
    make_index(other, patients=1)
    indexes = (bench.portal.indexes.session(bench.index).index, Index.open(other))
    lists = [
        [each.name for text in ("e", "c", "r", "") for each in found_by.search(index, text)]
        for index in indexes
    ]
    assert search is not None
    return lists[0] != lists[1]


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
        "type": "http", "method": "POST", "path": "/sign-in", "query_string": b"", "headers": [(b"host", host)],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "scheme": "http", "http_version": "1.1", "app": None,
    }  # fmt: skip
    asyncio.run(bench.gate(scope, receive, send))
    return statuses != [408]


def guesses_a_password(bench: Bench) -> bool:
    """23: more than five guesses in a quarter of an hour."""
    login = f"guessed{next(number)}"
    statuses = [
        bench.client().post("/sign-in", data={"login": login, "password": f"guess {each}"}).status_code
        for each in range(8)
    ]
    forget_tries(bench)
    return statuses.count(429) != 3


def guesses_the_passwords_of_many(bench: Bench) -> bool:
    """23: more than five guesses in a quarter of an hour from one address, each at another account."""
    forget_tries(bench)
    statuses = [
        bench.client()
        .post("/sign-in", data={"login": f"guessed{next(number)}", "password": "a usual password"})
        .status_code
        for _ in range(8)
    ]
    forget_tries(bench)
    return statuses.count(429) != 3


def reads_secrets_from_the_database(bench: Bench) -> bool:
    """25: a copy of the portal's database, such as a backup; whether it holds what signs somebody in."""
    import sqlite3

    token = bench.token("rita")
    file = sqlite3.connect(bench.folder / "portal.db")
    text = "\n".join(file.iterdump())
    file.close()
    assert bench.ids["rita"] in text
    return any(secret in text for secret in (token, bench.cookies["rita"], bench.cookies["ida"]))


def lists_accounts(bench: Bench) -> bool:
    """23: whether the reply, or the work done for it, tells that an account is there."""
    from leeward.portal import passwords

    login = f"there{next(number)}"
    passwords.make_account(bench.portal.database, login, "There", "a long password", "test")
    done: list[int] = []
    real = passwords.matches
    passwords.matches = lambda hashed, given: (done.append(len(hashed)), real(hashed, given))[1]  # type: ignore[assignment]
    try:
        replies = [
            bench.client().post("/sign-in", data={"login": name, "password": "wrong password"})
            for name in (login, "not there")
        ]
    finally:
        passwords.matches = real
    forget_tries(bench)
    bodies = {reply.text.split("request ")[0] for reply in replies}
    return (
        len({reply.status_code for reply in replies}) > 1
        or len(bodies) > 1
        or len(done) != 2
        or len(set(done)) > 1
    )


def forget_tries(bench: Bench) -> None:
    """As if a quarter of an hour had passed."""
    from leeward.portal.store import tables, writing

    with writing(bench.portal.database) as connection:
        connection.execute(tables.counters.delete())


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
                raise books.LedgerUnreachable("the disk is full")
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
        passed = books.audit(session.ledger, session.index.meta.id).passed
    finally:
        with file:
            file.executemany("UPDATE accounts SET spent = ? WHERE account = ?", [(s, a) for a, s in before])
        file.close()
    return answered != 503 or passed


def edits_the_journal(bench: Bench) -> bool:
    """25: somebody with the database edits the portal's journal."""
    import sqlite3

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
