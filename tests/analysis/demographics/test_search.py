"""The search for levels and cuts against a measured loss (docs/methods/whole-patient.md#search)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.analysis.demographics import Columns, classes_of, columns_of, search
from leeward.analysis.demographics.search import Setting, search_full, search_local
from leeward.randomness import Randomness


def columns(people: list[tuple[int, str]]) -> Columns:
    patients = pl.DataFrame(
        {
            "patient": range(len(people)),
            "age": pl.Series([age for age, _ in people], dtype=pl.Int64),
            "ward": [ward for _, ward in people],
        }
    )
    return columns_of(
        patients, patients["patient"], ("age", "ward"), {"ward": "prefix"}, {"ward": 9}, "made up"
    )


def setting(found: Columns, price: float, k: int = 3, **keep: Any) -> Setting:
    """Ten codes a record; a class of n records loses `price`/n of them: small classes are dear."""

    def lost(parts: Sequence[np.ndarray[Any, Any]]) -> list[int]:
        return [min(10 * len(part), round(10 * price)) if len(part) else 0 for part in parts]

    occurrences = np.full(found.records, 10, np.int64)
    return Setting(found, keep, k, "merge", Randomness.of(1), occurrences, lost)


def cohorts() -> st.SearchStrategy[list[tuple[int, str]]]:
    person = st.tuples(st.integers(20, 79), st.sampled_from(["aa", "ab", "ba", "bb"]))
    return st.lists(person, min_size=6, max_size=50)


@given(cohorts(), st.floats(0, 8))
def test_full_takes_the_vector_of_levels_with_the_least_objective(
    people: list[tuple[int, str]], price: float
) -> None:
    inside = columns(people)
    found = search_full(setting(inside, price))
    vectors = list(product(*(column.levels() for column in inside.columns)))
    if len(vectors) > search.MOST_CANDIDATES:
        return
    worked = setting(inside, price)
    objectives = [
        worked.measure(
            "",
            classes_of(inside, dict(zip(inside.names, levels, strict=True)), 3, "merge", Randomness.of(1)),
            None,
        ).objective
        for levels in vectors
    ]
    best = min(objectives)
    assert worked.measure("", found.classes, None).objective == pytest.approx(best)
    assert len(found.frontier) in (0, len(vectors))


@given(cohorts(), st.floats(0, 8), st.integers(2, 5))
def test_local_never_raises_the_objective_and_every_label_fits(
    people: list[tuple[int, str]], price: float, k: int
) -> None:
    inside = columns(people)
    found = search_local(setting(inside, price, k))
    objectives = [point.objective for point in found.frontier]
    assert objectives == sorted(objectives, reverse=True)
    assert found.classes.sizes.min() >= k and found.classes.left_out == 0
    for i, column in enumerate(inside.columns):
        published = found.classes.vectors[found.classes.of_record, i]
        assert column.tree.is_ancestor(published, column.node).all()
    again = search_local(setting(inside, price, k))
    assert again.frontier == found.frontier and again.classes.labels == found.classes.labels


def test_local_cuts_where_patients_are_many_and_not_where_they_are_few() -> None:
    people = [(60 + n % 20, "aa") for n in range(200)] + [(20 + n % 20, "bb") for n in range(6)]
    found = search_local(setting(columns(people), 2.0))
    sizes = {
        labels[0]: n for labels, n in zip(found.classes.labels, found.classes.sizes.tolist(), strict=True)
    }
    assert sizes == {"20-29": 6, "60-64": 50, "65-69": 50, "70-74": 50, "75-79": 50}


def test_dear_codes_leave_one_class_and_free_ones_the_finest() -> None:
    people = [(20 + n, "ab"[n % 2] * 2) for n in range(60)]
    for find in (search_full, search_local):
        dear = setting(columns(people), 0.0)
        dear.lost = lambda parts: [0 if len(part) == 60 else 100 * len(part) for part in parts]
        assert len(find(dear).classes) == 1
        assert len(find(setting(columns(people), 0.0)).classes) >= 10


def test_a_sample_is_searched_and_everybody_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCHED", 60)
    draw = np.random.Generator(np.random.Philox(2))
    people = [(int(age), "ab"[int(age) % 2] * 2) for age in draw.integers(20, 80, 300)]
    for find in (search_full, search_local):
        found = find(setting(columns(people), 1.0))
        assert found.classes.sizes.sum() == 300 and found.classes.sizes.min() >= 3
        assert found.frontier[-1].whole and not found.frontier[0].whole


def test_kept_columns_stay_as_kept() -> None:
    people = [(20 + n % 60, "ab"[n % 2] * 2) for n in range(200)]
    for find in (search_full, search_local):
        found = find(setting(columns(people), 1.0, age=20))
        assert {labels[0] for labels in found.classes.labels} == {"20-39", "40-59", "60-79"}
