"""Releases in children that are killed on their way (SIGKILL); run by test_killed and benchmarks/register_kills.py.

`python -m tests.register.killed FOLDER KILLS`: child after child releases a cohort of its own into FOLDER and is killed
at a step, the first ones at those of `STEPS`, the others after a moment drawn by chance. After each, another process
asks the register, and a line of JSON says what it found: whether the release has its place, what the register says of
it, whether the audit passed.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy.dialects.sqlite  # noqa: F401  # what children need is loaded once, before they are made
from tests.cli import fake
from tests.waiting import wait_until

import leeward as lw
import leeward.queries.answer.api
import leeward.runs.explore
from leeward.queries.ledger import journal
from leeward.register import entering, store
from leeward.register import head as heads
from leeward.release import folder as folders
from leeward.report.writing import render  # noqa: F401
from leeward.runs import protect, registering

STEPS: tuple[tuple[Any, str, str], ...] = (
    (entering, "enter", "before"),
    (store, "changing", "before"),
    (journal, "record", "before"),
    (journal, "record", "after"),
    (heads, "remember", "before"),
    (heads, "remember", "after"),
    (entering, "enter", "after"),
    (entering, "settle", "before"),
    (folders, "flush", "before"),
    (folders, "finish", "before"),
    (folders, "finish", "after"),
    (entering, "publish", "before"),
    (entering, "publish", "after"),
)
MOST_SECONDS = 0.6
"""Processor time, in seconds, after which a child of the others is killed at most."""

PATIENTS = 40


def killing(module: Any, name: str, when: str) -> None:
    """Replace a step by one that kills this process."""
    true: Callable[..., Any] = getattr(module, name)

    def step(*args: Any, **kwargs: Any) -> Any:
        if when == "after":
            true(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    for each in (module, entering, protect, registering):
        if getattr(each, name, None) is true:
            setattr(each, name, step)


def release(folder: Path, number: int) -> None:
    """A release of patients of its own: disjoint from all others, so that no reason is needed."""
    people = [f"canary-{number}-{each}" for each in range(PATIENTS)]
    rows = {"patient": people * 2, "code": ["401.9"] * PATIENTS + ["250.00"] * PATIENTS}
    lw.protect(
        lw.read(pl.DataFrame(rows)),
        fake.Counting(k=5),
        folder / f"release{number}",
        register=str(folder / "register.db"),
        tell=lambda text: None,
    )


def killed(folder: Path, number: int) -> None:
    if number < len(STEPS):
        killing(*STEPS[number])
    else:
        alive = MOST_SECONDS * secrets.randbelow(1000) / 1000 + 0.001
        signal.setitimer(signal.ITIMER_PROF, alive)  # SIGPROF ends a process like SIGKILL
    release(folder, number)


def say(found: dict[str, Any]) -> None:
    os.write(1, (json.dumps(found) + "\n").encode())


def ask(folder: Path, number: int) -> None:
    """What the register says after a kill, and whether the next one can be entered."""
    register = str(folder / "register.db")
    there = (folder / f"release{number}").is_dir()
    said: dict[str, Any] = {"number": number, "there": there, "status": None, "audit": None}
    if (folder / "register.db").is_file():
        try:
            found = lw.releases.audit(register=register)
            said["audit"] = found["passed"]
            rows = lw.releases.list(register=register).to_dicts()
            said["known"] = [row["status"] for row in rows]
            entry = folder / f"release{number}" / "custody" / "register.json"
            if there:
                own = json.loads(entry.read_text())["facts"]["id"]
                said["status"] = next((row["status"] for row in rows if row["id"] == own), None)
        except lw.LeewardError as error:
            said["error"] = str(error)
    say(said)


def apart(work: Callable[[Path, int], None], folder: Path, number: int) -> int:
    """Do something in a child; returns how it ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work(folder, number)
        except lw.LeewardError as error:
            say({"number": number, "failed": str(error)})
        finally:
            os._exit(0)
    ended = [0, 0]

    def happened() -> int:
        ended[:] = os.waitpid(pid, os.WNOHANG)
        return ended[0]

    wait_until(happened, f"child {number} ended")
    return ended[1]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    fake.install(pytest.MonkeyPatch())
    fake.Counting(k=5)  # loads pydantic
    for each in range(int(sys.argv[2])):
        ended = apart(killed, place, each)
        if each < len(STEPS) and not os.WIFSIGNALED(ended):
            sys.exit(f"{STEPS[each]} killed nobody")
        apart(ask, place, each)
    apart(release, place, 10_000)  # and it goes on
    apart(ask, place, 10_000)
