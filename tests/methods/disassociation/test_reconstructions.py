"""Reconstructions of releases whose shared chunks repeat codes of chunks below (nested)."""

from __future__ import annotations

from pathlib import Path

import pytest

import leeward as lw


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> lw.Cohort:
    file = tmp_path_factory.mktemp("nested") / "codes.csv"
    lw.synth.write_codes(file, 400, 120, 5.0, seed=1)
    return lw.read(file)


@pytest.mark.parametrize("seed", range(6))
def test_a_nested_release_has_reconstructions_that_verify(
    cohort: lw.Cohort, tmp_path: Path, seed: int
) -> None:
    method = lw.Disassociation(k=3, m=3, partitioning="paper", nested=True, reconstructions=2)
    result = lw.protect(cohort, method, tmp_path / "out", seed=seed, measures=["mre"])
    names = {check.name for check in result.verification.checks}
    assert {"reconstruction_01", "reconstruction_02"} <= names
    assert result.verification.passed
