"""The portal under load, killed, and timed: what is overspent, lost or charged twice, by recount of the ledger's log.

    python benchmarks/portal_load.py load   [--postgres] [--seconds 600] [--known 300] [--new 60] [--patients 1000000]
    python benchmarks/portal_load.py kill   [--postgres] [--times 50]
    python benchmarks/portal_load.py timing [--replies 10000]
    python benchmarks/portal_load.py cost   [--postgres]
    python benchmarks/portal_load.py pages  [--postgres] [--answers 10000] [--entries 100000]

Server and clients are on one machine and share its processors. `load`: sessions, which are twenty people's, ask stored
questions, prices and new questions against a budget that does not pay for all. `kill`: the server (with --postgres in
turn the database) is killed at random moments while sessions ask. `timing`: new questions whose counts are 1 and
100,000 patients, from one client; the area under the ROC curve of "slower means larger". `cost`: processor time of one
request in this process, without a server and its sockets, and of the database, with the statements that it gets.
`pages`: the same of every page, where a project has ten thousand answers and the ledger's log a hundred thousand
entries; writes docs/benchmarks/portal-pages.md.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fastapi.routing import APIRoute
from tests.postgres_fixture import binary, running_postgres

from common import table, write_page
from leeward.portal import people, proposals, sessions
from leeward.portal.app import make_app, routers
from leeward.portal.sessions import make_token
from leeward.portal.settings import Settings
from leeward.portal.store import open_store, reading, writing
from leeward.portal.store import tables as portal_tables
from leeward.queries.index.build import index_table
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger import auditing, budgets, chain, families, opening
from leeward.queries.ledger import tables as ledger_tables
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.ledger.families import family_of
from leeward.queries.ledger.opening import reading as reading_ledger
from leeward.queries.privacy.accounting import Budget, micro

SLOT = 0.05
WARM = 10.0
"""Seconds of load whose times are not kept: indexes are opened, statements compiled."""
CAP = 1000
NEW = "0.01"
PEOPLE = 20
"""Whose sessions they are: limits are counted a person, in a row that a person's sessions wait for."""


@dataclass
class Place:
    """A portal that is set up: where it is, and who may ask what."""

    folder: Path
    url: str
    port: int
    database: str | None
    project: str = ""
    index: str = ""
    tokens: list[str] = field(default_factory=list)
    workers: int = 1
    server: subprocess.Popen[bytes] | None = None

    @property
    def ledgers(self) -> dict[str, str]:
        return {} if self.database is None else {"main": self.database}

    def settings(self) -> Settings:
        return Settings(
            folder=self.folder,
            public_url=self.url,
            database=self.database,
            ledgers=self.ledgers,
            questions_a_minute=10**9,
            slot=SLOT,
        )

    def start(self) -> float:
        """Start the server; seconds until it is ready."""
        began = time.monotonic()
        # Not this file: each worker would load it, with all that the clients need.
        given = {
            "database": self.database, "ledgers": self.ledgers, "public_url": self.url, "questions_a_minute": 10**9,
            "slot": SLOT,
        }  # fmt: skip
        code = (
            "from pathlib import Path; from leeward.runs import portal; "
            f"portal.serve(Path({str(self.folder)!r}), '127.0.0.1', {self.port}, lambda text: None, "
            f"{self.workers}, **{given!r})"
        )
        self.server = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        while time.monotonic() - began < 60:
            try:
                if httpx.get(f"{self.url}/health/ready", timeout=5).status_code == 200:
                    return time.monotonic() - began
            except httpx.HTTPError:
                time.sleep(0.02)
        raise SystemExit("the server did not start")

    def kill(self, how: int = signal.SIGKILL) -> None:
        """Kill it with its workers."""
        assert self.server is not None
        if how == signal.SIGKILL:
            os.killpg(self.server.pid, how)
        else:
            self.server.send_signal(how)
        self.server.wait()

    def question(self, terms: str, epsilon: str, **conditions: str) -> dict[str, Any]:
        return {
            "project": self.project, "index": self.index, "terms": terms, "epsilon": epsilon, "conditions": conditions,
            "large_noise": True,
        }  # fmt: skip


