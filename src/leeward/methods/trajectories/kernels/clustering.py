"""Kernels of MDAV: savings of a trajectory with many others, and growing a cluster; integers only.

Two bounds make the search for the nearest trajectory short:
- M(X, Y) ≤ Σ_y max_x s(x, y), read from one table a cluster;
- a representative only moves up its hierarchies, so its saving with Y never grows: bounds and exact values of one
  joining step stay bounds in the next ones.
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.compiled import njit
from leeward.methods.trajectories.kernels.alignment import align

LANES = 16
"""Trajectories aligned side by side, innermost: one AVX-512 register of int32."""

IMPOSSIBLE = -(2**62)
"""The worth of an entry that cannot join."""


class Lanes(NamedTuple):
    """Working arrays of `align_lanes`: columns of codes and ages, gains (and results), two rows of the recurrence."""

    C: Any
    G: Any
    S: Any
    row: Any
    prev: Any


class Blocks(NamedTuple):
    """Entries with records left (`active`, ascending) in blocks of equal length and similar age: where each block
    begins, its first and last age column."""

    active: Any
    starts: Any
    low: Any
    high: Any


@njit(inner=True, error_model="numpy")
def lanes_for(longest, gain):
    """Working arrays for trajectories of up to `longest` pairs, in the number type of `gain`."""
    room = (longest + 1) * LANES
    return Lanes(
        np.zeros(room, np.uint32),
        np.zeros(room, np.uint32),
        np.zeros(room, gain.dtype),
        np.zeros(room, gain.dtype),
        np.zeros(room, gain.dtype),
    )


@njit(inner=True, error_model="numpy")
def fill_row(row, node, axis):
    """row[column] = gain of the common ancestor of `node` and each column's leaf; the padding column stays 0."""
    low, high, parent, gain = axis.low, axis.high, axis.parent, axis.gain
    a, b = low[node], high[node]
    here = gain[node]
    for column in range(a, b):
        row[column] = here
    above = parent[node]
    while above >= 0:
        here = gain[above]
        for column in range(low[above], a):
            row[column] = here
        for column in range(b, high[above]):
            row[column] = here
        a, b = low[above], high[above]
        above = parent[above]


@njit(inner=True, error_model="numpy")
def fill_rows(A, B, xc, xa, m, codes, ages):
    """Gains of the m pairs (xc, xa) against every column of both axes: A[i, code column], B[i, age column]."""
    for i in range(m):
        fill_row(A[i], xc[i], codes)
        fill_row(B[i], xa[i], ages)


@njit(inner=True, error_model="numpy")
def best_of_rows(grid, A, B, m, n_codes, n_ages):
    """grid[code column · n_ages + age column] = max over the m pairs x of s(x, ·), at least 0."""
    grid[:] = 0
    for i in range(m):
        ages = B[i]
        for c in range(n_codes):
            gain = A[i, c]
            part = grid[c * n_ages : (c + 1) * n_ages]
            for v in range(n_ages):
                part[v] = max(part[v], part.dtype.type(gain + ages[v]))


@njit(inner=True, error_model="numpy")
def _add_gains(S, a, b, C, G, N):
    for q in range(N):
        S[q] = a[C[q]] + b[G[q]]


@njit(inner=True, error_model="numpy")
def _advance(row, prev, S, N):
    """One row of the recurrence for all lanes: lanes are innermost, so j − 1 is LANES places to the left."""
    V = np.uint64(LANES)
    for q in range(N):
        row[q + V] = max(prev[q + V], prev.dtype.type(prev[q] + S[q]))
    for q in range(N):
        row[q + V] = max(row[q + V], row[q])


