"""Mondrian: groups of at least k rows by median cuts (LeFevre, DeWitt and Ramakrishnan 2006, strict partitioning).

See docs/methods/k-anonymity.md#groups.
"""

from __future__ import annotations

import numpy as np

from leeward.cohort.lenses.table import Floats


def mondrian(values: Floats, k: int) -> np.ndarray:
    """int64[rows]: the group of each row of `values` (float64[rows, columns], no NaN); every group has k rows or more.

    A part is cut at the median of the column with the widest range (relative to the whole table; equal ranges: the
    first column) that leaves k rows on both sides; equal values stay together.
    """
    spread = np.ptp(values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    labels = np.zeros(len(values), np.int64)
    waiting = [np.arange(len(values))]
    count = 0
    while waiting:
        part = waiting.pop()
        left = _cut(values[part], spread, k)
        if left is None:
            labels[part] = count
            count += 1
        else:
            waiting += [part[~left], part[left]]
    return labels


def _cut(part: Floats, spread: Floats, k: int) -> np.ndarray | None:
    if len(part) < 2 * k:
        return None
    for column in np.argsort(-np.ptp(part, axis=0) / spread, kind="stable"):
        own = part[:, column]
        if own.min() == own.max():
            return None
        median = np.partition(own, (len(own) - 1) // 2)[(len(own) - 1) // 2]
        for left in (own <= median, own < median):
            if k <= int(left.sum()) <= len(own) - k:
                return np.asarray(left)
    return None
