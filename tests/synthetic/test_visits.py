"""The shape of a population of visits: as many rare codes as Heatherly et al. (2013) had."""

from __future__ import annotations

import numpy as np
import pytest

from leeward.synthetic.codes import code_weights
from leeward.synthetic.visits import CODES, FALL, FURTHER_CODE, POPULATION, VISITS


def expected_below(limit: int, fall: float) -> float:
    """Codes that occur, but in fewer than `limit` draws of the paper's population, expected (Poisson)."""
    mean = code_weights(CODES, fall) * POPULATION * VISITS / (1 - FURTHER_CODE)
    term = np.exp(-mean)
    below = -term
    for n in range(limit):
        below += term
        term = term * mean / (n + 1)
    return float(below.sum())


def test_about_1500_of_14000_codes_are_below_five_in_the_papers_population() -> None:
    assert expected_below(5, FALL) == pytest.approx(1_500, rel=0.1)
    assert expected_below(5, 2.0) < 30


def test_a_steeper_fall_makes_more_codes_rare() -> None:
    below = [expected_below(5, fall) for fall in (2.0, 4.0, FALL, 6.0)]
    assert below == sorted(below) and below[1] < below[2] / 2
