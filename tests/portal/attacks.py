"""The portal's abuse cases about what is asked, paid and decided, as programs: each says whether it succeeded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
from tests.portal.made import Bench, make_index

from leeward.portal import proposals
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import Question
from leeward.queries.language.query import parse
from leeward.queries.ledger import spending

Attack = Callable[[Bench], bool]
number = iter(range(10**9))


def key() -> str:
    """A new idempotency key."""
    return f"k{next(number)}"


def fresh_epsilon() -> str:
    """A price that was not asked for yet, so that the question is new."""
    return f"{0.01 + next(number) / 1e6:.6f}"


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
            for each in proposals.proposals_of(bench.portal.database, bench.viewer("anna"))[0]
            if each["proposer"] == bench.ids["carl"] and each["state"] == "open"
        ]
        path = f"/decisions/{waiting[0]}"
        assert bench.post("anna", path, verdict=first, reason="now").status_code == 303
        bench.allot("two", 1, first_come=True)
        before = len(bench.log())
        status = bench.post("clara", path, verdict="confirmed", reason="again").status_code
        done.append(status == 303 or len(bench.log()) != before)
    return any(done)


def forget_tries(bench: Bench) -> None:
    """As if a quarter of an hour had passed."""

    from leeward.portal.store import tables, writing

    with writing(bench.portal.database) as connection:
        connection.execute(tables.tries.delete())


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


def posts_to_the_interface_without_the_form(bench: Bench) -> bool:
    """5: another site's script asks the interface for programs, with the cookie that the browser sends along."""
    body = json.dumps(bench.question("fever", fresh_epsilon(), large_noise=True))
    before, statuses = bench.spent(), []
    for more in (
        {},
        {"x-csrf-token": "guessed"},
        {"origin": "https://evil.example", "x-csrf-token": bench.csrf["rita"]},
    ):
        headers = {"content-type": "application/json", "idempotency-key": key(), **more}
        statuses.append(
            bench.client("rita").post("/api/v1/questions", content=body, headers=headers).status_code
        )
    return statuses != [403] * 3 or bench.spent() != before


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
    except spending.BudgetSpent:
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
        for each in proposals.proposals_of(bench.portal.database, bench.viewer("clara"))[0]
        if each["proposer"] == bench.ids["clara"] and each["state"] == "open"
    ]
    return bench.post("clara", f"/decisions/{mine[0]}", verdict="confirmed", reason="mine").status_code == 303


def searches_for_what_is_there(bench: Bench) -> bool:
    """18: whether the order of terms that are found depends on the data."""
    from leeward.portal import terms
    from leeward.queries.index.counts import Index

    other = bench.folder / f"other{next(number)}"
    make_index(other, patients=1)
    indexes = (bench.portal.indexes.session(bench.index).index, Index(other))
    lists = [
        [each.name for text in ("e", "c", "r", "") for each in terms.search(index.terms, text)]
        for index in indexes
    ]
    return lists[0] != lists[1]
