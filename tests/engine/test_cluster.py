"""A standalone cluster of two workers on this machine: both work, and the release is the same, byte for byte, as
without them. First the workers see the files of this machine, and no row is in the process that starts the run; then
they see none of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.conftest import TREE
from tests.methods.disassociation.test_partitioned import METHOD, a_cohort
from tests.spark_fixture import serve_cluster
from tests.waiting import LONG

from leeward.randomness import Randomness
from leeward.release import write

Ran = tuple[Path, dict[str, Any], str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The folder of a program that worked on a cluster, what it told there and what it printed."""
    folder = tmp_path_factory.mktemp("ran")
    draw = np.random.default_rng(5)
    rows = [(f"canary{n:06}", f"{c}") for n in range(800) for c in draw.zipf(1.4, 5).clip(max=30)]
    pl.DataFrame(rows, schema=["patient", "code"], orient="row").write_parquet(folder / "events.parquet")
    method = {"name": "disassociation", "k": 4, "m": 2, "partitions": 3}
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    config = {**local, "spark.executor.memory": "512m"}
    with serve_cluster(tmp_path_factory.mktemp("cluster")) as (master, _):
        engine = {"spark": {"master": master, "memory": "512m", "shared": True, "config": config}}
        for name, chosen in (("cluster", engine), ("local", "local")):
            source = {
                "path": "events.parquet",
                "vocabulary": "none",
            }  # workers have another working directory
            spec = {"source": source, "method": method, "seed": 3, "engine": chosen}
            (folder / f"{name}.yaml").write_text(json.dumps(spec))
        program = [sys.executable, "-m", "tests.engine.on_cluster", master, "canary"]
        paths = {**os.environ, "PYTHONPATH": str(TREE)}
        done = subprocess.run(
            program, cwd=folder, env=paths, capture_output=True, text=True, timeout=5 * LONG, check=False
        )
    assert done.returncode == 0, done.stderr[-6000:]
    return folder, json.loads((folder / "told.json").read_text()), done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read at /proc")
def test_rows_of_patients_stay_with_workers_who_see_the_folders(ran: Ran) -> None:
    folder, told, printed = ran
    assert told["python, of a local run"] > 0, "identifiers are not found where they are"
    assert told["python"] == told["java"] == 0
    assert "canary0" not in printed
    for file in ("share/release.json", "share/data/chunks.parquet", "custody/data/clusters.parquet"):
        here, there = (folder / name / file for name in ("local", "cluster"))
        assert here.read_bytes() == there.read_bytes(), file
    assert not list(folder.glob("*.partial-*"))


def test_both_workers_work_and_the_bytes_are_those_of_this_machine(ran: Ran, tmp_path: Path) -> None:
    folder, told, _ = ran
    assert len(set(told["executors"])) == 2
    assert len(told["waves"]) > 1, "rows went there at once, though the heap bears less"
    write(METHOD.protect(a_cohort(), randomness=Randomness.of(3)), tmp_path / "local")
    for file in ("release.json", "data/nodes.parquet", "data/chunks.parquet"):
        here, there = (at / "share" / file for at in (tmp_path / "local", folder / "sent"))
        assert here.read_bytes() == there.read_bytes(), file
