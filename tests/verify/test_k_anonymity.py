"""The verifier of k-anonymity of tables, by breaking releases: one violation a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given
from hypothesis import strategies as st
from tests.forging import by_method, restate, write_parquet
from tests.laws.cases import cohort_of_table
from tests.oracles import k_anonymity as oracle

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.verify.k_anonymity.check import distances


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return lw.protect(cohort_of_table(), lw.KAnonymity(k=5), tmp_path / "out", seed=1).path


def failures(out: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> set[str]:
    """What fails, alone and beside the source, when the table is changed and the manifest made to fit."""
    file = out / "share/data/table.parquet"
    write_parquet(change(pl.read_parquet(file)), file)
    restate(out)
    return by_method(lw.verify(out, cohort_of_table()))


def test_an_untouched_release_passes(out: Path) -> None:
    assert failures(out, lambda table: table) == set()


def test_a_row_that_agrees_with_fewer_than_k_is_caught(out: Path) -> None:
    one = pl.int_range(pl.len()) == 0
    changed = pl.when(one).then(pl.lit(31)).otherwise("age").cast(pl.Int64)
    assert "k_anonymous_rows" in failures(out, lambda table: table.with_columns(age=changed))


def test_a_row_more_or_less_is_caught(out: Path) -> None:
    assert "rows" in failures(out, lambda table: table.tail(-1))


def test_a_column_more_is_caught(out: Path) -> None:
    assert "columns_and_types" in failures(out, lambda table: table.with_columns(name=pl.lit("x")))
    assert "columns_and_types" in failures(out, lambda table: table.select(table.columns[::-1]))


def test_a_value_that_nobody_may_have_is_caught(out: Path) -> None:
    assert "permissible_values" in failures(out, lambda table: table.with_columns(stage=pl.lit("IX")))


def test_a_row_lost_is_caught_with_the_source(out: Path) -> None:
    assert "every_row_once" in failures(out, lambda table: table.head(-1))


def test_a_level_that_is_not_the_groups_is_caught_with_the_source(out: Path) -> None:
    common = pl.col("stage").drop_nulls().mode().first()
    assert "typical_values" in failures(out, lambda table: table.with_columns(stage=common))


def test_a_number_that_is_not_the_groups_mean_is_caught_with_the_source(out: Path) -> None:
    assert "typical_values" in failures(out, lambda table: table.with_columns(age=pl.col("age") + 1))


def test_another_column_changed_is_caught_with_the_source(tmp_path: Path) -> None:
    method = lw.KAnonymity(k=5, quasi_identifiers=("age",))
    out = lw.protect(cohort_of_table(), method, tmp_path / "out", seed=1).path
    assert failures(out, lambda table: table.with_columns(stage=pl.col("stage").reverse())) == {
        "other_columns"
    }


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    """Stages are sensitive, and how many days the patients lived."""
    method = lw.KAnonymity(
        k=5,
        quasi_identifiers=("age", "sex"),
        sensitive_columns={"stage": 2},
        closeness={"days": 0.3, "died": 0.4},
    )
    return lw.protect(cohort_of_table(), method, tmp_path / "out", seed=1).path


def restated(out: Path, **changed: Any) -> set[str]:
    """What fails where the manifest states other limits."""
    file = out / "share/release.json"
    manifest = json.loads(file.read_text())
    manifest["parameters"].update(changed)
    file.write_text(json.dumps(manifest))
    restate(out)
    return by_method(lw.verify(out))


def test_limits_of_sensitive_columns_pass_untouched(hidden: Path) -> None:
    assert failures(hidden, lambda table: table) == set()


def test_a_sensitive_value_that_is_too_frequent_is_caught(hidden: Path) -> None:
    same = pl.when(pl.col("age") == pl.col("age").first()).then(pl.col("stage").first()).otherwise("stage")
    assert "sensitive_values_rare" in failures(hidden, lambda table: table.with_columns(stage=same))


def test_sensitive_values_far_from_the_tables_are_caught(hidden: Path) -> None:
    sorted_days = pl.col("days").sort().gather(pl.struct("age", "sex").rank("ordinal") - 1)
    assert "sensitive_values_near" in failures(hidden, lambda table: table.with_columns(days=sorted_days))


def test_limits_stricter_than_what_holds_are_caught(hidden: Path) -> None:
    assert "sensitive_values_rare" in restated(hidden, sensitive_columns={"stage": 5})
    assert "sensitive_values_rare" in restated(hidden, sensitive_columns={"stage": 2**62})
    assert "sensitive_values_near" in restated(hidden, closeness={"days": 0.01, "died": 0.4})
    assert "sensitive_values_rare" in restated(hidden, sensitive_columns={"ward": 2})


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4)), min_size=2, max_size=30))
def test_distances_are_the_oracles(rows: list[tuple[int, int]]) -> None:
    number, values = (list(each) for each in zip(*rows, strict=True))
    column = pl.Series([None if value < 0 else value for value in values], dtype=pl.Int64)
    for ordered in (True, False):
        found = distances(np.array(number), column if ordered else column.cast(pl.String))
        for each in set(number):
            own = [value for one, value in rows if one == each]
            wanted = (oracle.ordered_distance if ordered else oracle.equal_distance)(own, values)
            assert found[each] == pytest.approx(float(wanted), abs=1e-12)


def test_ordered_levels_and_numbers_of_every_kind_are_typical(tmp_path: Path) -> None:
    """Ordered levels have a mean place, that no row of a group may have; dates and decimals are rounded."""
    rows = 60
    frame = pl.DataFrame(
        {
            "grade": ["low", "middle", "high"] * (rows // 3),
            "day": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 2, 29), eager=True),
            "dose": [None if n % 7 == 0 else n * n % 31 / 10 for n in range(rows)],
            "sick": [n % 5 == 0 for n in range(rows)],
        }
    )
    domains = {"grade": {"levels": ["low", "middle", "high"], "ordered": True}}
    cohort = Cohort(patients=frame, name="made up", domains=domains)
    assert lw.protect(cohort, lw.KAnonymity(k=4), tmp_path / "out", seed=1).verification.passed
