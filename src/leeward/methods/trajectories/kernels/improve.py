"""Kernels of the local search: exact gains of exchanging records between clusters that are near one another.

A cluster's worth is S·W: S = Σ s over its published pairs, W = Σ 1/|T| over its members (in units of score[0]).
ILM + ALM (weighted) falls as Σ S·W rises, and by nothing else (docs/methods/trajectories.md#loss).
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.compiled import njit
from leeward.methods.trajectories.kernels.clustering import align_into


class Room(NamedTuple):
    """Working arrays of alignments: the table, one row of it, and the rows of gains of a representative's pairs."""

    M: Any
    row: Any
    ra: Any
    rb: Any


@njit(error_model="numpy")
def room_for(longest):
    """Working arrays for trajectories of up to `longest` pairs."""
    return Room(
        np.empty((longest + 1, longest + 1), np.int64),
        np.empty(longest + 1, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
    )


@njit(error_model="numpy")
def saving(D, xc, xa, m, entry, row):
    """M(X, Y) for one representative and one trajectory."""
    offsets, code, age, length = D.entries.offsets, D.entries.code, D.entries.age, D.entries.length
    TC, in_tc, TA, in_ta = D.code_gain, D.code_row, D.age_gain, D.age_row
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


@njit(error_model="numpy")
def join(D, xc, xa, m, entry, room):
    """Align a representative in place with one more trajectory; returns (pairs, Σ s)."""
    M, ra, rb = room.M, room.ra, room.rb
    in_tc, in_ta = D.code_row, D.age_row
    for i in range(m):
        ra[i] = in_tc[xc[i]]
        rb[i] = in_ta[xa[i]]
    n = D.entries.length[entry]
    size = align_into(xc, xa, m, D.code_gain, D.age_gain, ra, rb, entry, D.entries, M, D.codes, D.ages)
    return size, M[m, n]


@njit(error_model="numpy")
def build(D, members, first, xc, xa, left, room):
    """Publish `members` together, from members[first] on, each time adding the one that keeps most.

    Returns (pairs, Σ s); a single member is worth its own length.
    """
    score, c_nodes, a_nodes = D.entries.score, D.codes.nodes, D.ages.nodes
    offsets, length = D.entries.offsets, D.entries.length
    entry = members[first]
    m = length[entry]
    for i in range(m):
        xc[i] = c_nodes[D.entries.code[offsets[entry] + i]]
        xa[i] = a_nodes[D.entries.age[offsets[entry] + i]]
    weight = score[m]
    total = np.int64(m) * D.unit
    count = 0
    for i in range(len(members)):
        if i != first:
            left[count] = members[i]
            count += 1
    while count:
        best, best_value = 0, np.int64(-1)
        for i in range(count):
            value = saving(D, xc, xa, m, left[i], room.row) * (score[length[left[i]]] + weight)
            if value > best_value:
                best, best_value = i, value
        entry = left[best]
        count -= 1
        left[best] = left[count]
        m, total = join(D, xc, xa, m, entry, room)
        weight += score[length[entry]]
    return m, np.int64(total)


@njit(error_model="numpy")
def best_build(D, members, xc, xa, tc, ta, left, room):
    """`build` from every member; the best representative ends in xc, xa."""
    best, pairs = np.int64(-1), 0
    for first in range(len(members)):
        m, total = build(D, members, first, tc, ta, left, room)
        if total > best:
            best, pairs = total, m
            xc[:m] = tc[:m]
            xa[:m] = ta[:m]
    return pairs, best


@njit(error_model="numpy")
def _without(members, size, place, out):
    count = 0
    for i in range(size):
        if i != place:
            out[count] = members[i]
            count += 1
    return out[:count]


@njit(error_model="numpy")
def diverse(D, members, size, out, entry):
    """Whether no sensitive value would make up more than 1/ℓ of `size` members without the one at place `out` and
    with `entry` (-1: nobody)."""
    value, ell = D.entries.group, D.diversity
    if ell == 0:
        return True
    many = size
    if out >= 0:
        many -= 1
    fits = True
    if entry >= 0:
        many += 1
        fits = _rare(D, members, size, out, entry, value[entry], many)
    for i in range(size):
        if i != out:
            fits = fits and _rare(D, members, size, out, entry, value[members[i]], many)
    return fits


@njit(error_model="numpy")
def _rare(D, members, size, out, entry, wanted, many):
    value = D.entries.group
    count = 0
    if entry >= 0 and value[entry] == wanted:
        count = 1
    for i in range(size):
        if i != out and value[members[i]] == wanted:
            count += 1
    return count * D.diversity <= many


@njit(error_model="numpy")
def realign(D, first, last, clusters, longest):
    """Publish each cluster of first … last − 1 from its best starting member; returns how many got better."""
    members, sizes, xc, xa, pairs, worth, _ = clusters
    tc, ta = np.empty(longest, np.int32), np.empty(longest, np.int32)
    bc, ba = np.empty(longest, np.int32), np.empty(longest, np.int32)
    left = np.empty(members.shape[1], np.int32)
    room = room_for(longest)
    better = 0
    for c in range(first, last):
        m, total = best_build(D, members[c, : sizes[c]], bc, ba, tc, ta, left, room)
        if total > worth[c]:
            worth[c] = total
            pairs[c] = m
            xc[c, :m] = bc[:m]
            xa[c, :m] = ba[:m]
            better += 1
    return better


@njit(inner=True, error_model="numpy")
def leave_one_out(D, c, clusters, without, tc, ta, others, left, room):
    """The best representative of cluster c without each of its members in turn."""
    for r in range(clusters.sizes[c]):
        rest = _without(clusters.members[c], clusters.sizes[c], r, others)
        without.pairs[c, r], without.worth[c, r] = best_build(
            D, rest, without.codes[c, r], without.ages[c, r], tc, ta, left, room
        )


@njit(error_model="numpy")
def exchange(D, pairings, k, clusters, changed, stamp, since, longest, without):
    """Swap two records of near clusters, or move one, wherever that raises Σ S·W: the best for each pair of clusters.

    pairings : int32[n, 2], pairs of clusters.  changed[c] : the last round in which c changed; pairs of clusters that
    have not changed since round `since` are not tried again. Touches no other clusters than those paired; returns how
    many changes were made.
    """
    members, sizes, xc, xa, pairs, worth, weights = clusters
    lc, la, lm, ls, fresh = without
    capacity = members.shape[1]
    score, length = D.entries.score, D.entries.length
    tc, ta = np.empty(longest, np.int32), np.empty(longest, np.int32)
    others, left = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    room = room_for(longest)
    row = room.row
    made = 0
    for pairing in range(len(pairings)):
        a, b = np.int64(pairings[pairing, 0]), np.int64(pairings[pairing, 1])
        if sizes[a] == 0 or sizes[b] == 0 or (changed[a] < since and changed[b] < since):
            continue
        for c in (a, b):
            if not fresh[c]:
                leave_one_out(D, c, clusters, without, tc, ta, others, left, room)
                fresh[c] = True
        now = worth[a] * weights[a] + worth[b] * weights[b]
        best, best_r, best_q = np.int64(0), -1, -1
        for giver, taker in ((a, b), (b, a)):
            if sizes[giver] <= k or sizes[taker] >= 2 * k - 1:
                continue
            for r in range(sizes[giver]):
                x = members[giver, r]
                gain = (
                    ls[giver, r] * (weights[giver] - score[length[x]])
                    + saving(D, xc[taker], xa[taker], pairs[taker], x, row)
                    * (weights[taker] + score[length[x]])
                    - now
                )
                if (
                    gain > best
                    and diverse(D, members[giver], sizes[giver], r, -1)
                    and diverse(D, members[taker], sizes[taker], -1, x)
                ):
                    best = gain
                    best_r, best_q = (r, -1) if giver == a else (-1, r)
        for r in range(sizes[a]):
            x = members[a, r]
            for q in range(sizes[b]):
                y = members[b, q]
                w_a = weights[a] - score[length[x]] + score[length[y]]
                w_b = weights[b] - score[length[y]] + score[length[x]]
                # What is left after taking one out bounds what any newcomer can keep.
                if ls[a, r] * w_a + ls[b, q] * w_b - now <= best:
                    continue
                s_a = saving(D, lc[a, r], la[a, r], lm[a, r], y, row)
                if s_a * w_a + ls[b, q] * w_b - now <= best:
                    continue
                gain = s_a * w_a + saving(D, lc[b, q], la[b, q], lm[b, q], x, row) * w_b - now
                if (
                    gain > best
                    and diverse(D, members[a], sizes[a], r, y)
                    and diverse(D, members[b], sizes[b], q, x)
                ):
                    best, best_r, best_q = gain, r, q
        if best_r < 0 and best_q < 0:
            continue
        if best_r >= 0 and best_q >= 0:
            x, y = members[a, best_r], members[b, best_q]
            members[a, best_r] = y
            members[b, best_q] = x
            _adopt(D, a, without, best_r, y, clusters, room)
            _adopt(D, b, without, best_q, x, clusters, room)
            weights[a] += score[length[y]] - score[length[x]]
            weights[b] += score[length[x]] - score[length[y]]
        else:
            giver, taker, place = (a, b, best_r) if best_r >= 0 else (b, a, best_q)
            x = members[giver, place]
            members[taker, sizes[taker]] = x
            sizes[taker] += 1
            pairs[taker], worth[taker] = join(D, xc[taker], xa[taker], pairs[taker], x, room)
            sizes[giver] -= 1
            members[giver, place] = members[giver, sizes[giver]]
            pairs[giver], worth[giver] = lm[giver, place], ls[giver, place]
            xc[giver, : pairs[giver]] = lc[giver, place, : pairs[giver]]
            xa[giver, : pairs[giver]] = la[giver, place, : pairs[giver]]
            weights[giver] -= score[length[x]]
            weights[taker] += score[length[x]]
        for c in (a, b):
            realign(D, c, c + 1, clusters, longest)
            changed[c] = stamp
            fresh[c] = False
        made += 1
    return made


@njit(inner=True, error_model="numpy")
def _adopt(D, c, without, place, entry, clusters, room):
    """Cluster c is published as it would be without the member at `place`, joined with `entry`."""
    xc, xa, m = clusters.xc[c], clusters.xa[c], without.pairs[c, place]
    xc[:m] = without.codes[c, place, :m]
    xa[:m] = without.ages[c, place, :m]
    clusters.pairs[c], clusters.worth[c] = join(D, xc, xa, m, entry, room)
