"""Spark = local: the population is counted on Spark, the release is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.methods.censoring.frames import cohort, table
from tests.methods.censoring.test_properties import large_problem
from tests.spark_fixture import spark_engine

from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.engine.spark import SparkEngine

__all__ = ["spark_engine"]


@pytest.mark.parametrize("scope", ["global", "record"])
def test_spark_equals_local(spark_engine: SparkEngine, scope: str) -> None:
    population, sample = large_problem(300)
    method = Censoring(k=5, cap=3, scope=scope)
    everyone, source = cohort(population), cohort(sample)
    local, spark = (
        method.protect(source, engine, randomness=Randomness.of(2), population=everyone)
        for engine in (None, spark_engine)
    )
    assert table(local.tables[0]).equals(table(spark.tables[0]))