def set_up(
    folder: Path, database: str | None, sessions: int, allotted: float, patients: int, workers: int
) -> Place:
    """A portal with an index of made-up patients, one note each, and a token for each session."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(mode=0o700)
    for name in ("indexes", "releases"):
        (folder / name).mkdir(mode=0o700)
    rows = range(patients)
    table = pl.DataFrame(
        {
            "patient": rows,
            "note": rows,
            "visit_month": [f"2025-{1 + each % 12:02d}" for each in rows],
            "age": [each % 100 for each in rows],
            "terms": [["common", "rare"] if each == 0 else ["common"] for each in rows],
        }
    )
    place = folder / "indexes" / "clinic"
    domains = {"age": ("0", "99"), "when": ("2025-01", "2025-12")}
    built = index_table(
        table, place, terms=Terms(("common", "rare")), domains=domains, max_rows_per_patient=1
    )
    place.chmod(0o700)
    ledger = opening.make_ledger(database or place, place)
    budgets.register(ledger, DataSet(id=built.index.meta.id, budget=Budget(epsilon=micro(CAP))))
    found = Place(folder, f"http://127.0.0.1:{port}", port, database, workers=workers)
    app: Any = make_app(found.settings()).app
    running = app.state.portal
    ids = {}
    with writing(running.database) as connection:
        asking = [f"rita{each}" for each in range(min(PEOPLE, sessions))]
        for login, roles in (
            ("carl", ["custodian"]),
            ("anna", ["approver"]),
            *((each, []) for each in asking),
        ):
            row = people.admit(connection, "benchmark", login, login, None)
            assert row is not None
            ids[login] = row["id"]
            people.set_house_roles(connection, row["id"], roles, "benchmark")

    def viewer(login: str) -> Any:
        with reading(running.database) as connection:
            return people.viewer_of(connection, ids[login])

    found.project = people.make_project(running.database, viewer("carl"), "Load", "Load.", "0", ids["rita0"])
    for login in asking[1:]:
        people.change_member(running.database, viewer("carl"), found.project, ids[login], "researcher")
    made = proposals.propose_index(
        running.indexes, viewer("carl"), "clinic", "Clinic", next(iter(found.ledgers), ""), "load"
    )
    proposals.decide(running.indexes, viewer("anna"), made, "confirmed", "load")
    found.index = running.indexes.rows()[0]["id"]
    ends = (datetime.now(UTC) + timedelta(days=9)).date().isoformat()
    made = proposals.propose_allotment(
        running.indexes, viewer("carl"), found.project, found.index, str(allotted), ends, False, "load"
    )
    proposals.decide(running.indexes, viewer("anna"), made, "confirmed", "load")
    viewers = [viewer(login) for login in asking]
    found.tokens = [
        make_token(
            running.database, viewers[each % len(viewers)], found.project, "ask", 2, f"session {each}"
        )[1]
        for each in range(sessions)
    ]
    return found


class Session:
    """A keep-alive connection that asks in turn; httpx takes as long on a question as the server, and would be what is
    measured on a machine that they share."""

    def __init__(self, place: Place, token: str) -> None:
        self.port = place.port
        self.ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.fixed = (
            f"host: 127.0.0.1:{place.port}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json"
        )

    async def post(self, path: str, body: dict[str, Any], key: str | None) -> tuple[int, bytes]:
        """Status and body of the reply; OSError or EOFError where there is none."""
        if self.ends is None:
            self.ends = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.ends
        sent = json.dumps(body).encode()
        more = "" if key is None else f"\r\nidempotency-key: {key}"
        head = f"POST /api/v1{path} HTTP/1.1\r\n{self.fixed}\r\ncontent-length: {len(sent)}{more}\r\n\r\n"
        try:
            async with asyncio.timeout(30):
                writer.write(head.encode() + sent)
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
                length = next(line.split(":")[1] for line in lines if line.startswith("content-length:"))
                found = await reader.readexactly(int(length))
        except BaseException:  # cancelled too: the next reply would be this question's
            self.close()
            raise
        if "connection: close" in lines:
            self.close()
        return int(lines[0].split()[1]), found

    def close(self) -> None:
        if self.ends is not None:
            self.ends[1].close()
            self.ends = None


@dataclass
class Seen:
    """What clients were told: question -> value and how often it was new; times by kind; statuses."""

    shown: dict[str, set[str]] = field(default_factory=dict)
    new: dict[str, int] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    since: float = 0.0
    """Times are kept of what was due after this moment."""


async def ask_for(
    place: Place,
    seen: Seen,
    until: float,
    number: int,
    mix: tuple[float, float],
    part: int = 0,
    pause: float = 0.0,
) -> None:
    """One session: stored questions, prices and new ones, as `mix` says, every `pause` seconds; what fails is asked
    again. Times are from the moment that a question was due, so that a server that falls behind shows it."""
    dice = random.Random(1000 * part + number)
    session = Session(place, place.tokens[number])
    count = 0
    due = time.perf_counter() + pause * dice.random()
    while time.monotonic() < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        drawn = dice.random()
        kind = "stored" if drawn < mix[0] else "price" if drawn < mix[1] else "new"
        count += 1
        if kind == "stored":
            body = place.question("common", "0.5", age=f"0..{dice.randrange(20)}")
        else:
            exact = f"{0.001 + (part * 100 + count) / 1e6:.6f}" if kind == "new" else NEW
            body = place.question("common", exact, age=f"{number}")
        path = "/questions:price" if kind == "price" else "/questions"
        began = due if pause else time.perf_counter()
        due += pause
        try:
            status, reply = await session.post(
                path, body, None if kind == "price" else f"{part}-{number}-{count}"
            )
        except (OSError, EOFError) as error:
            name = type(error).__name__
            seen.statuses[name] = seen.statuses.get(name, 0) + 1
            await asyncio.sleep(0.05)
            continue
        told = "refused" if status == 402 else kind
        if part or began > seen.since:
            seen.times.setdefault(told, []).append(time.perf_counter() - began)
        seen.statuses[str(status)] = seen.statuses.get(str(status), 0) + 1
        if kind != "price" and status in (200, 201):
            found = json.loads(reply)
            key = json.dumps([body["terms"], body["epsilon"], body["conditions"]])
            seen.shown.setdefault(key, set()).add(json.dumps(found["answer"]))
            if status == 201:
                seen.new[key] = seen.new.get(key, 0) + 1
    session.close()


def recount(place: Place, seen: Seen) -> dict[str, int]:
    """The ledger's log against what was shown: overspent, lost, charged twice, shown with two values."""
    folder = place.folder / "indexes" / "clinic"
    ledger = opening.open_ledger(place.database or folder, folder)
    index = json.loads((folder / "index.json").read_text())
    data_set = index["id"] if "id" in index else index["meta"]["id"]
    with reading_ledger(ledger) as connection:
        family = family_of(connection, ledger, data_set)
        events = [json.loads(entry.body) for entry in chain.entries_of(connection, family)]
    charged: dict[str, int] = {}
    for event in events:
        if event["event"] == "charged":
            charged[event["key"]] = charged.get(event["key"], 0) + 1
    spent = sum(event["cost"] for event in events if event["event"] == "charged")
    most = max(event["most"] for event in events if event["event"] == "allotted")
    answered = {event["key"] for event in events if event["event"] == "answered"}
    report = auditing.audit(ledger, data_set)
    return {
        "audit passed": int(report.passed),
        "charges": len(charged),
        "answered": len(answered),
        "overspent": max(0, spent - most),
        "lost": max(0, len(seen.shown) - len(answered)),
        "charged twice": sum(times > 1 for times in charged.values()) + sum(n > 1 for n in seen.new.values()),
        "shown with two values": sum(len(values) > 1 for values in seen.shown.values()),
        "spent": spent,
        "allotted": most,
    }


