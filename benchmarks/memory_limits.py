"""Commands on a large cohort with little memory: done, or refused in a sentence, whatever the limit is called.

    python benchmarks/memory_limits.py --store FOLDER [--patients 500000] [--only link,verify] [--seconds 900]

Each run is a process with RLIMIT_DATA or RLIMIT_AS of .6 to 2 GB. It may end with exit status 0, or with 2 and one
sentence that names memory. Counted as faults: an end by a signal (an abort of a library's allocator), a run that is not
over after `--seconds` of the clock, a verdict on the release (4), any other end, and a folder that is left aside.
FOLDER keeps the cohort and its release. Exits with 1 where there is a fault.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from common import commit, leeward, machine

READ = ["--patient", "patient", "--code", "code", "--vocabulary", "icd9"]
COHORT, RELEASE = "cohort.parquet", "release"

COMMANDS = {
    "profile": ["profile", COHORT, *READ],
    "split": ["split", COHORT, "--patient", "patient", "--parts", "4", "-o", "OUT"],
    "disassociate": ["disassociate", COHORT, *READ, "--k", "5", "--m", "2", "-o", "OUT"],
    "visits": ["visits", COHORT, *READ, "--k", "5", "-o", "OUT"],
    "index": ["index", COHORT, *READ, "--epsilon-total", "5", "-o", "OUT"],
    "constrain": ["constrain", COHORT, *READ, "--k", "5", "--m", "2", "--policy", "hierarchy:1", "-o", "OUT"],
    "link": ["link", COHORT, *READ, "--k", "5", "-o", "OUT"],
    "verify": ["verify", RELEASE],
    "estimate": ["estimate", f"{RELEASE}/share", "403.00,403.01"],
}

LIMITS = {
    "profile": [("data", 0.6), ("data", 1.0), ("as", 1.5)],
    "split": [("data", 0.6), ("data", 1.0), ("as", 1.0)],
    "disassociate": [("data", 0.9), ("data", 1.0), ("data", 1.2), ("as", 2.0)],
    "visits": [("data", 0.8), ("data", 1.5)],
    "index": [("data", 0.6), ("data", 1.0), ("data", 2.0)],
    "constrain": [("data", 0.9), ("data", 1.0), ("data", 1.2), ("as", 2.0)],
    "link": [("data", 1.0), ("data", 1.5)],
    "verify": [("data", 0.7), ("data", 0.75), ("data", 0.8), ("data", 0.9), ("data", 0.95), ("data", 1.25)],
    "estimate": [("data", 0.6), ("data", 0.8), ("data", 1.0)],
}
"""Command -> limits in GB: 30 runs."""

KINDS = {"data": resource.RLIMIT_DATA, "as": resource.RLIMIT_AS}


def prepare(store: Path, patients: int) -> None:
    """The cohort and its release, unless they are there."""
    store.mkdir(parents=True, exist_ok=True)
    if not (store / COHORT).exists():
        subprocess.run(
            leeward("synth", "codes", "--patients", str(patients), "-o", COHORT), cwd=store, check=True
        )
    if not (store / RELEASE).exists():
        made = [RELEASE if each == "OUT" else each for each in COMMANDS["disassociate"]]
        subprocess.run(leeward(*made), cwd=store, check=True, stdout=subprocess.DEVNULL)


def tried(store: Path, command: str, kind: str, gigabytes: float, seconds: int) -> tuple[str, str]:
    """How one run ended (`done`, `refused`, or the fault), and its last line."""
    limit = int(gigabytes * 1e9)
    process = subprocess.Popen(
        leeward(*COMMANDS[command]),
        cwd=store,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(KINDS[kind], (limit, limit)),
    )
    try:
        said = process.communicate(timeout=seconds)[1].strip().splitlines()
    except subprocess.TimeoutExpired:
        process.kill()
        return "HANG", process.communicate()[1].strip()[-200:]
    last = said[-1] if said else ""
    left = [each.name for each in store.iterdir() if each.name not in (COHORT, RELEASE, "OUT", "state")]
    for each in ("OUT", "state", *left):  # an index of the same data would be refused
        shutil.rmtree(store / each, ignore_errors=True)
    if left:
        return f"LEFT {len(left)}", last
    if process.returncode == 0:
        return "done", ""
    if process.returncode == 2 and "memory" in last:
        return "refused", last
    return f"FAULT {process.returncode}", last


def main() -> None:
    """Try all, print a line each, and the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--patients", type=int, default=500_000)
    parser.add_argument("--only", default=",".join(COMMANDS))
    parser.add_argument("--seconds", type=int, default=900)
    given = parser.parse_args()
    os.environ["LEEWARD_STATE"] = str(given.store.absolute() / "state")
    print(f"{machine()}. Commit {commit()}.", flush=True)
    prepare(given.store, given.patients)
    ends = []
    for command in given.only.split(","):
        for kind, gigabytes in LIMITS[command]:
            end, last = tried(given.store, command, kind, gigabytes, given.seconds)
            ends.append(end)
            print(f"{command} RLIMIT_{kind.upper()} {gigabytes} GB: {end}  {last}", flush=True)
    faults = [end for end in ends if end not in ("done", "refused")]
    print(
        f"{len(ends)} runs: {ends.count('done')} done, {ends.count('refused')} refused, {len(faults)} faults"
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
