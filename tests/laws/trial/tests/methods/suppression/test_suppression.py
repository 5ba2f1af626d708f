"""The worked example, and any records against the oracle."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.suppression import suppressed

import leeward as lw
from leeward.randomness import Randomness


def release(records: list[set[str]], k: int) -> list[set[str]]:
    rows = [(n, code) for n, record in enumerate(records) for code in sorted(record)]
    cohort = lw.read(pl.DataFrame(rows, schema=["patient", "code"], orient="row"))
    (table,) = lw.Suppression(k=k).protect(cohort, randomness=Randomness.of(1)).tables
    return [set(row["codes"]) for batch in table.batches() for row in batch.to_pylist()]


def test_the_worked_example() -> None:
    assert release([{"a", "b"}, {"a"}, {"a", "c"}], 2) == [{"a"}] * 3


@given(st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=3), st.integers(2, 3))
def test_any_records_are_those_of_the_oracle(records: list[set[str]], k: int) -> None:
    assert sorted(map(sorted, release(records, k))) == sorted(map(sorted, suppressed(records, k)))
