"""Fast equals slow, and the moments hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import condensation as oracle

from leeward.methods.condensation import cell, grouping
from leeward.methods.condensation.grouping import cells_of, group, halving
from leeward.methods.condensation.synthesis import blocks_of, normal_scores, pool_scores, synthesize

seeds = st.integers(0, 2**32 - 1)


def points_of(seed: int, n: int, width: int, coarse: bool) -> np.ndarray:
    random = np.random.default_rng(seed)
    drawn = random.integers(0, 4, (n, width)) if coarse else random.normal(size=(n, width))
    return drawn.astype(np.float32)


@given(seeds, st.integers(4, 40), st.integers(1, 3), st.integers(2, 5), st.booleans())
def test_balance_equals_the_oracle(seed: int, n: int, width: int, k: int, coarse: bool) -> None:
    clusters = max(1, n // k)
    if n < k:
        return
    points = points_of(seed, n, width, coarse)
    random = np.random.default_rng(seed + 1)
    labels = random.integers(0, clusters, n)
    centres = random.integers(0, 4, (clusters, width)).astype(float)
    expected = oracle.balanced(
        [tuple(p) for p in points.astype(float).tolist()],
        labels.tolist(),
        [tuple(c) for c in centres.tolist()],
        k,
    )
    grouping.balance(points, labels, centres, k, np.lexsort(points.T[::-1]))
    assert labels.tolist() == expected
    assert np.bincount(labels, minlength=clusters).min() >= k


@given(seeds, st.integers(4, 30), st.integers(1, 3), st.integers(2, 4))
def test_two_points_equals_the_oracle(seed: int, n: int, width: int, k: int) -> None:
    points = points_of(seed, n, width, False)
    labels = grouping.two_points(points, k)
    found = {frozenset(np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)}
    plain = oracle.two_points([tuple(p) for p in points.astype(float).tolist()], k)
    assert found == {frozenset(each) for each in plain}
    assert min(map(len, found)) >= k


@given(seeds, st.integers(4, 60), st.integers(1, 4), st.integers(2, 6))
def test_halving_equals_the_oracle(seed: int, n: int, width: int, k: int) -> None:
    if n < k:
        return
    points = points_of(seed, n, width, False)
    found = halving(points, k)
    groups = [
        sorted(found.order[a:b].tolist()) for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]
    assert groups == [sorted(each) for each in oracle.halving(points, k)]


def test_halving_gives_k_to_2k_minus_1_rows() -> None:
    for k in range(2, 12):
        for n in range(k, 260):
            sizes = oracle.halving_sizes(n, k)
            assert sum(sizes) == n
            assert k <= min(sizes)
            assert max(sizes) <= 2 * k - 1


@pytest.mark.parametrize("how", ["halving", "kmeans", "seeds", "two-points"])
@pytest.mark.parametrize("coarse", [False, True])
def test_every_group_has_k_rows(how: str, coarse: bool) -> None:
    for n, k in ((7, 7), (50, 7), (301, 10), (97, 2)):
        points = points_of(n, n, 4, coarse)
        found = group(points, k, how, np.random.default_rng(n))  # type: ignore[arg-type]  # names from a list
        assert np.diff(found.offsets).min() >= k
        assert np.array_equal(np.sort(found.order), np.arange(n))
        assert (found.moved > 0) == (found.after != found.before)


def test_all_points_alike() -> None:
    points = np.zeros((50, 3), np.float32)
    for how in ("halving", "kmeans", "seeds", "two-points"):
        found = group(points, 7, how, np.random.default_rng(1))  # type: ignore[arg-type]  # names from a list
        assert np.diff(found.offsets).min() >= 7


def test_halving_of_many_columns_by_power_iterations() -> None:
    random = np.random.default_rng(2)
    points = (random.normal(size=(300, 1)) * 5 + random.normal(size=(300, 90)) * 0.1).astype(np.float32)
    found = halving(points, 30)
    assert np.diff(found.offsets).tolist() == [30] * 10
    first = points[found.order[:30]].mean()
    last = points[found.order[-30:]].mean()
    assert abs(first - last) > 10


def test_cells_keep_k_rows_and_all_rows() -> None:
    points = points_of(3, 5_000, 3, True)
    for rows, k in ((100, 20), (600, 400), (10_000, 5)):
        cells = cells_of(points, rows, k, np.random.default_rng(1))
        assert np.bincount(cells).min() >= k
    assert cells_of(points, 10_000, 5, np.random.default_rng(1)).max() == 0


@given(seeds, st.integers(1, 5), st.integers(2, 6))
def test_exact_mode_reproduces_mean_and_covariance(seed: int, groups: int, width: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(width + 2, 40, groups)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    mixing = random.normal(size=(width, width))
    rows = random.normal(size=(offsets[-1], width)) @ mixing
    done = synthesize(rows, offsets, 2, np.random.default_rng(seed), mode="exact")
    assert done.fell_back == 0
    for start, end in itertools.pairwise(offsets):
        scale = max(1.0, np.abs(rows[start:end]).max() ** 2)
        assert np.abs(done.rows[start:end].mean(axis=0) - rows[start:end].mean(axis=0)).max() < 1e-9 * scale
        gap = np.cov(done.rows[start:end].T, bias=True) - np.cov(rows[start:end].T, bias=True)
        assert np.abs(gap).max() < 1e-9 * scale


@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_sampled_moments_hold_in_expectation(draw: str) -> None:
    rows = np.random.default_rng(1).normal(size=(20_000, 3)) @ np.array([[2.0, 1, 0], [0, 1, 1], [0, 0, 0.5]])
    done = synthesize(rows, np.array([0, 20_000]), 2, np.random.default_rng(2), draw=draw)
    assert np.abs(np.cov(done.rows.T) - np.cov(rows.T)).max() < 0.15


def test_transposed_eigenproblem_gives_the_same_covariance() -> None:
    """m > n: eigenvectors of AAᵀ, multiplied by Aᵀ (Proposition 1)."""
    random = np.random.default_rng(1)
    rows = random.normal(size=(12, 40))
    offsets = np.array([0, 6, 12])
    made = [synthesize(rows, offsets, 2, np.random.default_rng(s)).rows for s in range(3_000)]
    stacked = np.array(made)[:, :6].reshape(-1, 40)
    expected = np.cov(rows[:6].T, bias=True)
    assert np.abs(np.cov(stacked.T) - expected).max() < 0.15
    assert np.abs(stacked.mean(axis=0) - rows[:6].mean(axis=0)).max() < 0.05
    assert synthesize(rows, offsets, 2, np.random.default_rng(1), mode="exact").fell_back == 2


def test_identical_rows_are_told() -> None:
    rows = np.vstack([np.ones((5, 2)), np.random.default_rng(1).normal(size=(5, 2))])
    done = synthesize(rows, np.array([0, 5, 10]), 5, np.random.default_rng(1))
    assert done.identical == 1
    assert np.array_equal(done.rows[:5], rows[:5])


@given(seeds, st.integers(1, 15), st.floats(0, 1), st.floats(0, 1))
def test_outward_numbers_equal_the_oracle(seed: int, n: int, below: float, above: float) -> None:
    random = np.random.default_rng(seed)
    own = np.round(random.normal(size=n), 1)
    scores, steps = random.normal(size=n), random.uniform(-0.5, 0.5, n)
    low, high = float(own.min() - below), float(own.max() + above)
    if low == high:
        return
    found = cell.group_numbers(scores, own, np.array([0, n]), steps, False, low, high)
    expected = oracle.outward_numbers(scores.tolist(), own.tolist(), steps.tolist(), low, high)
    assert found == pytest.approx(expected)
    assert low <= found.min()
    assert found.max() <= high


def test_small_groups_keep_their_variance() -> None:
    """Pairs: inward moves alone take two fifths of a pair's variance, outward ones none in expectation."""
    random = np.random.default_rng(1)
    own = random.normal(size=20_000)
    offsets = np.arange(0, 20_001, 2)
    steps = random.uniform(-0.5, 0.5, 20_000)
    variance = {}
    for name, bounds in (("inward", (0.0, 0.0)), ("outward", (-99.0, 99.0))):
        made = cell.group_numbers(own, own, offsets, steps, False, *bounds)
        variance[name] = (made.reshape(-1, 2).var(axis=1) / 1).mean() / own.reshape(-1, 2).var(axis=1).mean()
    assert variance["inward"] < 0.7
    assert variance["outward"] == pytest.approx(1.0, abs=0.05)


