"""Spark gives what the local engine gives: the same kernel, rows, types and order."""

from __future__ import annotations

import dataclasses
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engine.kernels import SCHEMA, SUMS, echo, total, types
from tests.spark_fixture import spark_engine  # noqa: F401  # a fixture

from leeward import BadInput, engine
from leeward.engine import Engine, part_file
from leeward.engine.spark import FILE, SparkEngine, SparkSettings, _bytes, _java_version

LENGTHS = pa.schema([("number", pa.int64()), ("twice", pa.int64())])


def doubled(number: int, folder: Path) -> pa.Table:
    """A task: its file twice."""
    body = part_file(folder, "rows", number).read_bytes()
    part_file(folder, "twice", number).write_bytes(2 * body)
    return pa.table([[number], [len(body)]], schema=LENGTHS)


def fake(tasks: pl.DataFrame) -> pa.Table:
    """What a cluster gives back of tasks."""
    numbers = tasks["task"].to_list()
    return pa.table({"number": numbers, "twice": numbers, f"{FILE}twice": [b""] * len(numbers)})


def task_number(rows: pa.Table) -> pa.Table:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return pa.table({"task": pa.array([context.partitionId()], pa.int64())})


def as_cluster(on: SparkEngine) -> SparkEngine:
    """The same session, as one whose workers see no file of this machine."""
    return dataclasses.replace(on, exchange=None, own=False)


def random_frame(seed: int, rows: int = 300) -> pl.DataFrame:
    draws = np.random.Generator(np.random.Philox(seed))
    names = ["a", "b", "é", "Z", "", None]
    return pl.DataFrame(
        {
            "group": draws.integers(-10, 20, rows),
            "value": [int(v) if v else None for v in draws.integers(0, 6, rows)],
            "name": [names[i] for i in draws.integers(0, len(names), rows)],
        }
    )


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("order", [None, ["name", "value"]])
def test_map_groups_equals_local(spark_engine: Engine, seed: int, order: list[str] | None) -> None:  # noqa: F811
    frame = random_frame(seed)
    here = engine.make("local").map_groups(frame, "group", echo, SCHEMA, order)
    there = spark_engine.map_groups(spark_engine.frame(frame), "group", echo, SCHEMA, order)
    assert there.equals(here)
    assert there.schema == here.schema


def test_text_keys_and_kernels_without_the_key(spark_engine: Engine) -> None:  # noqa: F811
    frame = (
        random_frame(3).with_columns(pl.col("name").fill_null("?")).rename({"group": "g", "name": "group"})
    )
    here = engine.make("local").map_groups(frame, "group", total, SUMS, order=())
    assert spark_engine.map_groups(frame, "group", total, SUMS, order=()).equals(here)


def test_relational_steps_equal_local(spark_engine: Engine, tmp_path: Path) -> None:  # noqa: F811
    frame = random_frame(4).with_columns(pl.col("value").cast(pl.UInt32), pl.col("name").cast(pl.Categorical))
    frame.write_parquet(tmp_path / "f.parquet")
    results = []
    for on in (engine.make("local"), spark_engine):
        for source in (frame, tmp_path / "f.parquet"):
            known = on.frame(source).filter(~nw.col("name").is_null())
            counted = known.group_by("name").agg(nw.len().alias("n"), nw.col("value").sum())
            results.append(on.collect(counted).sort("name"))
    assert all(result.equals(results[0]) for result in results)
    assert all(result.schema == results[0].schema for result in results)


def test_types_are_the_local_ones(spark_engine: Engine) -> None:  # noqa: F811
    frame = pl.DataFrame(
        {"group": [1], "e": ["x"], "u": [1], "l": [["x"]], "f": [0.5], "b": [True]},
        schema_overrides={"e": pl.Enum(["x"]), "u": pl.UInt32},
    )
    schema = pa.schema([("types", pa.string())])
    here = engine.make("local").map_groups(frame, "group", types, schema)
    assert spark_engine.map_groups(frame, "group", types, schema).equals(here)


