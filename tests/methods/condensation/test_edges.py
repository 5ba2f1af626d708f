"""Tables at the edge: one value, no value, a level seen once, dates, blanks, missing responses, too few rows."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.cohort.sources import read_table
from tests.methods.condensation.tables import no_repetitions  # noqa: F401  # a fixture

from leeward.cohort.readers import read
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.condensation import Condensation
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import Anonymized

N = 60
ALGORITHMS = ("balanced", "improved", "condensation", "tfrp")
X = pl.DataFrame({"x": np.arange(N), "g": ["a", "b", "c"] * (N // 3)})


def run(frame: pl.DataFrame, **parameters: Any) -> Anonymized:
    method = KAnonymity(**parameters) if "quasi_identifiers" in parameters else Condensation(**parameters)
    return method.protect(read_table(frame), randomness=Randomness.of(1))


def released(made: Anonymized) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(list(made.tables[0].batches()), made.tables[0].schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("value", [7, 2.5, "only", True, datetime.date(2020, 2, 29)])
def test_a_column_of_one_value_keeps_it(algorithm: str, value: Any) -> None:
    frame = X.with_columns(one=pl.lit(value))
    made = released(run(frame, k=5, algorithm=algorithm))
    assert made.schema == frame.schema
    assert made["one"].unique().to_list() == [value]


def test_a_table_of_one_value_alone_is_released_and_told() -> None:
    made = run(pl.DataFrame({"one": [3] * 20}), k=5)
    assert released(made)["one"].to_list() == [3] * 20
    assert any("rows that are all alike" in notice for notice in made.notices)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", [pl.Float64, pl.Int64, pl.String, pl.Boolean, pl.Date, pl.Null])
def test_an_all_missing_column_stays_empty_and_is_told(algorithm: str, kind: Any) -> None:
    frame = X.with_columns(pl.Series("none", [None] * N, dtype=kind))
    made = run(frame, k=5, algorithm=algorithm)
    assert released(made).schema == frame.schema
    assert released(made)["none"].null_count() == N
    assert any("1 columns have no value and are released empty" in notice for notice in made.notices)


def test_a_table_without_any_value_is_refused() -> None:
    with pytest.raises(BadInput, match="no column with values is left"):
        run(pl.DataFrame({"none": pl.Series([None] * N, dtype=pl.Int64)}), k=5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_level_seen_once_is_withheld_and_told(algorithm: str) -> None:
    frame = X.with_columns(g=pl.when(pl.col("x") == 9).then(pl.lit("once")).otherwise("g"))
    made = run(frame, k=5, algorithm=algorithm)
    assert set(released(made)["g"]) == {"a", "b", "c"}
    assert made.custody["withheld_levels"] == {"g": 1}
    assert any("1 levels of 1 columns, each in fewer than 5 rows" in notice for notice in made.notices)


def test_fewer_rows_than_k() -> None:
    for parameters in ({}, {"quasi_identifiers": ("x",)}):
        with pytest.raises(GuaranteeUnreachable, match="60 rows are fewer than k = 61"):
            run(X, k=61, **parameters)
    assert run(X.select("x"), k=60).custody["groups"] == 1


@pytest.mark.parametrize("k", [1, 0, -3])
def test_k_below_two(k: int) -> None:
    for kind in (Condensation, KAnonymity):
        with pytest.raises(BadInput, match=f"`k` must be a whole number of at least 2; got {k}"):
            kind(k=k)


def missing_every_fifth(name: str) -> pl.Expr:
    return pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col(name)).alias(name)


def test_coefficients_that_withheld_levels_take_out_of_a_model_are_counted() -> None:
    levels = ["a", "b", "c"] * 18 + ["d"] * 3 + ["e"] * 3
    frame = X.with_columns(g=pl.Series(levels), y=pl.Series(np.arange(N) % 7))
    plan = ({"linear": {"response": "y", "covariates": ["x", "g"]}},)
    made = run(frame, k=10, plan=plan)
    (notice,) = [each for each in made.notices if "coefficients" in each]
    assert "(2 of 'g') take 2 of 5 coefficients out of this model" in notice
    kept = run(frame, k=10, plan=plan, rare="keep")
    assert not [each for each in kept.notices if "coefficients" in each]


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_a_missing_response_stays_missing_as_often(kind: str) -> None:
    frame = X.with_columns(y=pl.col("x") % 2).with_columns(missing_every_fifth("y"))
    plan = ({kind: {"response": "y", "covariates": ["x", "g"]}},)
    made = run(frame, k=6, plan=plan)
    assert released(made)["y"].null_count() == 12
    assert released(made)["y"].sum() == frame["y"].sum()
    filled = run(frame, k=6, plan=plan, missing="impute")
    assert released(filled)["y"].null_count() == 0
    assert filled.custody["imputed"] == {"y": 12}


@pytest.mark.parametrize("column", ["t", "e"])
def test_a_missing_time_or_event_is_refused_by_row(column: str) -> None:
    frame = X.with_columns(t=pl.col("x") + 1, e=pl.col("x") % 2).with_columns(missing_every_fifth(column))
    plan = ({"cox": {"time": "t", "event": "e", "covariates": ["g"]}},)
    message = rf"column '{column}', an outcome of plan\[1\].cox, is missing in 12 rows \(rows 1, 6, 11"
    with pytest.raises(BadInput, match=message):
        run(frame, k=5, plan=plan)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_dates_and_moments_stay_inside_their_range(algorithm: str) -> None:
    day, moment = datetime.date(2011, 3, 1), datetime.datetime(2011, 3, 1, 8, 30)
    frame = X.with_columns(
        day=pl.lit(day) + pl.duration(days=pl.col("x") * 9),
        moment=pl.lit(moment) + pl.duration(minutes=pl.col("x") * 77),
    ).with_columns(missing_every_fifth("day"))
    made = released(run(frame, k=6, algorithm=algorithm))
    assert made.schema == frame.schema
    for name in ("day", "moment"):
        known = made[name].drop_nulls()
        assert frame[name].min() <= known.min() <= known.max() <= frame[name].max()
    assert made["moment"].null_count() == 0


def test_a_date_is_no_survival_time() -> None:
    frame = X.with_columns(day=pl.date(2020, 1, 1))
    with pytest.raises(BadInput, match="the time 'day' must be a number; it holds Date"):
        run(frame, k=5, time="day")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_blanks_around_texts_go_and_inside_them_stay(algorithm: str, tmp_path: Path) -> None:
    """' a' and 'a ' are read as 'a', 'a b' stays, a blank field is missing; a column's name may hold blanks too."""
    path = tmp_path / "blanks.csv"
    levels = ['" a"', '"a "', "a b", ""]
    path.write_text("site of origin,x\n" + "".join(f"{levels[i % 4]},{i}\n" for i in range(N)))
    cohort = read(path, format="table")
    made = released(Condensation(k=5, algorithm=algorithm).protect(cohort, randomness=Randomness.of(1)))  # type: ignore[arg-type]  # a name
    assert cohort.patients is not None
    assert made.columns == ["site of origin", "x"]
    assert set(cohort.patients["site of origin"].drop_nulls()) == {"a", "a b"}
    assert set(made["site of origin"].drop_nulls()) <= {"a", "a b"}
    if algorithm == "balanced":
        before, after = (
            frame["site of origin"].value_counts().sort("site of origin") for frame in (cohort.patients, made)
        )
        assert before.equals(after)


