"""100 clients of a ledger on PostgreSQL with 50 connections, and a server that is killed under them.

    python benchmarks/ledger_soak.py [--clients 100] [--questions 5] [--kills 0,20] [--runs 1] [--how kill|immediate]

Starts a server of its own in a folder that goes away. First run:
every client asks questions of its own and some that all of them ask, for a budget that pays for a part. Second run: the
same with the server killed (SIGKILL of all its processes, or `pg_ctl -m immediate`) and started again; clients ask
again after an error. At last the server is stopped (SIGSTOP) and asked: by a new connection, by an idle one, and in the
middle of a transaction. Prints how many clients got an error in place of an answer ("the budget is spent" is an
answer), and what was overspent and paid twice, by recount of the log; fails where one of them is not 0. Each run prints
its figures when it ends, and its progress every ten seconds. Every client is a process of its own, as people's are; one
that got an error waits a moment of random length before it asks again, longer each time, for a hundred processes that
ask ten times a second a server that is starting leave it no processor to start with.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from leeward.queries.ledger import auditing, budgets, families, opening, spending
from leeward.queries.ledger.opening import LedgerUnreachable
from leeward.queries.ledger.spending import BudgetSpent, Charge
from leeward.queries.privacy.accounting import Budget, micro

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres_fixture import binary

PRICE = 10_000
PATIENCE = 180
"""Seconds for which a client asks one question again."""
LONGEST = 3.0
"""Seconds that a client waits at most before it asks again."""


class Server:
    """A PostgreSQL server on a socket, in a folder of its own."""

    def __init__(self, connections: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="leeward-"))
        self.as_user = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.as_user:
            shutil.chown(self.folder, "nobody")
        sockets = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}'"
        self.options = f"{sockets} -c max_connections={connections}"
        self.run("initdb", "-D", self.data, "-U", "custodian", "-A", "trust", "-E", "UTF8", "--locale=C")
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    @property
    def url(self) -> str:
        return f"postgresql://custodian@/postgres?unix_sock={self.folder}/.s.PGSQL.5432"

    def run(self, program: str, *arguments: str, check: bool = True) -> None:
        subprocess.run(
            [binary(program), *arguments], check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL, cwd=self.folder, **self.as_user,
        )  # fmt: skip

    def start(self) -> None:
        for last in (False,) * 30 + (True,):  # the memory of killed processes is free after a moment
            try:
                self.run(
                    "pg_ctl",
                    "-D",
                    self.data,
                    "-w",
                    "-o",
                    self.options,
                    "-l",
                    str(self.folder / "log"),
                    "start",
                )
                return
            except subprocess.CalledProcessError:
                if last:
                    raise
                time.sleep(1)

    def kill(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop", check=False)

    def processes(self) -> list[int]:
        """The server's first process, and its others."""
        first = (Path(self.data) / "postmaster.pid").read_text(encoding="utf-8").split()[0]
        others = subprocess.run(
            ["pgrep", "-P", first], capture_output=True, text=True, check=False
        ).stdout.split()
        return [int(first), *map(int, others)]

    def signal(self, number: int) -> None:
        """Send a signal to all of them."""
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def kill_hard(self) -> None:
        """SIGKILL; returns when the server can be started again."""
        self.signal(signal.SIGKILL)
        time.sleep(0.2)
        (Path(self.data) / "postmaster.pid").unlink(missing_ok=True)


def client(url: str, data_set: str, number: int, questions: int, again: bool, pipe: int) -> None:
    """Ask; one line of JSON: what this client paid by question, its errors by kind, its questions without an answer."""
    unanswered = 0
    paid: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for i in range(questions):
        key = f"all clients, question {i}" if i % 3 == 2 else f"client {number}, question {i}"
        until, wait = time.monotonic() + PATIENCE, 0.25
        while True:
            try:
                ledger = opening.open_ledger(url)
                (found,) = spending.reserve(
                    ledger, data_set, "rush", [Charge(key=key, question=key, epsilon=PRICE)]
                )
                if found.payload is None:
                    spending.store(ledger, data_set, {key: "1"})
                paid[key] += found.cost > 0
                opening.release(ledger)
                break
            except BudgetSpent:
                errors["budget spent"] += 1
                break
            except LedgerUnreachable as error:
                errors[str(error).partition("(")[2].partition(")")[0] or "unreachable"] += 1
                if not again or time.monotonic() > until:
                    unanswered += 1
                    break
                time.sleep(wait * (0.5 + random.random()))
                wait = min(2 * wait, LONGEST)
    os.write(pipe, (json.dumps([paid, errors, unanswered]) + "\n").encode())