def test_an_empty_frame_and_a_null_key(spark_engine: Engine) -> None:  # noqa: F811
    empty = spark_engine.map_groups(random_frame(1).clear(), "group", echo, SCHEMA)
    assert empty.num_rows == 0
    assert empty.schema == SCHEMA
    with pytest.raises(ValueError, match="the grouping column 'group' has nulls"):
        spark_engine.map_groups(pl.DataFrame({"group": [1, None], "value": [1, 2]}), "group", total, SUMS)


def test_the_spec_reaches_the_session(spark_engine: Engine) -> None:  # noqa: F811
    assert isinstance(spark_engine, SparkEngine)
    assert spark_engine.name == "spark"
    read = spark_engine.session.conf.get
    assert read("spark.sql.shuffle.partitions") == "2"
    assert read("spark.driver.memory") == "1g"
    assert read("spark.ui.enabled") == "false"


def test_whole_numbers_go_to_the_tasks_in_turn(spark_engine: Engine) -> None:  # noqa: F811
    """Every group of its own where there are tasks enough: by a hash, some would share one while others are idle."""
    on = dataclasses.replace(spark_engine, reducers=8)  # type: ignore[arg-type]  # it is Spark's
    frame = pl.DataFrame({"group": range(-2, 6), "value": range(8)})
    schema = pa.schema([("task", pa.int64())])
    for given in (frame, on.frame(frame)):
        assert sorted(on.map_groups(given, "group", task_number, schema)["task"].to_pylist()) == list(
            range(8)
        )
    few = on.map_groups(frame.filter(pl.col("group") > 3), "group", task_number, schema)["task"].to_pylist()
    assert sorted(few) == [0, 1]


def test_tasks_with_their_files_are_those_of_this_machine(spark_engine: Engine, tmp_path: Path) -> None:  # noqa: F811
    assert isinstance(spark_engine, SparkEngine)
    found = {}
    engines = {"local": engine.make("local"), "spark": spark_engine, "cluster": as_cluster(spark_engine)}
    for name, on in engines.items():
        folder = tmp_path / name
        folder.mkdir()
        for number in (0, 2, 5):
            part_file(folder, "rows", number).write_bytes(b"ab" * number)
        done = on.map_tasks([0, 2, 5], doubled, LENGTHS, folder, ("rows",), ("twice",))
        found[name] = done.to_pylist(), {each.name: each.read_bytes() for each in sorted(folder.iterdir())}
        assert done.schema == LENGTHS
    assert found["local"] == found["spark"] == found["cluster"]
    assert found["local"][1]["twice-5.parquet"] == b"ab" * 10


def test_temporary_files_of_a_task_are_where_spark_removes_them(spark_engine: Engine, tmp_path: Path) -> None:  # noqa: F811
    assert isinstance(spark_engine, SparkEngine)
    where = pa.schema([("folder", pa.string())])

    def tell(number: int, folder: Path) -> pa.Table:
        return pa.table([[f"{folder}, {tempfile.gettempdir()}"]], schema=where)

    told = as_cluster(spark_engine).map_tasks([0], tell, where, tmp_path, (), ())
    assert told["folder"][0].as_py().count("/blockmgr-") == 2, "a worker that is killed leaves them"


