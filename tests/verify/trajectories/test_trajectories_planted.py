"""Mutations of the bench and the checks of trajectories that refute them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given
from hypothesis import strategies as st
from tests.mutations.planted import refuting

from leeward.verify.trajectories.source import are_k

PLANTED = {
    "two records exchange payload": "own_patients",
    "two records of a group exchange payload": "own_patients",
    "code_hierarchy.csv: rows reversed": "hierarchies_depth_first",
    "age_hierarchy.csv: a node under another parent": "spans_of_ages",
    "code_hierarchy.csv: a node renamed": "hierarchy_lists_common_codes",
    'parameter hierarchy: "icd9" -> "custom"': "hierarchy_named",
}


@pytest.mark.parametrize(("mutation", "check"), PLANTED.items())
def test_the_check_refutes_the_mutation(mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting("trajectories", mutation, tmp_path / "out")


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 200), st.integers(1, 6))
def test_k_patients_are_counted_whatever_comes_first(patients: list[int], alike: int, k: int) -> None:
    listed = np.array([9] * alike + patients, np.int64)
    assert are_k(listed, k) == (len(set(listed.tolist())) >= k)
