"""Measures of what a table keeps for any use, against scikit-learn and by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.ensemble
import sklearn.metrics  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cohort.sources import read_table

from leeward.analysis.plan import models_of
from leeward.errors import BadInput
from leeward.methods.condensation import report
from leeward.methods.condensation.measures import utility
from leeward.methods.condensation.measures.attacks import area
from leeward.methods.condensation.measures.columns import SEED, Both, Groups
from leeward.release import Release
from leeward.report.sections import Table

PLAN = [{"logistic": {"response": "died", "covariates": ["x", "y"]}}]


def both_of(source: pl.DataFrame, made: pl.DataFrame, size: int = 5, **parameters: Any) -> Both:
    """A release whose groups are rows in a row."""
    rows, groups = np.arange(source.height), np.arange(source.height) // size
    release = Release(Path(), None, {"parameters": parameters})
    return Both(release, read_table(source).table(), made, Groups(rows, groups, groups))


def patients(rows: int = 400) -> pl.DataFrame:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, rows))
    died = random.random(rows) < 1 / (1 + np.exp(-3 * x))
    return pl.DataFrame({"x": x, "y": y, "died": died.astype(int)})


def test_discernibility_is_the_sum_of_squared_classes() -> None:
    rows = pl.DataFrame({"stage": ["I", "I", "I", "II", "II", "I"], "age": [40, 40, 40, 40, 40, 41]})
    assert utility.discernibility_of(rows) == 3**2 + 2**2 + 1
    made = rows.with_columns(age=40)
    found = utility.discernibility(both_of(rows, made, quasi_identifiers=["stage", "age"]))
    assert found == {"rows": 6, "before": 14, "after": 4**2 + 2**2}
    assert utility.discernibility(both_of(rows, made)) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40))
def test_what_columns_tell_of_each_other_is_scikit_learns(rows: list[tuple[int, int]]) -> None:
    a, b = np.array(rows).T
    assert utility.measure_information(a, b) == pytest.approx(
        sklearn.metrics.mutual_info_score(a, b) / np.log(2), abs=1e-9
    )


def test_mutual_information_of_a_table_whose_columns_were_parted() -> None:
    """Of two equal columns of four values each tells two bits, and none once one is shifted by half a turn of pairs."""
    source = pl.DataFrame({"a": list("abcd") * 4, "b": list("abcd") * 4, "c": [1.0] * 15 + [None]})
    made = source.with_columns(b=pl.Series([*"abcd", *"bcda", *"cdab", *"dabc"]))
    found = utility.mutual_information(both_of(source, made))
    assert found is not None
    assert found["largest_difference"] == pytest.approx(2.0)
    assert utility.mutual_information(both_of(source, source))["mean_difference"] == 0.0  # type: ignore[index]  # not None
    assert utility.mutual_information(both_of(source.select("a"), made.select("a"))) is None


def test_numbers_are_in_the_bins_of_conditional_privacy() -> None:
    """Twenty over the original's range; what is outside joins the outer bins."""
    source = pl.DataFrame({"x": [float(n) for n in range(21)], "y": [1, 2, 3] * 7})
    made = source.with_columns(x=pl.col("x") + 100)
    everybody = np.arange(21)
    before, after = utility._binned(both_of(source, made), "x", 20, [everybody, everybody])
    assert before.tolist() == [*range(1, 21), 20]
    assert set(after.tolist()) == {20}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40))
def test_the_area_under_the_curve_is_scikit_learns(rows: list[tuple[bool, int]]) -> None:
    outcome, told = (np.array(each) for each in zip(*rows, strict=True))
    if outcome.all() or not outcome.any():
        return
    assert area(told[outcome], told[~outcome]) == pytest.approx(sklearn.metrics.roc_auc_score(outcome, told))


def test_a_classifier_trained_on_the_release_is_tested_on_patients_it_has_not_seen() -> None:
    source = patients()
    (same,) = utility.prediction(both_of(source, source, plan=PLAN)) or []
    assert same["before"] == same["after"] > 0.85
    turned = source.with_columns(x=-pl.col("x"))
    (found,) = utility.prediction(both_of(source, turned, plan=PLAN)) or []
    assert found["before"] == same["before"]
    assert found["after"] < 0.15
    assert found["title"] == "logistic: died"


def test_rows_that_are_asked_about_are_trained_on_by_neither() -> None:
    """An outcome that only a patient's own row tells is guessed no better than by chance."""
    random = np.random.default_rng(2)
    died = random.integers(0, 2, 300)
    source = pl.DataFrame(
        {"x": random.permutation(300).astype(str), "y": random.normal(size=300), "died": died}
    )
    (found,) = utility.prediction(both_of(source, source, plan=PLAN)) or [{}]
    assert found["before"] is None or abs(found["before"] - 0.5) < 0.1


def test_a_forest_predicts_what_no_line_parts() -> None:
    source = patients(600).with_columns(died=(pl.col("x").abs() > 0.7).cast(pl.Int64))
    both = both_of(source, source, plan=[*PLAN, {"forest": PLAN[0]["logistic"]}])
    line, forest = utility.prediction(both, folds=2) or []
    assert line["before"] < 0.7 < 0.95 < forest["before"] == forest["after"]


