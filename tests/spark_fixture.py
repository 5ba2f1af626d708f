"""One Spark session, and one Spark Connect server, for a whole test run; a test module uses them by importing
`spark_engine` or `connect_server`."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import TREE
from tests.waiting import LONG, wait_until

from leeward import engine
from leeward.engine import Engine

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""No time to win back what a good compiler and collector cost at the start."""


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine]:
    """Spark on two cores, small and quiet."""
    settings = {
        "master": "local[2]",
        "memory": "1g",
        "partitions": 2,
        "config": {
            "spark.default.parallelism": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
        },
    }
    started = engine.make({"spark": settings})
    yield started
    started.close()


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Spark Connect server on two cores."""
    with serve_connect(tmp_path_factory.mktemp("connect") / "log") as (url, _):
        yield url


@contextmanager
def serve_connect(log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Spark Connect server as pyspark ships it: its URL and its process, which writes to the log."""
    import pyspark

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    config = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = [part for key, value in config.items() for part in ("--conf", f"{key}={value}")]
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    command = [submit, "--master", "local[2]", "--driver-memory", "1g", *settings, *server]
    variables = {**os.environ, "PYTHONPATH": str(TREE)}  # workers import kernels of tests
    with log.open("wb") as words:
        process = subprocess.Popen(command, stdout=words, stderr=words, env=variables)
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, "Spark Connect listens")
        assert process.poll() is None, log.read_text()[-2000:]
        yield f"sc://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait(LONG)


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
