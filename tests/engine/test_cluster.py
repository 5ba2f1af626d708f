"""A standalone cluster of two workers on this machine: both work, and the release is the same, byte for byte, as
without them. First the workers see none of this machine's files; then they do, and no row is in the process that starts
the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.conftest import TREE
from tests.methods.disassociation.test_partitioned import METHOD, a_cohort
from tests.spark_fixture import serve_cluster
from tests.waiting import LONG

from leeward.randomness import Randomness
from leeward.release import write


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    with serve_cluster(tmp_path_factory.mktemp("cluster"), small="-XX:TieredStopAtLevel=1") as (address, _):
        yield address


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


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read at /proc")
def test_rows_of_patients_stay_with_workers_who_see_the_folders(master: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    rows = [(f"canary{n:06}", f"{c}") for n in range(800) for c in draw.zipf(1.4, 5).clip(max=30)]
    pl.DataFrame(rows, schema=["patient", "code"], orient="row").write_parquet(tmp_path / "events.parquet")
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    config = {**local, "spark.executor.memory": "512m"}
    engine = {"spark": {"master": master, "memory": "512m", "shared": True, "config": config}}
    method = {"name": "disassociation", "k": 4, "m": 2, "partitions": 3}
    for name, chosen in (("cluster", engine), ("local", "local")):
        source = {"path": "events.parquet", "vocabulary": "none"}  # workers have another working directory
        spec = {"source": source, "method": method, "seed": 3, "engine": chosen}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(spec))
    program = [sys.executable, "-m", "tests.engine.shared_on_cluster", str(tmp_path), "canary"]
    paths = {**os.environ, "PYTHONPATH": str(TREE)}
    ran = subprocess.run(
        program, cwd=tmp_path, env=paths, capture_output=True, text=True, timeout=5 * LONG, check=False
    )
    assert ran.returncode == 0, ran.stderr[-6000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert told.pop("python, of a local run") > 0, "identifiers are not found where they are"
    assert told == {"python": 0, "java": 0}
    assert "canary0" not in ran.stdout + ran.stderr
    for file in ("share/release.json", "share/data/chunks.parquet", "custody/data/clusters.parquet"):
        here, there = (tmp_path / name / file for name in ("local", "cluster"))
        assert here.read_bytes() == there.read_bytes(), file
    assert not list(tmp_path.glob("*.partial-*"))
