"""Sequential trees and the copula, comparators of the study of condensation, on tables with known answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leeward.cohort.lenses.table import Table, table_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def random(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def half_and_half() -> Table:
    """Fifty rows a sex, with ages that tell the sex."""
    rows = {"sex": ["f"] * 50 + ["m"] * 50, "age": [*range(20, 70), *range(120, 170)]}
    return table_of(pl.DataFrame(rows), {}, "table")


def test_a_leaf_of_so_many_rows_is_where_values_are_drawn() -> None:
    """With 30 rows a leaf, the sexes are apart; a leaf of 60 has rows of both."""
    from synthesizers import by_trees

    table = half_and_half()
    apart = by_trees(table, ["sex", "age"], 30, random())
    assert apart.height == 100 and apart.columns == ["sex", "age"]
    assert set(apart["age"]) <= set(table.frame["age"])
    assert ((apart["sex"] == "f") == (apart["age"] < 100)).all()
    mixed = by_trees(table, ["sex", "age"], 60, random())
    assert ((mixed["sex"] == "f") != (mixed["age"] < 100)).any()
    levels = by_trees(table, ["age", "sex"], 30, random())
    assert ((levels["sex"] == "f") == (levels["age"] < 100)).all()


def test_the_copula_keeps_margins_and_correlations() -> None:
    from synthesizers import by_copula

    given = random(2).standard_normal((4_000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    stage = np.where(
        given[:, 1] > 0.5, "late", np.where(random(3).random(4_000) < 0.5, "early", "a middle one")
    )
    rows = {"age": np.round(60 + 10 * given[:, 0]).astype(int), "stage": stage, "time": np.exp(given[:, 1])}
    table = table_of(pl.DataFrame(rows), {}, "table")
    made = by_copula(table, "time", random(4))
    assert made.schema == table.frame.schema
    assert all(set(made[name]) <= set(table.frame[name]) for name in made.columns)
    both = (table.frame, made)
    before, after = (np.corrcoef(each["age"], each["time"].log())[0, 1] for each in both)
    assert abs(before - 0.8) < 0.05 and abs(after - before) < 0.05
    late = [each.filter(pl.col("stage") == "late") for each in both]
    assert abs(late[0].height - late[1].height) < 200
    means = [each["time"].log().mean() for each in late]
    others = [each.filter(pl.col("stage") != "late")["time"].log().mean() for each in both]
    assert all(mean > other + 0.8 for mean, other in zip(means, others, strict=True))  # type: ignore[operator]


def test_a_column_of_one_value_stays_as_it_is() -> None:
    from synthesizers import by_copula, by_trees

    table = table_of(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [7] * 20}), {}, "table")
    assert set(by_copula(table, "x", random())["y"]) == {7}
    assert set(by_trees(table, ["x", "y"], 5, random())["y"]) == {7}
