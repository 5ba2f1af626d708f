"""Measures of what a table keeps for any use, against scikit-learn and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given
from hypothesis import strategies as st
from tests.cohort.sources import read_table

from leeward.errors import BadInput
from leeward.methods.condensation import report
from leeward.methods.condensation.measures import utility
from leeward.methods.condensation.measures.attacks import area
from leeward.methods.condensation.measures.columns import Both, Groups
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
    both = both_of(source, source, plan=PLAN)
    (line,), (forest,) = (
        utility.prediction(both, classifier=name) or [{}] for name in ("logistic", "forest")
    )
    assert line["before"] < 0.7 < 0.95 < forest["before"] == forest["after"]


def test_what_cannot_be_predicted() -> None:
    source = patients(40)
    cox = [{"cox": {"time": "x", "event": "died", "covariates": ["y"]}}]
    assert utility.prediction(both_of(source, source, plan=cox)) is None
    with pytest.raises(BadInput, match="`folds` must be at least 2"):
        utility.prediction(both_of(source, source, plan=PLAN), folds=1)
    with pytest.raises(BadInput, match="`bins` must be at least 2"):
        utility.mutual_information(both_of(source, source), bins=1)


def test_the_report_shows_them_beside_each_other() -> None:
    source = patients()
    both = both_of(source, source, plan=PLAN, quasi_identifiers=["x"])
    shown = utility.discernibility, utility.mutual_information, utility.prediction
    measures = {each.__name__: each(both) for each in shown}
    section = report.any_use(measures)
    assert section is not None
    (table,) = section.parts
    assert isinstance(table, Table)
    assert [row[1] == row[2] for row in table.rows] == [True] * 3
    assert table.rows[0][1] == "1"
    assert report.any_use({}) is None
