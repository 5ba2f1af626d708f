"""The fuzzer: `python -m tests.fuzz --inputs 20000 --seed 1`; exit status 1 when there is a fault.

Inputs run in child processes, some hundred in each, so that one that aborts is found and named by its number. An input
is made again with `--only ENTRY --first NUMBER --inputs 1` and the same seed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NoReturn

A_CHILD = 1000
"""Inputs that one process takes."""

SECONDS = 30
"""Processor time after which an input hangs, however busy the machine is."""

WAITING = 300
"""Seconds by the clock after which an input hangs that does nothing but wait."""


MEMORY = 4 * 2**30
"""Bytes that a child may have: an input that asks for more ends, not the machine."""


class Hang(BaseException):
    """An input took too long."""


def one(entry: str, number: int, seed: int, folder: Path) -> str:
    """Feed input `number`; returns what came of it."""
    from tests.fuzz.counting import LostRows
    from tests.fuzz.entries import ENTRIES

    from leeward.errors import LeewardError

    def over(signal_number: int, frame: FrameType | None) -> NoReturn:
        raise Hang

    place = folder / f"{number}"
    place.mkdir()
    signal.signal(signal.SIGALRM, over)
    signal.signal(signal.SIGPROF, over)
    signal.alarm(WAITING)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return "refused" if ENTRIES[entry](Random(f"{seed} {entry} {number}"), place) else "ok"
    except LeewardError as error:
        return (
            "refused"
            if str(error).strip() and "\n" not in str(error)
            else "fault: a message over several lines"
        )
    except Hang:
        return "fault: hangs"
    except LostRows as error:
        return f"fault: lost rows ({error})"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = str(error) if isinstance(error, AssertionError) else ""
        return f"fault: {type(error).__name__} in {Path(where.filename).name}, line {where.lineno} {text}".strip()
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        shutil.rmtree(place, ignore_errors=True)


def child(seed: int, jobs: list[tuple[str, int]], out: Path) -> None:
    """Feed the inputs one after the other; what came of each is a line of `out` before the next begins."""
    from tests.fuzz.counting import COUNTED

    with (
        tempfile.TemporaryDirectory(prefix="leeward-fuzz-") as folder,
        out.open("a", encoding="utf-8") as file,
    ):
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        for entry, number in jobs:
            COUNTED[0] = 0
            for name in ("LEEWARD_HOME", "LEEWARD_STATE"):
                os.environ[name] = str(Path(folder) / str(number) / name.lower())
            outcome = one(entry, number, seed, Path(folder))
            file.write(json.dumps([entry, number, outcome, COUNTED[0]]) + "\n")
            file.flush()


def run(inputs: int, seed: int, first: int, only: list[str]) -> dict[str, Any]:
    """Feed `inputs` inputs in child processes; what came of them."""
    from tests.fuzz.entries import ENTRIES

    names = only or list(ENTRIES)
    jobs = [(names[i % len(names)], first + i // len(names)) for i in range(inputs)]
    tally: collections.Counter[str] = collections.Counter()
    counted: collections.Counter[str] = collections.Counter()
    by_entry: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in names}
    faults: dict[str, list[str]] = {}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leeward-fuzz-") as folder:
        todo = jobs
        while todo:
            batch, todo = todo[:A_CHILD], todo[A_CHILD:]
            out = Path(folder) / "outcomes"
            out.unlink(missing_ok=True)
            ran = subprocess.run(
                [sys.executable, "-m", "tests.fuzz", "--child", json.dumps([seed, batch]), str(out)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=WAITING * A_CHILD,
                env={**os.environ, "PYTHONFAULTHANDLER": "0"},
            )  # fmt: skip
            lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
            for entry, number, outcome, rows in map(json.loads, lines):
                counted["rows counted"] += rows
                counted["inputs whose rows were counted"] += rows > 0
                kind = outcome.split(":")[0]
                tally[kind] += 1
                by_entry[entry][kind] += 1
                if kind == "fault":
                    faults.setdefault(f"{entry}: {outcome}", []).append(f"{entry} {number}")
            if len(lines) < len(batch):  # the process ended in the middle
                entry, number = batch[len(lines)]
                tally["abort"] += 1
                faults.setdefault(f"{entry}: aborted with {ran.returncode}", []).append(f"{entry} {number}")
                todo = batch[len(lines) + 1 :] + todo
    return {
        "inputs": sum(tally.values()),
        "seed": seed,
        **tally,
        **counted,
        "seconds": round(time.monotonic() - begun),
        "entries": by_entry,
        "faults": faults,
    }


def main() -> int:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--child", nargs=2)
    asked = parser.parse_args()
    if asked.child:
        seed, jobs = json.loads(asked.child[0])
        child(seed, [(entry, number) for entry, number in jobs], Path(asked.child[1]))
        return 0
    found = run(asked.inputs, asked.seed, asked.first, asked.only)
    found |= {
        "entries": {
            name: " ".join(f"{n} {kind}" for kind, n in each.items())
            for name, each in found["entries"].items()
        },
        "faults": {kind: [len(at), at[0]] for kind, at in found["faults"].items()},
    }
    print(json.dumps(found, indent=1))
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
