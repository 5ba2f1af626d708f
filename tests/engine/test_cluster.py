"""A standalone cluster of two workers on this machine, which see none of its files: both work, and the release is the
same, byte for byte, as without them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from tests.conftest import TREE
from tests.methods.disassociation.test_partitioned import METHOD, a_cohort
from tests.waiting import LONG, wait_until

from leeward.randomness import Randomness
from leeward.release import write

HOME = Path(pyspark.__file__).parent
HERE = ("--host", "127.0.0.1", "--webui-port", "0")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    environment = {
        **os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": small, "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    with ExitStack() as started:

        def start(name: str, kind: str, *flags: str) -> Path:
            log = folder / f"{name}.log"
            program = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", *HERE, *flags]
            with log.open("w") as file:
                process = subprocess.Popen(program, env=environment, stdout=file, stderr=file, cwd=folder)
            started.callback(process.wait)
            started.callback(process.terminate)
            return log

        log = start("master", "master.Master", "--port", "0")
        wait_until(lambda: "Starting Spark master at" in log.read_text(), "the master starts")
        found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
        assert found is not None
        for name in ("one", "two"):
            start(
                name,
                "worker.Worker",
                "--cores",
                "1",
                "--memory",
                "700m",
                "--work-dir",
                str(folder / name),
                found[1],
            )
        wait_until(lambda: log.read_text().count("Registering worker") == 2, "both workers register")
        yield found[1]


def test_both_workers_work_and_the_bytes_are_those_of_this_machine(master: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.engine.on_cluster", master, str(tmp_path)]
    ran = subprocess.run(program, cwd=TREE, capture_output=True, text=True, timeout=5 * LONG, check=False)
    assert ran.returncode == 0, ran.stderr[-6000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert len(set(told["executors"])) == 2
    assert len(told["waves"]) > 1, "rows went there at once, though the heap bears less"
    write(METHOD.protect(a_cohort(), randomness=Randomness.of(3)), tmp_path / "local")
    for file in ("release.json", "data/nodes.parquet", "data/chunks.parquet"):
        here, there = (tmp_path / name / "share" / file for name in ("local", "cluster"))
        assert here.read_bytes() == there.read_bytes(), file
