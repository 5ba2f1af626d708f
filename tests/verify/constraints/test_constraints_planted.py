"""Mutations of the bench and the checks of generalized code sets that refute them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.mutations.planted import refuting

PLANTED = {
    "records.parquet: codes: codes in another order": "labels_in_order",
    "codes.parquet: members: codes in another order": "labels_in_order",
    "parameter policy gone": "parameters_of_spec",
    'parameter privacy claimed: "listed"': "parameters",
}


@pytest.mark.parametrize(("mutation", "check"), PLANTED.items())
def test_the_check_refutes_the_mutation(mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting("constraints", mutation, tmp_path / "out")
