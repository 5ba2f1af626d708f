"""A part of the mutation bench (benchmarks/mutations.py runs all of it): of what is broken, 95 in 100 are refuted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.mutations import bench
from tests.mutations.copies import Mutation

CASES = {
    name: case
    for name, case in bench.cases().items()
    if ("," not in name and " by " not in name)
    or name in ("constraints, demographics", "visits, containment")
}
"""One release a method, and two more; benchmarks/mutations.py has all of them."""
LEAST = 0.95
A_CASE = 21
"""Mutations a case: some of each part, drawn by their names."""


def drawn(mutations: Sequence[Mutation]) -> list[Mutation]:
    """About `A_CASE` mutations, each part by its share; the same on every run."""
    ordered = sorted(mutations, key=lambda m: hashlib.sha256(m.name.encode()).hexdigest())
    parts = sorted({m.part for m in mutations})
    return [
        each for part in parts for each in [m for m in ordered if m.part == part][: A_CASE // len(parts) + 1]
    ]


@pytest.mark.parametrize("name", CASES)
def test_mutations_are_refuted(name: str, tmp_path: Path) -> None:
    made = bench.make(name, CASES[name], tmp_path / "sound")
    everything = list(bench.mutations(made, random=30))
    assert sum(m.part != "random" for m in everything) >= 60
    score = bench.run(made, drawn(everything), tmp_path)
    assert score.whole >= A_CASE // 2
    assert score.share_whole >= LEAST, score.survivors
    assert score.refuses or score.share_shown >= LEAST, score.survivors_alone
