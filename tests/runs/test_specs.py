"""A run that was started without a spec writes one that gives the same parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.laws.cases import cases

import leeward as lw
from leeward.methods.base import Parameters
from leeward.release.spec import load
from leeward.runs.protect import method_of

CASES = cases()
METHODS = [
    lw.Visits(k=2, policy=None),
    lw.Visits(k=2, policy="hierarchy:2"),
    lw.Disassociation(k=2, m=2, policy=None),
    lw.Constraints(k=2, m=2, policy="none"),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_spec_of_a_run_gives_its_parameters(method: Parameters, tmp_path: Path) -> None:
    out = tmp_path / "out"
    lw.protect(CASES[method.name].cohort, method, out)
    assert method_of(load(out / "custody/spec.yaml").method) == method
    assert lw.verify(out).passed
