"""Kernels of A-GS and MDAV, exact: integers only, so that nothing rounds and ties break alike everywhere.

A-GS as a maximisation (ALGORITHMS §3.2): cost(X, Y) = all of X suppressed + all of Y suppressed − (c + 1)·M, with M
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

import numpy as np
from numba import njit

LANES = 16
"""Trajectories aligned side by side, innermost: one AVX-512 register of int32."""

THESIS, SIZE, NORMALISED = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def fill_row(row, node, low, high, parent, gain):
    """row[column] = gain of the common ancestor of `node` and each column's leaf; the padding column stays 0."""
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


@njit(cache=True, nogil=True, error_model="numpy")
def fill_rows(A, B, xc, xa, m, c_low, c_high, c_parent, c_gain, a_low, a_high, a_parent, a_gain):
    """Gains of the m pairs (xc, xa) against every column of both axes: A[i, code column], B[i, age column]."""
    for i in range(m):
        fill_row(A[i], xc[i], c_low, c_high, c_parent, c_gain)
        fill_row(B[i], xa[i], a_low, a_high, a_parent, a_gain)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _add_gains(S, a, b, C, G, N):
    for q in range(N):
        S[q] = a[C[q]] + b[G[q]]


@njit(cache=True, nogil=True, error_model="numpy")
def _advance(row, prev, S, N):
    """One row of the recurrence for all lanes: lanes are innermost, so j − 1 is LANES places to the left."""
    V = np.uint64(LANES)
    for q in range(N):
        row[q + V] = max(prev[q + V], prev.dtype.type(prev[q] + S[q]))
    for q in range(N):
        row[q + V] = max(row[q + V], row[q])


@njit(cache=True, nogil=True, error_model="numpy")
def align_lanes(
    A, B, m, entries, first, width, offsets, code, age, length, C, G, S, row, prev, pad_code, pad_age
):
    """M(X, Y) of `width` ≤ LANES trajectories `entries[first:]` into S[:width]; X is in A and B."""
    n = 0
    for lane in range(width):
        n = max(n, length[entries[first + lane]])
    for lane in range(LANES):
        own = 0
        if lane < width:
            entry = entries[first + lane]
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


@njit(cache=True, nogil=True, error_model="numpy")
def align_into(
    xc, xa, m, A, B, in_a, in_b, entry, offsets, code, age, length, M,
    c_low, c_high, c_parent, c_published, a_low, a_high, a_parent, a_published,
):  # fmt: skip
    """Align X (in place: xc, xa) with a trajectory; returns the new number of pairs. M[m, n] is what it saves.

    Pair i of X has its gains in the rows A[in_a[i]] and B[in_b[i]].
    Ties: match, then leave y out, then leave x out.
    """
    n = length[entry]
    start = offsets[entry]
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
            while not (c_low[node] <= column < c_high[node]):
                node = c_parent[node]
            xc[kept] = c_published[node]
            node, column = xa[h], age[start + j]
            while not (a_low[node] <= column < a_high[node]):
                node = a_parent[node]
            xa[kept] = a_published[node]
        elif M[h, j - 1] >= M[h - 1, j]:
            j -= 1
        else:
            h -= 1
    size = m - kept
    for i in range(size):
        xc[i] = xc[kept + i]
        xa[i] = xa[kept + i]
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def savings(
    xc, xa, entries, out, offsets, code, age, length,
    c_nodes, c_low, c_high, c_parent, c_gain, a_nodes, a_low, a_high, a_parent, a_gain, longest,
):  # fmt: skip
    """out[i] = M(X, entries[i]) for the pairs (xc, xa) of nodes."""
    n_codes, n_ages, m = len(c_nodes), len(a_nodes), len(xc)
    A = np.zeros((max(m, 1), n_codes + 1), c_gain.dtype)
    B = np.zeros((max(m, 1), n_ages + 1), c_gain.dtype)
    fill_rows(A, B, xc, xa, m, c_low, c_high, c_parent, c_gain, a_low, a_high, a_parent, a_gain)
    C = np.zeros((longest + 1) * LANES, np.uint32)
    G = np.zeros((longest + 1) * LANES, np.uint32)
    S = np.zeros((longest + 1) * LANES, c_gain.dtype)
    row = np.zeros((longest + 1) * LANES, c_gain.dtype)
    prev = np.zeros((longest + 1) * LANES, c_gain.dtype)
    for first in range(0, len(entries), LANES):
        width = min(LANES, len(entries) - first)
        align_lanes(
            A, B, m, entries, first, width, offsets, code, age, length, C, G, S, row, prev, n_codes, n_ages
        )
        for lane in range(width):
            out[first + lane] = S[lane]


@njit(cache=True, nogil=True, error_model="numpy")
def bound_of(grid, pair, start, n, m, unit):
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


@njit(cache=True, nogil=True, error_model="numpy")
def _bound_block(g, grid, active, starts, copies, offsets, pair, length, group, full, n_full, bound):
    """Bounds of all entries of block g against the table `grid`; -1 for entries that may not join."""
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


