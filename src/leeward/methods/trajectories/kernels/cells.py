"""Kernels of clustering by shared cells, and of publishing a group level by level.

All numbers are integers and every tie has a rule, so that results are deterministic.
"""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from leeward.compiled import njit


class Items(NamedTuple):
    """Items of records, and records of items: record r has items[offsets[r]:offsets[r + 1]], ascending; item i is held
    by holders[starts[i]:starts[i + 1]] and counts weight[i]. `length`: pairs of each record. `group`: its sensitive
    value."""

    offsets: Any
    items: Any
    starts: Any
    holders: Any
    weight: Any
    length: Any
    group: Any


@njit(inner=True, error_model="numpy")
def _intersect(common, size, items, first, last):
    """Intersect common[:size], ascending, with items[first:last] in place; returns the new size."""
    kept = 0
    at = first
    for i in range(size):
        while at < last and items[at] < common[i]:
            at += 1
        if at < last and items[at] == common[i]:
            common[kept] = common[i]
            kept += 1
    return kept


@njit(inner=True, error_model="numpy")
def _best(members, active, most, score, data):
    """The active record of largest score (-1: none may join), its score."""
    best, value = np.int64(-1), np.int64(0)
    for record in range(len(score)):
        if score[record] < max(value, 1) or not active[record]:
            continue
        if score[record] > value or data.length[record] < data.length[best]:
            held = 0
            for member in members:
                held += data.group[member] == data.group[record]
            if held < most:
                best, value = np.int64(record), score[record]
    return best, value


@njit(error_model="numpy")
def grow(seed, k, most, data, active, members, common, score):
    """Grow a group of k around `seed`, always adding the active record that shares most with the common items. Writes
    to `members`; returns the weight of what all share, 0 if the group cannot be filled. Ties: fewer pairs, then the
    smaller number. `most`: how many of one sensitive value a group may have."""
    members[0] = seed
    size = data.offsets[seed + 1] - data.offsets[seed]
    common[:size] = data.items[data.offsets[seed] : data.offsets[seed + 1]]
    value = np.int64(0)
    for place in range(1, k):
        score[:] = 0
        for i in range(size):
            item = common[i]
            weight = data.weight[item]
            for h in range(data.starts[item], data.starts[item + 1]):
                score[data.holders[h]] += weight
        for m in range(place):
            score[members[m]] = 0
        best, value = _best(members[:place], active, most if most < k else k, score, data)
        if best < 0:
            return np.int64(0)
        members[place] = best
        size = _intersect(common, size, data.items, data.offsets[best], data.offsets[best + 1])
    return value


@njit(error_model="numpy")
def best_first(k, most, data):
    """Groups of k, the heaviest first: int32[groups, k]; and bool[n], the records in no group."""
    n = len(data.offsets) - 1
    active = np.ones(n, np.bool_)
    members = np.empty((n, k), np.int32)
    longest = 1
    for r in range(n):
        longest = max(longest, data.offsets[r + 1] - data.offsets[r])
    common = np.empty(longest, np.int32)
    score = np.empty(n, np.int64)
    queue = [(np.int64(0), np.int64(-1))]
    queue.pop()
    for r in range(n):
        value = grow(r, k, most, data, active, members[r], common, score)
        if value > 0:
            queue.append((-value, np.int64(r)))
    heapq.heapify(queue)
    groups = np.empty((max(n // k, 1), k), np.int32)
    made = 0
    while len(queue) > 0:
        seed = heapq.heappop(queue)[1]
        if not active[seed]:
            continue
        if not active[members[seed]].all():
            value = grow(seed, k, most, data, active, members[seed], common, score)
            if value > 0:
                heapq.heappush(queue, (-value, seed))
            continue
        groups[made] = members[seed]
        made += 1
        active[members[seed]] = False
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
            size = _intersect(common, size, data.items, data.offsets[r], data.offsets[r + 1])
        now = _weigh(common, size, data.weight) * sizes[g]
        size = _intersect(common, size, data.items, data.offsets[record], data.offsets[record + 1])
        change = _weigh(common, size, data.weight) * (sizes[g] + 1) - now
        if host < 0 or change > best:
            best, host = change, g
    return host


@njit(inner=True, error_model="numpy")
def _place_of(wanted, keys):
    for i in range(len(keys)):
        if keys[i] == wanted:
            return i
    return -1


@njit(error_model="numpy")
def publish(members, offsets, codes, ages, code_at, age_at, steps, out_codes, out_ages):
    """Publish the pairs that all members share, from fine to coarse; returns the number of pairs written. `code_at`,
    `age_at`: int32[levels, nodes], the node at each level (-1: none may be published). `steps`: int32[n, 2], (code
    level, age level) in the order in which they are tried."""
    k, width = len(members), np.int64(age_at.shape[1])
    lengths = offsets[members + 1] - offsets[members]
    shortest = np.argmin(lengths)
    key = np.full((k, lengths.max()), -1, np.int64)
    used = np.zeros(key.shape, np.bool_)
    place = np.empty(k, np.int64)
    written = 0
    for step in range(len(steps)):
        lc, la = steps[step, 0], steps[step, 1]
        for m in range(k):
            start = offsets[members[m]]
            for j in range(lengths[m]):
                c, a = code_at[lc, codes[start + j]], age_at[la, ages[start + j]]
                key[m, j] = -1 if used[m, j] or c < 0 or a < 0 else c * width + a
        for j in range(lengths[shortest]):
            wanted = key[shortest, j]
            if wanted < 0:
                continue
            for m in range(k):
                place[m] = _place_of(wanted, key[m])
            if place.min() < 0:
                continue
            for m in range(k):
                key[m, place[m]] = -1
                used[m, place[m]] = True
            out_codes[written] = wanted // width
            out_ages[written] = wanted % width
            written += 1
    return written
