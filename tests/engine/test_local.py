"""The local engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engine.kernels import SCHEMA, SUMS, echo, total, types

from leeward import BadInput, engine
from leeward.engine import local

FRAME = pl.DataFrame(
    {"group": [2, 1, 2, 1, 3, 5], "value": [5, 4, 3, None, 1, 0], "name": ["a", "b", None, "d", "e", "f"]}
)


def test_groups_come_in_ascending_order_with_sorted_rows() -> None:
    result = engine.make("local").map_groups(FRAME, "group", echo, SCHEMA)
    assert result.to_pylist() == [
        {"group": 1, "place": 0, "value": None, "names": ["d", "d"]},
        {"group": 1, "place": 1, "value": 4, "names": ["b", "b"]},
        {"group": 2, "place": 0, "value": 3, "names": None},
        {"group": 2, "place": 1, "value": 5, "names": ["a", "a"]},
        {"group": 3, "place": 0, "value": 1, "names": ["e", "e"]},
    ]


def test_rows_of_a_group_in_the_order_asked_for() -> None:
    result = engine.make("local").map_groups(FRAME, "group", echo, SCHEMA, order=["name"])
    assert result["value"].to_pylist() == [4, None, 3, 5, 1]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("block", [1, 7, 20_000])
def test_threads_and_blocks_change_nothing(threads: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.Generator(np.random.Philox(3))
    frame = pl.DataFrame({"group": draws.integers(0, 40, 500), "value": draws.integers(0, 9, 500)})
    monkeypatch.setattr(local, "BLOCK_ROWS", block)
    result = engine.make("local", threads=threads).map_groups(frame, "group", total, SUMS)
    expected = frame.group_by("group").agg(pl.col("value").sum()).sort("group")["value"].to_list()
    assert result["sum"].to_pylist() == expected


def test_processes_change_nothing_and_tell_how_far_they_are() -> None:
    draws = np.random.Generator(np.random.Philox(4))
    frame = pl.DataFrame({"group": draws.integers(0, 9, 300), "value": draws.integers(0, 9, 300)})
    told: list[int] = []
    processes = local.LocalEngine(2, processes=True, told=told.append)
    result = processes.map_groups(frame, "group", total, SUMS)
    assert result.equals(engine.make("local").map_groups(frame, "group", total, SUMS))
    assert sum(told) == 300 and len(told) == 9
    assert processes.map_groups(frame.clear(), "group", total, SUMS).num_rows == 0


def test_a_frame_without_rows_gives_an_empty_table() -> None:
    result = engine.make("local").map_groups(FRAME.clear(), "group", echo, SCHEMA)
    assert result.num_rows == 0
    assert result.schema == SCHEMA


def test_relational_steps_over_frames_and_parquet(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "f.parquet")
    on = engine.make("local")
    for source in (FRAME, FRAME.lazy(), tmp_path / "f.parquet", str(tmp_path / "f.parquet")):
        counted = on.frame(source).group_by("group").agg(nw.len().alias("n"))
        assert on.collect(counted).sort("group").rows() == [(1, 2), (2, 2), (3, 1), (5, 1)]


def test_types_are_those_that_every_engine_has() -> None:
    frame = pl.DataFrame(
        {"group": [1], "e": ["x"], "c": ["x"], "u": [1], "l": [["x"]]},
        schema={
            "group": pl.UInt32,
            "e": pl.Enum(["x"]),
            "c": pl.Categorical,
            "u": pl.UInt8,
            "l": pl.List(pl.String),
        },
    )
    on = engine.make("local")
    schema = pa.schema([("types", pa.string())])
    (row,) = on.map_groups(frame, "group", types, schema)["types"].to_pylist()
    assert row == "int64,string,string,int64,list<item: string>"
    assert on.collect(on.frame(frame)).schema["u"] == pl.Int64
    assert on.collect(on.frame(frame)).schema["e"] == pl.String


def test_a_null_key_and_a_broken_promise_are_refused() -> None:
    on = engine.make("local")
    with pytest.raises(ValueError, match="the grouping column 'group' has nulls"):
        on.map_groups(pl.DataFrame({"group": [1, None], "value": [1, 2]}), "group", total, SUMS)
    with pytest.raises(ValueError, match="promised the columns"):
        on.map_groups(FRAME, "group", total, SCHEMA)


def test_a_kernel_error_reaches_the_caller() -> None:
    def fails(rows: pa.Table) -> pa.Table:
        raise RuntimeError("inside the kernel")

    with pytest.raises(RuntimeError, match="inside the kernel"):
        engine.make("local", threads=2).map_groups(FRAME, "group", fails, SUMS)


def test_make() -> None:
    assert engine.make().name == "local"
    assert engine.make().threads == engine.available_threads()
    assert engine.make("local", threads=3).threads == 3
    assert engine.make({"local": {"threads": 2}}).threads == 2
    on = engine.make()
    assert engine.make(on) is on


@pytest.mark.parametrize(
    ("spec", "threads", "message"),
    [
        ("sparc", None, "No engine 'sparc'. Did you mean 'spark'? Engines: local, spark."),
        ("local", 0, "`threads` must be at least 1; got 0."),
        ({"local": {}, "spark": {}}, None, "The engine is one of local, spark; got 2 entries."),
        (
            {"local": {"thread": 2}},
            None,
            "The local engine has no setting 'thread'. Did you mean 'threads'? Settings: threads.",
        ),
        (
            {"spark": {"mastr": "x"}},
            None,
            (
                "The Spark engine has no setting 'mastr'. Did you mean 'master'? "
                "Settings: remote, master, memory, partitions, shared, config."
            ),
        ),
        ({"spark": {"partitions": 0}}, None, "`partitions` must be at least 1; got 0."),
    ],
)
def test_bad_specs(spec: object, threads: int | None, message: str) -> None:
    with pytest.raises(BadInput) as error:
        engine.make(spec, threads)  # type: ignore[arg-type]  # what a spec file may hold
    assert str(error.value) == message


def test_pyarrow_has_looked_for_pandas_before_any_thread_starts():
    """Two threads that make their first array at once would otherwise race for the import, and one would fail."""
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np, pyarrow as pa
import leeward
assert "pandas" not in sys.modules
import leeward.engine
assert "pandas" in sys.modules
with ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda n: pa.array(np.zeros(n)), range(64)))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
