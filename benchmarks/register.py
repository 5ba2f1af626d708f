"""The register of releases: overlaps of a new release with many earlier ones, and releases that are killed.

    python benchmarks/register.py [--releases 200] [--patients 1000000] [--people 3000000] [--kills 100] [--json FILE]

Each release has so many of the people, drawn by chance. The overlaps of one more are counted as `protect` counts them,
in the transaction that enters it, and compared with NumPy's for three releases. `--kills`: tests/register/killed.py,
each child killed at a step or after a moment drawn by chance; what is there and not counted is forgotten.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from common import commit, machine
from leeward.queries.ledger.opening import reading
from leeward.register import entering, sketch
from leeward.register.store import Facts, Register, changing, open_register, read_sketch, read_state

TREE = Path(__file__).resolve().parents[1]


def fill(register: Register, releases: int, patients: int, people: np.ndarray[Any, Any]) -> None:
    """Enter releases without comparing them, which is what is timed after."""
    random = np.random.default_rng(1)
    for _ in range(releases):
        made = np.sort(random.choice(people, patients, replace=False))
        facts = entering.with_sketch(Facts(method="visits", k=5, reason="benchmark"), register, made)
        with changing(register) as change:
            change.keep(sketch.to_bytes(made))
            change.append("intended", id=facts.id, facts=asdict(facts), compared=[])


def seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def overlaps(folder: Path, releases: int, patients: int, people: int) -> dict[str, Any]:
    register = open_register(str(folder / "register.db"), b"k" * 32, folder / "register.secret")
    random = np.random.default_rng(2)
    everybody = np.unique(random.integers(0, 2**64, people, dtype=np.uint64))
    fill(register, releases, patients, everybody)
    new = np.sort(random.choice(everybody, patients, replace=False))
    sketch.count_common(new[:10], new[:10])  # compiled
    begun, used = time.perf_counter(), seconds()
    entered = entering.enter(register, Facts(method="visits", k=5, reason="benchmark"), new)
    found = {"elapsed": time.perf_counter() - begun, "cpu": seconds() - used}
    state = read_state(register)
    wrong = 0
    with reading(register.database) as connection:
        for decision in entered.decisions[:: max(1, releases // 3)]:
            there = read_sketch(connection, replace(state.releases[decision.pair.old.facts.id].facts))
            wrong += decision.pair.common != len(np.intersect1d(new, there, assume_unique=True))
    size = sum(each.stat().st_size for each in folder.glob("register.db*"))
    return {"compared": len(entered.decisions), "wrong": wrong, "bytes": size, **found}


def kills(folder: Path, number: int) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.register.killed", folder, str(number)],
        cwd=TREE, capture_output=True, text=True, check=True,
        env={**os.environ, "LEEWARD_STATE": str(folder / "state"), "LEEWARD_HOUSE": ""},
    )  # fmt: skip
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return {
        "killed": number,
        "released": sum(each.get("there", False) for each in found),
        "forgotten": sum(
            each.get("there", False) and each["status"] not in ("intended", "released") for each in found
        ),
        "stopped": sum("error" in each or "failed" in each or each["audit"] is False for each in found),
        "known": found[-1]["known"],
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--patients", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=3_000_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found: dict[str, Any] = {"commit": commit(), "machine": machine()}
    if asked.releases:
        with tempfile.TemporaryDirectory() as folder:
            found["overlaps"] = overlaps(Path(folder), asked.releases, asked.patients, asked.people)
    if asked.kills:
        with tempfile.TemporaryDirectory() as folder:
            found["kills"] = kills(Path(folder), asked.kills)
            states = found["kills"].pop("known")
            found["kills"]["states"] = {state: states.count(state) for state in sorted(set(states))}
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if asked.json:
        asked.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
