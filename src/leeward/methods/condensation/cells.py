"""Large strata cut into cells that a kernel takes one at a time (docs/methods/condensation.md#cells).

A cell is found by hyperplanes learnt from a sample of the stratum, so that any engine can tell a row's cell from the
row alone. A cut that would leave fewer than k rows on a side is not made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.methods.condensation.kernels.grouping import FULL_COVARIANCE, principal_axis
from leeward.methods.condensation.synthesis import Longs

SAMPLE = 1 << 15
"""Rows of a part that its axis and its cut are learnt from."""


def cells_of(points: NDArray[np.float32], rows: int, k: int, generator: np.random.Generator) -> Longs:
    """The cell of each row, 0…c − 1: about `rows` rows each, cut along principal axes, never below k."""
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
    points: NDArray[np.float32], part: Longs, rows: int, k: int, generator: np.random.Generator
) -> tuple[Longs, Longs] | None:
    cells = -(-len(part) // rows)
    if cells < 2:
        return None
    drawn = part if len(part) <= SAMPLE else part[np.sort(generator.choice(len(part), SAMPLE, replace=False))]
    sample = np.ascontiguousarray(points[drawn])
    width = points.shape[1]
    scratch = np.empty((width, width) if width <= FULL_COVARIANCE else (1, 1), np.float32)
    axis = principal_axis(sample, 0, len(sample), np.empty(width), scratch)
    place = len(sample) * (cells // 2) // cells
    cut = np.partition(sample @ axis, place)[place]
    left = points[part] @ axis < cut
    if min(int(left.sum()), int((~left).sum())) < k:
        return None
    return part[left], part[~left]
