"""Spark Connect gives what this machine gives, and a server that is not there is said in a sentence."""

from __future__ import annotations

import filecmp
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import narwhals as nw
import polars as pl
import pytest
from pyspark.sql.connect.session import SparkSession as RemoteSession
from tests.engine.kernels import SCHEMA, SUMS, echo, total
from tests.engine.test_spark import random_frame
from tests.spark_fixture import connect_server, serve_connect  # noqa: F401  # a fixture
from tests.waiting import LONG

import leeward as lw
from leeward import BadInput, engine
from leeward.engine import Engine, servers, spark


@pytest.fixture
def connected(connect_server: str) -> Iterator[Engine]:  # noqa: F811
    started = engine.make({"spark": {"remote": connect_server, "partitions": 2}})
    yield started
    started.close()


def test_kernels_and_relational_steps_equal_local(connected: Engine, tmp_path: Path) -> None:
    frame = random_frame(1)
    frame.write_parquet(tmp_path / "f.parquet")
    here = engine.make("local")
    for order in (None, ["name", "value"]):
        ours = here.map_groups(frame, "group", echo, SCHEMA, order)
        assert connected.map_groups(connected.frame(frame), "group", echo, SCHEMA, order).equals(ours)
    counted = [
        on.collect(
            on.frame(tmp_path / "f.parquet").group_by("name").agg(nw.len().alias("n"), nw.col("value").sum())
        ).sort("name")
        for on in (here, connected)
    ]
    assert counted[0].equals(counted[1])
    assert counted[0].schema == counted[1].schema
    sent = connected.frame(tmp_path / "f.parquet")
    (tmp_path / "f.parquet").unlink()  # a server elsewhere does not see it
    assert connected.collect(sent).height == frame.height
    texts = frame.with_columns(group=pl.col("name").fill_null("?"))
    ours = here.map_groups(texts, "group", total, SUMS, order=())
    assert connected.map_groups(texts, "group", total, SUMS, order=()).equals(ours)


def test_rows_stay_with_workers_of_a_server(connect_server: str) -> None:  # noqa: F811
    with engine.running({"spark": {"remote": connect_server, "shared": True}}, shared=True) as on:
        assert on.there(os.getpid) != os.getpid()


METHODS = (lw.Disassociation(k=5, m=2, partitions=2), lw.Constraints(k=5, m=2, policy="hierarchy:1"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_same_bytes(method: lw.Disassociation, connect_server: str, tmp_path: Path) -> None:  # noqa: F811
    lw.synth.write_codes(tmp_path / "events.csv", patients=300, codes=40, seed=1)
    cohort = lw.read(tmp_path / "events.csv")
    remote = {"spark": {"remote": f"{connect_server}/;user_id=somebody", "partitions": 2}}
    for name, on in (("local", "local"), ("remote", remote)):
        lw.protect(cohort, method, tmp_path / name, engine=on, seed=1, measures=["mre"])
    files = [file.relative_to(tmp_path / "local") for file in (tmp_path / "local" / "share").rglob("*.*")]
    assert filecmp.cmpfiles(tmp_path / "local", tmp_path / "remote", files, shallow=False)[0] == files


def test_a_setting_that_only_the_server_can_make(connect_server: str) -> None:  # noqa: F811
    with pytest.raises(
        BadInput, match=r"does not let a session set `spark\.driver\.memory`; leave it out"
    ) as refused:
        engine.make({"spark": {"remote": connect_server, "config": {"spark.driver.memory": "secret"}}})
    assert "secret" not in str(refused.value)
    assert RemoteSession.getActiveSession() is None, "left open, it would call its server when Python ends"


def test_a_server_that_ends_in_the_middle_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(servers, "RETRIES", 1)
    with (
        serve_connect(tmp_path / "log") as (url, process),
        pytest.raises(BadInput, match=r"does not answer any more \(UNAVAILABLE\); start the run again"),
        pytest.warns(UserWarning, match="RETRIES_EXCEEDED"),
        engine.running({"spark": {"remote": url}}) as started,
    ):
        process.kill()
        process.wait(LONG)
        started.collect(started.frame(random_frame(1)))
    assert RemoteSession.getActiveSession() is None


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_no_other_spark_beside_a_session_of_connect(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "sc://host")
    with pytest.raises(BadInput, match="works with a Spark Connect server already"):
        engine.make({"spark": {"master": "local[1]"}})


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PATIENCE", 0.1)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")  # the server has Java
    nobody = free_port()
    with pytest.raises(BadInput) as refused:
        engine.make({"spark": {"remote": f"sc://localhost:{nobody}/;token=secret"}})
    assert str(refused.value) == (
        f"No Spark Connect server answers at localhost:{nobody} (FutureTimeoutError); check the address, its token "
        f"and whether it is running."
    )
    monkeypatch.setenv("SPARK_REMOTE", f"sc://localhost:{nobody}")
    with pytest.raises(BadInput, match="No Spark Connect server answers"):
        engine.make("spark")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"remote": "spark://host:7077"},
            "`remote` is not the address of a Spark Connect server; write sc://host:port.",
        ),
        (
            {"remote": "sc://host", "memory": "2g"},
            "`remote` is a server with a master and memory of its own; leave out `master` and `memory`.",
        ),
        (
            {"master": "sc://host"},
            "`master`: this is the address of a Spark Connect server; give it as `remote`.",
        ),
        (
            {"master": "yarn"},
            "`master: yarn` needs the configuration of the cluster: set HADOOP_CONF_DIR to the folder of its files.",
        ),
        (
            {"master": "mesos://host"},
            "`master`: Spark runs on local[N], spark://host:7077, yarn or k8s://https://host:port; got 'mesos://host'.",
        ),
    ],
    ids=str,
)
def test_addresses(settings: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_running", lambda _: None)  # of another test; it would be joined as it is
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(BadInput) as refused:
        engine.make({"spark": settings})
    assert str(refused.value) == said


def test_a_master_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_running", lambda _: None)
    address = f"spark://localhost:{free_port()}"
    with pytest.raises(BadInput) as refused:
        engine.make({"spark": {"master": address}})
    assert str(refused.value) == (
        f"No Spark master answers at {address}; check the address and whether it is running."
    )


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as held:
        held.bind(("localhost", 0))
        return int(held.getsockname()[1])
