"""What answers at the address of a Spark server: a session of Spark Connect, and a sentence for an address at which
Spark would end in a stack trace of Java, or wait for minutes."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from leeward.errors import BadInput, require_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 20
"""Seconds in which a server answers for the first time; pyspark would try for ten minutes."""

RETRIES = 5
"""How often a call is made again that the server does not answer: 17 seconds in all, in the place of ten minutes."""

FORMS = "local[N], spark://host:7077, yarn or k8s://https://host:port"
YARN = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def connect(url: str, config: Mapping[str, Any]) -> SparkSession:
    """A session of its own on a Spark Connect server. BadInput where none answers, or it refuses a setting; messages
    have the host alone, since the rest of the URL may hold a token."""
    require_extra("Spark Connect", "spark", "grpc")
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    where = urlsplit(url).netloc.rpartition("@")[2].partition(";")[0]
    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException:
        raise BadInput(
            "`remote` is not the address of a Spark Connect server; write sc://host:port."
        ) from None
    try:
        with channel:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE)
        session = RemoteSession.builder.remote(url).create()
    except (grpc.FutureTimeoutError, PySparkException) as error:
        raise BadInput(
            f"No Spark Connect server answers at {where} ({type(error).__name__}); check the address, its token and "
            f"whether it is running."
        ) from None
    session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
    for key, value in config.items():
        try:
            session.conf.set(key, str(value))
        except PySparkException:
            session.stop()  # a session left open calls its server when Python ends, and waits for one that is gone
            raise BadInput(
                f"The Spark Connect server at {where} does not let a session set `{key}`; leave it out, or set it "
                f"where the server is started."
            ) from None
    return session  # type: ignore[return-value]  # the same calls, of another class


def check_master(master: str) -> None:
    """BadInput for a master that Spark does not know, YARN without its configuration, and a host that is not there."""
    if master.startswith("sc://"):
        raise BadInput("`master`: this is the address of a Spark Connect server; give it as `remote`.")
    if not re.match(r"local(\[.*\])?$|spark://.|yarn$|k8s://.", master):
        raise BadInput(f"`master`: Spark runs on {FORMS}; got '{master}'.")
    if master == "yarn" and not any(os.environ.get(name) for name in YARN):
        raise BadInput(
            f"`master: yarn` needs the configuration of the cluster: set {YARN[0]} to the folder of its files."
        )
    if master.startswith("spark://") and not any(map(_answers, master.removeprefix("spark://").split(","))):
        raise BadInput(f"No Spark master answers at {master}; check the address and whether it is running.")


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, ValueError):
        return False
    return True
