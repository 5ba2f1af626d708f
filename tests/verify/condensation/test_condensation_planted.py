"""Mutations of the bench and the checks of condensed tables that refute them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.mutations.planted import refuting

PLANTED = {
    "one column shuffled over the whole table": "values_of_groups",
    "dose: exchanged between neighbouring groups": "values_of_groups",
    "all rows are the source's but for 1 in a column": "near_twins",
    "all rows are the source's but for 1 in two columns": "near_twins",
}


@pytest.mark.parametrize(("mutation", "check"), PLANTED.items())
def test_the_check_refutes_the_mutation(mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting("condensation", mutation, tmp_path / "out")
