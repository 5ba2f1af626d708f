"""MDAV without pruning: every step aligns with everybody. For comparison: A-GS at any size, and the thesis's Baseline.

Baseline (Algorithm 2) matches pairs by their place in the trajectory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from leeward.methods.trajectories.clustering import Cluster
from leeward.methods.trajectories.problem import Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

Progress = Callable[[int], None]


def mdav(
    p: Problem, k: int, joining: str = "thesis", alignment: str = "a-gs", progress: Progress | None = None
) -> list[Cluster]:
    """The clusters of docs/methods/trajectories.md#clustering, by exhaustive search; `alignment` is `a-gs` or
    `baseline`."""
    copies = p.copies.astype(np.int64)
    left = p.total
    clusters = []
    mode, distance = -1, np.empty(0, np.int64)
    of_shape = np.bincount(p.shape, weights=p.copies).astype(np.int64)
    entry_of_shape = np.zeros(len(of_shape), np.int64)
    entry_of_shape[p.shape[::-1]] = np.arange(len(p))[::-1]
    lengths = p.length.astype(np.int64)
    while left:
        # The first of the most frequent shapes: they are numbered in the order of ties.
        wanted = int(np.argmax(of_shape))
        if wanted != mode:
            mode = wanted
            start = int(entry_of_shape[mode])
            distance = p.unit * (lengths[start] + lengths) - 2 * _savings(p, *_pairs(p, start), alignment)
        seed = _best(distance, copies, p.rank)
        target = k if left >= 2 * k else left
        members = [seed]
        copies[seed] -= 1
        codes, ages = _pairs(p, seed)
        weight = int(p.score[lengths[seed]])
        while len(members) < target:
            saved = _savings(p, codes, ages, alignment)
            if joining == "normalised":
                worth = saved * (p.score[lengths] + weight)
            else:
                times = 2 if joining == "thesis" else len(members) + 1
                worth = times * saved - p.unit * lengths
            nearest = _best(worth, copies, p.rank)
            codes, ages = _join(p, codes, ages, nearest, alignment)
            members.append(nearest)
            copies[nearest] -= 1
            weight += int(p.score[lengths[nearest]])
        for entry in members:
            of_shape[p.shape[entry]] -= 1
        left -= len(members)
        clusters.append(Cluster(np.array(members, np.int32), codes, ages))
        if progress is not None:
            progress(len(members))
    return clusters


def _pairs(p: Problem, entry: int) -> tuple[Ints, Ints]:
    span = slice(int(p.offsets[entry]), int(p.offsets[entry + 1]))
    return p.codes.nodes[p.code[span]], p.ages.nodes[p.age[span]]


def _best(worth: Longs, copies: Longs, rank: Ints) -> int:
    """The entry of most worth that has records left; ties: smallest rank."""
    alive = np.flatnonzero(copies)
    values = worth[alive]
    top = alive[values == values.max()]
    return int(top[np.argmin(rank[top])])


def _savings(p: Problem, codes: Ints, ages: Ints, alignment: str) -> Longs:
    from leeward.methods.trajectories.kernels import clustering as _kernels

    out = np.zeros(len(p), np.int64)
    everybody = np.arange(len(p), dtype=np.int32)
    kernel = _kernels.savings if alignment == "a-gs" else _kernels.savings_by_place
    kernel(codes, ages, everybody, out, p.entries, p.codes, p.ages, p.longest)
    return out


def _join(p: Problem, codes: Ints, ages: Ints, entry: int, alignment: str) -> tuple[Ints, Ints]:
    from leeward.methods.trajectories.kernels import clustering as _kernels

    if alignment == "baseline":
        short = min(len(codes), int(p.length[entry]))
        return (
            _common(p.codes.parent, p.codes.low, p.codes.high, codes[:short], p.code, int(p.offsets[entry])),
            _common(p.ages.parent, p.ages.low, p.ages.high, ages[:short], p.age, int(p.offsets[entry])),
        )
    m = len(codes)
    xc, xa = np.zeros(max(m, 1), np.int32), np.zeros(max(m, 1), np.int32)
    xc[:m], xa[:m] = codes, ages
    A = np.zeros((max(m, 1), len(p.codes.nodes) + 1), p.codes.gain.dtype)
    B = np.zeros((max(m, 1), len(p.ages.nodes) + 1), p.ages.gain.dtype)
    _kernels.fill_rows(A, B, xc, xa, m, p.codes, p.ages)
    M = np.empty((m + 1, p.longest + 1), p.codes.gain.dtype)
    in_order = np.arange(max(m, 1))
    m = _kernels.align_into(xc, xa, m, A, B, in_order, in_order, entry, p.entries, M, p.codes, p.ages)
    return xc[:m].copy(), xa[:m].copy()


def _common(parent: Ints, low: Ints, high: Ints, nodes: Ints, columns: Ints, start: int) -> Ints:
    """The common ancestors of nodes and the leaves of as many columns from `start` on."""
    found = nodes.copy()
    for i in range(len(found)):
        while not low[found[i]] <= columns[start + i] < high[found[i]]:
            found[i] = parent[found[i]]
    return found
