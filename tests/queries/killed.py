"""Asks questions in a child that is killed on its way (SIGKILL); run by test_audits.

`python killed.py INDEX KILLS SHOWN [planted]`: each child appends what it shows to the file SHOWN, a line an answer,
after it got it. Some children are killed at a named step, the others at a random moment. `planted` shows an answer
before it is stored, which the test has to catch.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.queries.made import question

from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import open_session
from leeward.queries.index.counts import Index
from leeward.queries.ledger import chain, families, opening, spending
from leeward.queries.ledger.spending import BudgetSpent
from leeward.queries.privacy import mechanism

STEPS = (
    (spending, "reserve", "after"),
    (mechanism, "draw", "after"),
    (Index, "count", "before"),
    (Index, "count", "after"),
    (spending, "store", "before"),
    (chain, "append", "before"),
    (chain, "append", "after"),
    (spending, "store", "after"),
    (families, "writing", "before"),
)
LONGEST = 0.2
"""Seconds of processor time that a child lives at most: some answers, so that it dies anywhere between them, however
busy the machine is."""

PATIENCE = 30
"""Seconds after which a child is killed that uses no processor time."""


def killing(module: Any, name: str, when: str, calls: int) -> None:
    """Replace a step by one that kills this process, at its `calls`-th call."""
    true = getattr(module, name)
    left = [calls]

    def step(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] <= 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = true(*args, **kwargs)
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(module, name, step)


def show(file: int, key: str, values: Any) -> None:
    os.write(file, (json.dumps([key, values]) + "\n").encode())


def ask_until_killed(index: str, shown: str, child: int, planted: bool) -> None:
    """Questions of a child's own and some that all children ask, each shown as soon as it is answered."""
    session = open_session(index)
    file = os.open(shown, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if planted:
        true = spending.store

        def store(
            ledger: opening.Ledger, data_set: str, payloads: dict[str, str], **more: bool
        ) -> dict[str, str]:
            for key, payload in payloads.items():
                show(file, key, json.loads(payload)["values"])
            return true(ledger, data_set, payloads, **more)

        spending.store = store
    number = 0
    while True:
        number += 1
        micros = 1000 + (number // 2 if number % 2 else 10_000 + 1000 * child + number)
        asked = question("sore throat & fever", micros / 1e6)
        try:
            (found,) = answer_all(session, [asked], "ann")
        except BudgetSpent:
            os.kill(os.getpid(), signal.SIGKILL)  # nothing more can be asked
        else:
            show(file, found.plan.key, list(found.values))


def main(index: str, kills: int, shown: str, planted: bool) -> None:
    for child in range(kills):
        pid = os.fork()
        if pid == 0:
            try:
                alive = LONGEST * secrets.randbelow(1000) / 1000 if child >= len(STEPS) else 2 * LONGEST
                signal.setitimer(signal.ITIMER_PROF, alive + 0.001)  # SIGPROF ends a process like SIGKILL
                if child < len(STEPS):
                    module, name, when = STEPS[child]
                    killing(module, name, when, calls=3)
                ask_until_killed(index, shown, child, planted)
            finally:
                os._exit(1)  # a child that was not killed
        last = time.monotonic() + PATIENCE
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > last:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        status = ended[1]
        if os.WTERMSIG(status) not in (signal.SIGKILL, signal.SIGPROF):
            sys.exit(f"child {child} was not killed but ended with status {status}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), str(Path(sys.argv[3])), "planted" in sys.argv)
