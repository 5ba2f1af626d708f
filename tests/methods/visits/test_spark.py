"""Spark gives the same release as the local engine."""

from __future__ import annotations

import numpy as np
from tests.methods.visits.frames import cohort, frame
from tests.spark_fixture import spark_engine as spark_engine

from leeward.engine import Engine
from leeward.methods.visits import Visits
from leeward.randomness import Randomness


def test_the_same_release_on_spark(spark_engine: Engine) -> None:
    draws = np.random.Generator(np.random.Philox(key=4))
    codes = [f"{category}.{digit}" for category in (250, 272, 401, 428) for digit in range(4)]
    records = {
        f"p{number}": [
            list(draws.choice(codes, size=draws.integers(1, 4))) for _ in range(draws.integers(1, 4))
        ]
        for number in range(60)
    }
    made = [
        Visits(k=3, enforce="generalize").protect(cohort(records), engine, randomness=Randomness.of(2))
        for engine in (None, spark_engine)
    ]
    for local, spark in zip(*(each.tables + each.custody_tables for each in made), strict=True):
        assert frame(local).equals(frame(spark)), local.path
