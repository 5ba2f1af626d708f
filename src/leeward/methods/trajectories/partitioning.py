"""Beyond N²: parts of similar trajectories, clustered apart.

Records are halved until parts are small enough, each time by balanced 2-means in the space where the inner product of
two records is what their pairs would save on average if they were published together: a code (an age) has a
coordinate for each node above it, as long as the root of what the node saves more than its parent. So a record's
coordinate along an axis is a sum of one number for each of its pairs, and no coordinates are ever laid out. Lengths
count too, for a long trajectory cannot keep its pairs beside a short one.

Axes are found on a sample (every n-th record); sums are made one after the other, in a fixed order, and coordinates
are rounded before they are compared: the parts are the same whatever the threads or the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.methods.trajectories.space import Axis, Space

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

SAMPLE = 20_000
"""Records on which an axis is found."""

POWER_STEPS, MEANS_STEPS = 6, 10
"""Steps towards the axis of most spread, where 2-means begins, and steps of 2-means."""

LENGTH_WEIGHT = 0.02
"""What a product of log2(length) counts, in savings of an exact match: 0.005–0.05 give the same loss within 0.1 %."""

ROUNDED = 2.0**20


@dataclass(frozen=True, eq=False)
class Bags:
    """Records as bags of leaves: offsets[r]:offsets[r + 1] are the pairs of record r, `size` its log2(length)."""

    offsets: Longs
    codes: Ints
    ages: Ints
    size: Floats
    space: Space

    def take(self, chosen: Longs) -> Bags:
        """The chosen records."""
        sizes = self.offsets[chosen + 1] - self.offsets[chosen]
        ends = np.cumsum(sizes)
        at = np.arange(int(ends[-1])) + np.repeat(self.offsets[chosen] - (ends - sizes), sizes)
        offsets = np.concatenate([[0], ends])
        return Bags(offsets, self.codes[at], self.ages[at], self.size[chosen], self.space)

    def along(self, code_scores: Floats, age_scores: Floats, per_size: float) -> Floats:
        """The coordinate of each record: the mean score of its pairs, and what its length adds."""
        scores = code_scores[self.codes] + age_scores[self.ages]
        return np.add.reduceat(scores, self.offsets[:-1]) / np.diff(self.offsets) + per_size * self.size

    def axis(self, weights: Floats) -> tuple[Floats, Floats, float]:
        """The sum of the records, each `weights` times, as scores for `along`."""
        each = np.repeat(weights / np.diff(self.offsets), np.diff(self.offsets))
        return (
            _scores(self.space.code, self.codes, each, self.space.unit),
            _scores(self.space.age, self.ages, each, self.space.unit),
            LENGTH_WEIGHT * float(np.cumsum(weights * self.size)[-1]),
        )


def parts(offsets: Longs, codes: Ints, ages: Ints, space: Space, largest: int) -> Ints:
    """The part of each record, int32, each with at most `largest` records."""
    bags = Bags(offsets, codes, ages, np.log2(np.diff(offsets)), space)
    part = np.zeros(len(offsets) - 1, np.int32)
    waiting = [np.arange(len(part))]
    made = 0
    while waiting:
        records = waiting.pop()
        if len(records) <= largest:
            part[records] = made
            made += 1
            continue
        axis = _halving_axis(bags.take(records[:: -(-len(records) // SAMPLE)]))
        order = records[np.argsort(_round(bags.take(records).along(*axis)), kind="stable")]
        middle = len(order) // 2
        waiting += [np.sort(order[middle:]), np.sort(order[:middle])]
    return part


def _halving_axis(sample: Bags) -> tuple[Floats, Floats, float]:
    """From the middle of one half to the middle of the other, once 2-means has settled."""
    n = len(sample.size)
    # Any start that is not along one side only will do; it must be the same on every run.
    at = np.random.Generator(np.random.Philox(n)).standard_normal(n)
    for _ in range(POWER_STEPS):
        at = at - np.cumsum(at)[-1] / n
        at = sample.along(*sample.axis(at / max(float(np.abs(at).max()), 1e-300)))
    upper = _upper_half(at)
    for _ in range(MEANS_STEPS):
        axis = sample.axis(np.where(upper, 1.0, -1.0))
        found = _upper_half(sample.along(*axis))
        if np.array_equal(found, upper):
            break
        upper = found
    return axis


def _upper_half(at: Floats) -> NDArray[np.bool_]:
    upper = np.zeros(len(at), np.bool_)
    upper[np.argsort(_round(at), kind="stable")[len(at) // 2 :]] = True
    return upper


def _round(at: Floats) -> Floats:
    """Whole parts of the largest, so that the last bits of a sum cannot reorder equal records."""
    return np.rint(at * (ROUNDED / max(float(np.abs(at).max()), 1e-300)))


def _scores(axis: Axis, leaves: Ints, each: Floats, unit: int) -> Floats:
    """What every leaf saves with all `leaves` (each counted `each` times), in savings of an exact match."""
    tree = axis.hierarchy
    nodes = np.arange(len(tree))
    total = np.concatenate([[0.0], np.cumsum(np.bincount(leaves, each, len(tree)))])
    below = total[tree.end + 1] - total[nodes]
    gain = np.maximum(axis.gain, 0) / unit
    scores = (gain - np.where(tree.parent >= 0, gain[tree.parent], 0)) * below
    for depth in range(1, int(tree.depth.max()) + 1):
        here = np.flatnonzero(tree.depth == depth)
        scores[here] += scores[tree.parent[here]]
    return scores
