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
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.k_anonymity.method import distance_to_all, limit_of, mondrian
from leeward.randomness import Randomness
from leeward.report.summary import DOORS_SHOWN


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


def test_worked_example_of_the_ordered_distance() -> None:
    """Li, Li and Venkatasubramanian (2007): salaries 3 to 11, and classes with 3, 4, 5 and with 6, 8, 11."""
    salaries = distance_to_all(pl.Series(range(3, 12)))
    assert salaries(np.array([0, 1, 2])) == pytest.approx(0.375)
    assert salaries(np.array([3, 5, 8])) == pytest.approx(1 / 6)
    assert oracle.ordered_distance([3, 4, 5], range(3, 12)) == oracle.Fraction(3, 8)
    levels = distance_to_all(pl.Series(["a", "a", "b", "c"]))
    assert levels(np.array([0, 1])) == pytest.approx(0.5)


VALUES = st.lists(
    st.tuples(
        st.integers(0, 5), st.sampled_from(["a", "b", "c", None]), st.sampled_from([None, 1.5, 2.0, 7.0])
    ),
    min_size=4,
    max_size=30,
)


@given(VALUES, st.integers(2, 3), st.integers(2, 3), st.sampled_from([0.2137, 0.4711]))
def test_groups_with_sensitive_columns_equal_the_oracle(
    rows: list[tuple[int, str | None, float | None]], k: int, ell: int, t: float
) -> None:
    xs, levels, costs = (list(each) for each in zip(*rows, strict=True))
    frame = pl.DataFrame(
        {"x": xs, "level": pl.Series(levels, dtype=pl.String), "cost": pl.Series(costs, dtype=pl.Float64)}
    )
    method = KAnonymity(
        k=k, quasi_identifiers=("x",), sensitive_columns={"level": ell}, closeness={"cost": t, "level": 0.8}
    )
    table = read_table(frame).table()
    if oracle.is_frequent(levels, ell):
        with pytest.raises(GuaranteeUnreachable, match=r"`sensitive_columns\.level`"):
            limit_of(method, table)
        return
    numbers = [-1.0 if cost is None else cost for cost in costs]

    def may_stand(part: list[int]) -> bool:
        far = oracle.ordered_distance([numbers[i] for i in part], numbers) > t
        apart = oracle.equal_distance([levels[i] for i in part], levels) > oracle.Fraction(0.8)
        return not (far or apart or oracle.is_frequent([levels[i] for i in part], ell))

    labels = mondrian(np.array(xs, float)[:, None], k, limit_of(method, table))
    found = {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}
    assert found == oracle.mondrian([(float(x),) for x in xs], k, may_stand)


def test_the_first_screen_says_that_fewer_than_k_rows_may_be_a_patients() -> None:
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "hiv": ["a", "b", "a", "b"], "ward": [1, 2, 3, 4]})
    method = KAnonymity(k=2, quasi_identifiers=("age",), sensitive_columns={"hiv": 2})
    shown = method.protect(read_table(frame)).guarantee.not_protected[:DOORS_SHOWN]
    assert "fewer than k rows may be the patient's" in " ".join(shown)


def test_sensitive_columns_that_contradict_others_are_refused() -> None:
    frame = pl.DataFrame({"age": [30, 31, 32, 33], "hiv": ["a", "b", "c", "d"]})
    with pytest.raises(BadInput, match="`hiv` is sensitive and in `quasi_identifiers`"):
        KAnonymity(k=2, quasi_identifiers=("hiv",), closeness={"hiv": 0.5})
    with pytest.raises(BadInput, match="`closeness` must name a column with its T"):
        KAnonymity(k=2, closeness={})
    with pytest.raises(BadInput, match="every column is sensitive"):
        KAnonymity(k=2, closeness={"hiv": 0.5}, sensitive_columns={"age": 2}).protect(read_table(frame))
    with pytest.raises(BadInput, match="names the column 'hvi'"):
        KAnonymity(k=2, closeness={"hvi": 0.5}).protect(read_table(frame))


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
