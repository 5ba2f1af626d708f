"""Mutations of the bench and the checks of trajectories that refute them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.mutations.planted import refuting

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
