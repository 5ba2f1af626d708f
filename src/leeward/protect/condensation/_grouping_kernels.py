"""Kernels that put similar rows into groups of at least k (ALGORITHMS §6.2, §6.3).

Points are rows of a C-ordered float matrix, standardized and weighted, so that plain Euclid is the weighted distance.
A grouping is `order` (rows, group by group) and `offsets` (group g is `order[offsets[g]:offsets[g + 1]]`), or a label
for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Points = NDArray[np.float32]
Longs = NDArray[np.int64]

FULL_COVARIANCE = 64
"""Up to this many columns the axis comes from the covariance matrix; above, from power iterations on the rows."""

POWER_STEPS = 60
POWER_ENOUGH = 1e-7


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _before(points: Any, a: int, b: int) -> bool:
    """Whether row a comes before row b as a tuple of its values (then by position)."""
    for j in range(points.shape[1]):
        if points[a, j] != points[b, j]:
            return bool(points[a, j] < points[b, j])
    return a < b


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def two_points(points: Any, k: int) -> Any:
    """TFRP, both phases (Chang et al. 2007, as in ALGORITHMS §6.3). Returns the labels, numbered from 0."""
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


@njit(cache=True, nogil=True)
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