def percentile(times: list[float], part: float) -> float:
    return 1000 * sorted(times)[min(len(times) - 1, int(part * len(times)))]


def memory_of(pid: int, what: str = "VmHWM") -> list[float]:
    """The greatest memory (VmHWM) or the present one (VmRSS) of a process and of each below it, MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = next((line.split()[1] for line in status.splitlines() if line.startswith(what)), "0")
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(own) / 1024, *(each for child in below for each in memory_of(int(child), what))]


def processor_seconds(pid: int) -> float:
    """Processor time of a process and of each below it, s."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(processor_seconds(int(child)) for child in below)


def load(place: Place, seconds: float, sessions: int, known: float, new: float) -> None:
    """Sessions that ask for some time: `known` stored questions and prices, and `new` questions, a second."""
    ready = place.start()
    stored, price = 0.65 * known / (known + new), known / (known + new)
    seen = Seen(since=time.perf_counter() + WARM)
    assert place.server is not None
    server, held = place.server.pid, list[float]()

    async def watch(until: float) -> None:
        """Memory of all processes together, a hundred times."""
        while time.monotonic() < until:
            await asyncio.sleep(seconds / 100)
            held.append(sum(memory_of(server, "VmRSS")))

    async def run() -> None:
        until = time.monotonic() + seconds + WARM
        pause = sessions / (known + new)
        asked = (ask_for(place, seen, until, each, (stored, price), pause=pause) for each in range(sessions))
        await asyncio.gather(watch(until), *asked)

    used = [processor_seconds(server), time.process_time()]
    asyncio.run(run())
    used = [processor_seconds(server) - used[0], time.process_time() - used[1]]
    replies = sum(seen.statuses.values())
    peak, tenth = max(memory_of(server)), max(1, len(held) // 10)
    place.kill(signal.SIGTERM)
    early, late = (statistics.median(part) for part in (held[tenth : 2 * tenth], held[-tenth:]))
    print(f"ready after {ready:.1f} s; at most {peak:.0f} MB a process; statuses {seen.statuses}")
    print(
        f"processor time of a reply: {1000 * used[0] / replies:.2f} ms of the server (without a database's), "
        f"{1000 * used[1] / replies:.2f} ms of the clients"
    )
    print(
        f"memory of all processes: {early:.0f} MB in the second tenth of the time, {late:.0f} MB in the last "
        f"({100 * (late / early - 1):+.1f} %)"
    )
    for kind, times in sorted(seen.times.items()):
        print(
            f"{kind:<7} {len(times):>7} replies, {len(times) / seconds:6.1f}/s, p50 {percentile(times, 0.5):.0f} ms, "
            f"p99 {percentile(times, 0.99):.0f} ms"
        )
    print(json.dumps(recount(place, seen)))


class Within:
    """The application in this process, without a server and its sockets."""

    def __init__(self, place: Place, postgres: Postgres | None) -> None:
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        self.place, self.postgres = place, postgres
        self.app = make_app(replace(place.settings(), slot=0.0))
        self.number = itertools.count()

    async def ask(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> tuple[int, bytes]:
        """Status and body of the reply; a token's where no header says who asks."""
        sent = b"" if body is None else json.dumps(body).encode()
        given = {"host": f"127.0.0.1:{self.place.port}"}
        given |= headers or {"authorization": f"Bearer {self.place.tokens[0]}"}
        given |= {"idempotency-key": f"cost-{next(self.number)}", "content-type": "application/json"}
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": "GET" if body is None else "POST", "scheme": "http",
            "path": path, "query_string": query.encode(), "client": ("127.0.0.1", 1), "state": {},
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }  # fmt: skip
        told: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": sent, "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        await self.app(scope, receive, send)
        return told[0]["status"], b"".join(each.get("body", b"") for each in told[1:])

    async def measure(
        self, path: str, body: Callable[[int], dict[str, Any] | None], requests: int = 40, **headers: str
    ) -> tuple[float, float]:
        """Milliseconds of processor time of one request, the least of five rounds, and of the database beside it."""

        async def once(each: int) -> None:
            status, _ = await self.ask(path, body(each), **headers)
            if status not in (200, 201):
                raise SystemExit(f"{path}: status {status}")

        for each in range(min(10, requests)):
            await once(each)
        rounds = []
        for part in range(1, 6):
            began, there = time.process_time(), seconds_of(self.postgres)
            for each in range(requests):
                await once(part * requests + each)
            rounds.append((time.process_time() - began, seconds_of(self.postgres) - there))
        own, database = (1000 * min(each) / requests for each in zip(*rounds, strict=True))
        return own, database


def cost(place: Place, postgres: Postgres | None) -> None:
    """Processor time of one request of each kind, with its statements and connections."""
    within = Within(place, postgres)
    counted = dict.fromkeys(("statements", "connections"), 0)

    def counting(kind: type, method: str, what: str) -> None:
        real = getattr(kind, method)

        def wrapped(*given: Any, **more: Any) -> Any:
            counted[what] += 1
            return real(*given, **more)

        setattr(kind, method, wrapped)

    counting(sa.Connection, "execute", "statements")
    counting(sa.Connection, "exec_driver_sql", "statements")
    counting(sa.Connection, "__init__", "connections")

    async def all_kinds() -> None:
        asked: dict[str, tuple[str, Callable[[int], dict[str, Any] | None]]] = {
            "who": ("/me", lambda each: None),
            "price": ("/questions:price", lambda each: place.question("common", NEW, age=f"{each % 100}")),
            "stored": ("/questions", lambda each: place.question("common", "0.5", age=f"0..{each % 10}")),
            "new": ("/questions", lambda each: place.question("common", f"{0.01 + each / 1e6:.6f}", age="1")),
        }
        for name, (path, body) in asked.items():
            own, database = await within.measure(f"/api/v1{path}", body)
            before = dict(counted)
            await within.ask(f"/api/v1{path}", body(360))
            more = ", ".join(f"{counted[each] - before[each]} {each}" for each in counted)
            print(f"{name:<7} {own:5.2f} ms of processor time, {database:5.2f} of the database; {more}")

    asyncio.run(all_kinds())


def grow(place: Place, answers: int, entries: int) -> str:
    """Make a project with so many answers, and a log of so many entries, from the one answer that there is; return an
    answer's identifier."""
    folder = place.folder / "indexes" / "clinic"
    ledger = opening.open_ledger(place.database or folder, folder)
    database = open_store(place.folder, place.database)
    with reading(database) as connection:
        asked = dict(connection.execute(sa.select(portal_tables.answers)).mappings().one())
        data_set = connection.scalar(sa.select(portal_tables.indexes.c.data_set))
    with families.changing(ledger, data_set) as change:
        stored = dict(change.connection.execute(sa.select(ledger_tables.answers)).mappings().one())
        events = [json.loads(entry.body) for entry in chain.entries_of(change.connection, change.family)][-2:]
        keys = [chain.digest(str(each)) for each in range((entries - change.known.entries) // 2)]
        change.connection.execute(ledger_tables.answers.insert(), [{**stored, "key": key} for key in keys])
        paying = families.accounts_of_charge(events[0], change.family, change.known.line(data_set))
        spent = ledger_tables.accounts.c.spent + len(keys) * stored["cost"]
        paid = ledger_tables.accounts.c.account.in_(paying)
        change.connection.execute(ledger_tables.accounts.update().where(paid).values(spent=spent))
        change.append({**event, "key": key} for key in keys for event in events)
    rows = [
        {
            **asked,
            "id": f"{each:032x}",
            "key": key,
            "time": (datetime.now(UTC) - timedelta(minutes=each)).isoformat(),
        }
        for each, key in enumerate(keys[: answers - 1])
    ]
    with writing(database) as connection:
        connection.execute(portal_tables.answers.insert(), rows)
    if postgres := place.database:
        with sa.create_engine(
            opening.parse_url(postgres), isolation_level="AUTOCOMMIT"
        ).connect() as connection:
            connection.exec_driver_sql("ANALYZE")  # as its autovacuum does after a minute
    return str(asked["id"])


PARTS = {
    "/": [""],
    "/projects/{project}/answers": ["", "?find=age", "?after=00000000000000000000000000001388"],
    "/projects/{project}/terms": ["?index={index}&find=com"],
    "/audit": ["", "?event=answered", "?find=nothing", "?before=50000"],
    "/api/v1/projects/{project}/answers": ["", "?after=00000000000000000000000000001388"],
    "/api/v1/log": ["", "?after=50000", "?after=99900"],
}
"""What is asked of a page that has parts, filters or something that has to be given."""
WHOLE = "/audit/log.ndjson"
"""The file of a whole log."""


def pages(place: Place, postgres: Postgres | None, answers: int, entries: int) -> None:
    """Processor time of every page that is read, for the person to whom it shows most."""
    within = Within(place, postgres)
    status, reply = asyncio.run(within.ask("/api/v1/questions", place.question("common", NEW, age="1")))
    assert status == 201, reply
    names = {"project": place.project, "index": place.index, "answer": grow(place, answers, entries)}
    portal: Any = within.app.app.state.portal  # type: ignore[attr-defined]
    who = {}
    with writing(portal.database) as connection:
        for login, roles in (("olga", ["auditor"]), ("adam", ["admin"])):
            row = people.admit(connection, "benchmark", login, login, None)
            assert row is not None
            people.set_house_roles(connection, row["id"], roles, "benchmark")
        for row in connection.execute(sa.select(portal_tables.people)):
            secret = sessions.begin(connection, portal.settings, row.id)
            who[row.name] = {"cookie": f"{portal.settings.cookie}={secret}"}
    paths = sorted(
        {
            route.path
            for router in routers()
            for route in router.routes
            if isinstance(route, APIRoute) and "GET" in route.methods and "{release}" not in route.path
        }
        - {WHOLE}
    )

    async def figures() -> list[tuple[str, str, float, float]]:
        found = []
        for path in paths:
            for more in PARTS.get(path, [""]):
                asked = (path + more).format(name="portal.css", **names)
                told = {}
                for name, header in who.items():
                    if (await within.ask(asked, **header))[0] == 200:
                        told[name] = await within.measure(asked, lambda each: None, 1, **header)
                if told:
                    name = max(told, key=lambda each: sum(told[each]))
                    told[name] = await within.measure(asked, lambda each: None, 4, **who[name])
                    found.append((path + more, name, *told[name]))
                    print(
                        f"{path + more:<60} {name:<6} {told[name][0]:7.2f} {told[name][1]:7.2f}", flush=True
                    )
        return found

    rows = asyncio.run(figures())
    kinds = {
        "rita0": "lead",
        "carl": "custodian",
        "anna": "approver",
        "olga": "auditor",
        "adam": "administrator",
    }
    began = time.process_time()
    report = auditing.audit(portal.indexes.session(place.index).ledger, portal.indexes.rows()[0]["data_set"])
    whole = time.process_time() - began
    assert report.passed, report
    kind = "postgresql" if postgres else "sqlite"
    cells = [(f"`{path}`", kinds[name], f"{own:.1f}", f"{more:.1f}") for path, name, own, more in rows]
    text = (
        f"A project with {answers:,} answers, a ledger in {kind} with {report.entries:,} entries. Milliseconds of "
        "processor time of one reply in this process, the least of five rounds of four, and of the database's "
        "processes; of those who may read a page the one for whom it costs most. A whole audit, which somebody asks "
        f"for, takes {1000 * whole:,.0f} ms.\n\n"
        + table(["Page", "Who", "Portal, ms", "Database, ms"], cells)
    )
    flag = " --postgres" if postgres else ""
    name = f"portal-pages-{kind}"
    write_page(name, f"Pages of the portal, {kind}", f"python benchmarks/portal_load.py pages{flag}", text)


def seconds_of(postgres: Postgres | None) -> float:
    """Processor time of a server's processes, those that ended too."""
    if postgres is None:
        return 0.0
    main = (postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[0]
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it ended meanwhile
            continue
        if path.parent.name == main:
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == main:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def kill(place: Place, times: int, sessions: int, postgres: Any) -> None:
    """The server, and every other time the database, killed at random moments under load."""
    seen = Seen()
    dice = random.Random(7)
    for each in range(times):
        place.start()

        async def run(part: int = each, wanted: int = dice.randrange(1, 12)) -> None:
            """Kill at a random moment after some replies, so that on any machine there are some."""
            until, before = time.monotonic() + 40, len(seen.shown)
            tasks = [
                asyncio.create_task(ask_for(place, seen, until, number, (0.2, 0.2), part))
                for number in range(sessions)
            ]
            while time.monotonic() < until and len(seen.shown) < before + wanted:
                await asyncio.sleep(0.005)
            await asyncio.sleep(dice.random() * 0.2)
            if postgres is not None and part % 2:
                postgres.kill()
                await asyncio.sleep(dice.random() * 0.2)
            place.kill()
            await asyncio.sleep(0.1)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(run())
        if postgres is not None and each % 2:
            postgres.start()
    place.start()
    wrong = ask_again(place, seen)
    place.kill(signal.SIGTERM)
    print(f"{wrong} shown answers that are not stored, cost again or have another value now")
    print(f"{times} kills; statuses {seen.statuses}; {len(seen.shown)} questions whose answer was shown")
    print(json.dumps(recount(place, seen)))


def ask_again(place: Place, seen: Seen) -> int:
    """Ask everything that was shown once more: it must be stored, at no cost, with the value that was shown."""
    wrong = 0
    headers = {"authorization": f"Bearer {place.tokens[0]}"}
    with httpx.Client(base_url=f"{place.url}/api/v1", headers=headers, timeout=60) as client:
        for number, (asked, values) in enumerate(seen.shown.items()):
            terms, epsilon, conditions = json.loads(asked)
            body = place.question(terms, epsilon, **conditions)
            reply = client.post(
                "/questions", json=body, headers={"idempotency-key": f"again {number}".replace(" ", "-")}
            )
            wrong += reply.status_code != 200 or {json.dumps(reply.json()["answer"])} != values
    return wrong


def timing(place: Place, replies: int) -> None:
    """New questions with counts of 1 and of 100,000, one at a time."""
    place.start()
    times: dict[str, list[float]] = {"rare": [], "common": []}
    headers = {"authorization": f"Bearer {place.tokens[0]}"}
    with httpx.Client(base_url=f"{place.url}/api/v1", headers=headers, timeout=30) as client:
        for each in range(replies):
            terms = ("rare", "common")[random.Random(each).randrange(2)]
            body = place.question(terms, f"{0.01 + each / 1e6:.6f}")
            began = time.perf_counter()
            reply = client.post("/questions", json=body, headers={"idempotency-key": f"t{each}"})
            if reply.status_code == 201 and each >= 50:
                times[terms].append(time.perf_counter() - began)
    place.kill(signal.SIGTERM)
    ranks = sorted((value, terms) for terms, found in times.items() for value in found)
    above = sum(place for place, (_, terms) in enumerate(ranks) if terms == "common")
    many, few = len(times["common"]), len(times["rare"])
    area = (above - many * (many - 1) / 2) / (many * few)
    for terms, found in times.items():
        print(f"{terms:<7} {len(found)} replies, median {1000 * statistics.median(found):.2f} ms")
    print(f"AUC {area:.4f}")


class Postgres:
    """A server that can be killed and started again."""

    def __init__(self, stack: ExitStack) -> None:
        self.url = stack.enter_context(running_postgres(connections=100))
        self.folder = Path(self.url.split("unix_sock=")[1]).parent

    def kill(self) -> None:
        """Kill the postmaster; its children end with it."""
        os.kill(int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    def start(self) -> None:
        """Start it on the same data, once its children have ended; it recovers what was committed."""
        other = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c max_connections=100"
        data, log = str(self.folder / "data"), str(self.folder / "log")
        command = [binary("pg_ctl"), "-D", data, "-w", "-o", options, "-l", log, "start"]
        until = time.monotonic() + 60
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder, **other}
        while subprocess.run(command, check=False, **quiet).returncode:
            if time.monotonic() > until:
                raise SystemExit("PostgreSQL does not start again")
            time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["load", "kill", "timing", "cost", "pages"])
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--replies", type=int, default=10_000)
    parser.add_argument("--known", type=float, default=300, help="Stored questions and prices a second.")
    parser.add_argument("--new", type=float, default=60, help="New questions a second.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--patients", type=int, default=100_000)
    parser.add_argument("--answers", type=int, default=10_000, help="Answers of the project, for `pages`.")
    parser.add_argument(
        "--entries", type=int, default=100_000, help="Entries of the ledger's log, for `pages`."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        os.environ["LEEWARD_STATE"] = f"{folder}/state"
        postgres = Postgres(stack) if options.postgres else None
        # the twenty stored ones at 0.5, and of new ones a tenth more than may be spent
        each = (options.known + options.new) * options.seconds / options.sessions
        asked = options.new * options.seconds * (0.001 + each / 2e6)
        allotted = round(10 + 0.9 * asked, 2) if options.what == "load" else 900.0
        number = {"load": options.sessions, "kill": 10, "timing": 1, "cost": 1, "pages": 1}[options.what]
        place = set_up(
            Path(folder) / "portal", postgres.url if postgres else None, number, allotted, options.patients,
            1 if options.what == "timing" else options.workers,
        )  # fmt: skip
        try:
            if options.what == "load":
                load(place, options.seconds, options.sessions, options.known, options.new)
            elif options.what == "kill":
                kill(place, options.times, number, postgres)
            elif options.what == "cost":
                cost(place, postgres)
            elif options.what == "pages":
                pages(place, postgres, options.answers, options.entries)
            else:
                timing(place, options.replies)
        finally:
            if place.server is not None and place.server.poll() is None:
                place.kill()


if __name__ == "__main__":
    main()
