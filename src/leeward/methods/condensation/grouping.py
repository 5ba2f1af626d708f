"""Groups of at least k similar rows: halving, k-means with moved points, random seeds, two fixed points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leeward.methods.condensation.kernels import baseline as baselines
from leeward.methods.condensation.kernels import grouping as kernels
from leeward.methods.condensation.synthesis import Longs

Points = NDArray[np.float32]
How = Literal["halving", "kmeans", "seeds", "two-points"]

ITERATIONS = 10
"""Lloyd's iterations, as many as the paper's."""


@dataclass(frozen=True)
class Grouping:
    """Rows in groups.

    order : int64[rows], the rows group by group
    offsets : int64[groups + 1]
    moved : rows that were moved between groups to fill small ones
    before, after : within-group sums of squares (weighted, standardized) before and after rows were moved
    """

    order: Longs
    offsets: Longs
    moved: int
    before: float
    after: float


def group(points: Points, k: int, how: How, generator: np.random.Generator) -> Grouping:
    """Groups of at least k rows of `points` (float32[rows, columns], weighted); there are at least k rows."""
    if how == "halving":
        return halving(points, k)
    if how == "kmeans":
        return kmeans(points, k, generator)
    if how == "seeds":
        labels = baselines.condense(points, k, generator.random(len(points) // k))
    else:
        labels = baselines.two_points(points, k)
    return _of_labels(points, labels, int(labels.max()) + 1)


def halving(points: Points, k: int) -> Grouping:
    """Principal-axis halving: every group has k … 2k − 1 rows and no row is moved afterwards."""
    sorted_points = points.copy()
    order = np.arange(len(points), dtype=np.int64)
    offsets = kernels.halve(sorted_points, order, k)
    labels = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    total = float(kernels.sum_of_squares(sorted_points, labels, len(offsets) - 1).sum())
    return Grouping(order, offsets, 0, total, total)


def kmeans(points: Points, k: int, generator: np.random.Generator) -> Grouping:
    """The paper's steps 2a–2c: ⌊n/k⌋ clusters by Lloyd's k-means, then points moved into clusters below k."""
    labels, centres = clusters(points, k, generator)
    before = float(kernels.sum_of_squares(points, labels, len(centres)).sum())
    moved = kernels.balance(points, labels, centres, k)
    grouped = _of_labels(points, labels, len(centres))
    return Grouping(grouped.order, grouped.offsets, int(moved), before, grouped.after)


def clusters(points: Points, k: int, generator: np.random.Generator) -> tuple[Longs, NDArray[np.float64]]:
    """⌊n/k⌋ clusters by k-means, whatever their sizes: labels int64[rows], centres float64[clusters, columns]."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    state = int(generator.integers(0, 2**31 - 1))
    # One thread: sums in an order that does not depend on the machine.
    with threadpool_limits(1), warnings.catch_warnings():
        # Fewer different rows than clusters: empty clusters are filled afterwards.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(
            len(points) // k,
            init="random",
            n_init=1,
            max_iter=ITERATIONS,
            algorithm="lloyd",
            random_state=state,
        ).fit(points)
    return found.labels_.astype(np.int64), found.cluster_centers_.astype(np.float64)


def _of_labels(points: Points, labels: Longs, groups: int) -> Grouping:
    order = np.argsort(labels, kind="stable").astype(np.int64)
    offsets = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(labels, minlength=groups), out=offsets[1:])
    total = float(kernels.sum_of_squares(points, labels, groups).sum())
    return Grouping(order, offsets, 0, total, total)
