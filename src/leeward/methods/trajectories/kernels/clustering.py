"""Kernels of A-GS and MDAV, exact: integers only, so that nothing rounds and ties break alike everywhere.

A-GS as a maximisation (docs/methods/trajectories.md#alignment): cost(X, Y) = all of X suppressed + all of Y
suppressed − (c + 1)·M, with M
the largest Σ s(x, y) over order-preserving matchings. M has no gap costs: padding with zeros changes nothing, and
M(h, j) = max(M(h−1, j−1) + s, M(h, j−1), M(h−1, j)).

Two bounds make the search for the nearest trajectory short:
- M(X, Y) ≤ Σ_y max_x s(x, y), read from one table a cluster;
- a representative only moves up its hierarchies, so what Y could save with it never grows: bounds and exact values
  of one joining step stay bounds in the next ones.
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.compiled import njit

LANES = 16
"""Trajectories aligned side by side, innermost: one AVX-512 register of int32."""

THESIS, SIZE, NORMALISED = 0, 1, 2


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


@njit(error_model="numpy")
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


@njit(error_model="numpy")
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
def align_into(xc, xa, m, A, B, in_a, in_b, entry, entries, M, codes, ages):
    """Align X (in place: xc, xa) with a trajectory; returns the new number of pairs. M[m, n] is what it saves.

    Pair i of X has its gains in the rows A[in_a[i]] and B[in_b[i]].
    Ties: match, then leave y out, then leave x out.
    """
    code, age = entries.code, entries.age
    n = entries.length[entry]
    start = entries.offsets[entry]
    M[0, : n + 1] = 0
    for h in range(1, m + 1):
        M[h, 0] = 0
        for j in range(1, n + 1):
            s = A[in_a[h - 1], code[start + j - 1]] + B[in_b[h - 1], age[start + j - 1]]
            M[h, j] = max(M[h - 1, j - 1] + s, max(M[h, j - 1], M[h - 1, j]))
    h, j = m, n
    kept = m
    while h > 0 and j > 0:
        s = A[in_a[h - 1], code[start + j - 1]] + B[in_b[h - 1], age[start + j - 1]]
        if M[h, j] == M[h - 1, j - 1] + s:
            kept -= 1
            h -= 1
            j -= 1
            # The traceback reads gains, not xc and xa: results may overwrite from the right.
            node, column = xc[h], code[start + j]
            while not (codes.low[node] <= column < codes.high[node]):
                node = codes.parent[node]
            xc[kept] = codes.published[node]
            node, column = xa[h], age[start + j]
            while not (ages.low[node] <= column < ages.high[node]):
                node = ages.parent[node]
            xa[kept] = ages.published[node]
        elif M[h, j - 1] >= M[h - 1, j]:
            j -= 1
        else:
            h -= 1
    size = m - kept
    for i in range(size):
        xc[i] = xc[kept + i]
        xa[i] = xa[kept + i]
    return size


@njit(error_model="numpy")
def savings(xc, xa, chosen, out, entries, codes, ages, longest):
    """out[i] = M(X, chosen[i]) for the pairs (xc, xa) of nodes."""
    n_codes, n_ages, m = len(codes.nodes), len(ages.nodes), len(xc)
    A = np.zeros((max(m, 1), n_codes + 1), codes.gain.dtype)
    B = np.zeros((max(m, 1), n_ages + 1), codes.gain.dtype)
    fill_rows(A, B, xc, xa, m, codes, ages)
    lanes = lanes_for(longest, codes.gain)
    for first in range(0, len(chosen), LANES):
        width = min(LANES, len(chosen) - first)
        align_lanes(A, B, m, chosen, first, width, entries, lanes, n_codes, n_ages)
        for lane in range(width):
            out[first + lane] = lanes.S[lane]


@njit(inner=True, error_model="numpy")
def upper_bound(grid, pair, start, n, m, unit):
    """An upper bound of M(X, Y): the sum of the m largest of Y's n best savings, from above.

    That sum is at most m·θ + Σ max(0, v − θ) for every θ; three are tried.
    """
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


@njit(inner=True, error_model="numpy")
def _compute_bounds(g, grid, blocks, copies, entries, full, n_full, bound):
    """Bounds of all entries of block g against the table `grid`; -1 for entries that may not join."""
    active, starts = blocks.active, blocks.starts
    offsets, pair, length, group = entries.offsets, entries.pair, entries.length, entries.group
    n = np.uint64(length[active[starts[g]]])
    for i in range(starts[g], starts[g + 1]):
        entry = active[i]
        p = np.uint64(offsets[entry])
        total = bound.dtype.type(0)
        for j in range(p, p + n):
            total = bound.dtype.type(total + grid[pair[j]])
        bound[i] = total if copies[entry] > 0 else -1
        for f in range(n_full):
            if group[entry] == full[f]:
                bound[i] = -1


@njit(inner=True, error_model="numpy")
def _ceilings(ceiling, grid, n_codes, n_ages, m, blocks, length):
    """What any trajectory of a block could save at most: as many pairs as fit, each as good as its ages allow."""
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


@njit(error_model="numpy")
def grow(seed, target, joining, most, blocks, copies_left, entries, unit, codes, ages, longest):
    """Grow a cluster of `target` records around `seed`, always adding the trajectory that is cheapest to join.

    copies_left : int32 an entry. most : how many records of one sensitive value a cluster may have.

    Returns (members, code nodes, age nodes, [alignments, cells]); fewer members than `target` if none is allowed.
    """
    active, starts = blocks.active, blocks.starts
    offsets, code, age, pair = entries.offsets, entries.code, entries.age, entries.pair
    length, rank, group, score = entries.length, entries.rank, entries.group, entries.score
    n_codes, n_ages = len(codes.nodes), len(ages.nodes)
    number = codes.gain.dtype
    n_active, n_blocks = len(active), len(starts) - 1
    m = length[seed]
    xc = np.empty(longest, np.int32)
    xa = np.empty(longest, np.int32)
    for i in range(m):
        xc[i] = codes.nodes[code[offsets[seed] + i]]
        xa[i] = ages.nodes[age[offsets[seed] + i]]
    A = np.zeros((m, n_codes + 1), number)
    B = np.zeros((m, n_ages + 1), number)
    grid = np.empty(n_codes * n_ages, number)
    M = np.empty((m + 1, longest + 1), number)
    working = lanes_for(longest, codes.gain)
    in_order = np.arange(longest)
    bound = np.empty(n_active, number)
    fresh = np.zeros(n_active, np.int32)
    wanted = np.empty(n_active, np.int32)
    block_of = np.empty(n_active, np.int32)
    known = np.zeros(n_blocks, np.bool_)
    ceiling = np.empty(n_blocks, np.int64)
    worth = np.empty(n_blocks, np.int64)
    times = np.zeros(n_blocks, np.int64)
    plus = np.zeros(n_blocks, np.int64)
    lanes = np.empty(LANES, np.int32)
    places = np.empty(LANES, np.int32)
    full = np.empty(target, np.int32)
    n_full = 0
    members = np.empty(target, np.int32)
    members[0] = seed
    size = 1
    weight = score[m]
    work = np.zeros(2, np.int64)
    copies = copies_left.copy()
    copies[seed] -= 1

    fill_rows(A, B, xc, xa, m, codes, ages)
    best_of_rows(grid, A, B, m, n_codes, n_ages)
    _ceilings(ceiling, grid, n_codes, n_ages, m, blocks, length)
    for g in range(n_blocks):
        block_of[starts[g] : starts[g + 1]] = g

    while size < target:
        if most < target:
            kind = group[members[size - 1]]
            held = 0
            for r in range(size):
                held += group[members[r]] == kind
            if held >= most:
                full[n_full] = kind
                n_full += 1
                for i in range(n_active):
                    if known[block_of[i]] and group[active[i]] == kind:
                        bound[i] = -1
        for g in range(n_blocks):
            n = length[active[starts[g]]]
            if joining == NORMALISED:
                times[g] = score[n] + weight
            else:
                times[g] = 2 if joining == THESIS else size + 1
                plus[g] = -np.int64(n) * unit
            worth[g] = ceiling[g] * times[g] + plus[g] if ceiling[g] >= 0 else -(2**62)

        best = np.int64(-(2**62))
        best_rank = np.int32(2**31 - 1)
        best_place = -1
        # The top of each of the sixteen most promising blocks: a good answer to start from.
        width = 0
        for _ in range(n_blocks):
            g = int(np.argmax(worth))
            if worth[g] == -(2**62):
                break
            worth[g] = -(2**62)
            if not known[g]:
                _compute_bounds(g, grid, blocks, copies, entries, full, n_full, bound)
                known[g] = True
            top = starts[g]
            for i in range(starts[g] + 1, starts[g + 1]):
                if bound[i] > bound[top]:
                    top = i
            ceiling[g] = bound[top]
            if bound[top] >= 0:
                places[width] = top
                lanes[width] = active[top]
                width += 1
                if width == LANES:
                    break
        if width == 0:
            break
        count = -1
        position = 0
        while width > 0:
            align_lanes(A, B, m, lanes, 0, width, entries, working, n_codes, n_ages)
            work[0] += width
            for lane in range(width):
                i = places[lane]
                work[1] += m * length[lanes[lane]]
                bound[i] = working.S[lane]
                fresh[i] = size
                value = working.S[lane] * times[block_of[i]] + plus[block_of[i]]
                if value > best or (value == best and rank[lanes[lane]] < best_rank):
                    best, best_rank, best_place = value, rank[lanes[lane]], i
            if count < 0:
                # Who could still do as well, by what is known so far.
                count = 0
                for g in range(n_blocks):
                    if ceiling[g] < 0 or ceiling[g] * times[g] + plus[g] < best:
                        continue
                    if not known[g]:
                        _compute_bounds(g, grid, blocks, copies, entries, full, n_full, bound)
                        known[g] = True
                    least = max(-(-(best - plus[g]) // times[g]), 0)
                    highest = number.type(-1)
                    for i in range(starts[g], starts[g + 1]):
                        highest = max(highest, bound[i])
                        if bound[i] >= least and fresh[i] != size:
                            wanted[count] = i
                            count += 1
                    ceiling[g] = highest
                kept = 0
                for t in range(count):
                    i = wanted[t]
                    total = upper_bound(grid, pair, offsets[active[i]], length[active[i]], m, unit)
                    bound[i] = min(bound[i], number.type(total))
                    if bound[i] * times[block_of[i]] + plus[block_of[i]] >= best:
                        wanted[kept] = i
                        kept += 1
                count = kept
            width = 0
            while position < count and width < LANES:
                i = wanted[position]
                position += 1
                value = bound[i] * times[block_of[i]] + plus[block_of[i]]
                if value > best or (value == best and rank[active[i]] < best_rank):
                    places[width] = i
                    lanes[width] = active[i]
                    width += 1

        chosen = active[best_place]
        m = align_into(xc, xa, m, A, B, in_order, in_order, chosen, entries, M, codes, ages)
        members[size] = chosen
        size += 1
        weight += score[length[chosen]]
        copies[chosen] -= 1
        if copies[chosen] == 0:
            bound[best_place] = -1
        if size < target:
            fill_rows(A, B, xc, xa, m, codes, ages)
            best_of_rows(grid, A, B, m, n_codes, n_ages)
    return members[:size], xc[:m].copy(), xa[:m].copy(), work


@njit(error_model="numpy")
def savings_by_place(xc, xa, chosen, out, entries, codes, ages, longest):
    """Baseline: out[i] = what X saves with chosen[i] when pairs are matched by their place."""
    m = len(xc)
    code, age = entries.code, entries.age
    A = np.zeros((max(m, 1), len(codes.nodes) + 1), codes.gain.dtype)
    B = np.zeros((max(m, 1), len(ages.nodes) + 1), codes.gain.dtype)
    fill_rows(A, B, xc, xa, m, codes, ages)
    for i in range(len(chosen)):
        start = entries.offsets[chosen[i]]
        total = np.int64(0)
        for j in range(min(m, entries.length[chosen[i]])):
            total += A[j, code[start + j]] + B[j, age[start + j]]
        out[i] = total
