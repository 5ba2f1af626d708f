"""Kernels of the groupings that condensation is compared with: random seeds, two fixed points.

See docs/methods/condensation.md#random-seeds-and-two-fixed-points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.compiled import njit
from leeward.methods.condensation.kernels.grouping import sum_of_squares


@njit(inner=True)
def _take_nearest(
    points: Any, alive: Any, count: int, centre: Any, first: int, k: int, group: int, labels: Any
) -> int:
    """Give alive[first] and its k − 1 nearest alive rows the label `group`; returns how many rows stay alive."""
    width = points.shape[1]
    distances = np.empty(count, np.float64)
    for place in range(count):
        value = 0.0
        for d in range(width):
            gap = points[alive[place], d] - centre[d]
            value += gap * gap
        distances[place] = value
    distances[first] = -1.0
    limit = np.partition(distances, k - 1)[k - 1]
    below = 0
    for place in range(count):
        if distances[place] < limit:
            below += 1
    equal = k - below
    kept = 0
    for place in range(count):
        taken = distances[place] < limit
        if not taken and distances[place] == limit and equal > 0:
            taken = True
            equal -= 1
        if taken:
            labels[alive[place]] = group
        else:
            alive[kept] = alive[place]
            kept += 1
    return kept


@njit(inner=True)
def _centroids(points: Any, labels: Any, groups: int) -> Any:
    width = points.shape[1]
    sizes = np.zeros(groups, np.int64)
    centres = np.zeros((groups, width))
    for row in range(len(labels)):
        g = labels[row]
        if g >= 0:
            sizes[g] += 1
            for d in range(width):
                centres[g, d] += points[row, d]
    for g in range(groups):
        if sizes[g] > 0:
            centres[g] /= sizes[g]
    return centres, sizes


@njit(inner=True)
def _nearest_centre(points: Any, row: int, centres: Any, allowed: Any) -> int:
    best, least = -1, np.inf
    for g in range(centres.shape[0]):
        if not allowed[g]:
            continue
        value = 0.0
        for d in range(points.shape[1]):
            gap = points[row, d] - centres[g, d]
            value += gap * gap
        if value < least:
            best, least = g, value
    return best


@njit
def condense(points: Any, k: int, draws: Any) -> Any:
    """Aggarwal and Yu: ⌊n/k⌋ times a random row and its k − 1 nearest; what is left joins its nearest group.

    `draws` are uniform in [0, 1), one a group. Returns the labels.
    """
    n = points.shape[0]
    groups = n // k
    labels = np.full(n, -1, np.int64)
    alive = np.arange(n)
    count = n
    for g in range(groups):
        seed = min(int(draws[g] * count), count - 1)
        count = _take_nearest(
            points, alive, count, points[alive[seed]].astype(np.float64), seed, k, g, labels
        )
    centres, _ = _centroids(points, labels, groups)
    allowed = np.ones(groups, np.bool_)
    for place in range(count):
        labels[alive[place]] = _nearest_centre(points, alive[place], centres, allowed)
    return labels


@njit
def two_points(points: Any, k: int) -> Any:
    """TFRP, both phases (Chang et al. 2007, as on the method's page). Returns the labels, numbered from 0."""
    n, width = points.shape
    groups = n // k
    labels = np.full(n, -1, np.int64)
    corners = np.empty((2, width), np.float64)
    for d in range(width):
        corners[0, d] = points[:, d].min()
        corners[1, d] = points[:, d].max()
    alive = np.arange(n)
    count = n
    for g in range(groups):
        corner = corners[g % 2]
        farthest, most = 0, -1.0
        for place in range(count):
            value = 0.0
            for d in range(width):
                gap = points[alive[place], d] - corner[d]
                value += gap * gap
            if value > most:
                farthest, most = place, value
        row = alive[farthest]
        count = _take_nearest(points, alive, count, points[row].astype(np.float64), farthest, k, g, labels)
    centres, _ = _centroids(points, labels, groups)
    allowed = np.ones(groups, np.bool_)
    for place in range(count):
        labels[alive[place]] = _nearest_centre(points, alive[place], centres, allowed)
    _dissolve(points, labels, groups)
    return labels


@njit
def _dissolve(points: Any, labels: Any, groups: int) -> None:
    """Phase 2: groups by descending sum of squares; dissolved into the nearest other groups where that helps."""
    n, width = points.shape
    centres, sizes = _centroids(points, labels, groups)
    sums = sum_of_squares(points, labels, groups)
    alive = np.ones(groups, np.bool_)
    members = np.argsort(labels, kind="mergesort")
    # Rows of each group as linked lists, because groups grow.
    head = np.full(groups, -1, np.int64)
    after = np.full(n, -1, np.int64)
    for place in range(n - 1, -1, -1):
        row = members[place]
        after[row] = head[labels[row]]
        head[labels[row]] = row
    for g in np.argsort(-sums, kind="mergesort"):
        if alive.sum() < 2:
            break
        alive[g] = False
        # What joins a group of n rows and centroid c raises its sum by that of the joiners around their own mean,
        # plus n·m/(n+m) times the squared gap of the means.
        row = head[g]
        count = 0
        while row >= 0:
            count += 1
            row = after[row]
        rows = np.empty(count, np.int64)
        targets = np.empty(count, np.int64)
        row = head[g]
        for i in range(count):
            rows[i] = row
            targets[i] = _nearest_centre(points, row, centres, alive)
            row = after[row]
        growth = 0.0
        touched = np.unique(targets)
        for target in touched:
            joined = rows[targets == target]
            mean = np.zeros(width)
            for r in joined:
                for d in range(width):
                    mean[d] += points[r, d]
            mean /= len(joined)
            inner = 0.0
            for r in joined:
                for d in range(width):
                    gap = points[r, d] - mean[d]
                    inner += gap * gap
            apart = 0.0
            for d in range(width):
                apart += (mean[d] - centres[target, d]) ** 2
            growth += inner + sizes[target] * len(joined) / (sizes[target] + len(joined)) * apart
        if growth < sums[g]:
            for i in range(count):
                target = targets[i]
                after[rows[i]] = head[target]
                head[target] = rows[i]
                labels[rows[i]] = target
            for target in touched:
                joined = rows[targets == target]
                apart_before = sizes[target]
                old = centres[target].copy()
                for r in joined:
                    for d in range(width):
                        centres[target, d] += (points[r, d] - old[d]) / (apart_before + len(joined))
                sizes[target] += len(joined)
            for target in touched:
                value = 0.0
                r = head[target]
                while r >= 0:
                    for d in range(width):
                        gap = points[r, d] - centres[target, d]
                        value += gap * gap
                    r = after[r]
                sums[target] = value
            sums[g] = 0.0
        else:
            alive[g] = True
    number = np.full(groups, -1, np.int64)
    count = 0
    for g in range(groups):
        if alive[g]:
            number[g] = count
            count += 1
    for row in range(n):
        labels[row] = number[labels[row]]