@njit(inner=True, error_model="numpy")
def align_lanes(A, B, m, chosen, first, width, entries, lanes, pad_code, pad_age):
    """M(X, Y) of `width` ≤ LANES trajectories `chosen[first:]` into lanes.S[:width]; X is in A and B."""
    offsets, code, age, length = entries.offsets, entries.code, entries.age, entries.length
    C, G, S, row, prev = lanes
    n = 0
    for lane in range(width):
        n = max(n, length[chosen[first + lane]])
    for lane in range(LANES):
        own = 0
        if lane < width:
            entry = chosen[first + lane]
            start = offsets[entry]
            own = length[entry]
            for j in range(own):
                C[j * LANES + lane] = code[start + j]
                G[j * LANES + lane] = age[start + j]
        for j in range(own, n):
            C[j * LANES + lane] = pad_code
            G[j * LANES + lane] = pad_age
    N = np.uint64(n * LANES)
    prev[: N + np.uint64(LANES)] = 0
    row[:LANES] = 0
    for i in range(m):
        _add_gains(S, A[i], B[i], C, G, N)
        _advance(row, prev, S, N)
        row, prev = prev, row
    for lane in range(width):
        S[lane] = prev[N + np.uint64(lane)]


@njit(error_model="numpy")
def savings(xc, xa, chosen, out, entries, codes, ages):
    """out[i] = M(X, chosen[i]) for the pairs (xc, xa) of nodes."""
    n_codes, n_ages, m = len(codes.nodes), len(ages.nodes), len(xc)
    A = np.zeros((max(m, 1), n_codes + 1), codes.gain.dtype)
    B = np.zeros((max(m, 1), n_ages + 1), codes.gain.dtype)
    fill_rows(A, B, xc, xa, m, codes, ages)
    lanes = lanes_for(entries.length.max(), A)
    for first in range(0, len(chosen), LANES):
        width = min(LANES, len(chosen) - first)
        align_lanes(A, B, m, chosen, first, width, entries, lanes, n_codes, n_ages)
        for lane in range(width):
            out[first + lane] = lanes.S[lane]


