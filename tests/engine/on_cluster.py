"""What a program does on a cluster, for `test_cluster`: `python -m tests.engine.on_cluster MASTER PREFIX`.

The working directory has two specs and their source, whose identifiers begin with PREFIX. They are run first: later
this process holds rows that it sends.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession
from tests.methods.disassociation.test_partitioned import METHOD, a_cohort
from tests.waiting import LONG

import leeward as lw
from leeward import engine
from leeward.engine import spark
from leeward.randomness import Randomness
from leeward.release import write

BLOCK = 1 << 24
WHERE = pa.schema([("task", pa.int64()), ("executor", pa.string())])


def count_identifiers(process: int, prefix: str) -> int:
    """How many identifiers are in the memory of a process, as bytes or as Java's wide texts."""
    plain = re.compile(re.escape(prefix.encode()) + rb"\d{6}")
    wide = re.compile(re.escape(prefix.encode("utf-16-le")) + rb"(?:\d\0){6}")
    found = 0
    areas = Path(f"/proc/{process}/maps").read_text().splitlines()
    with Path(f"/proc/{process}/mem").open("rb", 0) as memory:
        for area in areas:
            bounds, rights = area.split()[:2]
            if not rights.startswith("rw"):
                continue
            low, high = (int(each, 16) for each in bounds.split("-"))
            for at in range(low, high, BLOCK):
                try:
                    memory.seek(at)
                    data = memory.read(min(BLOCK, high - at))
                except (OSError, ValueError):
                    break
                found += len(plain.findall(data)) + len(wide.findall(data))
    return found


def run_specs(prefix: str) -> dict[str, int]:
    """Identifiers in this process and in its Java after a run on the cluster, and here after one on this machine."""
    lw.run("cluster.yaml", "cluster")
    java = SparkSession.active().sparkContext._gateway.proc.pid
    told = {"python": count_identifiers(os.getpid(), prefix), "java": count_identifiers(java, prefix)}
    lw.run("local.yaml", "local")
    return told | {"python, of a local run": count_identifiers(os.getpid(), prefix)}


def send_rows(master: str) -> dict[str, list[Any]]:
    """The executors of two tasks, and how many tasks went to the cluster at once for a release."""
    out = Path.cwd()
    on = engine.make({"spark": {"master": master}})  # joins the session of the runs
    assert isinstance(on, spark.SparkEngine)

    def meet(number: int, folder: Path) -> pa.Table:
        """A task that ends when the other one is at work: on one executor of one core it never would."""
        (out / f"task-{number}").touch()
        end = time.monotonic() + LONG
        while not all((out / f"task-{other}").exists() for other in (0, 1)):
            if time.monotonic() > end:
                raise TimeoutError("the other task did not begin")
            time.sleep(0.05)
        return pa.table([[number], [str(Path.cwd())]], schema=WHERE)

    executors = on.map_tasks([0, 1], meet, WHERE, out, (), ())["executor"].to_pylist()
    waves: list[int] = []
    run = spark.SparkEngine._run

    def counted(self: spark.SparkEngine, tasks: pl.DataFrame, *more: Any) -> pa.Table:
        waves.append(tasks.height)
        return run(self, tasks, *more)

    spark.SparkEngine._run = counted  # type: ignore[method-assign]
    spark.SENT = 2**29 // 4_000
    write(METHOD.protect(a_cohort(), on, randomness=Randomness.of(3)), out / "sent")
    return {"executors": executors, "waves": waves}


if __name__ == "__main__":
    told = run_specs(sys.argv[2]) if sys.platform == "linux" else {}
    Path("told.json").write_text(json.dumps({**told, **send_rows(sys.argv[1])}))
