"""Every figure of ALGORITHMS §6, by name."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.oracles import condensation as oracle

from leeward.cohort.plan import Design
from leeward.cohort.regression import fit
from leeward.measure.condensation_privacy import binned_privacy, conditional_privacy
from leeward.protect.condensation import _baseline_kernels as baselines
from leeward.protect.condensation import _grouping_kernels as kernels
from leeward.protect.condensation.synthesis import synthesize


def groups_of(values: list[float], labels: np.ndarray) -> list[list[float]]:
    return [
        sorted(v for v, own in zip(values, labels, strict=True) if own == g) for g in range(labels.max() + 1)
    ]


def test_balanced_k_means_in_one_dimension() -> None:
    """Moves 14 → C3, 13 → C3, 30 → C1."""
    start = [[1, 2], [10, 11, 12, 13, 14], [20], [30, 31, 32, 33]]
    values = [float(v) for cluster in start for v in cluster]
    labels = np.array([g for g, cluster in enumerate(start) for _ in cluster])
    centres = np.array([[np.mean(cluster)] for cluster in start])
    points = np.array(values, np.float32)[:, None]
    plain = oracle.balanced([(v,) for v in values], labels.tolist(), [tuple(c) for c in centres.tolist()], 3)
    moved = kernels.balance(points, labels, centres, 3)
    assert moved == 3
    assert groups_of(values, labels) == [[1, 2, 30], [10, 11, 12], [13, 14, 20], [31, 32, 33]]
    assert labels.tolist() == plain


def test_two_fixed_reference_points() -> None:
    values = [1.0, 2, 3, 10, 11, 12, 13, 30, 31]
    points = [(v,) for v in values]
    first = oracle.first_phase(points, 2)
    assert {frozenset(values[i] for i in each) for each in first} == {
        frozenset({31, 30}),
        frozenset({1, 2}),
        frozenset({13, 12, 11}),
        frozenset({3, 10}),
    }
    assert oracle.total(points, first) == 27.5
    labels = baselines.two_points(np.array(values, np.float32)[:, None], 2)
    found = groups_of(values, labels)
    assert sorted(found) == [[1, 2, 3], [10, 11, 12, 13], [30, 31]]
    assert kernels.sum_of_squares(np.array(values, np.float32)[:, None], labels, 3).sum() == pytest.approx(
        7.5
    )
    assert sorted(sorted(values[i] for i in each) for each in oracle.two_points(points, 2)) == sorted(found)


@pytest.mark.parametrize(
    ("share", "wins"), [(0.5, 0.5), (0.3, 0.3313), (0.1, 0.0912), (0.05, 0.0195), (0.01, 4.2e-7)]
)
def test_argmax_bias(share: float, wins: float) -> None:
    """Rare levels disappear when dummies go back to levels by argmax."""
    assert oracle.argmax_share(share) == pytest.approx(wins, rel=0.02)


def test_argmax_bias_is_what_synthesis_and_argmax_do() -> None:
    n, share = 40_000, 0.1
    own = np.zeros(n)
    own[: int(share * n)] = 1.0
    rows = np.column_stack([1 - own, own])
    made = synthesize(rows, np.array([0, n]), n, np.random.default_rng(1)).rows
    assert (made.argmax(axis=1) == 1).mean() == pytest.approx(0.0912, abs=0.005)


def test_conditional_privacy_of_eight_bins() -> None:
    a = np.arange(8).repeat(4)
    for b, width, expected in (
        (np.zeros_like(a), 1.0, 8.0),
        (a, 1.0, 1.0),
        (a, 0.5, 0.5),
        (a // 2, 1.0, 2.0),
    ):
        assert binned_privacy(a, b, width) == pytest.approx(expected)
        assert oracle.conditional_privacy(a.tolist(), b.tolist(), width) == pytest.approx(expected)


def test_conditional_privacy_of_a_gaussian() -> None:
    """√(2πe(1 − ρ²)) = 3.3062 for σ = 1, ρ = 0.6; the plug-in estimate comes near it."""
    assert math.sqrt(2 * math.pi * math.e * (1 - 0.6**2)) == pytest.approx(3.3062, abs=5e-5)
    random = np.random.default_rng(3)
    a = random.normal(size=400_000)
    b = 0.6 * a + 0.8 * random.normal(size=400_000)
    found, width = conditional_privacy(a, b, bins=60)
    assert found == pytest.approx(3.3062, rel=0.02)
    assert width == pytest.approx((a.max() - a.min()) / 60)


def test_identical_continuous_variables_have_no_privacy() -> None:
    """The erratum: h = 0 does not mean A = B; h → −∞ and Π → 0 as bins get narrow."""
    a = np.random.default_rng(1).normal(size=20_000)
    found = [conditional_privacy(a, a, bins=bins)[0] for bins in (10, 100, 1_000)]
    assert found[0] > 5 * found[1] > 25 * found[2] > 0


def test_censored_patients_affect_the_cox_model() -> None:
    """Erratum (a): β = 1.9157 on everybody, 0.8455 on the deceased alone."""
    time = np.arange(1.0, 9.0)
    event = np.array([1, 1, 1, 0, 1, 0, 1, 0], bool)
    x = np.array([[1.0], [0], [1], [0], [1], [0], [0], [0]])
    everybody = fit("cox", Design(("x",), x, time, event))
    deceased = fit("cox", Design(("x",), x[event], time[event], event[event]))
    assert everybody.coefficients[0] == pytest.approx(1.9157, abs=5e-5)
    assert deceased.coefficients[0] == pytest.approx(0.8455, abs=5e-5)


def test_exact_mode_would_return_two_originals() -> None:
    """n_c = 2 and n_c = q + 1 give the originals away: such groups are sampled."""
    random = np.random.default_rng(5)
    pair = random.normal(size=(2, 3))
    simplex = random.normal(size=(4, 3))
    for rows in (pair, simplex):
        done = synthesize(rows, np.array([0, len(rows)]), 2, np.random.default_rng(1), mode="exact")
        assert done.fell_back == 1
        gaps = np.abs(done.rows[:, None, :] - rows[None, :, :]).max(axis=2)
        assert gaps.min() > 1e-6
        assert np.abs(done.rows.mean(axis=0) - rows.mean(axis=0)).max() > 1e-6


def test_exact_mode_at_its_least_size() -> None:
    """q + 2 rows are enough."""
    rows = np.random.default_rng(5).normal(size=(5, 3))
    done = synthesize(rows, np.array([0, 5]), 2, np.random.default_rng(1), mode="exact")
    assert done.fell_back == 0
    assert np.abs(np.cov(done.rows.T, bias=True) - np.cov(rows.T, bias=True)).max() < 1e-9
