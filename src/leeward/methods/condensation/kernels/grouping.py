"""Kernels that put similar rows into groups of at least k (docs/methods/condensation.md#groups).

Points are rows of a C-ordered float matrix, standardized and weighted, so that plain Euclid is the weighted distance.
A grouping is `order` (rows, group by group) and `offsets` (group g is `order[offsets[g]:offsets[g + 1]]`), or a label
for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Points = NDArray[np.float32]
Longs = NDArray[np.int64]

FULL_COVARIANCE = 64
"""Up to this many columns the axis comes from the covariance matrix; above, from power iterations on the rows."""

POWER_STEPS = 60
POWER_ENOUGH = 1e-7


@njit
def principal_axis(points: Any, start: int, end: int, centre: Any, scratch: Any) -> Any:
    """The first principal axis of rows start…end, its largest component positive; `centre` receives their mean."""
    width = points.shape[1]
    centre[:] = 0.0
    for row in range(start, end):
        for j in range(width):
            centre[j] += points[row, j]
    centre /= end - start
    if width <= FULL_COVARIANCE:
        scratch[:, :] = np.float32(0.0)
        moved = np.empty(width, np.float32)
        for row in range(start, end):
            for j in range(width):
                moved[j] = points[row, j] - np.float32(centre[j])
            for i in range(width):
                factor = moved[i]
                if factor != np.float32(0.0):
                    line = scratch[i]
                    for j in range(width):
                        line[j] += factor * moved[j]
        axis = np.linalg.eigh(scratch.astype(np.float64))[1][:, width - 1].copy()
    else:
        axis = np.ones(width)
        for j in range(width):
            axis[j] += 1e-3 * (j % 7)
        for _ in range(POWER_STEPS):
            found = np.zeros(width)
            for row in range(start, end):
                product = 0.0
                for j in range(width):
                    product += (points[row, j] - centre[j]) * axis[j]
                for j in range(width):
                    found[j] += product * (points[row, j] - centre[j])
            length = np.sqrt((found * found).sum())
            if length == 0.0:
                break
            found /= length
            change = np.abs(found - axis).max()
            axis = found
            if change < POWER_ENOUGH:
                break
    largest = 0
    for j in range(1, width):
        if abs(axis[j]) > abs(axis[largest]) + 1e-12:
            largest = j
    if axis[largest] < 0.0:
        axis = -axis
    return axis.astype(np.float32)


@njit
def halve(points: Any, order: Any, k: int) -> Any:
    """Principal-axis halving: reorders `points` and `order` in place and returns the groups' offsets.

    A part of n rows and s groups is split behind row ⌊n⌊s/2⌋/s⌋ along its first principal axis (equal projections: in
    the order of the rows), until s is 1; s begins as ⌊n/k⌋.
    """
    n, width = points.shape
    s = n // k
    offsets = np.zeros(s + 1, np.int64)
    other = np.empty_like(points)
    other_order = np.empty_like(order)
    projection = np.empty(n, np.float32)
    sorting = np.empty(n, np.float32)
    centre = np.empty(width, np.float64)
    scratch = np.empty((width, width) if width <= FULL_COVARIANCE else (1, 1), np.float32)
    starts = np.empty(64, np.int64)
    ends = np.empty(64, np.int64)
    counts = np.empty(64, np.int64)
    firsts = np.empty(64, np.int64)
    starts[0], ends[0], counts[0], firsts[0] = 0, n, s, 0
    depth = 1
    while depth > 0:
        depth -= 1
        start, end, groups, first = starts[depth], ends[depth], counts[depth], firsts[depth]
        if groups == 1:
            offsets[first + 1] = end
            continue
        left_groups = groups // 2
        left = (end - start) * left_groups // groups
        axis = principal_axis(points, start, end, centre, scratch)
        for row in range(start, end):
            value = np.float32(0.0)
            for j in range(width):
                value += points[row, j] * axis[j]
            projection[row] = value
            sorting[row] = value
        part = np.partition(sorting[start:end], left - 1)
        cut = part[left - 1]
        below = 0
        for row in range(start, end):
            if projection[row] < cut:
                below += 1
        equal = left - below
        low, high = start, start + left
        for row in range(start, end):
            value = projection[row]
            if value < cut:
                target = low
                low += 1
            elif value == cut and equal > 0:
                target = low
                low += 1
                equal -= 1
            else:
                target = high
                high += 1
            other[target] = points[row]
            other_order[target] = order[row]
        points[start:end] = other[start:end]
        order[start:end] = other_order[start:end]
        starts[depth], ends[depth], counts[depth], firsts[depth] = start, start + left, left_groups, first
        depth += 1
        starts[depth], ends[depth] = start + left, end
        counts[depth], firsts[depth] = groups - left_groups, first + left_groups
        depth += 1
    return offsets


@njit
def sum_of_squares(points: Any, labels: Any, groups: int) -> Any:
    """Within-group sums of squared distances to the group's centroid, float64[groups]."""
    n, width = points.shape
    sizes = np.zeros(groups, np.int64)
    centres = np.zeros((groups, width))
    for row in range(n):
        sizes[labels[row]] += 1
        for j in range(width):
            centres[labels[row], j] += points[row, j]
    for g in range(groups):
        if sizes[g] > 0:
            centres[g] /= sizes[g]
    total = np.zeros(groups)
    for row in range(n):
        g = labels[row]
        value = 0.0
        for j in range(width):
            gap = points[row, j] - centres[g, j]
            value += gap * gap
        total[g] += value
    return total


