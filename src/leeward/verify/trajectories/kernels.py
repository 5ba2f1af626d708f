"""Which original trajectories a published one can stand for."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit


@njit(error_model="numpy")
def owners(c_low, c_high, a_low, a_high, originals, offsets, codes, ages, out):
    """Originals that hold the published pairs in order; returns how many, their numbers in `out`.

    c_low … a_high : leaf intervals of the published pairs (high excluded). The leftmost fit of each pair in turn
    finds an order-preserving matching whenever there is one.
    """
    m = len(c_low)
    count = 0
    for i in range(len(originals)):
        original = originals[i]
        j, end = offsets[original], offsets[original + 1]
        p = 0
        while p < m and end - j >= m - p:
            if c_low[p] <= codes[j] < c_high[p] and a_low[p] <= ages[j] < a_high[p]:
                p += 1
            j += 1
        if p == m:
            out[count] = original
            count += 1
    return count


@njit(error_model="numpy")
def owners_in_any_order(c_low, c_high, a_low, a_high, originals, offsets, codes, ages, out):
    """As `owners`, whatever the order: published pairs and pairs of an original are matched one to one, by augmenting
    paths (Kuhn)."""
    m = len(c_low)
    count = 0
    queue, came_from = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)
    for i in range(len(originals)):
        original = originals[i]
        start = offsets[original]
        n = offsets[original + 1] - start
        if n < m:
            continue
        taker, seen = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        reached_by = np.empty(n, np.int64)
        whole = True
        for p in range(m):
            queue[0], first, last, free = p, 0, 1, -1
            while first < last and free < 0:
                q = queue[first]
                first += 1
                for j in range(n):
                    if seen[j] == p:
                        continue
                    if not (
                        c_low[q] <= codes[start + j] < c_high[q] and a_low[q] <= ages[start + j] < a_high[q]
                    ):
                        continue
                    seen[j] = p
                    reached_by[j] = q
                    if taker[j] < 0:
                        free = j
                        break
                    queue[last] = taker[j]
                    last += 1
            if free < 0:
                whole = False
                break
            for q in range(m):
                came_from[q] = -1
            for j in range(n):
                if taker[j] >= 0:
                    came_from[taker[j]] = j
            while free >= 0:  # along the path back to p, everyone takes the pair found for them
                q = reached_by[free]
                before = came_from[q] if q != p else -1
                taker[free] = q
                free = before
        if whole:
            out[count] = original
            count += 1
    return count


@njit(error_model="numpy")
def grid_sum(sums, c_low, c_high, a_low, a_high):
    """Entries inside a rectangle, from the table of cumulative sums."""
    return sums[c_high, a_high] - sums[c_low, a_high] - sums[c_high, a_low] + sums[c_low, a_low]


@njit(error_model="numpy")
def holders(c_low, c_high, a_low, a_high, starts, holder, width, seen, stamp, out):
    """Distinct originals with a pair in the rectangle, ascending by cell; `seen` is stamped."""
    count = 0
    for c in range(c_low, c_high):
        for i in range(starts[c * width + a_low], starts[c * width + a_high]):
            original = holder[i]
            if seen[original] != stamp:
                seen[original] = stamp
                out[count] = original
                count += 1
    return count


@njit(error_model="numpy")
def count_unmatched(needs, starts, owners, unit_starts):
    """Records that no one-to-one assignment can serve: greedy in the order given, then augmenting paths.

    Group g needs needs[g] patients among the originals owners[starts[g]:starts[g + 1]]; original o has the patients
    (units) unit_starts[o] … unit_starts[o + 1] − 1.
    """
    n_groups, n_originals = len(needs), len(unit_starts) - 1
    left = needs.copy()
    holder = np.full(unit_starts[n_originals], -1, np.int64)
    for g in range(n_groups):
        for e in range(starts[g], starts[g + 1]):
            if left[g] == 0:
                break
            for unit in range(unit_starts[owners[e]], unit_starts[owners[e] + 1]):
                if left[g] > 0 and holder[unit] < 0:
                    holder[unit] = g
                    left[g] -= 1
    seen = np.full(n_originals, -1, np.int64)
    asked = np.full(n_groups, -1, np.int64)
    by_group, by_unit = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    queue = np.empty(n_groups, np.int64)
    stamp = 0
    missing = 0
    for g in range(n_groups):
        while left[g] > 0:
            stamp += 1
            queue[0], first, last = g, 0, 1
            asked[g] = stamp
            free, taker = -1, -1
            while first < last and free < 0:
                h = queue[first]
                first += 1
                for e in range(starts[h], starts[h + 1]):
                    original = owners[e]
                    if seen[original] == stamp:
                        continue
                    seen[original] = stamp
                    for unit in range(unit_starts[original], unit_starts[original + 1]):
                        other = holder[unit]
                        if other < 0:
                            free, taker = unit, h
                            break
                        if asked[other] != stamp:
                            asked[other] = stamp
                            by_group[other], by_unit[other] = h, unit
                            queue[last] = other
                            last += 1
                    if free >= 0:
                        break
            if free < 0:
                missing += left[g]
                break
            while True:
                holder[free] = taker
                if taker == g:
                    break
                free, taker = by_unit[taker], by_group[taker]
            left[g] -= 1
    return missing
