"""Classes of at least k patients (docs/methods/whole-patient.md#classes)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import whole_patient as oracle

from leeward.analysis.demographics import Columns, classes_of, columns_of
from leeward.errors import GuaranteeUnreachable
from leeward.randomness import Randomness

KEEP = {"age": 10, "sex": "exact"}


def columns(people: list[tuple[int | None, str]]) -> Columns:
    patients = pl.DataFrame(
        {
            "patient": range(len(people)),
            "age": pl.Series([age for age, _ in people], dtype=pl.Int64),
            "sex": [sex for _, sex in people],
        }
    )
    return columns_of(
        patients, patients["patient"], ("age", "sex"), {"age": "intervals"}, {"sex": "all"}, "made up"
    )


def cohorts() -> st.SearchStrategy[list[tuple[int | None, str]]]:
    person = st.tuples(st.one_of(st.none(), st.integers(0, 99)), st.sampled_from(["F", "M", "other"]))
    return st.lists(person, min_size=6, max_size=40)


@given(cohorts(), st.integers(2, 6), st.booleans())
def test_merged_classes_have_the_sizes_of_the_oracle(
    people: list[tuple[int | None, str]], k: int, kept: bool
) -> None:
    found = columns(people)
    names = frozenset({"sex"} if kept else ())
    classes = classes_of(found, KEEP, k, "merge", Randomness.of(1), names)
    trees = [dict(column.tree.to_pairs()) for column in found.columns]
    vectors = [found.labels(vector) for vector in found.vectors(KEEP)]
    rank = {
        vector: place
        for place, vector in enumerate(map(found.labels, np.unique(found.vectors(KEEP), axis=0)))
    }
    expected = oracle.merged(trees, vectors, k, [1, 1_000 if kept else 1], rank)
    assert dict(zip(classes.labels, classes.sizes.tolist(), strict=True)) == dict(expected)


@given(cohorts(), st.integers(2, 6), st.sampled_from(["merge", "suppress", "drop"]), st.integers(0, 3))
def test_every_class_has_k_patients_whom_its_labels_fit(
    people: list[tuple[int | None, str]], k: int, small: str, seed: int
) -> None:
    found = columns(people)
    try:
        classes = classes_of(found, KEEP, k, small, Randomness.of(seed))
    except GuaranteeUnreachable:
        assert small == "drop"
        return
    assert classes.sizes.min() >= k and len(set(classes.labels)) == len(classes)
    assert (classes.left_out > 0) <= (small == "drop")
    for i, column in enumerate(found.columns):
        inside = classes.of_record >= 0
        published = classes.vectors[classes.of_record[inside], i]
        assert column.tree.is_ancestor(published, column.node[inside]).all()
    counts = Counter(tuple(v) for v in found.vectors(KEEP).tolist())
    assert classes.small == sum(n for n in counts.values() if n < k)


def test_a_large_class_gives_as_many_as_a_small_one_lacks() -> None:
    found = columns([(70, "F")] * 50 + [(71, "other")] * 2)
    classes = classes_of(found, KEEP, 5, "merge", Randomness.of(1))
    assert dict(zip(classes.labels, classes.sizes.tolist(), strict=True)) == {
        ("70-79", "F"): 47, ("70-79", "*"): 5
    }  # fmt: skip
    assert (classes.small, classes.taken, classes.left_out) == (2, 3, 0)
    other = classes_of(found, KEEP, 5, "merge", Randomness.of(2))
    assert not np.array_equal(classes.of_record, other.of_record)  # who is taken is drawn


def test_kept_columns_are_generalized_last() -> None:
    people = [(70, "F")] * 20 + [(30, "M")] * 20 + [(71, "M")] * 2
    kept = classes_of(columns(people), KEEP, 5, "merge", Randomness.of(1), frozenset({"sex"}))
    assert ("*", "M") in kept.labels
    kept = classes_of(columns(people), KEEP, 5, "merge", Randomness.of(1), frozenset({"age"}))
    assert ("70-79", "*") in kept.labels


@pytest.mark.parametrize("small", ["merge", "suppress", "drop"])
def test_fewer_than_k_patients(small: str) -> None:
    with pytest.raises(GuaranteeUnreachable):
        classes_of(columns([(70, "F")] * 4), KEEP, 5, small, Randomness.of(1))


@given(cohorts(), st.integers(2, 6), st.randoms(use_true_random=False))
def test_classes_without_a_draw_are_those_of_the_oracle(
    people: list[tuple[int | None, str]], k: int, random: Any
) -> None:
    found = columns(people)
    exact = found.vectors({})
    _, number = np.unique(exact, axis=0, return_inverse=True)
    alike = number.reshape(-1) * 3 + np.array([random.randrange(3) for _ in people])
    classes = classes_of(found, KEEP, k, "merge", Randomness.of(1), frozenset(), alike)
    vectors = [found.labels(vector) for vector in found.vectors(KEEP)]
    rank = {
        each: place for place, each in enumerate(map(found.labels, np.unique(found.vectors(KEEP), axis=0)))
    }
    trees = [dict(column.tree.to_pairs()) for column in found.columns]
    expected = oracle.merged_alike(trees, vectors, alike.tolist(), k, [1, 1], rank)
    assert [classes.labels[c] for c in classes.of_record] == expected
    assert min(classes.sizes) >= k


def test_without_a_draw_a_class_that_would_keep_fewer_than_k_gives_all() -> None:
    """Two and two alike, of which one is wanted: two would stay, whose nearest class is another one."""
    people = [(70, "F")] * 4 + [(71, "other")] * 2 + [(60, "F")] * 5
    alike = np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 3])
    classes = classes_of(columns(people), KEEP, 3, "merge", Randomness.of(1), frozenset(), alike)
    assert dict(zip(classes.labels, classes.sizes.tolist(), strict=True)) == {
        ("70-79", "*"): 6, ("60-69", "F"): 5
    }  # fmt: skip
