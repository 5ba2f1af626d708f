"""Classes are joined until no sensitive value is frequent in any (docs/methods/whole-patient.md#sensitive-columns)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.analysis.demographics import columns_of
from leeward.analysis.demographics.classes import (
    Classes,
    classes_of,
    count_values,
    diversify_classes,
    sensitive_columns,
)
from leeward.errors import GuaranteeUnreachable
from leeward.randomness import Randomness

K = 2


def classes_at(ages: list[int], sexes: list[str]) -> Classes:
    patients = pl.DataFrame({"patient": range(len(ages)), "age": ages, "sex": sexes})
    columns = columns_of(patients, patients["patient"], ("age", "sex"), {}, {}, "test")
    return classes_of(columns, {"age": 20}, K, "merge", Randomness.of(1))


def rare(classes: Classes, values: list[str | None], ell: int) -> bool:
    """The definition, plainly: in each class a value is that of at most 1 in `ell` records."""
    for number in range(len(classes)):
        inside = [value for value, c in zip(values, classes.of_record, strict=True) if c == number]
        if any(inside.count(value) * ell > len(inside) for value in inside if value is not None):
            return False
    return True


def test_worked_example_of_ten_patients_with_a_sensitive_column() -> None:
    """k = 2 and L = 2: both women of 40-59 are positive. With the other women three of five would be."""
    classes = classes_at([62, 64, 67, 63, 68, 70, 74, 78, 45, 52], list("FFFMMMMMFF"))
    values = ["pos", "neg", None, None, None, None, None, None, "pos", "pos"]
    hidden = sensitive_columns(pl.DataFrame({"hiv": values}), {"hiv": 2})
    found = diversify_classes(classes, hidden, frozenset())
    assert sorted(classes.labels) == [("40-59", "F"), ("60-79", "F"), ("60-79", "M")]
    assert dict(zip(found.labels, found.sizes.tolist(), strict=True)) == {
        ("40-79", "*"): 7,
        ("60-79", "F"): 3,
    }
    cheap = diversify_classes(
        classes,
        sensitive_columns(pl.DataFrame({"hiv": [None, *values[1:]]}), {"hiv": 2}),
        frozenset(),
    )
    assert dict(zip(cheap.labels, cheap.sizes.tolist(), strict=True)) == {
        ("40-79", "F"): 5,
        ("60-79", "M"): 5,
    }


@given(
    st.lists(
        st.tuples(st.integers(20, 99), st.sampled_from("FM"), st.sampled_from(["a", "b", "c", "d", None])),
        min_size=8,
        max_size=40,
    ).filter(lambda people: all([sex for _, sex, _ in people].count(each) != 1 for each in "FM")),
    st.integers(2, 3),
)
def test_every_class_keeps_k_records_labels_of_its_own_and_rare_values(
    people: list[tuple[int, str, str | None]], ell: int
) -> None:
    ages, sexes, values = (list(each) for each in zip(*people, strict=True))
    before = classes_at(ages, sexes)
    hidden = sensitive_columns(pl.DataFrame({"v": pl.Series(values, dtype=pl.String)}), {"v": ell})
    if any(values.count(value) * ell > len(values) for value in values if value is not None):
        with pytest.raises(GuaranteeUnreachable, match="patients have the same value"):
            diversify_classes(before, hidden, frozenset())
        return
    found = diversify_classes(before, hidden, frozenset())
    assert rare(found, values, ell) and found.sizes.min() >= K and found.sizes.sum() == len(people)
    assert len(set(found.labels)) == len(found) <= len(before)
    if rare(before, values, ell):
        assert found.labels == before.labels and (found.of_record == before.of_record).all()
    tree = before.columns.columns
    for record, number in enumerate(found.of_record):  # a class is only ever generalized
        for i, column in enumerate(tree):
            node = int(before.vectors[before.of_record[record], i])
            assert int(found.vectors[number, i]) in (node, *column.tree.ancestors(node))
    counted = count_values(found, hidden)
    assert counted["records"].sum() == len(people)
    for row in counted.rows(named=True):
        inside = np.flatnonzero(found.of_record == row["class"])
        assert row["records"] == [values[i] for i in inside].count(row["value"])
