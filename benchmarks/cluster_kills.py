"""Executors, Python workers and drivers of a cluster killed (SIGKILL) at each stage of a release, and what they leave.

    python benchmarks/cluster_kills.py --store FILE [--kills 20] [--patients 20000] [--through-driver]

A standalone cluster of two workers of one core each on this machine, who see the folders of the source and of the
release (`shared`); with `--through-driver` rows go there through the process that starts the run. Disassociation in
four partitions of made-up codes. Victims and stages come in turn; stages are seen by the files that a run makes. Where
the driver died, the same command is given again. FILE keeps what was done, so that a long run can go on in pieces.
Writes the section of docs/benchmarks/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import leeward as lw
from cluster import CANARY, below, processes
from common import FOLDER, commit, leeward, once, table, write_section
from larger_than_memory import digest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.conftest import SHORT_LIVED
from tests.spark_fixture import serve_cluster
from tests.waiting import wait_until

VICTIMS = ("executor", "Python worker", "driver")
EXECUTOR, DAEMON = "CoarseGrainedExecutorBackend", "pyspark.daemon"
"""What stands in the commands of executors and of their Python processes."""

STAGES = {
    "reading": "{out}.partial-*",
    "protecting": "*/rows-*.parquet",
    "one part is protected": "*/nodes-*.parquet",
    "writing": "{out}.partial-*/share/data/*",
    "verifying": "{out}.partial-*/release.json.unpublished",
}
"""The stages of a run, and the files with which each begins."""

LIMIT = 900
"""Seconds after which a run hangs."""

SOURCE = "source.parquet"
LOGS = ("*.log", "*/stdout", "*/stderr", "*/local.json", "*/cluster.json")
LEFT = ("files left", "files and logs with identifiers")
METHOD = {"name": "disassociation", "k": 5, "m": 2, "partitions": 4}
HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def make_data(folder: Path, patients: int, master: str, *, shared: bool) -> None:
    lw.synth.write_codes(folder / "codes.csv", patients=patients, codes=600, seed=1)
    rows = pl.read_csv(folder / "codes.csv")
    named = rows.with_columns(patient=CANARY + rows["patient"].cast(str).str.zfill(6))
    named.write_parquet(folder / SOURCE)
    (folder / "codes.csv").unlink()
    config = {**HERE, "spark.executor.memory": "512m"}
    spark = {"spark": {"master": master, "memory": "512m", "shared": shared, "config": config}}
    for name, engine in (("local", "local"), ("cluster", spark)):
        source = {"path": str(folder / SOURCE), "vocabulary": "none"}
        (folder / f"{name}.json").write_text(
            json.dumps({"source": source, "method": METHOD, "seed": 7, "engine": engine})
        )


def begin(folder: Path, spec: str, out: str) -> subprocess.Popen[bytes]:
    with (folder / "driver.log").open("ab") as log:
        command = leeward("protect", str(folder / f"{spec}.json"), "-o", str(folder / out))
        return subprocess.Popen(command, stdout=log, stderr=log)


def end(process: subprocess.Popen[bytes]) -> str:
    """How a run ended."""
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "HUNG"
    return "released" if code == 0 else f"FAILED ({code})"


def is_at(folder: Path, pattern: str) -> bool:
    """Whether a run has made a file that the pattern names."""
    return any(fnmatch(str(file), f"{folder}/{pattern}") for file in all_below(folder))


def all_below(folder: Path) -> Iterator[Path]:
    """All that is in a folder now; what goes meanwhile is left out."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def find(kind: str) -> list[int]:
    """Executors of the cluster, or their Python workers, the busiest first."""
    now = processes()
    own = below(now, [os.getpid()]) & now.keys()
    if kind == "executor":
        found = [each for each in own if EXECUTOR in now[each][3]]
    else:  # a worker is forked by a daemon
        found = [each for each in own if DAEMON in now[each][3] and DAEMON in now[now[each][0]][3]]
    return sorted(found, key=lambda each: -now[each][1])


