"""Small tables for the tests of condensation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st
from tests.cohort.sources import read_table

from leeward.cohort import Cohort
from leeward.methods.condensation import method as condensing
from leeward.synthetic.registry import registry

COVARIATES = ["DiagAge", "Gender", "Race", "Appalachia", "Stage", "TobaccoUse", "PrimaryPayor"]
OUTCOME = {"time": "SurvInterval", "event": "VitalStat", "event_value": 0}
PLAN: tuple[Any, ...] = (
    {"cox": {**OUTCOME, "covariates": COVARIATES}},
    {"linear": {**OUTCOME, "covariates": COVARIATES[1:]}},
    {"logistic": {**OUTCOME, "covariates": COVARIATES[1:]}},
)


@pytest.fixture(autouse=True, scope="module")
def no_repetitions() -> Iterator[None]:
    """Tables are made once: what is measured over repetitions is a test of its own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(condensing, "REPETITIONS", 1)
        yield


def lung(rows: int = 600, seed: int = 1) -> Cohort:
    """A small registry."""
    return read_table(registry(rows, "lung", 9, seed))


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[pl.DataFrame, int]:
    """A table with every kind of column, and a k that it can meet."""
    n = draw(st.integers(6, 60))
    k = draw(st.integers(2, max(2, n // 2)))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    levels = draw(st.integers(1, 4))
    frame = pl.DataFrame(
        {
            "event": random.integers(0, 2, n),
            "time": random.integers(0, 30, n),
            "age": random.integers(20, 90, n),
            "dose": np.round(random.normal(2, 1, n), 2),
            "site": random.choice(list("abcd")[:levels], n),
            "yes": random.random(n) < 0.3,
            "constant": np.full(n, 7),
        }
    )
    if draw(st.booleans()):
        gone = random.random(n) < draw(st.floats(0, 1))
        frame = frame.with_columns(
            frame["dose"].set(pl.Series(gone), None),
            frame["site"].set(pl.Series(np.roll(gone, 1)), None),
        )
    return frame, k
