"""Orders that say something are refuted, random ones are not; the statistics have the variance that is stated."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.verify.order import FEWEST, LIMIT, deviations, first_rows, of_first_rows, order_check, ranks_of


@pytest.mark.parametrize("n", [FEWEST])
def test_the_statistics_have_mean_0_and_variance_1_over_all_permutations(n: int) -> None:
    found = [deviations(np.array(each)) for each in list(permutations(range(n)))[::7]]
    for statistic in found[0]:
        values = np.array([each[statistic] for each in found])
        assert abs(values.mean()) < 0.02
        assert abs(values.std() - 1) < 0.02


@pytest.mark.parametrize("order", ["sorted", "reversed", "grouped", "in turn", "sorted but for a tenth"])
def test_an_order_that_says_something_is_refuted(order: str) -> None:
    n = 200
    places = np.arange(n)
    groups = np.random.Generator(np.random.Philox(key=1)).permutation(n // 5)
    values = {
        "sorted": places,
        "reversed": places[::-1],
        "grouped": np.repeat(groups, 5),
        "in turn": np.argsort(places % 7, kind="stable"),
        "sorted but for a tenth": np.where(places % 10 == 0, places[::-1], places),
    }[order]
    assert not order_check("order", {"value": pl.Series(values)}, "rows").passed


def test_random_orders_are_not_refuted() -> None:
    draws = np.random.Generator(np.random.Philox(key=2))
    worst = max(
        abs(z)
        for _ in range(200)
        for z in deviations(ranks_of(pl.Series(draws.integers(0, 9, 300)))).values()
    )
    assert worst < LIMIT - 1.5


def test_ties_say_nothing_and_lists_and_nulls_have_ranks() -> None:
    assert order_check("order", {"value": pl.Series([1] * 500)}, "rows").passed
    assert sorted(ranks_of(pl.Series([["b"], ["a", "b"], None, ["a"]]))) == [0, 1, 2, 3]
    assert list(ranks_of(pl.Series(["b", None, "a"]))) == [2, 0, 1]


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=20), st.integers(0, 20))
def test_first_rows_of_records_are_those_of_the_parts_of_a_file(record: list[int | None], cut: int) -> None:
    column = pl.Series(record, dtype=pl.Int64)
    codes = pl.Series([[str(place)] for place in range(len(record))], dtype=pl.List(pl.String))
    table = pl.DataFrame({"record": column, "codes": codes})
    parts = [of_first_rows(part) for part in (table.head(cut), table.slice(cut)) if part.height]
    whole = of_first_rows(table)
    assert whole["codes"].to_list() == [str(p) for p in column.is_first_distinct().arg_true()]
    assert not parts or of_first_rows(pl.concat(parts)).equals(whole)


@pytest.mark.parametrize("record", [[0, 0, 1, 2, 2], [0, 1, 2], [2, 0, 2, 1], [None, None, 0], []])
def test_first_rows_of_records(record: list[int | None]) -> None:
    column = pl.Series("record", record, dtype=pl.Int64)
    assert first_rows(column).to_list() == column.is_first_distinct().to_list()
