"""Mutations of the bench and the checks of disassociated chunks in classes that refute them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mutations.planted import refuting

PLANTED = {
    "two chunks zipped to one": "subrecords_of_members",
    "item chunks of two clusters exchanged": "codes_of_members",
    "an item code moved to another cluster": "codes_of_members",
    "chunks.parquet: the last row lost": "codes_of_members",
}


@pytest.mark.parametrize(("mutation", "check"), PLANTED.items())
def test_the_check_refutes_the_mutation(mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting("disassociation, demographics", mutation, tmp_path / "out")
