"""Thresholds and k, the risk that a guarantee states, and epsilon from an accuracy by the exact law and by draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.advise.accuracy import accuracy_of, micro_epsilon_of, posterior
from leeward.advise.risk import met, odds
from leeward.advise.thresholds import k_of, profiles, threshold_of
from leeward.errors import BadInput
from leeward.queries.privacy.mechanism import Noise, draw
from leeward.release import Guarantee
from leeward.verify.contract_checks import risk_of

DRAWS = 200_000


@pytest.mark.parametrize(
    ("t", "k"), [(0.2, 5), (0.1, 10), (0.09, 12), (0.075, 14), (0.05, 20), (0.5, 2), (0.9, 2), (1 / 3, 4)]
)
def test_k_is_the_smallest_that_keeps_the_threshold(t: float, k: int) -> None:
    assert k_of(t) == k


@given(st.integers(2, 10_000))
def test_k_of_a_decimal_is_exact(k: int) -> None:
    t = math.ceil(1e9 / k) / 1e9
    assert k_of(t) == k and 1 / k_of(t) <= t


def test_every_shipped_threshold_says_who_reports_it() -> None:
    for each in profiles().values():
        assert each.read == "second-hand" and each.reported_by and "as reported by" in each.cited
        assert each.maximum is None or 0 < each.maximum < 1
    assert profiles()["hipaa-expert"].maximum is None
    with pytest.raises(BadInput, match="names no number"):
        threshold_of("hipaa-expert")


def test_usual_k_of_5_meets_no_shipped_threshold() -> None:
    assert not any(within for _, within in met(1 / 5))
    assert all(within for _, within in met(1 / 20))
    assert odds(1 / 5) == "0.2 (1 in 5)"


@pytest.mark.parametrize(
    ("guarantee", "risk"),
    [
        (Guarantee("n", "a", (), k=5), {"model": "prosecutor", "maximum": 0.2}),
        (Guarantee("n", "a", (), k=4, model="journalist"), {"model": "journalist", "maximum": 0.25}),
        (Guarantee("n", "a", (), epsilon=0.0), {"model": "anybody", "prior": 0.5, "maximum": 0.5}),
        (Guarantee("n", "a", (), epsilon=1.0, delta=1e-6), None),
        (Guarantee("n", "a", ()), None),
    ],
)
def test_the_risk_follows_from_the_numbers_and_the_verifier_finds_the_same(
    guarantee: Guarantee, risk: object
) -> None:
    assert guarantee.risk == risk
    assert risk_of(guarantee.to_json(), guarantee.model) == risk


def test_posterior() -> None:
    """50 % becomes 62 %, 73 % and 99.3 % at epsilon 0.5, 1 and 5."""
    assert [round(100 * posterior(each), 1) for each in (0.5, 1.0, 5.0)] == [62.2, 73.1, 99.3]
    assert posterior(800.0) == 1.0 and posterior(1.0, 0.01) == pytest.approx(
        0.01 * math.e / (0.99 + 0.01 * math.e)
    )


def outside(epsilon: float, width: int) -> float:
    a = math.exp(-epsilon)
    return 2 * a ** (width + 1) / (1 + a)


@pytest.mark.parametrize("width", [0, 1, 5, 10, 20, 50, 400])
def test_epsilon_is_the_smallest_by_the_exact_law(width: int) -> None:
    micro = micro_epsilon_of(width)
    assert outside(micro / 1e6, width) <= 0.05 * (1 + 1e-9) < outside((micro - 1) / 1e6, width) * (1 + 1e-6)


def test_epsilons_of_the_design() -> None:
    assert [round(micro_epsilon_of(width) / 1e6, 3) for width in (10, 20, 50)] == [0.284, 0.146, 0.059]
    assert accuracy_of(20, 40).total == pytest.approx(5.84, abs=0.01)


def test_draws_are_covered() -> None:
    """OpenDP's own draws: 95 of 100 within the width, and not 96."""
    width = 20
    noise = Noise("geometric", micro_epsilon_of(width), 1)
    covered = float(np.mean(np.abs(np.array(draw(noise, DRAWS))) <= width))
    error = 4 * math.sqrt(0.05 * 0.95 / DRAWS)
    assert 0.95 - error <= covered < 0.96


@given(st.integers(0, 500), st.integers(0, 500))
def test_a_tighter_width_never_lowers_epsilon(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert micro_epsilon_of(low) >= micro_epsilon_of(high)


def test_a_width_out_of_range_is_refused() -> None:
    with pytest.raises(BadInput, match="half-width"):
        micro_epsilon_of(-1)
