"""One Spark session, and one Spark Connect server, for a whole test run; a test module uses them by importing
`spark_engine` or `connect_server`."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.conftest import TREE
from tests.waiting import LONG, wait_until

from leeward import engine
from leeward.engine import Engine


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


@contextmanager
def serve_cluster(folder: Path, memory: str = "700m") -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Spark standalone cluster on this machine, with two workers of one core: the address of its master, and the
    processes of the master and of both."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -Xshare:auto", "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    begun: list[subprocess.Popen[bytes]] = []
    with ExitStack() as started:

        def start(name: str, kind: str, *flags: str) -> Path:
            log = folder / f"{name}.log"
            program = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{kind}"]
            with log.open("w") as file:
                process = subprocess.Popen(
                    [*program, "--host", "127.0.0.1", "--webui-port", "0", *flags],
                    env=environment, stdout=file, stderr=file, cwd=folder,
                )  # fmt: skip
            started.callback(process.wait)
            started.callback(process.terminate)
            begun.append(process)
            return log

        log = start("master", "master.Master", "--port", "0")
        wait_until(lambda: "Starting Spark master at" in log.read_text(), "the master starts")
        found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
        assert found is not None
        for name in ("one", "two"):
            place = ["--work-dir", str(folder / name)]
            start(name, "worker.Worker", "--cores", "1", "--memory", memory, *place, found[1])
        wait_until(lambda: log.read_text().count("Registering worker") == 2, "both workers register")
        yield found[1], begun