def test_few_missing_values_are_imputed_many_are_a_level() -> None:
    """Fewer than k missing values would point at patients: they are imputed whatever is asked, and told."""
    few = X.with_columns(g=pl.when(pl.col("x") < 4).then(None).otherwise("g"))
    many = X.with_columns(g=pl.when(pl.col("x") < 5).then(None).otherwise("g"))
    for frame, missing in ((few, 0), (many, 5)):
        made = run(frame, k=5)
        assert released(made)["g"].null_count() == missing
        assert made.custody["imputed"] == ({"g": 4} if missing == 0 else {})


def test_more_columns_than_rows_on_every_algorithm() -> None:
    random = np.random.default_rng(1)
    frame = pl.DataFrame({f"g{i}": random.normal(size=40) for i in range(90)})
    for algorithm in ALGORITHMS:
        made = run(frame, k=8, algorithm=algorithm)
        assert released(made).shape == (40, 90)
        assert made.custody["least"] >= 8
        assert not released(made).join(frame, on=frame.columns, how="semi").height


def test_strata_below_k_are_withheld_from_every_file() -> None:
    frame = X.with_columns(s=pl.when(pl.col("x") < 4).then(pl.lit("few")).otherwise(pl.lit("many")))
    made = run(frame, k=5, strata="s", plan=())
    assert made.records == 56
    assert made.custody["withheld_rows"] == 4
    assert any("4 rows in strata of fewer than 5 rows were withheld" in each for each in made.notices)
    (rows,) = [each for each in made.custody_tables if each.path == "source_rows.parquet"]
    table = pa.Table.from_batches(list(rows.batches()), rows.schema)
    assert sorted(table["row"].to_pylist()) == list(range(5, 61))


def test_numbers_of_records_are_refused_unless_they_are_declared_or_planned() -> None:
    """A whole number that differs in every row is an identifier until somebody says what it measures."""
    n = 300
    frame = pl.DataFrame({"id": np.arange(n)[::-1], "y": [0, 1, 2] * (n // 3), "z": np.linspace(0, 1, n)})
    with pytest.raises(BadInput, match="every row of 'id' has a different whole number, which looks like"):
        run(frame, k=5)
    domains = {"id": {"low": 0, "high": 1_000}}
    declared = Condensation(k=5).protect(read_table(frame, domains=domains), randomness=Randomness.of(1))
    assert declared.records == n
    plan = ({"linear": {"response": "y", "covariates": ["id"]}},)
    assert run(frame, k=5, plan=plan).records == n
    assert run(frame.with_columns(id=pl.col("id") // 2), k=5).records == n


def test_a_plan_may_name_its_keys_in_any_order() -> None:
    """The manifest has one order, which its contract asks for."""
    written = {"cox": {"covariates": "age", "event": "died", "time": "days"}}
    (model,) = Condensation(k=5, plan=(written,)).plan
    assert list(model["cox"].items()) == [("time", "days"), ("event", "died"), ("covariates", ["age"])]
