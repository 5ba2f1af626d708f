"""Kernels of the local search: exact gains of exchanging records between clusters that are near one another.

A cluster's worth is S·W: S = Σ s over its published pairs, W = Σ 1/|T| over its members (in units of score[0]).
ILM + ALM (weighted) falls as Σ S·W rises, and by nothing else (ALGORITHMS §3.2).
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np
from numba import njit

from leeward.protect.trajectories._kernels import align_into


@njit(cache=True, nogil=True, error_model="numpy")
def saving(D, xc, xa, m, entry, row):
    """M(X, Y) for one representative and one trajectory."""
    offsets, code, age, length = D[0], D[1], D[2], D[3]
    TC, in_tc, TA, in_ta = D[5], D[6], D[7], D[8]
    start, n = offsets[entry], length[entry]
    row[: n + 1] = 0
    for i in range(m):
        a, b = TC[in_tc[xc[i]]], TA[in_ta[xa[i]]]
        diagonal = row[0]
        for j in range(n):
            up = row[j + 1]
            row[j + 1] = max(diagonal + a[code[start + j]] + b[age[start + j]], max(up, row[j]))
            diagonal = up
    return row[n]


@njit(cache=True, nogil=True, error_model="numpy")
def join(D, xc, xa, m, entry, M, ra, rb):
    """Align a representative in place with one more trajectory; returns (pairs, Σ s)."""
    in_tc, in_ta = D[6], D[8]
    for i in range(m):
        ra[i] = in_tc[xc[i]]
        rb[i] = in_ta[xa[i]]
    n = D[3][entry]
    size = align_into(
        xc, xa, m, D[5], D[7], ra, rb, entry, D[0], D[1], D[2], D[3], M,
        D[10], D[11], D[12], D[13], D[15], D[16], D[17], D[18],
    )  # fmt: skip
    return size, M[m, n]


@njit(cache=True, nogil=True, error_model="numpy")
def build(D, members, first, xc, xa, left, M, row, ra, rb):
    """Publish `members` together, from members[first] on, each time adding the one that keeps most.

    Returns (pairs, Σ s); a single member is worth its own length.
    """
    score, c_nodes, a_nodes = D[4], D[9], D[14]
    offsets, length = D[0], D[3]
    entry = members[first]
    m = length[entry]
    for i in range(m):
        xc[i] = c_nodes[D[1][offsets[entry] + i]]
        xa[i] = a_nodes[D[2][offsets[entry] + i]]
    weight = score[m]
    total = np.int64(m) * D[19]
    count = 0
    for i in range(len(members)):
        if i != first:
            left[count] = members[i]
            count += 1
    while count:
        best, best_value = 0, np.int64(-1)
        for i in range(count):
            value = saving(D, xc, xa, m, left[i], row) * (score[length[left[i]]] + weight)
            if value > best_value:
                best, best_value = i, value
        entry = left[best]
        count -= 1
        left[best] = left[count]
        m, total = join(D, xc, xa, m, entry, M, ra, rb)
        weight += score[length[entry]]
    return m, np.int64(total)


@njit(cache=True, nogil=True, error_model="numpy")
def best_build(D, members, xc, xa, tc, ta, left, M, row, ra, rb):
    """`build` from every member; the best representative ends in xc, xa."""
    best, pairs = np.int64(-1), 0
    for first in range(len(members)):
        m, total = build(D, members, first, tc, ta, left, M, row, ra, rb)
        if total > best:
            best, pairs = total, m
            xc[:m] = tc[:m]
            xa[:m] = ta[:m]
    return pairs, best


@njit(cache=True, nogil=True, error_model="numpy")
def _without(members, size, place, out):
    count = 0
    for i in range(size):
        if i != place:
            out[count] = members[i]
            count += 1
    return out[:count]


@njit(cache=True, nogil=True, error_model="numpy")
def realign(D, first, last, members, sizes, xc, xa, pairs, worth, weights, longest):
    """Publish each cluster of first … last − 1 from its best starting member; returns how many got better."""
    tc, ta = np.empty(longest, np.int32), np.empty(longest, np.int32)
    bc, ba = np.empty(longest, np.int32), np.empty(longest, np.int32)
    left = np.empty(members.shape[1], np.int32)
    M = np.empty((longest + 1, longest + 1), np.int64)
    row = np.empty(longest + 1, np.int64)
    ra, rb = np.empty(longest, np.int64), np.empty(longest, np.int64)
    better = 0
    for c in range(first, last):
        m, total = best_build(D, members[c, : sizes[c]], bc, ba, tc, ta, left, M, row, ra, rb)
        if total > worth[c]:
            worth[c] = total
            pairs[c] = m
            xc[c, :m] = bc[:m]
            xa[c, :m] = ba[:m]
            better += 1
    return better


@njit(cache=True, nogil=True, error_model="numpy")
def leave_one_out(D, c, members, sizes, oc, oa, om, os, tc, ta, others, left, M, row, ra, rb):
    """The best representative of cluster c without each of its members in turn."""
    for r in range(sizes[c]):
        rest = _without(members[c], sizes[c], r, others)
        om[r], os[r] = best_build(D, rest, oc[r], oa[r], tc, ta, left, M, row, ra, rb)


@njit(cache=True, nogil=True, error_model="numpy")
def exchange(
    D, first, last, near, k, members, sizes, xc, xa, pairs, worth, weights, changed, stamp, since, longest,
    lc, la, lm, ls, fresh,
):  # fmt: skip
    """Swap two records of near clusters, or move one, wherever that raises Σ S·W; the best for each pair of clusters.

    near : int32[clusters, …], the neighbours of each cluster.  changed[c] : the last round in which c changed;
    pairs of clusters that have not changed since round `since` are not tried again.
    lc, la, lm, ls : what each cluster would be without each of its members, where fresh. Returns how many were made.
    """
    capacity = members.shape[1]
    score, length = D[4], D[3]
    tc, ta = np.empty(longest, np.int32), np.empty(longest, np.int32)
    others, left = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    M = np.empty((longest + 1, longest + 1), np.int64)
    row = np.empty(longest + 1, np.int64)
    ra, rb = np.empty(longest, np.int64), np.empty(longest, np.int64)
    made = 0
    for a in range(first, last):
        if sizes[a] == 0:
            continue
        for t in range(near.shape[1]):
            b = np.int64(near[a, t])
            if b < 0 or b == a or sizes[b] == 0 or (changed[a] < since and changed[b] < since):
                continue
            for c in (a, b):
                if not fresh[c]:
                    leave_one_out(
                        D, c, members, sizes, lc[c], la[c], lm[c], ls[c], tc, ta, others, left, M, row, ra, rb
                    )
                    fresh[c] = True
            ac, aa, am, as_ = lc[a], la[a], lm[a], ls[a]
            bc, ba, bm, bs = lc[b], la[b], lm[b], ls[b]
            now = worth[a] * weights[a] + worth[b] * weights[b]
            best, best_r, best_q = np.int64(0), -1, -1
            for r in range(sizes[a]):
                x = members[a, r]
                out = weights[a] - score[length[x]]
                if sizes[a] > k and sizes[b] < 2 * k - 1:
                    gain = (
                        as_[r] * out
                        + saving(D, xc[b], xa[b], pairs[b], x, row) * (weights[b] + score[length[x]])
                        - now
                    )
                    if gain > best:
                        best, best_r, best_q = gain, r, -1
                for q in range(sizes[b]):
                    y = members[b, q]
                    w_a = out + score[length[y]]
                    w_b = weights[b] - score[length[y]] + score[length[x]]
                    # What is left after taking one out bounds what any newcomer can keep.
                    if as_[r] * w_a + bs[q] * w_b - now <= best:
                        continue
                    s_a = saving(D, ac[r], aa[r], am[r], y, row)
                    if s_a * w_a + bs[q] * w_b - now <= best:
                        continue
                    gain = s_a * w_a + saving(D, bc[q], ba[q], bm[q], x, row) * w_b - now
                    if gain > best:
                        best, best_r, best_q = gain, r, q
            if best_r < 0:
                continue
            x = members[a, best_r]
            if best_q >= 0:
                y = members[b, best_q]
                members[a, best_r] = y
                members[b, best_q] = x
                _adopt(D, a, ac[best_r], aa[best_r], am[best_r], y, xc, xa, pairs, worth, M, ra, rb)
                _adopt(D, b, bc[best_q], ba[best_q], bm[best_q], x, xc, xa, pairs, worth, M, ra, rb)
                weights[a] += score[length[y]] - score[length[x]]
                weights[b] += score[length[x]] - score[length[y]]
            else:
                members[b, sizes[b]] = x
                sizes[b] += 1
                pairs[b], worth[b] = join(D, xc[b], xa[b], pairs[b], x, M, ra, rb)
                sizes[a] -= 1
                members[a, best_r] = members[a, sizes[a]]
                pairs[a], worth[a] = am[best_r], as_[best_r]
                xc[a, : pairs[a]] = ac[best_r, : pairs[a]]
                xa[a, : pairs[a]] = aa[best_r, : pairs[a]]
                weights[a] -= score[length[x]]
                weights[b] += score[length[x]]
            realign(D, a, a + 1, members, sizes, xc, xa, pairs, worth, weights, longest)
            realign(D, b, b + 1, members, sizes, xc, xa, pairs, worth, weights, longest)
            changed[a] = stamp
            changed[b] = stamp
            fresh[a] = False
            fresh[b] = False
            made += 1
    return made


@njit(cache=True, nogil=True, error_model="numpy")
def _adopt(D, c, oc, oa, om, entry, xc, xa, pairs, worth, M, ra, rb):
    """Cluster c is published as (oc, oa) joined with `entry`."""
    xc[c, :om] = oc[:om]
    xa[c, :om] = oa[:om]
    pairs[c], worth[c] = join(D, xc[c], xa[c], om, entry, M, ra, rb)


@njit(cache=True, nogil=True, error_model="numpy")
def dissolve(D, first, last, near, k, members, sizes, xc, xa, pairs, worth, weights, changed, stamp, longest):
    """Give a whole cluster's records to near ones wherever that raises Σ S·W; returns how many were dissolved."""
    score, length = D[4], D[3]
    capacity = members.shape[1]
    M = np.empty((longest + 1, longest + 1), np.int64)
    row = np.empty(longest + 1, np.int64)
    ra, rb = np.empty(longest, np.int64), np.empty(longest, np.int64)
    target = np.empty(capacity, np.int64)
    made = 0
    for a in range(first, last):
        if sizes[a] == 0:
            continue
        gain = -worth[a] * weights[a]
        fits = True
        for r in range(sizes[a]):
            x = members[a, r]
            best, target[r] = np.int64(-(2**62)), -1
            for t in range(near.shape[1]):
                b = near[a, t]
                if b < 0 or b == a or sizes[b] == 0:
                    continue
                room = 2 * k - 1 - sizes[b]
                for s in range(r):
                    room -= target[s] == b
                if room <= 0 or (room < 2 * k - 1 - sizes[b]):  # one newcomer a cluster: gains are exact
                    continue
                value = (
                    saving(D, xc[b], xa[b], pairs[b], x, row) * (weights[b] + score[length[x]])
                    - worth[b] * weights[b]
                )
                if value > best:
                    best, target[r] = value, b
            if target[r] < 0:
                fits = False
                break
            gain += best
        if not fits or gain <= 0:
            continue
        for r in range(sizes[a]):
            x, b = members[a, r], target[r]
            members[b, sizes[b]] = x
            sizes[b] += 1
            pairs[b], worth[b] = join(D, xc[b], xa[b], pairs[b], x, M, ra, rb)
            weights[b] += score[length[x]]
            realign(D, b, b + 1, members, sizes, xc, xa, pairs, worth, weights, longest)
            changed[b] = stamp
        sizes[a], worth[a], weights[a], pairs[a] = 0, 0, 0, 0
        made += 1
    return made