@njit(inner=True, error_model="numpy")
def upper_bound(grid, pair, start, n, m, unit):
    """An upper bound of M(X, Y): the sum of the m largest of Y's n best savings, from above. That sum is at most m·θ +
    Σ max(0, v − θ) for every θ; three are tried."""
    total = np.int64(0)
    if n <= m:
        for j in range(n):
            total += grid[pair[start + j]]
        return total
    low, middle, high = np.int64(unit * 5 // 8), np.int64(unit * 3 // 4), np.int64(unit * 7 // 8)
    over_low, over_middle, over_high = m * low, m * middle, m * high
    for j in range(n):
        v = np.int64(grid[pair[start + j]])
        total += v
        over_low += max(v - low, 0)
        over_middle += max(v - middle, 0)
        over_high += max(v - high, 0)
    return min(min(total, over_low), min(over_middle, over_high))


class Bounds(NamedTuple):
    """Upper bounds of the saving of each active entry with the cluster, and its worth.

    `bound`: of an entry, -1 where it may not join. `fresh`: the size of the cluster for which the bound is exact.
    `block_of`: the block of an entry. `known`: blocks whose bounds were computed. `ceiling`: no entry of a block saves
    more. `times`, `plus`: a saving M of a block's entries is worth M · times + plus. `full`: sensitive values that may
    not join any more, full[0] of them from full[1] on.
    """

    bound: Any
    fresh: Any
    block_of: Any
    known: Any
    ceiling: Any
    times: Any
    plus: Any
    full: Any


@njit(inner=True, error_model="numpy")
def _compute_bounds(g, grid, blocks, copies, entries, bounds):
    """Compute the unknown bounds of the entries of block g from the table `grid`; -1 for those that may not join."""
    if bounds.known[g]:
        return
    bounds.known[g] = True
    bound, full, active, starts = bounds.bound, bounds.full, blocks.active, blocks.starts
    offsets, pair, group = entries.offsets, entries.pair, entries.group
    n = np.uint64(entries.length[active[starts[g]]])
    for i in range(starts[g], starts[g + 1]):
        entry = active[i]
        p = np.uint64(offsets[entry])
        total = bound.dtype.type(0)
        for j in range(p, p + n):
            total = bound.dtype.type(total + grid[pair[j]])
        bound[i] = total if copies[entry] > 0 else -1
        for f in range(1, full[0] + 1):
            if group[entry] == full[f]:
                bound[i] = -1


@njit(inner=True, error_model="numpy")
def _ceilings(ceiling, grid, n_codes, n_ages, m, blocks, length):
    """Upper bound of the saving of any trajectory of a block: as many pairs as fit, each the best for its ages."""
    active, starts = blocks.active, blocks.starts
    by_age = np.zeros(n_ages, grid.dtype)
    for c in range(n_codes):
        part = grid[c * n_ages : (c + 1) * n_ages]
        for v in range(n_ages):
            by_age[v] = max(by_age[v], part[v])
    for g in range(len(starts) - 1):
        top = np.int64(0)
        for v in range(blocks.low[g], blocks.high[g] + 1):
            top = max(top, np.int64(by_age[v]))
        ceiling[g] = top * min(m, length[active[starts[g]]])


@njit(inner=True, error_model="numpy")
def _close_value(kind, members, most, blocks, entries, bounds):
    """Bar entries with the sensitive value `kind` once `most` members have it."""
    held = 0
    for entry in members:
        held += entries.group[entry] == kind
    if held < most:
        return
    bounds.full[0] += 1
    bounds.full[bounds.full[0]] = kind
    for i in range(len(blocks.active)):
        if bounds.known[bounds.block_of[i]] and entries.group[blocks.active[i]] == kind:
            bounds.bound[i] = -1


@njit(inner=True, error_model="numpy")
def _first_places(places, worth, grid, blocks, copies, entries, bounds):
    """The top entry of each of the LANES most promising blocks, to start the search; returns how many."""
    bound, ceiling, starts = bounds.bound, bounds.ceiling, blocks.starts
    for g in range(len(worth)):
        possible = ceiling[g] >= 0
        worth[g] = ceiling[g] * bounds.times[g] + bounds.plus[g] if possible else IMPOSSIBLE
    width = 0
    for _ in range(len(worth)):
        g = int(np.argmax(worth))
        if worth[g] == IMPOSSIBLE or width == LANES:
            break
        worth[g] = IMPOSSIBLE
        _compute_bounds(g, grid, blocks, copies, entries, bounds)
        top = starts[g]
        for i in range(starts[g] + 1, starts[g + 1]):
            if bound[i] > bound[top]:
                top = i
        ceiling[g] = bound[top]
        if bound[top] >= 0:
            places[width] = top
            width += 1
    return width


@njit(inner=True, error_model="numpy")
def _rivals(wanted, best, size, m, unit, grid, blocks, copies, entries, bounds):
    """The places of all entries that could still be worth `best` by the bounds so far; returns how many."""
    bound, fresh, block_of, _, ceiling, times, plus, _ = bounds
    active, starts, _, _ = blocks
    count = 0
    for g in range(len(starts) - 1):
        if ceiling[g] < 0 or ceiling[g] * times[g] + plus[g] < best:
            continue
        _compute_bounds(g, grid, blocks, copies, entries, bounds)
        least = max(-(-(best - plus[g]) // times[g]), 0)
        highest = bound.dtype.type(-1)
        for i in range(starts[g], starts[g + 1]):
            highest = max(highest, bound[i])
            if bound[i] >= least and fresh[i] != size:
                wanted[count] = i
                count += 1
        ceiling[g] = highest
    offsets, length, pair = entries.offsets, entries.length, entries.pair
    kept = 0
    for t in range(count):
        i = wanted[t]
        total = upper_bound(grid, pair, offsets[active[i]], length[active[i]], m, unit)
        bound[i] = min(bound[i], bound.dtype.type(total))
        if bound[i] * times[block_of[i]] + plus[block_of[i]] >= best:
            wanted[kept] = i
            kept += 1
    return kept


@njit(inner=True, error_model="numpy")
def _nearest(A, B, grid, m, size, wanted, lanes, blocks, copies, entries, unit, bounds):
    """The place of the entry that is cheapest to join (ties: the smaller rank), -1 if none may join."""
    bound, fresh, block_of, _, _, times, plus, _ = bounds
    active, rank = blocks.active, entries.rank
    places, chosen = np.empty(LANES, np.int32), np.empty(LANES, np.int32)
    n_codes, n_ages, n_blocks = A.shape[1] - 1, B.shape[1] - 1, len(blocks.starts) - 1
    width = _first_places(places, np.empty(n_blocks, np.int64), grid, blocks, copies, entries, bounds)
    best, best_place = (np.int64(IMPOSSIBLE), np.int64(-(2**31))), -1
    count, position = -1, 0
    while width > 0:
        for lane in range(width):
            chosen[lane] = active[places[lane]]
        align_lanes(A, B, m, chosen, 0, width, entries, lanes, n_codes, n_ages)
        for lane in range(width):
            i = places[lane]
            bound[i] = lanes.S[lane]
            fresh[i] = size
            worth = bound[i] * times[block_of[i]] + plus[block_of[i]], -rank[active[i]]
            if worth > best:
                best, best_place = worth, i
        if count < 0:
            count = _rivals(wanted, best[0], size, m, unit, grid, blocks, copies, entries, bounds)
        width = 0
        while position < count and width < LANES:
            i = wanted[position]
            position += 1
            if (bound[i] * times[block_of[i]] + plus[block_of[i]], -rank[active[i]]) > best:
                places[width] = i
                width += 1
    return best_place


@njit(error_model="numpy")
def grow(seed, target, normalised, most, blocks, copies_left, entries, unit, codes, ages, pairs, axes):
    """Grow a cluster of `target` records around `seed`, always adding the trajectory that is cheapest to join.

    `normalised`: joined by Definition 8, else at the thesis's running cost. `copies_left`: int32 an entry. `most`: how
    many records of one sensitive value a cluster may have.

    Returns (members, code nodes, age nodes); fewer members than `target` if none is allowed.
    """
    length, score, number = entries.length, entries.score, codes.gain.dtype
    n_codes, n_ages, n_active = len(codes.nodes), len(ages.nodes), len(blocks.active)
    n_blocks, m = len(blocks.starts) - 1, length[seed]
    longest = m
    for g in range(n_blocks):
        longest = max(longest, length[blocks.active[blocks.starts[g]]])
    xc = pairs.codes[pairs.offsets[seed] : pairs.offsets[seed] + m].copy()
    xa = pairs.ages[pairs.offsets[seed] : pairs.offsets[seed] + m].copy()
    A, B = np.zeros((m, n_codes + 1), number), np.zeros((m, n_ages + 1), number)
    grid, wanted, lanes = (
        np.empty(n_codes * n_ages, number),
        np.empty(n_active, np.int32),
        lanes_for(longest, A),
    )
    G, M = np.empty((m, longest), np.int64), np.empty((m + 1, longest + 1), np.int64)
    bounds = Bounds(
        np.empty(n_active, number), np.zeros(n_active, np.int32), np.empty(n_active, np.int32),
        np.zeros(n_blocks, np.bool_), np.empty(n_blocks, np.int64), np.full(n_blocks, 2, np.int64),
        np.zeros(n_blocks, np.int64), np.zeros(target + 1, np.int64),
    )  # fmt: skip
    members, size, weight = np.empty(target, np.int32), 1, score[m]
    members[0] = seed
    copies = copies_left.copy()
    copies[seed] -= 1
    for g in range(n_blocks):
        bounds.block_of[blocks.starts[g] : blocks.starts[g + 1]] = g

    while size < target:
        fill_rows(A, B, xc, xa, m, codes, ages)
        best_of_rows(grid, A, B, m, n_codes, n_ages)
        if size == 1:
            _ceilings(bounds.ceiling, grid, n_codes, n_ages, m, blocks, length)
        if most < target:
            _close_value(entries.group[members[size - 1]], members[:size], most, blocks, entries, bounds)
        for g in range(n_blocks):
            n = length[blocks.active[blocks.starts[g]]]
            if normalised:
                bounds.times[g] = score[n] + weight
            else:
                bounds.plus[g] = -np.int64(n) * unit
        place = _nearest(A, B, grid, m, size, wanted, lanes, blocks, copies, entries, unit, bounds)
        if place < 0:
            break
        chosen = blocks.active[place]
        m = align(xc, xa, m, chosen, pairs, axes, G, M)
        members[size] = chosen
        size += 1
        weight += score[length[chosen]]
        copies[chosen] -= 1
        if copies[chosen] == 0:
            bounds.bound[place] = -1
    return members[:size], xc[:m].copy(), xa[:m].copy()