@njit(cache=True, nogil=True, error_model="numpy")
def _ceilings(ceiling, grid, n_codes, n_ages, m, active, starts, block_low, block_high, length):
    """What any trajectory of a block could save at most: as many pairs as fit, each as good as its ages allow."""
    by_age = np.zeros(n_ages, grid.dtype)
    for c in range(n_codes):
        part = grid[c * n_ages : (c + 1) * n_ages]
        for v in range(n_ages):
            by_age[v] = max(by_age[v], part[v])
    for g in range(len(starts) - 1):
        top = np.int64(0)
        for v in range(block_low[g], block_high[g] + 1):
            top = max(top, np.int64(by_age[v]))
        ceiling[g] = top * min(m, length[active[starts[g]]])


@njit(cache=True, nogil=True, error_model="numpy")
def grow(
    seed, target, joining, most,
    active, starts, block_low, block_high, copies_left,
    offsets, code, age, pair, length, rank, group, score, unit,
    c_nodes, c_low, c_high, c_parent, c_published, c_gain,
    a_nodes, a_low, a_high, a_parent, a_published, a_gain,
    longest,
):  # fmt: skip
    """Grow a cluster of `target` records around `seed`, always adding the trajectory that is cheapest to join.

    active : int32, entries with records left, ascending; they form blocks of equal length and similar age.
    starts : where each block begins; block_low, block_high : its first and last age column.
    copies_left : int32 an entry. most : how many records of one sensitive value a cluster may have.

    Returns (members, code nodes, age nodes, [alignments, cells]); fewer members than `target` if none is allowed.
    """
    n_codes, n_ages = len(c_nodes), len(a_nodes)
    number = c_gain.dtype
    n_active, n_blocks = len(active), len(starts) - 1
    m = length[seed]
    xc = np.empty(longest, np.int32)
    xa = np.empty(longest, np.int32)
    for i in range(m):
        xc[i] = c_nodes[code[offsets[seed] + i]]
        xa[i] = a_nodes[age[offsets[seed] + i]]
    A = np.zeros((m, n_codes + 1), number)
    B = np.zeros((m, n_ages + 1), number)
    grid = np.empty(n_codes * n_ages, number)
    M = np.empty((m + 1, longest + 1), number)
    C = np.zeros((longest + 1) * LANES, np.uint32)
    G = np.zeros((longest + 1) * LANES, np.uint32)
    S = np.zeros((longest + 1) * LANES, number)
    row = np.zeros((longest + 1) * LANES, number)
    prev = np.zeros((longest + 1) * LANES, number)
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

    fill_rows(A, B, xc, xa, m, c_low, c_high, c_parent, c_gain, a_low, a_high, a_parent, a_gain)
    best_of_rows(grid, A, B, m, n_codes, n_ages)
    _ceilings(ceiling, grid, n_codes, n_ages, m, active, starts, block_low, block_high, length)
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
                _bound_block(
                    g, grid, active, starts, copies, offsets, pair, length, group, full, n_full, bound
                )
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
            align_lanes(
                A, B, m, lanes, 0, width, offsets, code, age, length, C, G, S, row, prev, n_codes, n_ages
            )
            work[0] += width
            for lane in range(width):
                i = places[lane]
                work[1] += m * length[lanes[lane]]
                bound[i] = S[lane]
                fresh[i] = size
                value = S[lane] * times[block_of[i]] + plus[block_of[i]]
                if value > best or (value == best and rank[lanes[lane]] < best_rank):
                    best, best_rank, best_place = value, rank[lanes[lane]], i
            if count < 0:
                # Who could still do as well, by what is known so far.
                count = 0
                for g in range(n_blocks):
                    if ceiling[g] < 0 or ceiling[g] * times[g] + plus[g] < best:
                        continue
                    if not known[g]:
                        _bound_block(
                            g, grid, active, starts, copies, offsets, pair, length, group, full, n_full, bound
                        )
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
                    total = bound_of(grid, pair, offsets[active[i]], length[active[i]], m, unit)
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
        m = align_into(
            xc, xa, m, A, B, in_order, in_order, chosen, offsets, code, age, length, M,
            c_low, c_high, c_parent, c_published, a_low, a_high, a_parent, a_published,
        )  # fmt: skip
        members[size] = chosen
        size += 1
        weight += score[length[chosen]]
        copies[chosen] -= 1
        if copies[chosen] == 0:
            bound[best_place] = -1
        if size < target:
            fill_rows(A, B, xc, xa, m, c_low, c_high, c_parent, c_gain, a_low, a_high, a_parent, a_gain)
            best_of_rows(grid, A, B, m, n_codes, n_ages)
    return members[:size], xc[:m].copy(), xa[:m].copy(), work


@njit(cache=True, nogil=True, error_model="numpy")
def savings_by_place(
    xc, xa, entries, out, offsets, code, age, length,
    c_nodes, c_low, c_high, c_parent, c_gain, a_nodes, a_low, a_high, a_parent, a_gain, longest,
):  # fmt: skip
    """Baseline: out[i] = what X saves with entries[i] when pairs are matched by their place."""
    m = len(xc)
    A = np.zeros((max(m, 1), len(c_nodes) + 1), c_gain.dtype)
    B = np.zeros((max(m, 1), len(a_nodes) + 1), c_gain.dtype)
    fill_rows(A, B, xc, xa, m, c_low, c_high, c_parent, c_gain, a_low, a_high, a_parent, a_gain)
    for i in range(len(entries)):
        start = offsets[entries[i]]
        total = np.int64(0)
        for j in range(min(m, length[entries[i]])):
            total += A[j, code[start + j]] + B[j, age[start + j]]
        out[i] = total
