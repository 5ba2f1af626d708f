"""Kernels of clustering by shared cells, and of publishing a group level by level or in order.

All numbers are integers and every tie has a rule, so that a result depends on its input alone.
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from leeward.compiled import njit


class Items(NamedTuple):
    """Items of records, and records of items.

    Record r has items[offsets[r]:offsets[r + 1]], ascending; item i is held by holders[starts[i]:starts[i + 1]] and
    counts weight[i]. length : pairs of each record.  group : the sensitive value of each.
    """

    offsets: Any
    items: Any
    starts: Any
    holders: Any
    weight: Any
    length: Any
    group: Any


@njit(inner=True, error_model="numpy")
def _keep_shared(common, size, items, first, last):
    """Of common[:size], ascending, keep what items[first:last] has too; returns how many that is."""
    kept = 0
    at = first
    for i in range(size):
        while at < last and items[at] < common[i]:
            at += 1
        if at < last and items[at] == common[i]:
            common[kept] = common[i]
            kept += 1
    return kept


@njit(error_model="numpy")
def grow(seed, k, most, data, active, members, common, score, touched):
    """A group of k around `seed`, always adding the active record that shares most with what is still in common.

    Writes to `members`; returns the weight of what all share, 0 if the group cannot be filled. `score` is zero before
    and after. Ties: fewer pairs, then the smaller number. `most`: how many of one sensitive value a group may have.
    """
    members[0] = seed
    size = data.offsets[seed + 1] - data.offsets[seed]
    common[:size] = data.items[data.offsets[seed] : data.offsets[seed + 1]]
    value = np.int64(0)
    for place in range(1, k):
        count = 0
        for i in range(size):
            item = common[i]
            weight = data.weight[item]
            for h in range(data.starts[item], data.starts[item + 1]):
                record = data.holders[h]
                if active[record]:
                    if score[record] == 0:
                        touched[count] = record
                        count += 1
                    score[record] += weight
        for m in range(place):
            score[members[m]] = 0
        best = -1
        value = np.int64(0)
        for t in range(count):
            record = touched[t]
            worth = score[record]
            score[record] = 0
            if worth == 0 or worth < value:
                continue
            if worth == value and best >= 0:
                longer = data.length[record] - data.length[best]
                if longer > 0 or (longer == 0 and record > best):
                    continue
            if most < k:
                held = 0
                for m in range(place):
                    held += data.group[members[m]] == data.group[record]
                if held >= most:
                    continue
            best, value = record, worth
        if best < 0:
            return np.int64(0)
        members[place] = best
        size = _keep_shared(common, size, data.items, data.offsets[best], data.offsets[best + 1])
    return value


@njit(error_model="numpy")
def best_first(k, most, data):
    """Groups of k, the heaviest first: int32[groups, k], and bool[n], who is in none of them."""
    n = len(data.offsets) - 1
    active = np.ones(n, np.bool_)
    members = np.empty((n, k), np.int32)
    longest = 1
    for r in range(n):
        longest = max(longest, data.offsets[r + 1] - data.offsets[r])
    common = np.empty(longest, np.int32)
    score, touched = np.zeros(n, np.int64), np.empty(n, np.int32)
    queue = [(np.int64(0), np.int64(-1))]
    queue.pop()
    for r in range(n):
        value = grow(r, k, most, data, active, members[r], common, score, touched)
        if value > 0:
            queue.append((-value, np.int64(r)))
    heapq.heapify(queue)
    groups = np.empty((max(n // k, 1), k), np.int32)
    made = 0
    while len(queue) > 0:
        seed = heapq.heappop(queue)[1]
        if not active[seed]:
            continue
        free = True
        for m in range(k):
            free = free and active[members[seed, m]]
        if not free:
            value = grow(seed, k, most, data, active, members[seed], common, score, touched)
            if value > 0:
                heapq.heappush(queue, (-value, seed))
            continue
        groups[made] = members[seed]
        made += 1
        for m in range(k):
            active[members[seed, m]] = False
    return groups[:made], active


@njit(inner=True, error_model="numpy")
def _weigh(common, size, weight):
    total = np.int64(0)
    for i in range(size):
        total += weight[common[i]]
    return total


@njit(error_model="numpy")
def host_of(record, groups, sizes, limit, data):
    """The group with fewer than `limit` members that loses least when `record` joins; ties: the first."""
    longest = 1
    for r in range(len(data.offsets) - 1):
        longest = max(longest, data.offsets[r + 1] - data.offsets[r])
    common = np.empty(longest, np.int32)
    best, host = np.int64(0), -1
    for g in range(len(sizes)):
        if sizes[g] >= limit:
            continue
        first = groups[g, 0]
        size = data.offsets[first + 1] - data.offsets[first]
        common[:size] = data.items[data.offsets[first] : data.offsets[first + 1]]
        for m in range(1, sizes[g]):
            r = groups[g, m]
            size = _keep_shared(common, size, data.items, data.offsets[r], data.offsets[r + 1])
        now = _weigh(common, size, data.weight) * sizes[g]
        size = _keep_shared(common, size, data.items, data.offsets[record], data.offsets[record + 1])
        change = _weigh(common, size, data.weight) * (sizes[g] + 1) - now
        if host < 0 or change > best:
            best, host = change, g
    return host


@njit(error_model="numpy")
def publish(members, offsets, codes, ages, code_at, age_at, steps, out_codes, out_ages):
    """What all members have, from fine to coarse; returns the number of pairs written.

    code_at, age_at : int32[levels, nodes], the node at each level (-1: none may be published).
    steps : int32[n, 2], (code level, age level) in the order in which they are tried.
    """
    k = len(members)
    longest = 0
    for r in members:
        longest = max(longest, offsets[r + 1] - offsets[r])
    key = np.empty((k, longest), np.int64)
    used = np.zeros((k, longest), np.bool_)
    width = np.int64(age_at.shape[1])
    written = 0
    for step in range(len(steps)):
        lc, la = steps[step, 0], steps[step, 1]
        for m in range(k):
            start = offsets[members[m]]
            for j in range(offsets[members[m] + 1] - start):
                c, a = code_at[lc, codes[start + j]], age_at[la, ages[start + j]]
                key[m, j] = -1 if used[m, j] or c < 0 or a < 0 else c * width + a
        shortest = 0
        for m in range(1, k):
            if (
                offsets[members[m] + 1] - offsets[members[m]]
                < offsets[members[shortest] + 1] - offsets[members[shortest]]
            ):
                shortest = m
        for j in range(offsets[members[shortest] + 1] - offsets[members[shortest]]):
            wanted = key[shortest, j]
            if wanted < 0:
                continue
            everywhere = True
            for m in range(k):
                found = False
                for i in range(offsets[members[m] + 1] - offsets[members[m]]):
                    if key[m, i] == wanted:
                        found = True
                        break
                if not found:
                    everywhere = False
                    break
            if not everywhere:
                continue
            for m in range(k):
                for i in range(offsets[members[m] + 1] - offsets[members[m]]):
                    if key[m, i] == wanted:
                        key[m, i] = -1
                        used[m, i] = True
                        break
            out_codes[written] = wanted // width
            out_ages[written] = wanted % width
            written += 1
    return written


class Ordered(NamedTuple):
    """What aligning in order reads of an axis: its tree, what is published for a node (-1: nothing), and of each node
    how coarse it is (0 usable, 1 chapter, 2 wider, 3 the root) and how fine within that."""

    parent: Any
    end: Any
    published: Any
    coarse: Any
    fine: Any


@njit(error_model="numpy")
def _above(node, leaf, axis):
    while not (node <= leaf <= axis.end[node]):
        node = axis.parent[node]
    return axis.published[node]


@njit(inner=True, error_model="numpy")
def gain_of(c, a, codes, ages):
    """What a pair of published nodes counts: usable pairs before all others, then chapters, then any code."""
    if c < 0 or a < 0:
        return np.int64(-1)
    finer = codes.fine[c] + ages.fine[a]
    coarse = max(codes.coarse[c], ages.coarse[a])
    if coarse == 0:
        return np.int64(100_000_000) + finer
    if coarse == 1:
        return np.int64(1_000_000) + finer
    if codes.coarse[c] < 3:
        return np.int64(10_000) + finer
    return np.int64(1) + finer


@njit(error_model="numpy")
def align(xc, xa, m, record, offsets, code, age, codes, ages, G, M):
    """Match (xc, xa)[:m] with a record in order, in place; returns the number of pairs left. Ties: match, then leave
    the record's pair out, then the other."""
    start = offsets[record]
    n = offsets[record + 1] - start
    M[0, : n + 1] = 0
    for h in range(1, m + 1):
        M[h, 0] = 0
        for j in range(1, n + 1):
            c = _above(xc[h - 1], code[start + j - 1], codes)
            a = _above(xa[h - 1], age[start + j - 1], ages)
            g = gain_of(c, a, codes, ages)
            G[h - 1, j - 1] = g
            best = max(M[h, j - 1], M[h - 1, j])
            M[h, j] = max(best, M[h - 1, j - 1] + g) if g > 0 else best
    h, j, kept = m, n, m
    while h > 0 and j > 0:
        g = G[h - 1, j - 1]
        if g > 0 and M[h, j] == M[h - 1, j - 1] + g:
            h -= 1
            j -= 1
            kept -= 1
            xc[kept] = _above(xc[h], code[start + j], codes)
            xa[kept] = _above(xa[h], age[start + j], ages)
        elif M[h, j - 1] >= M[h - 1, j]:
            j -= 1
        else:
            h -= 1
    for i in range(m - kept):
        xc[i] = xc[kept + i]
        xa[i] = xa[kept + i]
    return m - kept


@njit(error_model="numpy")
def publish_in_order(members, offsets, code, age, codes, ages, out_codes, out_ages):
    """What all members have in the same order, aligned one after the other from the start that keeps most."""
    longest = 1
    for r in members:
        longest = max(longest, offsets[r + 1] - offsets[r])
    xc, xa = np.empty(longest, np.int32), np.empty(longest, np.int32)
    G, M = np.empty((longest, longest), np.int64), np.empty((longest + 1, longest + 1), np.int64)
    best, written = np.int64(-1), 0
    for first in range(len(members)):
        begin = offsets[members[first]]
        m = offsets[members[first] + 1] - begin
        xc[:m] = code[begin : begin + m]
        xa[:m] = age[begin : begin + m]
        for i in range(len(members)):
            if i != first:
                m = align(xc, xa, m, members[i], offsets, code, age, codes, ages, G, M)
        total = np.int64(0)
        for i in range(m):
            total += gain_of(xc[i], xa[i], codes, ages)
        if total > best:
            best, written = total, m
            out_codes[:m] = xc[:m]
            out_ages[:m] = xa[:m]
    return written