def silence(server: Server) -> dict[str, object]:
    """Seconds until an error where the server is stopped (SIGSTOP)."""
    found: dict[str, object] = {}
    begun: list[float] = []
    """When the server was last silent from."""

    def ask(ledger: opening.Ledger) -> None:
        with opening.reading(ledger) as connection:
            connection.exec_driver_sql("SELECT 1")

    def timed(what: str, work: Callable[[], object]) -> None:
        begun.append(time.monotonic())
        try:
            work()
            found[what] = "an answer"
        except LedgerUnreachable:
            found[what] = round(time.monotonic() - begun[-1], 1)

    ledger = opening.open_ledger(server.url)
    ask(ledger)
    server.signal(signal.SIGSTOP)
    timed("idle connection, s", lambda: ask(ledger))
    opening.release(ledger)
    timed("new connection, s", lambda: opening.open_ledger(server.url))
    server.signal(signal.SIGCONT)

    def in_the_middle() -> None:
        with opening.writing(ledger) as connection:
            connection.exec_driver_sql("SELECT 1")
            server.signal(signal.SIGSTOP)
            begun.append(time.monotonic())
            connection.exec_driver_sql("SELECT 1")

    timed("in a transaction, s", in_the_middle)
    server.signal(signal.SIGCONT)
    families.close(ledger)
    return found


def rush(
    server: Server, data_set: str, clients: int, questions: int, kills: int, how: str
) -> dict[str, object]:
    """All clients at once, the server killed meanwhile."""
    ledger = opening.make_ledger(server.url)
    afforded = clients * questions // 2
    budget = Budget(epsilon=afforded * PRICE)
    budgets.register(ledger, budgets.DataSet(id=data_set, budget=budget, default_allotment="all"))
    families.close(ledger)
    begun = time.monotonic()
    read, write = os.pipe()
    children = []
    gc.freeze()  # or each child copies what the collector touches
    for number in range(clients):
        child = os.fork()
        if child == 0:
            random.seed(number)
            try:
                client(server.url, data_set, number, questions, kills > 0, write)
                os._exit(0)
            except BaseException as error:  # a client that ends otherwise is a fault
                traceback.print_exc()
                os.write(
                    write, (json.dumps([{}, {f"fault {type(error).__name__}": 1}, questions]) + "\n").encode()
                )
                os._exit(1)
        children.append(child)
    os.close(write)
    told: list[list[Any]] = []
    killed = [0, 0]

    def killing() -> None:
        for _ in range(kills):
            time.sleep(0.5)
            killed[0] += 1
            killed[1] += len(told) < clients
            if how == "kill":
                server.kill_hard()
            else:
                server.kill()
            server.start()

    def saying() -> None:
        while not over.wait(10):
            seconds = time.monotonic() - begun
            print(
                f"{seconds:.0f} s: {len(told)} clients done, {killed[0]} kills", file=sys.stderr, flush=True
            )

    over = threading.Event()
    killer, teller = threading.Thread(target=killing), threading.Thread(target=saying, daemon=True)
    killer.start()
    teller.start()
    with os.fdopen(read) as lines:
        told += map(json.loads, lines)
    over.set()
    faults = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)
    killer.join()
    paid, errors = Counter[str](), Counter[str]()
    for one, other, _ in told:
        paid.update(one)
        errors.update(other)
    unanswered = [number for _, _, number in told if number]
    ledger = opening.open_ledger(server.url)
    found = auditing.audit(ledger, data_set)
    with opening.reading(ledger) as connection:
        bodies = connection.exec_driver_sql("SELECT body FROM log").scalars().all()
    charged = Counter(
        event["key"] for event in map(json.loads, bodies)
        if event["event"] == "charged" and event["data_set"] == data_set
    )  # fmt: skip
    families.close(ledger)
    return {
        "clients": clients, "kills": kills, "kills while clients asked": killed[1],
        "seconds": round(time.monotonic() - begun, 1), "errors": dict(errors),
        "clients that ended otherwise": faults, "clients with an error for an answer": len(unanswered),
        "questions without an answer": sum(unanswered),
        "charged": charged.total(), "afforded": afforded, "overspent": max(0, charged.total() - afforded),
        "paid twice": sum(n - 1 for n in charged.values()) + sum(n - 1 for n in paid.values() if n > 1),
        "spent shown": found.spent, "spent by the log": charged.total() * PRICE / micro(1), "audit": found.passed,
    }  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--clients", type=int, default=100)
    arguments.add_argument("--questions", type=int, default=5)
    arguments.add_argument("--kills", default="0,20", help="how many, for each rush")
    arguments.add_argument("--runs", type=int, default=1)
    arguments.add_argument("--how", choices=["kill", "immediate"], default="kill")
    given = arguments.parse_args()
    logging.getLogger("leeward.ledger").setLevel(
        logging.ERROR
    )  # a hundred clients that wait say so a hundred times
    os.environ["LEEWARD_STATE"] = tempfile.mkdtemp(prefix="leeward-state-")
    server, runs = Server(connections=50), []
    try:
        for kills in map(int, given.kills.split(",")):
            for number in range(given.runs):
                runs.append(
                    rush(server, f"run {number} of {kills}", given.clients, given.questions, kills, given.how)
                )
                print(json.dumps(runs[-1], indent=1), flush=True)
        print(json.dumps(silence(server)), flush=True)
    finally:
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)
    for each in runs:
        if (
            each["overspent"]
            or each["paid twice"]
            or each["clients that ended otherwise"]
            or not each["audit"]
        ):
            sys.exit("the ledger failed")
    if any(each["clients with an error for an answer"] for each in runs):
        sys.exit("clients got an error in place of an answer")


if __name__ == "__main__":
    main()
