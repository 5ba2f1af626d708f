"""Kernels that find the rows nearest to others (Euclid) exactly: cut at medians into boxes, far boxes passed over.

Distances are sums of squares in double precision, column by column; of equally near rows the first counts. A box's
distance is summed in the same order, so that rounding never makes it larger than that of a row inside.
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit

BOX = 64
"""Rows of a box, at most, unless they are all equal."""


@njit(cache=True, nogil=True)
def cut_into_boxes(points, order):
    """Reorder `points` (float32) and `order` in place so that boxes are runs of rows; where each begins, and n."""
    n, width = points.shape
    begins = [n]
    begins.pop()
    waiting = [(0, n)]
    values, kept = np.empty(n, np.float32), np.empty(n, np.bool_)
    other, other_order = np.empty_like(points), np.empty_like(order)
    while len(waiting) > 0:
        start, end = waiting.pop()
        widest, spread = 0, np.float32(0.0)
        if end - start > BOX:
            low, high = points[start].copy(), points[start].copy()
            for row in range(start, end):
                for j in range(width):
                    low[j] = min(low[j], points[row, j])
                    high[j] = max(high[j], points[row, j])
            for j in range(width):
                if high[j] - low[j] > spread:
                    widest, spread = j, high[j] - low[j]
        if spread <= 0:
            begins.append(start)
            continue
        for row in range(start, end):
            values[row] = points[row, widest]
        middle = np.partition(values[start:end], (end - start) // 2)[(end - start) // 2]
        least = values[start:end].min()
        count = 0
        for row in range(start, end):  # the median goes to the side where neither is empty
            kept[row] = values[row] < middle if middle > least else values[row] <= middle
            count += kept[row]
        left, right = start, start + count
        for row in range(start, end):
            if kept[row]:
                target = left
                left += 1
            else:
                target = right
                right += 1
            other[target] = points[row]
            other_order[target] = order[row]
        points[start:end] = other[start:end]
        order[start:end] = other_order[start:end]
        waiting.append((start + count, end))
        waiting.append((start, start + count))
    begins.append(n)
    return np.array(begins)


@njit(cache=True, nogil=True)
def edges_of(points, begins):
    """The least and greatest values of each box."""
    low = np.empty((len(begins) - 1, points.shape[1]), np.float32)
    high = np.empty_like(low)
    for box in range(len(begins) - 1):
        low[box] = points[begins[box]]
        high[box] = points[begins[box]]
        for row in range(begins[box], begins[box + 1]):
            for j in range(points.shape[1]):
                low[box, j] = min(low[box, j], points[row, j])
                high[box, j] = max(high[box, j], points[row, j])
    return low, high


@njit(cache=True, nogil=True)
def _look(asked, points, order, begin, end, itself, near, where):
    """Take rows begin…end into the two nearest, `near` and `where`, if they are nearer."""
    for row in range(begin, end):
        d = 0.0
        for j in range(points.shape[1]):
            gap = np.float64(asked[j]) - np.float64(points[row, j])
            d += gap * gap
            if d > near[1]:
                break
        number = order[row]
        if d > near[1] or number == itself:
            continue
        if d < near[0] or (d == near[0] and number < where[0]):
            near[1], where[1] = near[0], where[0]
            near[0], where[0] = d, number
        elif d < near[1] or number < where[1]:
            near[1], where[1] = d, number


@njit(cache=True, nogil=True)
def two_nearest(asked, itself, points, order, begins, low, high):
    """Of each row asked the two nearest rows, int64[asked, 2], and their squared distances; `itself[i]` is left out."""
    boxes, width = low.shape
    near = np.full((len(asked), 2), np.inf)
    where = np.full((len(asked), 2), np.iinfo(np.int64).max)
    away = np.empty(boxes)
    for i in range(len(asked)):
        first = 0
        for box in range(boxes):
            d = 0.0
            for j in range(width):
                value = np.float64(asked[i, j])
                gap = max(np.float64(low[box, j]) - value, value - np.float64(high[box, j]), 0.0)
                d += gap * gap
            away[box] = d
            if d < away[first]:
                first = box
        _look(asked[i], points, order, begins[first], begins[first + 1], itself[i], near[i], where[i])
        for box in range(boxes):
            if box != first and away[box] <= near[i, 1]:
                _look(asked[i], points, order, begins[box], begins[box + 1], itself[i], near[i], where[i])
    return where, near