@given(st.lists(st.integers(1, 70), min_size=1, max_size=30))
def test_blocks_equal_the_oracle(sizes: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    blocks = blocks_of(offsets)
    expected = oracle.blocks(sizes, 30)
    assert [sizes[a:b] for a, b in itertools.pairwise(blocks.tolist())] == expected


def groups_of_five(width: int, correlation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, offsets and each row's group mean."""
    random = np.random.default_rng(width)
    n, size = 40_000, 5
    common = np.sqrt(correlation) * random.normal(size=(n, 1))
    around = common + np.sqrt(1 - correlation) * random.normal(size=(n, width))
    rows = around + np.repeat(3 * random.normal(size=(n // size, width)), size, axis=0)
    means = rows.reshape(-1, size, width).mean(axis=1).repeat(size, axis=0)
    return rows, np.arange(0, n + 1, size), means


def test_pooled_scores_keep_the_correlation_of_matched_values() -> None:
    """Groups of five, each with its own values: five rows by rank keep 0.64 of a correlation if it is not restored."""
    rows, offsets, means = groups_of_five(3, 0.5)
    made = pool_scores(rows, offsets, np.random.default_rng(1), np.arange(3))
    columns = [np.ascontiguousarray(made[:, j]) for j in range(3)]
    matched = np.column_stack(
        [cell.group_numbers(columns[j], rows[:, j], offsets, rows[:, j], True, 0.0, 0.0) for j in range(3)]
    )
    assert np.corrcoef((rows - means).T)[0, 1] == pytest.approx(0.5, abs=0.02)
    assert np.corrcoef((matched - means).T)[np.triu_indices(3, 1)] == pytest.approx(0.5, abs=0.05)
    assert np.corrcoef((made - means).T)[0, 1] > 0.7
    assert np.linalg.matrix_rank(made[:5] - made[:5].mean(axis=0)) == 3


def test_wide_blocks_have_the_covariance_within_groups() -> None:
    """More columns than rows in a block: five rows of a group still have five directions."""
    rows, offsets, means = groups_of_five(80, 0.5)
    rows, offsets, means = rows[:20_000], offsets[:4_001], means[:20_000]
    made = pool_scores(rows, offsets, np.random.default_rng(1), np.arange(80))
    wanted, found = np.corrcoef((rows - means).T), np.corrcoef((made - means).T)
    assert np.abs(found - wanted).mean() < 0.03
    assert np.linalg.matrix_rank(made[:5] - means[:5], tol=1e-6) == 5


def test_few_rows_in_all_have_their_covariances_shrunk() -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=10)
    rows = np.column_stack([x, x, random.normal(size=10)])
    offsets = np.array([0, 5, 10])
    drawn = np.concatenate([pool_scores(rows, offsets, random, np.arange(3)) for _ in range(2_000)])
    means = np.concatenate([np.tile(rows[g * 5 : g * 5 + 5].mean(axis=0), (5, 1)) for g in range(2)])
    around = drawn - np.tile(means, (2_000, 1))
    assert np.corrcoef(around.T)[0, 1] == pytest.approx(1 / 3, abs=0.05)  # ten rows of thirty


@given(seeds, st.integers(1, 15), st.integers(1, 4))
def test_group_levels_equal_the_oracle(seed: int, n: int, levels: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, levels, n)
    scores = np.round(random.normal(size=(n, levels)), 1)
    found = cell.group_levels(scores, codes, np.array([0, n]), levels)
    assert found.tolist() == oracle.group_levels(scores.tolist(), codes.tolist(), levels)
    assert sorted(found) == sorted(codes)


@given(seeds, st.integers(1, 15))
def test_group_numbers_equal_the_oracle(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    own = np.round(random.normal(size=n), 1)
    scores, steps = random.normal(size=n), random.uniform(-0.5, 0.5, n)
    found = cell.group_numbers(scores, own, np.array([0, n]), steps, False, 0.0, 0.0)
    assert found == pytest.approx(oracle.group_numbers(scores.tolist(), own.tolist(), steps.tolist()))
    assert found.min() >= own.min()
    assert found.max() <= own.max()
    exact = cell.group_numbers(scores, own, np.array([0, n]), steps, True, 0.0, 0.0)
    assert sorted(exact) == sorted(own)


def test_restored_covariances_survive_the_matching_by_rank() -> None:
    """A binary column keeps its covariance with a number; without restoring it loses a fifth and more."""
    random = np.random.default_rng(1)
    n, size = 40_000, 100
    latent = random.normal(size=n)
    number = 0.6 * latent + 0.8 * random.normal(size=n)
    binary = (latent > 1.0).astype(float)
    rows = np.column_stack([1 - binary, binary, number])
    offsets = np.arange(0, n + 1, size)
    kept = {}
    for name, attribute in (("plain", None), ("restored", np.array([0, 0, 1]))):
        made = synthesize(rows, offsets, size, np.random.default_rng(2), attribute=attribute).rows
        given_levels = cell.group_levels(
            np.ascontiguousarray(made[:, :2]), binary.astype(np.int64), offsets, 2
        )
        given_numbers = cell.group_numbers(
            np.ascontiguousarray(made[:, 2]), number, offsets, number, True, 0.0, 0.0
        )
        kept[name] = np.cov(given_levels, given_numbers)[0, 1] / np.cov(binary, number)[0, 1]
    assert kept["plain"] < 0.8
    assert 0.9 < kept["restored"] < 1.05


@settings(max_examples=20)
@given(st.lists(st.integers(2, 30), min_size=1, max_size=4))
def test_normal_scores_are_standardized(sizes: list[int]) -> None:
    scores = normal_scores(np.array(sizes))
    for size in sizes:
        own = scores[size, :size]
        assert own.mean() == pytest.approx(0, abs=1e-12)
        assert own.std() == pytest.approx(1)
        assert (np.diff(own) > 0).all()


def test_fill_draws_among_the_groups_known_values() -> None:
    own = np.array([1.0, np.nan, 2.0, np.nan, np.nan])
    found = cell.fill(own, np.array([0, 3, 5]), np.array([0.0, 0.99, 0, 0, 0]), 9.0)
    assert found.tolist() == [1.0, 2.0, 2.0, 9.0, 9.0]
