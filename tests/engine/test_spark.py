"""Spark gives what the local engine gives: the same kernel, rows, types and order."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engine.kernels import SCHEMA, SUMS, echo, total, types
from tests.spark_fixture import spark_engine  # noqa: F401  # a fixture

from leeward import BadInput, engine
from leeward.engine import Engine
from leeward.engine.spark import SparkEngine, SparkSettings, _java_version


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
