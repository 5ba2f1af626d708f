"""Integer accounts, and OpenDP's theorems behind them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.queries.privacy.accounting import (
    MICRO,
    PICO,
    Budget,
    affordable,
    compose,
    cost,
    epsilon_of,
    micro,
    spent_epsilon,
    to_epsilon,
)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [("0.5", 500_000), (0.1, 100_000), (5, 5_000_000), (1e-6, 1), (Decimal("0.3"), 300_000)],
)
def test_micro(given_: object, expected: int) -> None:
    assert micro(given_) == expected  # type: ignore[arg-type]  # every type it takes


@pytest.mark.parametrize(
    "bad",
    [0, -1, "-0.5", "nan", float("nan"), "inf", float("inf"), "-inf", "a", "", "1e4", "0.0000001", True],
)
def test_no_epsilon(bad: object) -> None:
    with pytest.raises(BadInput, match="`epsilon`"):
        micro(bad)  # type: ignore[arg-type]  # wrong on purpose


@given(st.integers(1, 1000 * MICRO))
def test_what_is_promised_is_never_rounded_up(micros: int) -> None:
    assert Fraction(epsilon_of(micros)) <= Fraction(micros, MICRO)
    assert micro(to_epsilon(micros)) == micros


def test_a_thousand_answers_at_a_thousandth_cost_one() -> None:
    assert sum(cost(micro(0.001), "pure") for _ in range(1000)) == micro(1)


@given(st.integers(1, 20 * MICRO))
def test_a_price_is_never_rounded_down(micros: int) -> None:
    """ε²/2 in 1e-12 ρ: half a unit is charged as a whole one."""
    assert 2 * cost(micros, "zcdp") >= micros**2


@given(st.lists(st.integers(1000, 2 * MICRO), min_size=1, max_size=20))
@settings(max_examples=30)
def test_sums_agree_with_opendps_composition(micros: list[int]) -> None:
    pure = sum(cost(each, "pure") for each in micros)
    assert pure == sum(micros)
    assert abs(compose(micros, "pure") - pure) <= 1 + len(micros)
    rho = sum(cost(each, "zcdp") for each in micros)
    assert abs(compose(micros, "zcdp") - rho) <= 1 + len(micros) + 1e-9 * rho


def test_sums_agree_with_opendps_odometer() -> None:
    """The odometer that watches the same answers being drawn one by one ends at the sum."""
    from opendp.combinators import make_fully_adaptive_composition
    from opendp.domains import atom_domain
    from opendp.measurements import make_geometric
    from opendp.measures import max_divergence
    from opendp.metrics import absolute_distance

    space = atom_domain(T=int), absolute_distance(T=int)
    odometer = make_fully_adaptive_composition(*space, output_measure=max_divergence())(0)
    asked = [0.1, 0.5, 0.25, 0.1]
    for epsilon in asked:
        odometer(make_geometric(*space, scale=1 / epsilon))
    assert odometer.privacy_loss(1) == pytest.approx(to_epsilon(sum(micro(each) for each in asked)))


@given(st.integers(100, 20 * MICRO))
def test_rho_of_a_pure_answer_is_half_its_square(micros: int) -> None:
    """Bun & Steinke 2016, Proposition 1.4."""
    exact = Fraction(micros, MICRO) ** 2 / 2 * PICO
    assert cost(micros, "zcdp") == pytest.approx(float(exact), rel=1e-9, abs=2)
    assert cost(micros, "zcdp") + 1 >= exact * (1 - Fraction(1, 10**9))


@pytest.mark.parametrize(("epsilon", "delta"), [(5, 1e-6), (1, 1e-6), (0.1, 1e-9)])
def test_zcdp_budget_is_the_largest_that_keeps_its_promise(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon=micro(epsilon), accounting="zcdp", delta=delta)
    assert spent_epsilon(budget.limit, budget) <= epsilon < spent_epsilon(budget.limit + 2, budget)
    # Better than the textbook's conversion ε = ρ + 2·sqrt(ρ·ln(1/δ)), never better than no conversion.
    rho = budget.limit / PICO
    assert rho < epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_many_small_answers_are_cheaper_in_zcdp() -> None:
    pure, zcdp = Budget(epsilon=micro(5)), Budget(epsilon=micro(5), accounting="zcdp", delta=1e-6)
    each = micro(0.01)
    assert pure.limit // cost(each, "pure") == 500
    assert zcdp.limit // cost(each, "zcdp") > 9000


@given(st.integers(0, 5 * PICO))
@settings(max_examples=40)
def test_affordable_is_the_largest_that_fits(left: int) -> None:
    assert affordable(left, "pure") == left
    best = affordable(left, "zcdp")
    assert best == 0 or cost(best, "zcdp") <= left
    assert cost(best + 2, "zcdp") > left


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0},
        {"epsilon": 1, "accounting": "renyi"},
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": 1, "accounting": "zcdp"},
        {"epsilon": 1, "accounting": "zcdp", "delta": 0.0},
        {"epsilon": 1, "accounting": "zcdp", "delta": float("nan")},
    ],
)
def test_bad_budgets(bad: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        Budget(**bad)  # type: ignore[arg-type]  # wrong on purpose