def test_forests_are_scikit_learns() -> None:
    """Of two values the area under the curve of a classifier, of numbers R squared of a regressor."""
    source = patients(300)
    table, asked = read_table(source).table(), source[200:]
    x, y = (source.select(names).to_numpy() for names in (["x", "y"], ["y", "died"]))
    given = {"min_samples_leaf": 5, "random_state": SEED}
    (died, number) = models_of(
        [{"forest": PLAN[0]["logistic"]}, {"forest": {"response": "x", "covariates": ["y", "died"]}}]
    )
    classes = sklearn.ensemble.RandomForestClassifier(**given).fit(x[:200], source["died"][:200])
    told = classes.predict_proba(x[200:])[:, 1]
    assert utility.score_of(died, table, source[:200], asked, None) == pytest.approx(
        sklearn.metrics.roc_auc_score(asked["died"], told)
    )
    numbers = sklearn.ensemble.RandomForestRegressor(**given).fit(y[:200], source["x"][:200])
    assert utility.score_of(number, table, source[:200], asked, None) == numbers.score(y[200:], asked["x"])


ROWS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=2, max_size=30)


@settings(max_examples=25)
@given(ROWS, ROWS)
def test_counts_by_ranges_are_those_of_a_loop(source: list[Any], made: list[Any]) -> None:
    known = [set(column) for column in zip(*source, strict=True)]
    made = [row for row in made if row[0] in known[0] and row[1] in known[1]]
    random = np.random.Generator(np.random.Philox(SEED))
    errors = []
    for _ in range(5):
        ends = [source[place] for place in random.integers(0, len(source), 2)]
        asked = random.permutation(2)[: random.integers(1, 3)]
        low, high = (most(n for n, _ in ends) for most in (min, max))
        true, found = (
            sum(
                (0 not in asked or low <= n <= high)
                and (1 not in asked or stage in {level for _, level in ends})
                for n, stage in rows
            )
            for rows in (source, made)
        )
        errors.append(abs(found - true) / true)
    schema = {"n": pl.Int64, "stage": pl.String}
    before, after = (pl.DataFrame(rows, schema=schema, orient="row") for rows in (source, made))
    told = utility.range_counts(both_of(before, after), queries=5, columns=2, least=0)
    assert told["are"] == pytest.approx(np.mean(errors)) and told["queries"] == 5


def test_what_groups_leave_open() -> None:
    """Table 1 (A) of Gal et al. (2014) by hand: two rows a group; ages 54–55, 60, 62 of 54, 55, 60, 62; insurance."""
    source = pl.DataFrame(
        {
            "age": [54, 55, 60, 60, 62, 62],
            "insurance": ["No", "No", "HMO", "HMO", "HMO", "PPO"],
            "zip": list("abcdef"),
        }
    )
    found = utility.generalization(both_of(source, source, 2, quasi_identifiers=["age", "insurance"]))
    assert found is not None
    assert found["loss"] == pytest.approx((2 * (1 / 3) + 2 * (1 / 2)) / 12)
    assert found["height"] == pytest.approx((2 * 1 + 2 * 1) / 12)
    assert 10 ** found["ambiguity"] == pytest.approx((2 * 2 + 2 * 1 + 2 * 2) / 6)
    everything = utility.generalization(both_of(source, source, 6))
    assert everything == {
        "loss": 1.0,
        "height": pytest.approx(np.log2(4 * 3 * 6) / 3),
        "ambiguity": pytest.approx(np.log10(72)),
    }
    assert utility.generalization(replace(both_of(source, source), groups=None)) is None


def test_what_cannot_be_predicted() -> None:
    source = patients(40)
    cox = [{"cox": {"time": "x", "event": "died", "covariates": ["y"]}}]
    assert utility.prediction(both_of(source, source, plan=cox)) is None
    with pytest.raises(BadInput, match="`folds` must be at least 2"):
        utility.prediction(both_of(source, source, plan=PLAN), folds=1)
    with pytest.raises(BadInput, match="`queries` and `columns` must"):
        utility.range_counts(both_of(source, source), columns=0)
    with pytest.raises(BadInput, match="`bins` must be at least 2"):
        utility.mutual_information(both_of(source, source), bins=1)


def test_the_report_shows_them_beside_each_other() -> None:
    source = patients()
    both = both_of(source, source, plan=PLAN, quasi_identifiers=["x"])
    shown: list[Any] = [utility.discernibility, utility.generalization, utility.mutual_information]
    shown += [utility.range_counts, utility.prediction]
    measures = {each.__name__: each(both) for each in shown}
    section = report.any_use(measures)
    assert section is not None
    (table,) = section.parts
    assert isinstance(table, Table)
    assert [row[1] == row[2] for row in table.rows] == [True, False, False, False, True, True, True]
    assert [row[1] for row in table.rows[:4]] == ["1", "0.0 %", "0", "1"]
    assert report.any_use({}) is None
