"""One Spark session for a whole test run; a test module uses it by importing `spark_engine`."""

from collections.abc import Iterator

import pytest

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
            # A short life: no time to win back what a good compiler and collector cost at the start.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        },
    }
    started = engine.make({"spark": settings})
    yield started
    started.close()
