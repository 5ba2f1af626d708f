"""Demographic columns, their hierarchies and levels (docs/methods/whole-patient.md#hierarchies)."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from leeward.analysis.demographics import Column, columns_of
from leeward.analysis.demographics.columns import interval_of, texts_of
from leeward.errors import BadInput


def column(values: list[Any], name: str = "age", hierarchy: str | None = None, **keep: Any) -> Column:
    patients = pl.DataFrame({"patient": range(len(values)), name: values})
    named = {} if hierarchy is None else {name: hierarchy}
    return columns_of(patients, patients["patient"], (name,), named, keep, "made up").columns[0]


def labels(found: Column, level: Any) -> list[str]:
    return [found.tree.labels[node] for node in found.at(level)[found.node]]


def test_numbers_in_intervals_of_each_width() -> None:
    found = column([73.0, 79.0, 80.0, 5.0, None, 73.9])
    assert labels(found, "exact") == ["73", "79", "80", "5", "(missing)", "73"]
    assert labels(found, 5) == ["70-74", "75-79", "80-84", "5-9", "(missing)", "70-74"]
    assert labels(found, 10) == ["70-79", "70-79", "80-89", "0-9", "(missing)", "70-79"]
    assert labels(found, 40) == ["40-79", "40-79", "80-119", "0-39", "(missing)", "40-79"]
    assert labels(found, "all") == ["*"] * 6
    assert (found.kind, found.missing) == ("intervals", 1)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [("73", (73, 73)), ("73.5", (73, 73)), ("70-79", (70, 79)), ("[70-80)", (70, 79)), ("(69, 79]", (70, 79)),
     ("70 to 79", (70, 79)), ("Female", None), ("9-3", None), ("", None)],
)  # fmt: skip
def test_intervals_as_they_come_in_a_file(text: str, bounds: tuple[int, int] | None) -> None:
    assert interval_of(text) == bounds


def test_a_column_of_decades_is_published_as_decades_or_wider_and_never_finer() -> None:
    found = column(["[70-80)", "[60-70)", "90+"])
    assert labels(found, 10) == ["70-79", "60-69", "90+"]
    assert labels(found, 20) == ["60-79", "60-79", "90+"]
    assert found.levels() == ["exact", 20, "all"]  # 40 publishes what 20 does
    with pytest.raises(BadInput, match="2 records have an interval of more than 5"):
        found.at(5)


def test_an_interval_across_a_border_has_the_root_above_it() -> None:
    found = column(["25-44", "18-24", "45-59"])
    assert labels(found, 40) == ["25-44", "0-39", "40-79"]


def test_post_codes_by_prefix() -> None:
    found = column(["44113", "44199", "4411", None], name="zip")
    assert labels(found, 3) == ["441**", "441**", "441*", "(missing)"]
    assert labels(found, 4) == ["4411*", "4419*", "4411", "(missing)"]
    assert column([44113, 44199], name="postal_code").kind == "prefix"
    assert found.levels()[0] == "exact" and found.levels()[-1] == "all"


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        ([1, 2, 1, 1], "sex", "exact"),
        ([30, 31], "age_at_entry", "intervals"), ([1960, 1970], "birth year", "intervals"),
        (["0-9", "10-19"], "band", "intervals"), (["F", "M", "F", "M"], "sex", "exact"), (["a", "a"], "stage", "exact"),
    ],
)  # fmt: skip
def test_the_hierarchy_of_a_column_without_one(values: list[Any], name: str, kind: str) -> None:
    assert column(values, name, **({} if kind == "intervals" else {name: "all"})).kind == kind


def test_loss_is_leaves_below_by_all_leaves() -> None:
    found = column([62, 64, 67, 63, 68, 70, 74, 78, 45, 52])
    losses = dict(zip(found.tree.labels, found.losses.tolist(), strict=True))
    assert (losses["60-79"], losses["40-59"], losses["40-79"], losses["62"], losses["*"]) == (
        0.8,
        0.2,
        1.0,
        0,
        1,
    )


@pytest.mark.parametrize(
    ("values", "name", "hierarchy", "message"),
    [
        (["a1", "b2", "c3"], "mrn", None, "is an identifier"),
        (["old", "12"], "age", None, "1 of 2 distinct values are neither numbers nor intervals"),
        (["44/113", "44113"], "zip", None, "have characters that a prefix cannot keep"),
        (["x" * 65, "44113"], "zip", None, "use at most 64 letters, digits"),
        (["*", "a", "a", "*"], "stage", None, "stands for 'not published'"),
        ([1, 2, 2], "class", None, "cannot be named 'class'"),
        (["a", "a"], "../x", None, "cannot be named"),
    ],
)
def test_columns_that_cannot_be_released(
    values: list[Any], name: str, hierarchy: str | None, message: str
) -> None:
    with pytest.raises(BadInput) as stopped:
        column(values, name, hierarchy)
    assert message in str(stopped.value)
    assert not any(str(value) in str(stopped.value) for value in ("a1", "b2", "old", "44/113"))


def test_a_patient_twice_is_refused() -> None:
    patients = pl.DataFrame({"patient": [1, 1, 2], "sex": ["F", "M", "M"]})
    with pytest.raises(BadInput, match="2 rows of the patients are of patients who occur more than once"):
        columns_of(patients, pl.Series([1, 2]), ("sex",), {}, {}, "made up")


def test_numbers_too_large_for_whole_ones_stay_as_they_are_written() -> None:
    assert texts_of(pl.Series([2.0, None, 3.0])).to_list() == ["2", "(missing)", "3"]
    assert texts_of(pl.Series([2.0, 2.0**64])).to_list()[0] == "2.0"
    assert texts_of(pl.Series([2.0, float("inf")])).to_list() == ["2.0", "inf"]