@njit
def _before(points: Any, a: int, b: int) -> bool:
    """Whether row a comes before row b as a tuple of its values (then by position)."""
    for j in range(points.shape[1]):
        if points[a, j] != points[b, j]:
            return bool(points[a, j] < points[b, j])
    return a < b


@njit(inner=True)
def _nearest_in_order(points: Any, rows: Any, distances: Any, wanted: int) -> Any:
    """Positions in `rows` of the `wanted` least distances, ascending; equal distances by the row's tuple."""
    if wanted < len(distances):
        limit = np.partition(distances, wanted - 1)[wanted - 1]
        chosen = np.flatnonzero(distances <= limit)
    else:
        chosen = np.arange(len(distances))
    chosen = chosen[np.argsort(distances[chosen], kind="mergesort")]
    for i in range(1, len(chosen)):
        moving = chosen[i]
        place = i
        while (
            place > 0
            and distances[chosen[place - 1]] == distances[moving]
            and _before(points, rows[moving], rows[chosen[place - 1]])
        ):
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = moving
    return chosen


@njit
def balance(points: Any, labels: Any, centres: Any, k: int) -> int:
    """Step 2c of the paper: fill each cluster below k with the nearest points of clusters above k; changes `labels`.

    Clusters in ascending (size at the start, number); nearness to the cluster's original centre. Returns how many rows
    moved.
    """
    n, width = points.shape
    clusters = centres.shape[0]
    sizes = np.zeros(clusters, np.int64)
    for row in range(n):
        sizes[labels[row]] += 1
    turn = np.argsort(sizes.copy(), kind="mergesort")
    moved = 0
    eligible = np.empty(n, np.int64)
    reached = np.empty(n, np.float64)
    for j in turn:
        if sizes[j] >= k:
            continue
        count = 0
        for row in range(n):
            if sizes[labels[row]] > k:
                value = 0.0
                for d in range(width):
                    gap = points[row, d] - centres[j, d]
                    value += gap * gap
                eligible[count] = row
                reached[count] = value
                count += 1
        rows, distances = eligible[:count], reached[:count]
        wanted = min(count, 2 * (k - sizes[j]) + 16)
        done = 0
        while sizes[j] < k:
            ranked = _nearest_in_order(points, rows, distances, wanted)
            for place in range(done, len(ranked)):
                row = rows[ranked[place]]
                if sizes[labels[row]] > k:
                    sizes[labels[row]] -= 1
                    labels[row] = j
                    sizes[j] += 1
                    moved += 1
                    if sizes[j] == k:
                        break
            done = len(ranked)
            wanted = min(count, 4 * wanted)
    return moved
