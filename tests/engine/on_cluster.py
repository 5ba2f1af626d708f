"""What a program does on a cluster, for `test_cluster`: `python -m tests.engine.on_cluster MASTER FOLDER`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from tests.methods.disassociation.test_partitioned import METHOD, a_cohort
from tests.waiting import LONG

from leeward import engine
from leeward.engine import spark
from leeward.randomness import Randomness
from leeward.release import write

SECONDS = LONG
WHERE = pa.schema([("task", pa.int64()), ("executor", pa.string())])


def main(master: str, out: Path) -> None:
    on = engine.make(
        {
            "spark": {
                "master": master,
                "memory": "512m",
                "config": {
                    "spark.driver.host": "127.0.0.1",
                    "spark.driver.bindAddress": "127.0.0.1",
                    "spark.executor.memory": "512m",
                },
            }
        }
    )
    assert isinstance(on, spark.SparkEngine)

    def meet(number: int, folder: Path) -> pa.Table:
        """A task that ends when the other one is at work: on one executor of one core it never would."""
        (out / f"task-{number}").touch()
        end = time.monotonic() + SECONDS
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
    write(METHOD.protect(a_cohort(), on, randomness=Randomness.of(3)), out / "cluster")
    (out / "told.json").write_text(json.dumps({"executors": executors, "waves": waves}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
