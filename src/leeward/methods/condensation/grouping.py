"""Groups of at least k similar rows, cell by cell of a stratum (docs/methods/condensation.md#groups).

Points are rows of a C-ordered float32 matrix, standardized and weighted, so that plain Euclid is the weighted distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import offsets_of
from leeward.compiled import njit
from leeward.methods.condensation.synthesis import Floats, Longs

Points = NDArray[np.float32]
How = Literal["halving", "kmeans", "seeds", "two-points"]

SAMPLE = 1 << 15
"""Rows of a part that the axis and the cut of its cells are learnt from."""

ITERATIONS = 10
"""Lloyd's iterations, as many as the paper's."""

FULL_COVARIANCE = 64
"""Up to this many columns the axis comes from the covariance matrix; above, from power iterations on the rows."""

POWER_STEPS = 60
POWER_ENOUGH = 1e-7


@dataclass(frozen=True)
class Grouping:
    """Rows in groups. `order`: the rows, group by group. `offsets`: int64[groups + 1]. `moved`: rows moved between
    groups to fill small ones. `before`, `after`: sums of squares within groups (weighted, standardized), before and
    after that."""

    order: Longs
    offsets: Longs
    moved: int
    before: float
    after: float


def cells_of(points: Points, rows: int, k: int, generator: np.random.Generator) -> Longs:
    """The cell of each row, 0…c − 1: about `rows` rows each, cut along principal axes, never below k
    (docs/methods/condensation.md#cells). Axes and cuts are learnt from a sample. A cut that would leave fewer than k
    rows on a side is not made."""
    cell = np.zeros(len(points), np.int64)
    waiting = [np.arange(len(points))]
    count = 0
    while waiting:
        part = waiting.pop()
        halves = _cut(points, part, rows, k, generator)
        if halves is None:
            cell[part] = count
            count += 1
        else:
            waiting += [halves[1], halves[0]]
    return cell


def _cut(
    points: Points, part: Longs, rows: int, k: int, generator: np.random.Generator
) -> tuple[Longs, Longs] | None:
    cells = -(-len(part) // rows)
    if cells < 2:
        return None
    drawn = part if len(part) <= SAMPLE else part[np.sort(generator.choice(len(part), SAMPLE, replace=False))]
    sample = np.ascontiguousarray(points[drawn])
    axis = principal_axis(sample, 0, len(sample))
    place = len(sample) * (cells // 2) // cells
    cut = np.partition(sample @ axis, place)[place]
    left = points[part] @ axis < cut
    if min(int(left.sum()), int((~left).sum())) < k:
        return None
    return part[left], part[~left]


def group(points: Points, k: int, how: How, generator: np.random.Generator) -> Grouping:
    """Groups of at least k rows of `points` (float32[rows, columns], weighted); there are at least k rows."""
    if how == "halving":
        return halving(points, k)
    if how == "kmeans":
        return kmeans(points, k, generator)
    labels = seeds(points, k, generator.random(len(points) // k)) if how == "seeds" else two_points(points, k)
    return _of_labels(points, labels)


def _of_labels(points: Points, labels: Longs) -> Grouping:
    sizes = np.bincount(labels)
    total = float(sum_of_squares(points, labels).sum())
    return Grouping(np.argsort(labels, kind="stable"), offsets_of(sizes), 0, total, total)


def sum_of_squares(points: Points, labels: Longs) -> Floats:
    """Within-group sums of squared distances to the group's centroid, float64[groups]."""
    sizes = np.maximum(np.bincount(labels), 1)
    squares = np.zeros(len(points))
    for column in points.T:
        centres = np.bincount(labels, column) / sizes
        squares += (column - centres[labels]) ** 2
    return np.asarray(np.bincount(labels, squares), np.float64)


def halving(points: Points, k: int) -> Grouping:
    """Principal-axis halving: every group has k … 2k − 1 rows and no row is moved afterwards."""
    sorted_points = points.copy()
    order = np.arange(len(points), dtype=np.int64)
    offsets = split_in_halves(sorted_points, order, k)
    labels = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    total = float(sum_of_squares(sorted_points, labels).sum())
    return Grouping(order, offsets, 0, total, total)


@njit
def principal_axis(points: Any, start: int, end: int) -> Any:
    """The first principal axis of rows start…end, its largest component positive."""
    width = points.shape[1]
    centre = np.zeros(width)
    for row in range(start, end):
        for j in range(width):
            centre[j] += points[row, j]
    centre /= end - start
    if width <= FULL_COVARIANCE:
        products = _products(points, start, end, centre.astype(np.float32))
        axis = np.linalg.eigh(products.astype(np.float64))[1][:, width - 1].copy()
    else:
        axis = _power_axis(points, start, end, centre)
    largest = 0
    for j in range(1, width):
        if abs(axis[j]) > abs(axis[largest]) + 1e-12:
            largest = j
    return (axis if axis[largest] >= 0.0 else -axis).astype(np.float32)


@njit(inner=True)
def _products(points: Any, start: int, end: int, centre: Any) -> Any:
    """Sums of products of the columns of rows start…end around their `centre`, float32[columns, columns]."""
    width = len(centre)
    found = np.zeros((width, width), np.float32)
    moved = np.empty(width, np.float32)
    for row in range(start, end):
        for j in range(width):
            moved[j] = points[row, j] - centre[j]
        for i in range(width):
            factor, line = moved[i], found[i]
            if factor != np.float32(0.0):
                for j in range(width):
                    line[j] += factor * moved[j]
    return found


@njit(inner=True)
def _power_axis(points: Any, start: int, end: int, centre: Any) -> Any:
    """The first principal axis of rows start…end by power iterations."""
    axis = 1.0 + 1e-3 * (np.arange(len(centre)) % 7)
    for _ in range(POWER_STEPS):
        found = np.zeros(len(centre))
        for row in range(start, end):
            product = 0.0
            for j in range(len(centre)):
                product += (points[row, j] - centre[j]) * axis[j]
            for j in range(len(centre)):
                found[j] += product * (points[row, j] - centre[j])
        length = np.sqrt((found * found).sum())
        if length == 0.0:
            break
        found /= length
        change = np.abs(found - axis).max()
        axis = found
        if change < POWER_ENOUGH:
            break
    return axis


@njit
def split_in_halves(points: Any, order: Any, k: int) -> Any:
    """Principal-axis halving: reorders `points` and `order` in place and returns the groups' offsets. A part of n rows
    and s groups is split behind row ⌊n⌊s/2⌋/s⌋ along its first principal axis (equal projections: in the order of the
    rows), until s is 1; s begins as ⌊n/k⌋."""
    n, width = points.shape
    offsets = np.zeros(n // k + 1, np.int64)
    todo = [(0, n, n // k, 0)]  # rows, groups, the first group's number
    while len(todo) > 0:
        start, end, groups, first = todo.pop()
        if groups == 1:
            offsets[first + 1] = end
            continue
        left = (end - start) * (groups // 2) // groups
        axis = principal_axis(points, start, end)
        projection = np.empty(end - start, np.float32)
        for row in range(end - start):
            value = np.float32(0.0)
            for j in range(width):
                value += points[start + row, j] * axis[j]
            projection[row] = value
        cut = np.partition(projection, left - 1)[left - 1]
        low = projection < cut
        low[np.flatnonzero(projection == cut)[: left - low.sum()]] = True
        rows = np.concatenate((np.flatnonzero(low), np.flatnonzero(~low)))
        points[start:end] = points[start:end][rows]
        order[start:end] = order[start:end][rows]
        todo.append((start, start + left, groups // 2, first))
        todo.append((start + left, end, groups - groups // 2, first + groups // 2))
    return offsets


def kmeans(points: Points, k: int, generator: np.random.Generator) -> Grouping:
    """The paper's steps 2a–2c: ⌊n/k⌋ clusters by Lloyd's k-means, then points moved into clusters below k."""
    labels, centres = clusters(points, k, generator)
    before = float(sum_of_squares(points, labels).sum())
    moved = balance(points, labels, centres, k, np.lexsort(points.T[::-1]))
    grouped = _of_labels(points, labels)
    return Grouping(grouped.order, grouped.offsets, int(moved), before, grouped.after)


def clusters(points: Points, k: int, generator: np.random.Generator) -> tuple[Longs, Floats]:
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


@njit
def _distances(points: Any, rows: Any, centre: Any) -> Any:
    found = np.empty(len(rows))
    for place in range(len(rows)):
        value = 0.0
        for d in range(len(centre)):
            gap = points[rows[place], d] - centre[d]
            value += gap * gap
        found[place] = value
    return found


@njit
def balance(points: Any, labels: Any, centres: Any, k: int, ordered: Any) -> int:
    """Step 2c of the paper: fill each cluster below k with the nearest points of clusters above k; changes `labels`.
    Clusters in ascending (size at the start, number); nearness to the cluster's original centre, then the place in
    `ordered`, the rows in the order of their values. Returns how many rows moved."""
    sizes = np.bincount(labels, minlength=len(centres))
    moved = 0
    for j in np.argsort(sizes, kind="mergesort"):
        if sizes[j] >= k:
            continue
        eligible = ordered[sizes[labels[ordered]] > k]
        distances = _distances(points, eligible, centres[j])
        count = len(eligible)
        wanted = min(count, 2 * (k - sizes[j]) + 16)
        done = 0
        while sizes[j] < k:
            near = np.flatnonzero(distances <= np.partition(distances, wanted - 1)[wanted - 1])
            near = near[np.argsort(distances[near], kind="mergesort")]
            for place in near[done:]:
                row = eligible[place]
                if sizes[labels[row]] > k:
                    sizes[labels[row]] -= 1
                    labels[row] = j
                    sizes[j] += 1
                    moved += 1
                    if sizes[j] == k:
                        break
            done = len(near)
            wanted = min(count, 4 * wanted)
    return moved


def seeds(points: Points, k: int, draws: Floats) -> Longs:
    """Aggarwal and Yu: ⌊n/k⌋ times a random row and its k − 1 nearest; what is left joins its nearest group. `draws`
    are uniform in [0, 1), one a group. Returns the labels."""
    labels = np.full(len(points), -1, np.int64)
    left = np.arange(len(points))
    rows = points.astype(np.float64)
    for g, draw in enumerate(draws):
        left = _take_nearest(rows, left, min(int(draw * len(left)), len(left) - 1), k, g, labels)
    return _join_nearest(rows, left, labels)


def two_points(points: Points, k: int) -> Longs:
    """TFRP, both phases (Chang et al. 2007, docs/methods/condensation.md#random-seeds-and-two-fixed-points). Returns
    the labels, numbered from 0."""
    labels = np.full(len(points), -1, np.int64)
    left = np.arange(len(points))
    rows = points.astype(np.float64)
    reach = [_distances(rows, left, corner) for corner in (rows.min(axis=0), rows.max(axis=0))]
    for g in range(len(points) // k):
        left = _take_nearest(rows, left, int(reach[g % 2][left].argmax()), k, g, labels)
    return _dissolve(points, _join_nearest(rows, left, labels))


def _nearest(points: Floats, centres: Floats, among: Longs) -> Longs:
    return among[[_distances(centres, among, point).argmin() for point in points]]


def _take_nearest(points: Floats, left: Longs, first: int, k: int, g: int, labels: Longs) -> Longs:
    """Give left[first] and its k − 1 nearest of the rows `left` the label g (equal distances: in their order); returns
    the other rows."""
    distances = _distances(points, left, points[left[first]])
    distances[first] = -1.0
    limit = np.partition(distances, k - 1)[k - 1]
    taken = distances < limit
    taken[np.flatnonzero(distances == limit)[: k - int(taken.sum())]] = True
    labels[left[taken]] = g
    return left[~taken]


def _join_nearest(points: Floats, left: Longs, labels: Longs) -> Longs:
    """The labels once each row that is `left` has that of the nearest centroid."""
    grouped = labels >= 0
    sizes = np.bincount(labels[grouped])
    centres = np.column_stack([np.bincount(labels[grouped], column[grouped]) / sizes for column in points.T])
    labels[left] = _nearest(points[left], np.ascontiguousarray(centres), np.arange(len(centres)))
    return labels


def _dissolve(points: Points, labels: Longs) -> Longs:
    """Phase 2: groups by descending sum of squares; dissolved into the nearest other groups where that helps."""
    rows = points.astype(np.float64)
    members = [np.flatnonzero(labels == g) for g in range(labels.max() + 1)]
    centres = np.stack([rows[own].mean(axis=0) for own in members])
    sums = sum_of_squares(points, labels)
    alive = np.ones(len(members), bool)
    for g in np.argsort(-sums, kind="stable"):
        if alive.sum() < 2:
            break
        alive[g] = False
        targets = _nearest(rows[members[g]], centres, np.flatnonzero(alive))
        larger = {t: np.append(members[t], members[g][targets == t]) for t in np.unique(targets).tolist()}
        grown = {t: float(np.square(rows[own] - rows[own].mean(axis=0)).sum()) for t, own in larger.items()}
        if sum(grown[t] - sums[t] for t in larger) >= sums[g]:
            alive[g] = True
            continue
        for t, own in larger.items():
            members[t], centres[t], sums[t] = own, rows[own].mean(axis=0), grown[t]
            labels[own] = t
    return np.unique(labels, return_inverse=True)[1]
