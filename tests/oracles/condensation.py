"""Condensation said plainly, beside Gal et al. 2014 and docs/methods/condensation.md: slow, for small inputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Point = tuple[float, ...]


def gap(a: Sequence[float], b: Sequence[float]) -> float:
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def mean(points: Sequence[Point]) -> Point:
    return tuple(sum(column) / len(points) for column in zip(*points, strict=True))


def squares(points: Sequence[Point]) -> float:
    centre = mean(points)
    return sum(gap(point, centre) for point in points)


def balanced(points: Sequence[Point], labels: Sequence[int], centres: Sequence[Point], k: int) -> list[int]:
    """Algorithm 2, steps 2b and 2c: the label of each point after filling the clusters below k."""
    labels = list(labels)

    def size(cluster: int) -> int:
        return labels.count(cluster)

    order = sorted(range(len(centres)), key=lambda cluster: (size(cluster), cluster))
    for cluster in order:
        while size(cluster) < k:
            donors = [i for i in range(len(points)) if size(labels[i]) > k]
            nearest = min(donors, key=lambda i: (gap(points[i], centres[cluster]), points[i], i))
            labels[nearest] = cluster
    return labels


def two_points(points: Sequence[Point], k: int) -> list[set[int]]:
    """TFRP: phase 1 from two fixed points, phase 2 dissolving groups where the sum of squares drops."""
    groups = first_phase(points, k)
    for group in sorted(groups, key=lambda each: -squares([points[i] for i in each])):
        others = [each for each in groups if each is not group]
        if not others:
            break
        centres = [mean([points[i] for i in each]) for each in others]
        targets = [
            min(range(len(others)), key=lambda g, i=i: gap(points[i], centres[g])) for i in sorted(group)
        ]
        joined = [set(each) for each in others]
        for i, target in zip(sorted(group), targets, strict=True):
            joined[target].add(i)
        if total(points, joined) < total(points, groups):
            for each, larger in zip(others, joined, strict=True):
                each |= larger
            groups = others
    return groups


def first_phase(points: Sequence[Point], k: int) -> list[set[int]]:
    corners = [tuple(f(column) for column in zip(*points, strict=True)) for f in (min, max)]
    left = list(range(len(points)))
    groups: list[set[int]] = []
    while len(left) >= k:
        corner = corners[len(groups) % 2]
        far = max(left, key=lambda i: (gap(points[i], corner), -i))
        near = sorted(left, key=lambda i: (i != far, gap(points[i], points[far]), i))[:k]
        groups.append(set(near))
        left = [i for i in left if i not in near]
    centres = [mean([points[i] for i in each]) for each in groups]
    for i in left:
        groups[min(range(len(groups)), key=lambda g: gap(points[i], centres[g]))].add(i)
    return groups


def total(points: Sequence[Point], groups: Sequence[set[int]]) -> float:
    return sum(squares([points[i] for i in each]) for each in groups)


def halving_sizes(n: int, k: int) -> list[int]:
    """Sizes of the groups that halving makes of n rows."""

    def split(rows: int, groups: int) -> list[int]:
        if groups == 1:
            return [rows]
        left = rows * (groups // 2) // groups
        return split(left, groups // 2) + split(rows - left, groups - groups // 2)

    return split(n, n // k)


def halving(points: np.ndarray, k: int) -> list[list[int]]:
    """Principal-axis halving by recursion; equal projections stay in the order of the rows."""

    def split(rows: list[int], groups: int) -> list[list[int]]:
        if groups == 1:
            return [rows]
        part = points[rows].astype(float)
        centred = part - part.mean(axis=0)
        axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        largest = int(np.argmax(np.abs(axis) > np.abs(axis).max() - 1e-9))
        axis = axis if axis[largest] > 0 else -axis
        left = len(rows) * (groups // 2) // groups
        order = np.argsort(part @ axis, kind="stable")
        low = [rows[i] for i in sorted(order[:left])]
        high = [rows[i] for i in sorted(order[left:])]
        return split(low, groups // 2) + split(high, groups - groups // 2)

    return split(list(range(len(points))), len(points) // k)


def group_levels(scores: Sequence[Sequence[float]], levels: Sequence[int], count: int) -> list[int]:
    """docs/methods/condensation.md#group-marginals: levels in ascending count, each to that many free rows of highest
    score."""
    given = [-1] * len(levels)
    for level in sorted(range(count), key=lambda level: (levels.count(level), level)):
        free = [row for row in range(len(levels)) if given[row] < 0]
        free.sort(key=lambda row: (-scores[row][level], row))
        for row in free[: levels.count(level)]:
            given[row] = level
    return given


def outward_numbers(
    scores: Sequence[float], values: Sequence[float], steps: Sequence[float], low: float, high: float
) -> list[float]:
    """docs/methods/condensation.md#small-groups: half a step of the gap on its side, at the ends of the one gap there
    is; a move that would leave low … high turns back."""
    ordered = sorted(values)
    made = [0.0] * len(values)
    for rank, row in enumerate(sorted(range(len(scores)), key=lambda row: (scores[row], row))):
        if len(values) == 1:
            made[row] = ordered[0]
            continue
        gaps = [b - a for a, b in itertools.pairwise(ordered)]
        beside = gaps[rank:] if steps[row] > 0 else gaps[:rank][::-1]
        gap = beside[0] if beside else gaps[-1] if steps[row] > 0 else gaps[0]
        move = steps[row] / 2 * gap
        if not low <= ordered[rank] + move <= high:
            move = -move
        made[row] = ordered[rank] + move
    return made


def blocks(sizes: Sequence[int], rows: int) -> list[list[int]]:
    """docs/methods/condensation.md#small-groups: sizes of neighbouring groups put together until there are `rows`."""
    found: list[list[int]] = [[]]
    for place, size in enumerate(sizes):
        if sum(found[-1]) >= rows and sum(sizes[place:]) >= rows:
            found.append([])
        found[-1].append(size)
    return found


