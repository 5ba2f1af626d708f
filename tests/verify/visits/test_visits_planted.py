"""Mutations of the bench and the checks of visits that refute them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.mutations.planted import refuting

PLANTED = {
    "two records exchange payload": "payload_of_patients",
}


@pytest.mark.parametrize(("mutation", "check"), PLANTED.items())
def test_the_check_refutes_the_mutation(mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting("visits", mutation, tmp_path / "out")
