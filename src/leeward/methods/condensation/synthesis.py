"""Synthetic rows with each group's mean and covariance (Gal et al. 2014, Algorithm 3).

See docs/methods/condensation.md#synthesis.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Draw = Literal["normal", "uniform"]

KEPT = 1e-12
"""Eigenvalues below this share of the group's largest count as none."""

EIGEN_BATCH_BYTES = 1 << 26
LEAST_KEPT = 0.3
"""A column that keeps less of a covariance (a very rare level) is restored as if it kept this much: what few rows say
of a covariance is mostly noise."""


POOLED_ROWS = 30
"""Scores of a smaller group are drawn from a covariance pooled over neighbouring groups with so many rows between them:
a group of n rows has n − 1 directions of its own, so that few rows would be put together again by their order."""


@dataclass(frozen=True)
class Synthesis:
    """Synthetic rows, group by group. `fell_back`: groups too small for `exact`, made by `sampled`. `identical`: groups
    whose rows are all alike and are therefore reproduced as they are."""

    rows: Floats
    fell_back: int
    identical: int


def synthesize(
    rows: Floats,
    offsets: Longs,
    k: int,
    generator: np.random.Generator,
    *,
    mode: Literal["sampled", "exact"] = "sampled",
    draw: Draw = "normal",
    attribute: Longs | None = None,
) -> Synthesis:
    """Synthetic rows for groups of at least k standardized rows, float64[rows, columns], group by group.

    `mode`: `sampled`: mean and covariance hold in expectation. `exact`: they are reproduced, in groups of at least
    max(k, q + 2) rows with q kept components; a smaller group would give its rows away and is sampled. `draw`:
    components normal (Gal et al.) or uniform (Aggarwal and Yu 2004) with the same variance. `attribute`:
    int64[columns], given when the rows will be scores for matching by rank: the attribute of each column, whose
    covariances with others are raised by as much as the matching will shrink them (`restore`; not if wide).
    """
    width = rows.shape[1]
    sizes = np.diff(offsets)
    if width > sizes.max():
        return _wide(rows, offsets, k, generator, mode, draw)
    made = np.empty_like(rows)
    batch = max(1, EIGEN_BATCH_BYTES // (8 * width * width * 3))
    fell_back = identical = 0
    for first in range(0, len(sizes), batch):
        part = offsets[first : first + batch + 1]
        block = slice(int(part[0]), int(part[-1]))
        local = part - part[0]
        means, covariances = moments(rows[block], local)
        variances = None
        if attribute is not None:
            variances = np.diagonal(covariances, axis1=1, axis2=2).copy()
            scores = normal_scores(np.diff(part))
            restore(rows[block], local, np.arange(len(part)), covariances, attribute, scores, False)
        factors, kept = _factors(covariances, variances)
        draws = _draws(generator, (block.stop - block.start, width), draw)
        counts = kept.sum(axis=1)
        if mode == "exact":
            fits = np.diff(part) >= np.maximum(k, counts + 2)
            fell_back += int((~fits).sum())
            for g in np.flatnonzero(fits & (counts > 0)):
                inside = slice(int(local[g]), int(local[g + 1]))
                draws[inside, kept[g]] = whiten(draws[inside, kept[g]])
        identical += int((counts == 0).sum())
        made[block] = recolour(draws, factors, means, local)
    return Synthesis(made, fell_back, identical)


def pool_scores(
    rows: Floats,
    offsets: Longs,
    generator: np.random.Generator,
    attribute: Longs,
    draw: Draw = "normal",
) -> Floats:
    """Scores for matching by rank, float64[rows, columns], where some groups have fewer than `POOLED_ROWS` rows.

    Each group's scores are drawn around its means from the covariance within groups, averaged over a block of
    neighbouring groups (`blocks_of`) and restored. What is fewer than `POOLED_ROWS` rows in all has its covariances
    shrunk in proportion. With more columns than rows in a block, scores are random combinations of the block's centred
    rows, which have the same covariance; these are not restored.
    """
    blocks = blocks_of(offsets)
    width = rows.shape[1]
    made = np.empty_like(rows)
    batch = max(1, EIGEN_BATCH_BYTES // (8 * width * width * 3))
    for first in range(0, len(blocks) - 1, batch):
        part = blocks[first : first + batch + 1]
        groups = offsets[part[0] : part[-1] + 1]
        block = slice(int(groups[0]), int(groups[-1]))
        local, numbers = groups - groups[0], part - part[0]
        means, covariances = moments(rows[block], local)
        lengths = np.diff(local[numbers])
        if width > lengths.max():
            made[block] = _combinations(rows[block], means, local, numbers, generator, draw)
            continue
        sizes = np.diff(local)
        of_block = np.repeat(np.arange(len(lengths)), np.diff(numbers))
        pooled = np.zeros((len(lengths), width, width))
        np.add.at(pooled, of_block, covariances * (sizes / lengths[of_block])[:, None, None])
        variances = np.diagonal(pooled, axis1=1, axis2=2).copy()
        scores = normal_scores(sizes, standardized=False)
        restore(rows[block], local, numbers, pooled, attribute, scores, True)
        few = np.minimum(1.0, lengths / POOLED_ROWS)[:, None, None]
        pooled = np.where(np.eye(width, dtype=bool), pooled, pooled * few)
        factors, _ = _factors(pooled, variances)
        draws = _draws(generator, (block.stop - block.start, width), draw)
        made[block] = recolour(draws, factors[of_block], means, local)
    return made


def blocks_of(offsets: Longs) -> Longs:
    """int64[blocks + 1]: neighbouring groups together until they have `POOLED_ROWS` rows; the last takes the rest."""
    starts = [0]
    for group in range(1, len(offsets) - 1):
        here, left = offsets[group] - offsets[starts[-1]], offsets[-1] - offsets[group]
        if here >= POOLED_ROWS and left >= POOLED_ROWS:
            starts.append(group)
    return np.array([*starts, len(offsets) - 1], np.int64)


def _combinations(
    rows: Floats, means: Floats, offsets: Longs, blocks: Longs, generator: np.random.Generator, draw: Draw
) -> Floats:
    """Group means plus random combinations of the block's rows, centred group by group."""
    around = np.repeat(means, np.diff(offsets), axis=0)
    centred = rows - around
    for first, last in itertools.pairwise(offsets[blocks].tolist()):
        size = last - first
        share = np.sqrt(min(1.0, size / POOLED_ROWS))
        own = share * (_draws(generator, (size, size), draw) @ centred[first:last]) / np.sqrt(size)
        spread = np.sqrt((1.0 - share * share) * (centred[first:last] ** 2).mean(axis=0))
        around[first:last] += own + spread * _draws(generator, own.shape, draw)
    return around


def normal_scores(sizes: Longs, *, standardized: bool = True) -> Floats:
    """Row m: Blom's normal scores of m ordered rows, for every m in `sizes`; other rows are 0. Standardized, or over
    √((m − 1)/m), the spread that scores drawn for a group of m rows have around their mean."""
    from scipy.special import ndtri

    scores = np.zeros((int(sizes.max()) + 1, int(sizes.max())))
    for size in np.unique(sizes):
        found = ndtri((np.arange(1, size + 1) - 0.375) / (size + 0.25))
        if standardized:
            found = (found - found.mean()) / max(float(found.std()), 1e-300)
        else:
            found /= np.sqrt(max(size - 1, 1) / size)
        scores[size, :size] = found
    return scores


def _factors(covariances: Floats, variances: Floats | None) -> tuple[Floats, NDArray[np.bool_]]:
    """The eigenvectors of each covariance times the roots of their eigenvalues, and which eigenvalues are kept. With
    the columns' `variances` as they are to be, dropping negative eigenvalues leaves them alone."""
    values, vectors = np.linalg.eigh(covariances)
    kept = (values > KEPT * np.maximum(values[:, -1:], 0.0)) & (values > 0.0)
    factors = vectors * np.sqrt(np.where(kept, values, 0.0))[:, None, :]
    if variances is not None:
        made = (factors**2).sum(axis=2)
        raised = np.sqrt(np.divide(variances, made, out=np.ones_like(made), where=made > 1e-15))
        factors *= raised[:, :, None]
    return np.ascontiguousarray(factors), kept


def _wide(
    rows: Floats,
    offsets: Longs,
    k: int,
    generator: np.random.Generator,
    mode: Literal["sampled", "exact"],
    draw: Draw,
) -> Synthesis:
    """The same for groups with fewer rows than columns: eigenvectors of AAᵀ instead of AᵀA (the paper's Proposition 1).
    A group of n rows has at most n − 1 components, so that `exact` always falls back when all of them are kept."""
    made = np.empty_like(rows)
    fell_back = identical = 0
    for start, end in itertools.pairwise(offsets.tolist()):
        size = int(end - start)
        mean = rows[start:end].mean(axis=0)
        centred = rows[start:end] - mean
        values, vectors = np.linalg.eigh(centred @ centred.T / size)
        kept = (values > KEPT * max(float(values[-1]), 0.0)) & (values > 0.0)
        count = int(kept.sum())
        draws = _draws(generator, (size, count), draw)
        if mode == "exact" and size >= max(k, count + 2) and count:
            draws = whiten(draws)
        elif mode == "exact":
            fell_back += 1
        # Aᵀv has length √(nλ): divided by √n it is the eigenvector times √λ.
        made[start:end] = mean + draws @ (vectors[:, kept].T @ centred) / np.sqrt(size)
        identical += count == 0
    return Synthesis(made, fell_back, identical)


def whiten(draws: Floats) -> Floats:
    """The draws with mean 0 and covariance exactly the identity (divisor: the number of rows)."""
    centred = draws - draws.mean(axis=0)
    root = np.linalg.cholesky(centred.T @ centred / len(draws))
    white: Floats = np.linalg.solve(root, centred.T).T
    return white


def _draws(generator: np.random.Generator, shape: tuple[int, int], draw: str) -> Floats:
    if draw == "normal":
        return generator.standard_normal(shape)
    bound = np.sqrt(3.0)
    return generator.uniform(-bound, bound, shape)


@njit
def moments(rows: Any, offsets: Any) -> Any:
    """Mean float64[groups, columns] and covariance float64[groups, columns, columns] (divisor: the group's rows)."""
    groups, width = len(offsets) - 1, rows.shape[1]
    means = np.zeros((groups, width))
    covariances = np.zeros((groups, width, width))
    moved = np.empty(width)
    for g in range(groups):
        start, end = offsets[g], offsets[g + 1]
        mean = means[g]
        for row in range(start, end):
            for j in range(width):
                mean[j] += rows[row, j]
        mean /= end - start
        covariance = covariances[g]
        for row in range(start, end):
            for j in range(width):
                moved[j] = rows[row, j] - mean[j]
            for i in range(width):
                factor = moved[i]
                line = covariance[i]
                for j in range(width):
                    line[j] += factor * moved[j]
        covariance /= end - start
    return means, covariances


@njit
def recolour(draws: Any, factors: Any, means: Any, offsets: Any) -> Any:
    """Each row of `draws` (float64[rows, kept]) as mean + factor · draw; `factors` is [groups, columns, kept]."""
    n, kept = draws.shape
    width = means.shape[1]
    made = np.empty((n, width))
    for g in range(len(offsets) - 1):
        factor, mean = factors[g], means[g]
        for row in range(offsets[g], offsets[g + 1]):
            for i in range(width):
                value = mean[i]
                for j in range(kept):
                    value += factor[i, j] * draws[row, j]
                made[row, i] = value
    return made


@njit
def restore(
    rows: Any, offsets: Any, blocks: Any, covariances: Any, attribute: Any, scores: Any, centred: bool
) -> None:
    """Undo beforehand what matching by rank will take from covariances between attributes; changes `covariances`.

    When normal scores of correlation r are replaced by two columns' own values in the same order, the correlation of
    the values is b₁b₂r + c₁c₂r² + …, with a column's first two Hermite coefficients b (its correlation with normal
    scores; φ(z)/√(p(1 − p)) for a level of share p; at least `LEAST_KEPT`) and c (with (score² − 1)/√2). Each
    covariance becomes that of the r which solves this to the second order, kept within ±0.99.
    `covariances`: float64[blocks, columns, columns], within the groups of a block (block b: groups blocks[b] … blocks[b
    + 1] − 1, over which the coefficients are summed). `attribute`: int64[columns], the attribute of each column;
    dummies of one attribute are left as they are. `scores`: float64[sizes, most], row m those of m rows. `centred`:
    rows are centred group by group, as scores that are not standardized need.
    """
    width = rows.shape[1]
    first, second = np.empty(width), np.empty(width)
    for b in range(len(blocks) - 1):
        covariance = covariances[b]
        total = offsets[blocks[b + 1]] - offsets[blocks[b]]
        for j in range(width):
            spread = np.sqrt(covariance[j, j])
            first[j], second[j] = 1.0, 0.0
            if spread > 0.0:
                linear, square = _hermite(rows[:, j], offsets[blocks[b] : blocks[b + 1] + 1], scores, centred)
                first[j] = max(linear / (total * spread), LEAST_KEPT)
                second[j] = square / (total * spread * np.sqrt(2.0))
        for i in range(width):
            for j in range(i):
                unit = np.sqrt(covariance[i, i] * covariance[j, j])
                if attribute[i] != attribute[j] and unit > 0.0:
                    # The r with linear · r + square · r² = wanted.
                    wanted, linear, square = (
                        covariance[i, j] / unit,
                        first[i] * first[j],
                        second[i] * second[j],
                    )
                    root = linear * linear + 4.0 * square * wanted
                    r = 2.0 * wanted / (linear + np.sqrt(root)) if root > 0.0 else -0.5 * linear / square
                    covariance[i, j] = min(max(r, -0.99), 0.99) * unit
                    covariance[j, i] = covariance[i, j]


@njit(inner=True)
def _hermite(column: Any, offsets: Any, scores: Any, centred: bool) -> Any:
    """A column's sums of products with normal scores, and with their squares less 1, over some groups."""
    linear, square = 0.0, 0.0
    for g in range(len(offsets) - 1):
        ordered = np.sort(column[offsets[g] : offsets[g + 1]])
        mean = ordered.mean() if centred else 0.0
        for i in range(len(ordered)):
            score = scores[len(ordered), i]
            linear += (ordered[i] - mean) * score
            square += (ordered[i] - mean) * (score * score - 1.0)
    return linear, square
