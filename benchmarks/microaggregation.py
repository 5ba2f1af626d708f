"""Microaggregations that condensation is compared with: MDAV, and trees of least length cut into groups.

MDAV, maximum distance to average vector: J. Domingo-Ferrer and J. M. Mateo-Sanz, *Practical data-oriented
microaggregation for statistical disclosure control*, IEEE Transactions on Knowledge and Data Engineering 14 (2002); the
steps as in J. Domingo-Ferrer and V. Torra, *Ordinal, continuous and heterogeneous k-anonymity through
microaggregation*, Data Mining and Knowledge Discovery 11 (2005).

MST, minimum spanning tree partitioning: M. Laszlo and S. Mukherjee, *Minimum spanning tree partitioning algorithm for
microaggregation*, IEEE Transactions on Knowledge and Data Engineering 17 (2005), with their centroid-based method for
parts that are too large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


def mdav(points: NDArray[Any], k: int) -> Longs:
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
        near = _with_nearest(points, left, row, k)
        labels[near] = groups
        groups += 1
        left = left[~np.isin(left, near)]

    def farthest(centre: Floats) -> int:
        return int(left[np.argmax(_squared(points[left], centre))])

    while len(left) >= 2 * k:
        two = len(left) >= 3 * k
        r = farthest(points[left].mean(axis=0))
        take(r)
        if two:
            take(farthest(points[r]))
    labels[left] = groups
    return labels


def mst(points: NDArray[Any], k: int) -> Longs:
    """Group numbers int64[rows] of `points` float[rows, columns]; every group has k rows or more; k rows at least.

    The longest edges of a spanning tree of least length go, wherever both parts keep k rows. A part of 2k rows or more
    is then divided by `by_centroids`.
    """
    points = np.asarray(points, np.float64)
    parts = cut_tree(*spanning_tree(points), k)
    labels = np.empty(len(points), np.int64)
    groups = 0
    for part in range(int(parts.max()) + 1):
        rows = np.flatnonzero(parts == part)
        own = by_centroids(points[rows], k) if len(rows) >= 2 * k else np.zeros(len(rows), np.int64)
        labels[rows] = groups + own
        groups += int(own.max()) + 1
    return labels


@njit
def spanning_tree(points: Any) -> Any:
    """Prim's algorithm from row 0: the rows in the order in which they join, each row's parent (row 0: −1) and the
    squared length of the edge to it. Equal distances: the earlier row."""
    n, width = points.shape
    order, parent, length = np.zeros(n, np.int64), np.full(n, -1), np.zeros(n)
    near, outside, row = np.full(n, np.inf), np.ones(n, np.bool_), 0
    for step in range(1, n):
        outside[row] = False
        nearest = -1
        for other in range(n):
            if not outside[other]:
                continue
            distance = 0.0
            for d in range(width):
                distance += (points[other, d] - points[row, d]) ** 2
            if distance < near[other]:
                near[other], parent[other] = distance, row
            if nearest < 0 or near[other] < near[nearest]:
                nearest = other
        row = nearest
        order[step], length[row] = row, near[row]
    return order, parent, length


@njit
def cut_tree(order: Any, parent: Any, length: Any, k: int) -> Any:
    """The part of each row, from 0, once edges are removed by descending length (equal lengths: the edge of the earlier
    row) wherever both sides keep k rows."""
    n = len(order)
    size, above = np.ones(n, np.int64), parent.copy()
    for step in range(n - 1, 0, -1):
        size[parent[order[step]]] += size[order[step]]
    for row in np.argsort(-length, kind="mergesort"):
        if above[row] < 0 or size[row] < k:
            continue
        top = above[row]
        while above[top] >= 0:
            top = above[top]
        if size[top] - size[row] >= k:
            place = above[row]
            above[row] = -1
            while place >= 0:
                size[place] -= size[row]
                place = above[place]
    parts = np.empty(n, np.int64)
    count = 0
    for row in order:
        if above[row] < 0:
            parts[row] = count
            count += 1
        else:
            parts[row] = parts[above[row]]
    return parts


def by_centroids(points: Floats, k: int) -> Longs:
    """While k rows are left, the row farthest from the mean of the rows left and its k − 1 nearest are a group; a row
    that remains joins the group with the nearest mean. Equal distances: the earlier."""
    left = np.arange(len(points))
    labels = np.empty(len(points), np.int64)
    centres: list[Floats] = []
    while len(left) >= k:
        far = int(left[np.argmax(_squared(points[left], points[left].mean(axis=0)))])
        near = _with_nearest(points, left, far, k)
        labels[near] = len(centres)
        centres.append(points[near].mean(axis=0))
        left = left[~np.isin(left, near)]
    for row in left:
        labels[row] = np.argmin(_squared(np.array(centres), points[row]))
    return labels


def _with_nearest(points: Floats, left: Longs, row: int, k: int) -> Longs:
    """A row and the k − 1 nearest of the rows `left`."""
    near = left[np.argsort(_squared(points[left], points[row]), kind="stable")]
    return np.concatenate([[row], near[near != row]])[:k]


def _squared(points: Floats, centre: Floats) -> Floats:
    return np.asarray(((points - centre) ** 2).sum(axis=1))