def test_a_cluster_is_sent_no_more_than_the_heap_bears(
    spark_engine: Engine,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(spark_engine, SparkEngine)
    on, sent = as_cluster(spark_engine), list[int]()
    monkeypatch.setattr(
        SparkEngine, "_run", lambda self, tasks, kernel, schema: sent.append(tasks.height) or fake(tasks)
    )
    monkeypatch.setattr("leeward.engine.spark.SENT", 2**30 // 1000)  # the heap of 1 GB bears a thousand bytes
    for number, size in enumerate((400, 500, 700, 100, 300)):
        part_file(tmp_path, "rows", number).write_bytes(bytes(size))
    assert on.map_tasks(range(5), doubled, LENGTHS, tmp_path, ("rows",), ("twice",)).num_rows == 5
    assert sent == [2, 2, 1]
    part_file(tmp_path, "rows", 5).write_bytes(bytes(2_000_000))
    with pytest.raises(BadInput, match=r"^2 MB of rows .* bears 0 MB .* `memory` .*leeward split"):
        on.map_tasks(range(6), doubled, LENGTHS, tmp_path, ("rows",), ("twice",))
    with pytest.raises(BadInput, match="have to go to the cluster at once"):
        on.frame(pl.DataFrame({"rows": [bytes(2_000)]}))
    assert sent == [2, 2, 1]


@pytest.mark.parametrize(("size", "number"), [("512m", 2**29), ("4g", 2**32), ("2GB", 2**31), ("64", 2**26)])
def test_memory_as_java_writes_it(size: str, number: int) -> None:
    assert _bytes(size) == number


def test_a_session_that_is_joined_is_left_as_it_was(spark_engine: Engine) -> None:  # noqa: F811
    assert isinstance(spark_engine, SparkEngine)
    session = spark_engine.session
    context: Any = session.sparkContext
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    context.setLogLevel("FATAL")
    try:
        before = session.conf.getAll
        on = engine.make({"spark": {"partitions": 3, "config": {"spark.sql.shuffle.partitions": "5"}}})
        assert isinstance(on, SparkEngine)
        assert on.session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert on.session.conf.get("spark.sql.shuffle.partitions") == "5" and on.reducers == 3
        assert on.map_groups(random_frame(5), "group", total, SUMS, order=()).num_rows
        on.close()
        assert session.conf.getAll == before
        assert session.range(3).count() == 3
        manager = context._jvm.org.apache.logging.log4j.LogManager
        assert str(manager.getRootLogger().getLevel()) == "FATAL"
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")
        context.setLogLevel("ERROR")


def test_what_spark_starts_with(spark_engine: Engine) -> None:  # noqa: F811
    """Rows are encrypted between processes and on disk, and a full heap is an end, not a wait."""
    assert isinstance(spark_engine, SparkEngine)
    context: Any = spark_engine.session.sparkContext
    for key in ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled"):
        assert context.getConf().get(key) == "true"
    java = context._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:+ExitOnOutOfMemoryError" in list(java)


BARE = '#!/bin/sh\nexec {python} -S "$@"\n'
"""A Python without packages."""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            BARE,
            r"^The Python of Spark's workers has no module `pyarrow`. Each worker needs a Python with Leeward",
        ),
        (None, r"^Spark's workers cannot run `.*/python`. Each worker needs"),
    ],
)
def test_workers_without_leeward_get_a_sentence(
    spark_engine: Engine,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str | None,
    message: str,
) -> None:
    assert isinstance(spark_engine, SparkEngine)
    python = tmp_path / "python"
    if program is not None:
        python.write_text(program.format(python=sys.executable))
        python.chmod(0o700)
    monkeypatch.setattr(spark_engine.session.sparkContext, "pythonExec", str(python))
    with pytest.raises(BadInput, match=message):
        spark_engine.map_groups(random_frame(6), "group", total, SUMS, order=())


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput) as error:
        SparkEngine.start(SparkSettings())
    assert str(error.value) == (
        "Spark needs Java 17 or newer and none was found; install a JRE or set JAVA_HOME."
    )


def test_with_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput) as error:
        SparkEngine.start(SparkSettings())
    assert str(error.value) == "Spark needs Java 17 or newer; this is Java 11. Set JAVA_HOME to a newer one."


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(BadInput) as error:
        SparkEngine.start(SparkSettings())
    assert str(error.value) == "Spark needs leeward[spark]: pip install 'leeward[spark]'."


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025', 17),
        ('java version "1.8.0_301"', 8),
        ('openjdk version "21-ea" x', 21),
        ("", None),
    ],
)
def test_java_version(text: str, version: int | None) -> None:
    assert _java_version(text) == version