def group_numbers(scores: Sequence[float], values: Sequence[float], steps: Sequence[float]) -> list[float]:
    """docs/methods/condensation.md#group-marginals: rank i gets x(i) + |u|·(x(nb) − x(i)), nb on u's
    side, inward at both ends."""
    ordered = sorted(values)
    made = [0.0] * len(values)
    for rank, row in enumerate(sorted(range(len(scores)), key=lambda row: (scores[row], row))):
        if len(values) == 1:
            made[row] = ordered[0]
            continue
        step = steps[row]
        inward = 1 if rank == 0 else -1 if rank == len(values) - 1 else 0
        neighbour = rank + (inward or (1 if step > 0 else -1))
        made[row] = ordered[rank] + abs(step) * (ordered[neighbour] - ordered[rank])
    return made


def conditional_privacy(a: Sequence[int], b: Sequence[int], width: float) -> float:
    """Π(A|B) = 2^h(A|B), h = −Σ p_ab log2(p_ab/Δ) + Σ p_b log2 p_b, of numbers in bins of width Δ."""
    n = len(a)
    pairs = list(zip(a, b, strict=True))
    joint = {pair: Fraction(pairs.count(pair), n) for pair in set(pairs)}
    alone = {value: Fraction(list(b).count(value), n) for value in set(b)}
    h = -sum(float(p) * math.log2(float(p) / width) for p in joint.values())
    h += sum(float(p) * math.log2(float(p)) for p in alone.values())
    return float(2.0**h)


def argmax_share(share: float) -> float:
    """docs/methods/condensation.md#permissible-values: how often a binary level of share p wins the
    argmax of normal scores."""
    z = (0.5 - share) / math.sqrt(share * (1 - share))
    return 0.5 * math.erfc(z / math.sqrt(2))
