"""Every figure of docs/methods/condensation.md, by name."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.cohort.sources import read_table
from tests.methods.condensation.tables import PLAN, lung, no_repetitions  # noqa: F401  # a fixture
from tests.oracles import condensation as oracle

from leeward.analysis.plan import Design, design_of, models_of
from leeward.analysis.regression import fit
from leeward.methods.condensation import Condensation
from leeward.methods.condensation import grouping as kernels
from leeward.methods.condensation.condense import exchange
from leeward.methods.condensation.measures.attacks import conditional_privacy, entropy
from leeward.methods.condensation.measures.models import compare, mean_metrics
from leeward.methods.condensation.synthesis import synthesize
from leeward.randomness import Randomness


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
    moved = kernels.balance(points, labels, centres, 3, np.arange(len(points)))
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
    labels = kernels.two_points(np.array(values, np.float32)[:, None], 2)
    found = groups_of(values, labels)
    assert sorted(found) == [[1, 2, 3], [10, 11, 12, 13], [30, 31]]
    assert kernels.sum_of_squares(np.array(values, np.float32)[:, None], labels).sum() == pytest.approx(7.5)
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
        assert width * 2.0 ** entropy(a, b) == pytest.approx(expected)
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


def test_an_empty_cluster_stays_and_is_filled() -> None:
    """Step 2c: s = ⌊n/k⌋ clusters, one of them empty; sizes end at k or more, but need not stay below 2k."""
    points = np.arange(11, dtype=np.float32)[:, None]
    labels = np.zeros(11, np.int64)
    moved = kernels.balance(points, labels, np.array([[5.0], [9.0], [0.0]]), 3, np.arange(11))
    assert moved == 6
    assert groups_of(points[:, 0].tolist(), labels) == [[3, 4, 5, 6, 7], [8, 9, 10], [0, 1, 2]]
    labels = np.zeros(11, np.int64)
    kernels.balance(points, labels, np.array([[0.0]]), 3, np.arange(11))
    assert np.bincount(labels).tolist() == [11]


@pytest.mark.parametrize("n", [40, 43, 49])
def test_condensation_makes_n_over_k_groups(n: int) -> None:
    """The printed loop 0…s is one too many; what is left joins its nearest group."""
    points = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
    labels = kernels.seeds(points, 10, np.random.default_rng(1).random(4))
    assert np.bincount(labels).size == 4
    assert np.bincount(labels).min() >= 10
    assert np.bincount(labels).sum() == n


def test_uniform_components_have_the_range_of_root_twelve_lambda() -> None:
    """Aggarwal and Yu draw each component uniformly with the same variance: range √(12λ)."""
    rows = np.random.default_rng(1).normal(scale=2.0, size=(20_000, 1))
    made = synthesize(rows, np.array([0, len(rows)]), 2, np.random.default_rng(2), draw="uniform").rows
    assert np.ptp(made) == pytest.approx(math.sqrt(12 * rows.var()), rel=1e-3)
    assert made.var() == pytest.approx(rows.var(), rel=0.05)


def test_components_below_the_threshold_are_dropped() -> None:
    """λ < 1e-12·λmax counts as none: three columns of rank one need q + 2 = 3 rows for exact mode, two are too few."""
    line = np.random.default_rng(1).normal(size=(5, 1)) @ np.array([[1.0, 2.0, -1.0]])
    for rows, fell_back in ((5, 0), (3, 0), (2, 1)):
        done = synthesize(line[:rows], np.array([0, rows]), 2, np.random.default_rng(2), mode="exact")
        assert done.fell_back == fell_back
        if not fell_back:
            assert np.abs(done.rows.mean(axis=0) - line[:rows].mean(axis=0)).max() < 1e-9
            assert np.abs(np.cov(done.rows.T) - np.cov(line[:rows].T)).max() < 1e-9


def test_argmax_over_all_levels_takes_the_first_at_a_tie() -> None:
    scores = np.array([[0.5, 0.5, 0.1], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7]])
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]
    frame = pl.DataFrame({"level": ["b", "a"] * 10, "x": [0] * 20})
    made = Condensation(k=20, algorithm="tfrp", rare="keep").protect(
        read_table(frame), randomness=Randomness.of(1)
    )
    # One group, both levels at one half: the first one, for every row.
    released = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(released, pl.DataFrame)
    assert released["level"].to_list() == ["a"] * 20


def test_cox_with_ties_is_efrons() -> None:
    """lifelines and statsmodels agree on Efron's ties, and differ from Breslow's."""
    from statsmodels.duration.hazard_regression import PHReg

    random = np.random.default_rng(4)
    x = random.normal(size=(200, 2))
    time = np.ceil(5 * random.exponential(np.exp(-x[:, 0])))
    event = random.random(200) < 0.7
    found = fit("cox", Design(("a", "b"), x, time, event))
    efron, breslow = (PHReg(time, x, status=event, ties=ties).fit() for ties in ("efron", "breslow"))
    assert found.coefficients == pytest.approx(efron.params, abs=1e-4)
    assert found.errors == pytest.approx(efron.bse, abs=1e-4)
    assert np.abs(found.coefficients - breslow.params).max() > 0.01


def test_categorical_privacy_lies_between_one_and_the_number_of_levels() -> None:
    a = np.arange(5).repeat(20)
    assert conditional_privacy(a, a, bins=None) == (1.0, None)
    assert conditional_privacy(a, np.zeros_like(a), bins=None)[0] == pytest.approx(5)
    assert 1 < conditional_privacy(a, a // 2, bins=None)[0] < 5


def test_the_moving_step_is_what_damages_the_models() -> None:
    """docs/methods/condensation.md#halving, on a lung registry of 17,421 rows at k = 100."""
    cohort = lung(17_421)
    table = cohort.table()
    (cox,) = models_of(PLAN[:1])
    before = fit("cox", design_of(cox, table.frame, table.columns))
    outside = {}
    for algorithm in ("balanced", "improved"):
        found = []
        for seed in (1, 2):
            made = Condensation(k=100, plan=PLAN, algorithm=algorithm).protect(  # type: ignore[arg-type]  # a name
                cohort, randomness=Randomness.of(seed)
            )
            released = pl.from_arrow(next(iter(made.tables[0].batches())))
            assert isinstance(released, pl.DataFrame)
            found.append(compare(before, fit("cox", design_of(cox, released, table.columns))))
        mean = mean_metrics(found)
        assert mean is not None
        outside[algorithm] = mean
        squares = made.custody["sum_of_squares"]
        assert (squares["after_moving"] > squares["before_moving"]) == (algorithm == "improved")
        assert (0.1 < made.custody["rows_moved"] / 17_421 < 0.21) == (algorithm == "improved")
    assert outside["balanced"]["outside"] <= 0.01
    assert outside["balanced"]["direction"] == 0
    assert outside["improved"]["outside"] > 0.1


