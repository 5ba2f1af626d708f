"""Synthetic rows with each group's mean and covariance (Gal et al. 2014, Algorithm 3).

See docs/methods/condensation.md#synthesis.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leeward.methods.condensation.kernels.values import (
    moments,
    pool,
    recolour,
    restore,
    restore_pooled,
)

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

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
    """Synthetic rows and what became of the groups.

    rows : float64[rows, columns], group by group
    fell_back : groups too small for `exact`, made by `sampled`
    identical : groups whose rows are all alike, and so are reproduced as they are
    """

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
    draw: Literal["normal", "uniform"] = "normal",
    attribute: Longs | None = None,
) -> Synthesis:
    """Synthetic rows for groups of standardized rows.

    Parameters
    ----------
    rows : float64[rows, columns]
        Group by group.
    offsets : int64[groups + 1]
    k : int
        The least size of a group.
    generator : numpy generator
    mode
        `sampled`: mean and covariance hold in expectation. `exact`: they are reproduced, in groups of at least
        max(k, q + 2) rows with q kept components; a smaller group would give its rows away and is sampled.
    draw
        Components normal (Gal et al.) or uniform (Aggarwal and Yu 2004) with the same variance.
    attribute : int64[columns], optional
        Given when the rows will be scores for matching by rank: the attribute of each column, whose covariances with
        other attributes are raised by as much as the matching will shrink them (`restore`). Not in the wide case.
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
        variances = np.diagonal(covariances, axis1=1, axis2=2).copy()
        if attribute is not None:
            scores = normal_scores(np.diff(part))
            restore(rows[block], local, covariances, attribute, scores, LEAST_KEPT)
        values, vectors = np.linalg.eigh(covariances)
        kept = values > KEPT * np.maximum(values[:, -1:], 0.0)
        kept &= values > 0.0
        factors = vectors * np.sqrt(np.where(kept, values, 0.0))[:, None, :]
        if attribute is not None:
            factors *= _back_to(variances, factors)[:, :, None]
        draws = _draws(generator, (block.stop - block.start, width), draw)
        counts = kept.sum(axis=1)
        if mode == "exact":
            fits = np.diff(part) >= np.maximum(k, counts + 2)
            fell_back += int((~fits).sum())
            for g in np.flatnonzero(fits & (counts > 0)):
                inside = slice(int(local[g]), int(local[g + 1]))
                draws[inside, kept[g]] = whiten(draws[inside, kept[g]])
        identical += int((counts == 0).sum())
        made[block] = recolour(draws, np.ascontiguousarray(factors), means, local)
    return Synthesis(made, fell_back, identical)


def pool_scores(
    rows: Floats,
    offsets: Longs,
    generator: np.random.Generator,
    attribute: Longs,
    draw: Literal["normal", "uniform"] = "normal",
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
            drawn = _combinations(rows[block], means, local, numbers, generator, draw)
            made[block] = drawn
            continue
        pooled = pool(covariances, local, numbers)
        variances = np.diagonal(pooled, axis1=1, axis2=2).copy()
        restore_pooled(
            rows[block], local, numbers, pooled, attribute, blom_scores(np.diff(local)), LEAST_KEPT
        )
        pooled = _shrunk(pooled, lengths)
        values, vectors = np.linalg.eigh(pooled)
        kept = (values > KEPT * np.maximum(values[:, -1:], 0.0)) & (values > 0.0)
        factors = vectors * np.sqrt(np.where(kept, values, 0.0))[:, None, :]
        factors *= _back_to(variances, factors)[:, :, None]
        draws = _draws(generator, (block.stop - block.start, width), draw)
        of_group = np.repeat(np.arange(len(numbers) - 1), np.diff(numbers))
        made[block] = recolour(draws, np.ascontiguousarray(factors[of_group]), means, local)
    return made


def blocks_of(offsets: Longs) -> Longs:
    """int64[blocks + 1]: neighbouring groups together until they have `POOLED_ROWS` rows; the last takes the rest."""
    starts = [0]
    for group in range(1, len(offsets) - 1):
        here, left = offsets[group] - offsets[starts[-1]], offsets[-1] - offsets[group]
        if here >= POOLED_ROWS and left >= POOLED_ROWS:
            starts.append(group)
    return np.array([*starts, len(offsets) - 1], np.int64)


def _shrunk(covariances: Floats, lengths: Longs) -> Floats:
    """Covariances between columns lessened where a block has few rows."""
    factor = np.minimum(1.0, lengths / POOLED_ROWS)[:, None, None]
    diagonal = np.eye(covariances.shape[1], dtype=bool)
    return np.where(diagonal, covariances, covariances * factor)


def _combinations(
    rows: Floats,
    means: Floats,
    offsets: Longs,
    blocks: Longs,
    generator: np.random.Generator,
    draw: Literal["normal", "uniform"],
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


def blom_scores(sizes: Longs) -> Floats:
    """Row m: Blom's normal scores of m ordered rows over √((m − 1)/m), for every m in `sizes`; other rows are 0."""
    from scipy.special import ndtri

    scores = np.zeros((int(sizes.max()) + 1, int(sizes.max())))
    for size in np.unique(sizes):
        found = ndtri((np.arange(1, size + 1) - 0.375) / (size + 0.25))
        scores[size, :size] = found / np.sqrt(max(size - 1, 1) / size)
    return scores


def normal_scores(sizes: Longs) -> Floats:
    """Row m: the standardized normal scores (Blom's) of m ordered rows, for every m in `sizes`; other rows are 0."""
    from scipy.special import ndtri

    scores = np.zeros((int(sizes.max()) + 1, int(sizes.max())))
    for size in np.unique(sizes):
        found = ndtri((np.arange(1, size + 1) - 0.375) / (size + 0.25))
        scores[size, :size] = (found - found.mean()) / max(float(found.std()), 1e-300)
    return scores


def _back_to(variances: Floats, factors: Floats) -> Floats:
    """What each column's factors are multiplied by, so that dropping negative eigenvalues leaves its variance alone."""
    made = (factors**2).sum(axis=2)
    safe = made > 1e-15
    return np.sqrt(np.divide(variances, made, out=np.ones_like(made), where=safe))


def _wide(
    rows: Floats,
    offsets: Longs,
    k: int,
    generator: np.random.Generator,
    mode: Literal["sampled", "exact"],
    draw: Literal["normal", "uniform"],
) -> Synthesis:
    """The same for groups with fewer rows than columns: eigenvectors of AAᵀ instead of AᵀA (the paper's Proposition 1).

    A group of n rows has at most n − 1 components, so that `exact` always falls back when all of them are kept.
    """
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