@njit(cache=True, nogil=True, error_model="numpy")
def regroup(
    D, first, last, near, k, members, sizes, xc, xa, pairs, worth, weights, changed, stamp, since, longest
):
    """Cluster the records of a cluster and two near ones anew, around every seed; keep it if Σ S·W rises."""
    score, length = D[4], D[3]
    capacity = members.shape[1]
    M = np.empty((longest + 1, longest + 1), np.int64)
    row = np.empty(longest + 1, np.int64)
    ra, rb = np.empty(longest, np.int64), np.empty(longest, np.int64)
    pool, left = np.empty(3 * capacity, np.int32), np.empty(3 * capacity, np.int32)
    tried, kept = np.empty((3, capacity), np.int32), np.empty((3, capacity), np.int32)
    tried_sizes, kept_sizes = np.zeros(3, np.int64), np.zeros(3, np.int64)
    bc, ba = np.empty(longest, np.int32), np.empty(longest, np.int32)
    tc, ta = np.empty(longest, np.int32), np.empty(longest, np.int32)
    buffer = np.empty(capacity, np.int32)
    three = np.empty(3, np.int64)
    made = 0
    for a in range(first, last):
        if sizes[a] == 0:
            continue
        for t in range(0, near.shape[1] - 1, 2):
            b, c = near[a, t], near[a, t + 1]
            if b < 0 or c < 0 or sizes[b] == 0 or sizes[c] == 0 or b == c:
                continue
            if changed[a] < since and changed[b] < since and changed[c] < since:
                continue
            three[0], three[1], three[2] = a, b, c
            count = 0
            now = np.int64(0)
            for g in three:
                now += worth[g] * weights[g]
                for r in range(sizes[g]):
                    pool[count] = members[g, r]
                    count += 1
            best = now
            for seed in range(count):
                total = np.int64(0)
                remaining = count
                left[:count] = pool[:count]
                at = seed
                for part in range(3):
                    quota = remaining if part == 2 else k
                    entry = left[at]
                    remaining -= 1
                    left[at] = left[remaining]
                    m = length[entry]
                    for i in range(m):
                        bc[i] = D[9][D[1][D[0][entry] + i]]
                        ba[i] = D[14][D[2][D[0][entry] + i]]
                    weight, s = score[m], np.int64(m) * D[19]
                    tried[part, 0] = entry
                    size = 1
                    while size < quota:
                        nearest, value = 0, np.int64(-1)
                        for i in range(remaining):
                            v = saving(D, bc, ba, m, left[i], row) * (score[length[left[i]]] + weight)
                            if v > value:
                                nearest, value = i, v
                        entry = left[nearest]
                        remaining -= 1
                        left[nearest] = left[remaining]
                        m, s = join(D, bc, ba, m, entry, M, ra, rb)
                        weight += score[length[entry]]
                        tried[part, size] = entry
                        size += 1
                    tried_sizes[part] = size
                    total += np.int64(s) * weight
                    # The next seed: what the cluster just made would keep least of.
                    worst, at = np.int64(2**62), 0
                    for i in range(remaining):
                        v = saving(D, bc, ba, m, left[i], row) * score[length[left[i]]]
                        if v < worst:
                            worst, at = v, i
                if total > best:
                    best = total
                    kept[:] = tried
                    kept_sizes[:] = tried_sizes
            if best <= now:
                continue
            for part in range(3):
                g = three[part]
                sizes[g] = kept_sizes[part]
                members[g, : sizes[g]] = kept[part, : sizes[g]]
                weights[g] = 0
                for r in range(sizes[g]):
                    weights[g] += score[length[members[g, r]]]
                pairs[g], worth[g] = best_build(
                    D, members[g, : sizes[g]], bc, ba, tc, ta, buffer, M, row, ra, rb
                )
                xc[g, : pairs[g]] = bc[: pairs[g]]
                xa[g, : pairs[g]] = ba[: pairs[g]]
                changed[g] = stamp
            made += 1
    return made
