"""MDAV, maximum distance to average vector: microaggregation with groups of fixed size, as a comparator.

J. Domingo-Ferrer and J. M. Mateo-Sanz, *Practical data-oriented microaggregation for statistical disclosure control*,
IEEE Transactions on Knowledge and Data Engineering 14 (2002); the steps as in J. Domingo-Ferrer and V. Torra, *Ordinal,
continuous and heterogeneous k-anonymity through microaggregation*, Data Mining and Knowledge Discovery 11 (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mdav(points: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Group numbers int64[rows] of `points` float[rows, columns]; every group has k … 2k − 1 rows; k rows at least.

    1. While 3k rows are left: r is the row farthest from their mean, s the one farthest from r. r with its k − 1
       nearest rows is a group; of what is left, s with its k − 1 nearest is the next.
    2. If 2k are left: the farthest from their mean with its k − 1 nearest is a group.
    3. The rest is the last group.

    Equal distances: the earlier row.
    """
    points = np.asarray(points, np.float64)
    left = np.arange(len(points))
    labels = np.empty(len(points), np.int64)
    groups = 0

    def take(row: int) -> None:
        nonlocal left, groups
        near = left[np.argsort(_squared(points[left], points[row]), kind="stable")]
        near = np.concatenate([[row], near[near != row]])[:k]
        labels[near] = groups
        groups += 1
        left = left[~np.isin(left, near)]

    def farthest(centre: NDArray[np.float64]) -> int:
        return int(left[np.argmax(_squared(points[left], centre))])

    while len(left) >= 2 * k:
        two = len(left) >= 3 * k
        r = farthest(points[left].mean(axis=0))
        take(r)
        if two:
            take(farthest(points[r]))
    labels[left] = groups
    return labels


def _squared(points: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    return ((points - centre) ** 2).sum(axis=1)
