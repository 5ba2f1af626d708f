"""Runs whose rows stay with the workers of a cluster: processor seconds and memory of each kind of process, and how
many identifiers of patients are in the memory of the one that starts the run.

    python benchmarks/cluster.py --store FILE [--patients N,N]     measures what FILE lacks
    python benchmarks/cluster.py --store FILE --page               writes the section of docs/benchmarks/scale.md

Disassociation of made-up patients (`memory.py`) on a Spark standalone cluster of two workers of one core on this
machine; their executors and the starting process have a heap of 512 MB. What runs is in /proc, read every fifth of a
second. Identifiers are searched for in a run of its own, once a second, in Python and Java of the starting process and,
to see that they would be found, in the Python of a worker: reading the memory of a process makes more of it resident.
The same patients on this machine alone are the last row.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import polars as pl
from tests.engine.on_cluster import count_identifiers
from tests.spark_fixture import serve_cluster

from common import FOLDER, commit, leeward, once, table, write_section
from larger_than_memory import digest
from memory import events

A_PARTITION = 250_000
CANARY = "canary"
EVERY, EVERY_SCAN = 0.2, 1.0
TICK = os.sysconf("SC_CLK_TCK")
KINDS = {
    "CoarseGrainedExecutorBackend": "executor, Java",
    "pyspark.daemon": "executor, Python",
    "SparkSubmit": "starting process, Java",
    "leeward": "starting process, Python",
    "spark.deploy.": "master and workers",
}
"""Of a process by what is in its command line, the first that is."""

SHOWN = ("starting process, Python", "starting process, Java", "executor, Java", "executor, Python")
SEARCHED = ("starting process, Python", "starting process, Java", "executor, Python")

WORDS = """Disassociation of made-up patients with about five codes, in partitions of 250,000 (of 100,000 patients two)
on a standalone cluster of two workers with one core on this machine, with `shared`; `local` is the same without Spark.
Processor seconds of all processes; peak resident MB of the largest of a kind. `search` is a run in whose processes
identifiers were looked for: how many were found in the memory, all looks together, in how many looks, one a second.
Other work ran on the machine."""


def processes() -> dict[int, tuple[int, float, float, str]]:
    """Of each process: its parent, processor seconds, peak of memory in MB, and command line."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            lines = (place / "status").read_text().splitlines()
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # ended
            continue
        peak = next((int(each.split()[1]) / 1000 for each in lines if each.startswith("VmHWM")), 0.0)
        found[int(place.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK, peak, words
    return found


def below(all_: dict[int, tuple[int, float, float, str]], roots: Sequence[int]) -> set[int]:
    """The processes, and those that they began."""
    found, more = set(roots), set(roots)
    while more:
        more = {each for each, (parent, *_) in all_.items() if parent in found} - found
        found |= more
    return found


def watch(command: list[str], cluster: Sequence[int], *, search: bool) -> dict[str, Any]:
    """Run a command beside a cluster, and look at all processes until it ends."""
    began = {each: seconds for each, (_, seconds, *_) in processes().items()}
    kind: dict[int, str] = {}
    cpu: dict[int, float] = {}
    peak: dict[int, float] = {}
    looks, hits = Counter[str](), Counter[str]()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None:
        now = processes()
        for each in below(now, [process.pid, *cluster]) & now.keys():
            _, seconds, most, words = now[each]
            named = next((name for part, name in KINDS.items() if part in words), None)
            if named is None:  # a shell, or one that is ending
                continue
            kind[each] = named
            cpu[each] = seconds - began.get(each, 0)
            peak[each] = max(peak.get(each, 0), most)
            if search and not named.startswith("master") and named != "executor, Java":
                looks[named] += 1
                try:
                    hits[named] += count_identifiers(each, CANARY)
                except OSError:  # ended
                    continue
        time.sleep(EVERY_SCAN if search else EVERY)
    assert process.stderr is not None
    if process.returncode:
        raise SystemExit(process.stderr.read().decode()[-1000:])
    return {
        named: {
            "cpu": round(sum(cpu[each] for each in kind if kind[each] == named), 1),
            "peak": round(max(peak[each] for each in kind if kind[each] == named)),
            "looks": looks[named],
            "hits": hits[named],
        }
        for named in dict.fromkeys(kind.values())
    }


def took(patients: int, where: str) -> dict[str, Any]:
    """One run: `local`, `cluster`, or `search` for identifiers in one on a cluster."""
    with tempfile.TemporaryDirectory(prefix="leeward-cluster-") as place:
        folder = Path(place)
        rows = events(patients, 5).select("patient", "code")
        rows = rows.with_columns(pl.format(f"{CANARY}{{}}", pl.col("patient") + 10**9).alias("patient"))
        rows.write_parquet(folder / "events.parquet")
        del rows
        method = {"name": "disassociation", "k": 5, "m": 2, "partitions": max(2, patients // A_PARTITION)}
        spec = {
            "source": {"path": str(folder / "events.parquet"), "vocabulary": "none"},
            "method": method,
            "seed": 1,
        }
        command = leeward("protect", str(folder / "spec.yaml"), "-o", str(folder / "OUT"), "--allow-memory")
        if where == "local":
            (folder / "spec.yaml").write_text(json.dumps(spec))
            found = watch(command, [], search=False)
        else:
            with serve_cluster(folder, "1500m") as (master, begun):
                near = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
                config = {**near, "spark.executor.memory": "512m"}
                engine = {"master": master, "memory": "512m", "shared": True, "config": config}
                (folder / "spec.yaml").write_text(json.dumps({**spec, "engine": {"spark": engine}}))
                found = watch(command, [each.pid for each in begun], search=where == "search")
        return {"patients": patients, "where": where, "kinds": found, "share": digest(folder / "OUT"),
                "commit": commit()}  # fmt: skip


def section(runs: list[dict[str, Any]]) -> str:
    """A line a run, and whether the cluster gave the bytes of this machine."""
    lines = []
    for run in runs:
        kinds = run["kinds"]
        seconds = sum(each["cpu"] for each in kinds.values())
        peaks = [f"{kinds[kind]['peak']:,}" if kind in kinds else "–" for kind in SHOWN]
        looked = [kinds[kind] for kind in SHOWN if kind in kinds and kinds[kind]["looks"]]
        found = [f"{each['hits']:,} in {each['looks']}" for each in looked] or ["–"] * len(SEARCHED)
        lines.append([f"{run['patients']:,}", run["where"], f"{seconds:.0f}", *peaks, *found])
    shares: dict[int, set[str]] = {}
    for run in runs:
        shares.setdefault(run["patients"], set()).add(run["share"])
    same = "the same bytes" if all(len(each) == 1 for each in shares.values()) else "OTHER BYTES"
    head = [
        "patients",
        "run",
        "CPU s",
        *(f"{kind}: MB" for kind in SHOWN),
        *(f"{kind}: found" for kind in SEARCHED),
    ]
    return f"{WORDS} All runs of the same patients share {same}.\n\n{table(head, lines)}"


def main() -> None:
    """Measure what the store lacks, or write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--patients", default="100000,1000000")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        runs = list(json.loads(given.store.read_text()).values())
        command = "python benchmarks/cluster.py --store FILE`, then `--page"
        commits = ", ".join(sorted({run["commit"] for run in runs}))
        write_section("cluster", "On a cluster", command, section(runs), FOLDER / "scale.md", commits)
        return
    for patients in map(int, given.patients.split(",")):
        for where in ("cluster", "search", "local"):
            key = f"{patients}, {where}"
            print(key, once(given.store, key, partial(took, patients, where)), flush=True)


if __name__ == "__main__":
    main()
