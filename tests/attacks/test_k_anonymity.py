"""Linking by quasi-identifiers succeeds on rows released as they are, and finds k candidates in the product's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.attacks.k_anonymity import attack, candidates

from leeward.cohort.readers.table import read_table
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import write


def registry(rows: int = 300) -> pl.DataFrame:
    random = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": random.integers(20, 90, rows),
            "dose": np.round(random.normal(20, 5, rows), 1),
            "sex": random.choice(["f", "m"], rows),
            "stage": random.choice(list("1234"), rows),
        }
    )


@pytest.mark.parametrize("k", [3, 10])
def test_everybody_has_k_candidates(k: int, tmp_path: Path) -> None:
    source = registry()
    method = KAnonymity(k=k, quasi_identifiers=("age", "dose", "sex"))
    share = write(method.protect(read_table(source), randomness=Randomness.of(1)), tmp_path / "out") / "share"
    found = attack(share, source)
    assert (found.asked, found.below_k) == (300, 0)
    assert found.fewest >= k


def test_rows_as_they_are_name_their_patients() -> None:
    source = registry()
    found = candidates(source, source, ["age", "dose", "sex"], 3)
    assert found.below_k > 0.9 * 300
    assert found.fewest == 1