def kill_one(folder: Path, number: int) -> dict[str, Any]:
    """Kill a victim once at a stage, then let the run end, or give the command again."""
    kind, stage = VICTIMS[number % len(VICTIMS)], list(STAGES)[number % len(STAGES)]
    out = f"killed-{number}"
    driver = begin(folder, "cluster", out)
    killed = False
    while not killed and driver.poll() is None:
        if is_at(folder, STAGES[stage].format(out=out)):
            for victim in [driver.pid] if kind == "driver" else find(kind)[:1]:
                os.kill(victim, signal.SIGKILL)
                killed = True
        time.sleep(0.01)
    ended = end(driver)
    if kind == "driver" and killed:
        ended = f"again: {end(begin(folder, 'cluster', out))}"
    told = {"victim": kind, "stage": stage, "killed": "yes" if killed else "no", "end": ended}
    return {**told, **compare(folder, out)}


def is_kept(file: Path) -> bool:
    """Whether a file is the source or of a release."""
    return re.fullmatch(rf"{SOURCE}|local|killed-\d+", file.parts[0]) is not None


def compare(folder: Path, out: str) -> dict[str, Any]:
    """Whether a release has the bytes of the local one; what is left that is neither source, release nor log a minute
    after Spark may have removed its own files; and which of these and of the logs have an identifier in them."""

    def others() -> list[Path]:
        files = (file for file in all_below(folder) if file.is_file())
        return [file for file in files if not is_kept(file.relative_to(folder))]

    def left() -> list[str]:
        return [str(file) for file in others() if not any(fnmatch(str(file), log) for log in LOGS)]

    wait_until(lambda: not find("executor"), "the executors end")
    with suppress(AssertionError):
        wait_until(lambda: not left(), "all else is removed", seconds=60)
    print(*left(), sep="\n", end="", flush=True)
    same = (folder / out / "share").is_dir() and digest(folder / out) == digest(folder / "local")
    return {
        "same bytes": "yes" if same else "NO",
        LEFT[0]: len(left()),
        LEFT[1]: sum(CANARY.encode() in file.read_bytes() for file in others()),
        "commit": commit(),
    }


def section(kills: list[dict[str, Any]], patients: int) -> str:
    rows = []
    for kind in VICTIMS:
        of = [kill for kill in kills if kill["victim"] == kind and kill["killed"] == "yes"]
        ends = Counter(kill["end"] for kill in of)
        same = sum(kill["same bytes"] == "yes" for kill in of)
        left = [sum(kill[what] for kill in of) for what in LEFT]
        rows.append((kind, len(of), "; ".join(f"{end}: {n}" for end, n in ends.items()), same, *left))
    return f"""
{patients:,} made-up patients, disassociation (k = 5, m = 2) in four partitions, a standalone cluster of two workers
with one core each and `shared`: workers see the folders of the source and of the release. "again": the driver was
killed, and the same command was given again. What is left is counted when Spark has had a minute to remove its files.

{table(("victim", "kills", "end", "same bytes as the local run", *LEFT), rows)}

### Each kill

{table(list(kills[0]), [list(kill.values()) for kill in kills])}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--through-driver", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-kills-") as name:
        folder = Path(name)
        for each in ("temp", "spark", "cluster"):
            (folder / each).mkdir()
        os.environ |= {"TMPDIR": f"{folder}/temp", "SPARK_LOCAL_DIRS": f"{folder}/spark"}
        os.environ["JAVA_TOOL_OPTIONS"] = SHORT_LIVED
        with serve_cluster(folder / "cluster", "1200m") as (master, _):
            make_data(folder, given.patients, master, shared=not given.through_driver)
            assert end(begin(folder, "local", "local")) == "released"
            kills = []
            for number in range(given.kills):
                kills.append(once(given.store, str(number), partial(kill_one, folder, number)))
                print(number, kills[-1], flush=True)
    if not given.through_driver:
        command, title = (
            "python benchmarks/cluster_kills.py --store FILE",
            "On a cluster whose processes are killed",
        )
        write_section("cluster-kills", title, command, section(kills, given.patients), FOLDER / "scale.md")


if __name__ == "__main__":
    main()
