"""k-anonymity of tables: the page's worked example, and the groups against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cohort.sources import read_table
from tests.oracles import k_anonymity as oracle

from leeward.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.k_anonymity.method import mondrian
from leeward.randomness import Randomness


def groups(values: np.ndarray, k: int) -> set[frozenset[int]]:
    labels = mondrian(values, k)
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def test_worked_example_of_a_cut_behind_the_median() -> None:
    """docs/methods/k-anonymity.md#groups: 1 … 5 with k = 2 are {1, 2, 3} and {4, 5}."""
    assert groups(np.arange(1.0, 6.0)[:, None], 2) == {frozenset({0, 1, 2}), frozenset({3, 4})}
    made = KAnonymity(k=2).protect(
        read_table(pl.DataFrame({"x": [1, 2, 3, 4, 5]})), randomness=Randomness.of(1)
    )
    released = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(released, pl.DataFrame)
    assert sorted(released["x"]) == [2, 2, 2, 5, 5]  # means 2 and 4.5, rounded half away from zero


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 3), st.integers(2, 5))
def test_groups_equal_the_oracle(seed: int, rows: int, columns: int, k: int) -> None:
    if rows < k:
        return
    values = np.random.default_rng(seed).integers(0, 6, (rows, columns)).astype(float)
    found = groups(values, k)
    assert found == oracle.mondrian([tuple(row) for row in values.tolist()], k)
    assert min(map(len, found)) >= k


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (range(7000, 7240), "every row of 'mrn' has a different whole number"),
        ([f"Ann {n}" for n in range(240)], "240 of 240 rows have a unique text in 'mrn'"),
        ([f"Ann {n}" if n < 130 else "Eve" for n in range(240)], "130 of 240 rows have a unique text"),
    ],
)
def test_a_column_that_names_its_rows_is_not_published_as_it_is(column: Any, said: str) -> None:
    cohort = Cohort(patients=pl.DataFrame({"age": [30 + n % 40 for n in range(240)], "mrn": list(column)}))
    with pytest.raises(BadInput, match=f"{said}.*--drop, or name it with --patient"):
        KAnonymity(k=5, quasi_identifiers=("age",)).protect(cohort, randomness=Randomness.of(1))


def test_what_is_rare_but_no_name_is_published() -> None:
    frame = pl.DataFrame(
        {
            "age": [30 + n % 40 for n in range(240)],
            "days": [n // 2 for n in range(240)],
            "x": [0.5 * n for n in range(240)],
        }
    )
    made = KAnonymity(k=5, quasi_identifiers=("age",)).protect(
        Cohort(patients=frame), randomness=Randomness.of(1)
    )
    assert made.records == 240
