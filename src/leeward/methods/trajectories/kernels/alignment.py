"""Kernels of A-GS (Algorithm 3 of the thesis), exact: integers only, so that nothing rounds and ties break alike.

A-GS as a maximisation (docs/methods/trajectories.md#alignment): cost(X, Y) = all of X suppressed + all of Y
suppressed − (c + 1)·M, with M the largest Σ s(x, y) over order-preserving matchings. M has no gap costs: padding with
zeros changes nothing, and M(h, j) = max(M(h−1, j−1) + s, M(h, j−1), M(h−1, j)).
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit

MATCH, LEFT, UP = 0, 1, 2
"""Directions of A-GS (Fig. 7): match two pairs, suppress that of the record (Y), suppress that of X."""


@njit(inner=True, error_model="numpy")
def _publish_node(node, leaf, tree):
    """The node published for a node and a leaf: their common ancestor, or its replacement (`Axis.published`)."""
    while not (node <= leaf <= tree.end[node]):
        node = tree.parent[node]
    return tree.published[node]


@njit(inner=True, error_model="numpy")
def _gain_of(c, a, axes):
    """Saving of a pair of published nodes; -1 where one of them may not be published."""
    if c < 0 or a < 0:
        return np.int64(-1)
    tier = max(axes.codes.tier[c], axes.ages.tier[a])
    return axes.tiers[tier] + axes.codes.gain[c] + axes.ages.gain[a]


@njit(inner=True, error_model="numpy")
def match(xc, xa, m, record, pairs, axes, G, M):
    """The largest saving of the pairs (xc, xa)[:m] with a record, in order: M[m, n]; G holds the single gains."""
    start = pairs.offsets[record]
    n = pairs.offsets[record + 1] - start
    M[0, : n + 1] = 0
    for h in range(1, m + 1):
        M[h, 0] = 0
        for j in range(1, n + 1):
            c = _publish_node(xc[h - 1], pairs.codes[start + j - 1], axes.codes)
            a = _publish_node(xa[h - 1], pairs.ages[start + j - 1], axes.ages)
            G[h - 1, j - 1] = _gain_of(c, a, axes)
            M[h, j] = max(M[h - 1, j - 1] + G[h - 1, j - 1], max(M[h, j - 1], M[h - 1, j]))
    return M[m, n]


@njit(inner=True, error_model="numpy")
def direction(h, j, G, M):
    """The direction at (h, j) in the tables of `match`. Ties: match, then left, then up."""
    if M[h, j] == M[h - 1, j - 1] + G[h - 1, j - 1]:
        return MATCH
    return LEFT if M[h, j - 1] >= M[h - 1, j] else UP


@njit(error_model="numpy")
def align(xc, xa, m, record, pairs, axes, G, M):
    """Align (xc, xa)[:m] with a record, in place; returns the number of pairs left. `G`, `M`: int64 with room for the
    longest trajectory, M for one more each way; they are filled (`match`)."""
    match(xc, xa, m, record, pairs, axes, G, M)
    start = pairs.offsets[record]
    h, j, kept = m, pairs.offsets[record + 1] - start, m
    while h > 0 and j > 0:
        way = direction(h, j, G, M)
        if way != LEFT:
            h -= 1
        if way != UP:
            j -= 1
        if way == MATCH:
            kept -= 1
            xc[kept] = _publish_node(xc[h], pairs.codes[start + j], axes.codes)
            xa[kept] = _publish_node(xa[h], pairs.ages[start + j], axes.ages)
    xc[: m - kept] = xc[kept:m].copy()
    xa[: m - kept] = xa[kept:m].copy()
    return m - kept


@njit(inner=True, error_model="numpy")
def _place_of_next(xc, xa, m, weight, left, pairs, axes, score, G, M):
    """The place in `left` of the record that keeps most of Definition 8 (ties: the first)."""
    best, most = 0, np.int64(-1)
    for i in range(len(left)):
        saved = match(xc, xa, m, left[i], pairs, axes, G, M)
        value = saved * (score[pairs.offsets[left[i] + 1] - pairs.offsets[left[i]]] + weight)
        if value > most:
            best, most = i, value
    return best


@njit(error_model="numpy")
def publish_in_order(members, pairs, axes, score, out_codes, out_ages):
    """Align all members one after the other, starting from the member that keeps most. `score`: 1/n of Definition 8 by
    length: the next record is always the one that keeps most; if empty, members are aligned in the order given. Returns
    (pairs written, their saving)."""
    longest = 1
    for r in members:
        longest = max(longest, pairs.offsets[r + 1] - pairs.offsets[r])
    xc, xa, left = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(len(members), np.int64)
    G, M = np.empty((longest, longest), np.int64), np.empty((longest + 1, longest + 1), np.int64)
    best, written = np.int64(-1), 0
    for first in range(len(members)):
        begin = pairs.offsets[members[first]]
        m = pairs.offsets[members[first] + 1] - begin
        xc[:m] = pairs.codes[begin : begin + m]
        xa[:m] = pairs.ages[begin : begin + m]
        left[:first] = members[:first]
        left[first : len(members) - 1] = members[first + 1 :]
        weight = score[m] if len(score) else np.int64(0)
        for count in range(len(members) - 1, 0, -1):
            place = len(members) - 1 - count
            if len(score):
                place = _place_of_next(xc, xa, m, weight, left[:count], pairs, axes, score, G, M)
                weight += score[pairs.offsets[left[place] + 1] - pairs.offsets[left[place]]]
            m = align(xc, xa, m, left[place], pairs, axes, G, M)
            if len(score):
                left[place] = left[count - 1]
        total = np.int64(0)
        for i in range(m):
            total += _gain_of(xc[i], xa[i], axes)
        if total > best:
            best, written = total, m
            out_codes[:m] = xc[:m]
            out_ages[:m] = xa[:m]
    return written, best
