"""MDAV without pruning: every step aligns with everybody. For comparison: A-GS at any size, and the thesis's Baseline.

Baseline (Algorithm 2) matches pairs by their place in the trajectory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.arrays import Int32s, Int64s
from leeward.compiled import njit
from leeward.methods.trajectories.clustering import Cluster, Problem
from leeward.methods.trajectories.kernels import alignment, clustering


def mdav(p: Problem, k: int, normalised: bool = False, baseline: bool = False) -> list[Cluster]:
    """The clusters of docs/methods/trajectories.md#clustering, by exhaustive search."""
    copies, score = p.copies.astype(np.int64), p.entries.score
    left = len(p.records)
    clusters = []
    mode, distance = -1, np.empty(0, np.int64)
    of_shape = np.bincount(p.shape, weights=p.copies).astype(np.int64)
    entry_of_shape = np.zeros(len(of_shape), np.int64)
    entry_of_shape[p.shape[::-1]] = np.arange(len(p))[::-1]
    lengths = p.entries.length.astype(np.int64)
    while left:
        # The first of the most frequent shapes: they are numbered in the order of ties.
        wanted = int(np.argmax(of_shape))
        if wanted != mode:
            mode = wanted
            start = int(entry_of_shape[mode])
            distance = p.space.unit * (lengths[start] + lengths) - 2 * _savings(
                p, *_pairs(p, start), baseline
            )
        seed = _best(distance, copies, p.entries.rank)
        target = k if left >= 2 * k else left
        members = [seed]
        copies[seed] -= 1
        codes, ages = _pairs(p, seed)
        weight = int(score[lengths[seed]])
        while len(members) < target:
            saved = _savings(p, codes, ages, baseline)
            worth = saved * (score[lengths] + weight) if normalised else 2 * saved - p.space.unit * lengths
            nearest = _best(worth, copies, p.entries.rank)
            codes, ages = _join(p, codes, ages, nearest, baseline)
            members.append(nearest)
            copies[nearest] -= 1
            weight += int(score[lengths[nearest]])
        for entry in members:
            of_shape[p.shape[entry]] -= 1
        left -= len(members)
        clusters.append(Cluster(np.array(members, np.int32), codes, ages))
    return clusters


def _pairs(p: Problem, entry: int) -> tuple[Int32s, Int32s]:
    span = slice(int(p.pairs.offsets[entry]), int(p.pairs.offsets[entry + 1]))
    return p.pairs.codes[span], p.pairs.ages[span]


def _best(worth: Int64s, copies: Int64s, rank: Int32s) -> int:
    """The entry of most worth that has records left; ties: smallest rank."""
    alive = np.flatnonzero(copies)
    values = worth[alive]
    top = alive[values == values.max()]
    return int(top[np.argmin(rank[top])])


def _savings(p: Problem, codes: Int32s, ages: Int32s, baseline: bool) -> Int64s:
    out = np.zeros(len(p), np.int64)
    kernel = savings_by_place if baseline else clustering.savings
    kernel(codes, ages, np.arange(len(p), dtype=np.int32), out, p.entries, p.codes, p.ages)
    return out


def _join(p: Problem, codes: Int32s, ages: Int32s, entry: int, baseline: bool) -> tuple[Int32s, Int32s]:
    theirs = _pairs(p, entry)
    if baseline:
        short = min(len(codes), len(theirs[0]))
        return _above(p.axes.codes, codes, theirs[0], short), _above(p.axes.ages, ages, theirs[1], short)
    xc, xa, m, n = codes.copy(), ages.copy(), len(codes), len(theirs[0])
    room = np.empty((m, n), np.int64), np.empty((m + 1, n + 1), np.int64)
    m = alignment.align(xc, xa, m, entry, p.pairs, p.axes, *room)
    return xc[:m], xa[:m]


def _above(tree: Any, nodes: Int32s, leaves: Int32s, many: int) -> Int32s:
    """The common ancestors of the first nodes and as many leaves, place by place."""
    found = nodes[:many].copy()
    for i in range(many):
        while not found[i] <= leaves[i] <= tree.end[found[i]]:
            found[i] = tree.parent[found[i]]
    return found


@njit(error_model="numpy")
def savings_by_place(xc: Any, xa: Any, chosen: Any, out: Any, entries: Any, codes: Any, ages: Any) -> None:
    """Baseline: out[i] = what X saves with chosen[i] when pairs are matched by their place."""
    m = len(xc)
    code, age = entries.code, entries.age
    A = np.zeros((max(m, 1), len(codes.nodes) + 1), codes.gain.dtype)
    B = np.zeros((max(m, 1), len(ages.nodes) + 1), codes.gain.dtype)
    clustering.fill_rows(A, B, xc, xa, m, codes, ages)
    for i in range(len(chosen)):
        start = entries.offsets[chosen[i]]
        total = np.int64(0)
        for j in range(min(m, entries.length[chosen[i]])):
            total += A[j, code[start + j]] + B[j, age[start + j]]
        out[i] = total