def test_further_times_are_given_at_random_among_two_groups_of_about_the_same_median() -> None:
    """Two strata: groups 0, 1, 2 (medians 5, 1, 4; three are taken together) and 3 … 6 (8, 20, 9, 20: two and two)."""
    times = [[4, 5, 6], [0, 1, 2], [3, 4, 5], [7, 8, 9], [19, 20, 21], [8, 9, 10], [18, 20, 22]]
    own, group = np.array(times, float).ravel(), np.repeat(np.arange(7), 3)
    stratum, pools = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 0, 1, 2, 1, 2])[group]
    counts = np.zeros((len(own), len(own)))
    for seed in range(3000):
        # Numbers of rows ride along as a trace of a value: far below the gaps between values.
        made = exchange(own + np.arange(len(own)) * 1e-3, group, stratum, np.random.default_rng(seed))
        came_from = np.round((made - np.floor(made)) * 1e3).astype(int)
        counts[np.arange(len(own)), came_from] += 1
    expected = 3000 * (pools[:, None] == pools) / np.bincount(pools)[pools][:, None]
    assert (counts[expected == 0] == 0).all()
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


def test_a_stratum_of_one_group_exchanges_its_times_inside_it() -> None:
    made = exchange(np.arange(5.0), np.zeros(5, np.int64), np.zeros(1, np.int64), np.random.default_rng(1))
    assert sorted(made) == [0, 1, 2, 3, 4]
