"""Kernels of the verifiers of visits, trajectories and generalized codes: which sets are equal, who shares a
set, which original trajectories a published one can stand for."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit


@njit(error_model="numpy")
def number_lists(offsets, values):
    """The number of each list, from 0: equal lists, which are compared value by value, get equal numbers."""
    n = offsets.shape[0] - 1
    room = 16
    while room < 2 * n:
        room *= 2
    table = np.full(room, -1, np.int32)
    mask = table.shape[0] - 1
    numbers = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    distinct = 0
    for v in range(n):
        start, length = offsets[v], offsets[v + 1] - offsets[v]
        mixed = np.uint64(length)
        for i in range(start, start + length):
            mixed = (mixed ^ np.uint64(values[i] + 1)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        place = np.int64(mixed >> np.uint64(17)) & mask
        while True:
            number = table[place]
            if number < 0:
                table[place] = distinct
                first[distinct] = v
                numbers[v] = distinct
                distinct += 1
                break
            other = offsets[first[number]]
            same = offsets[first[number] + 1] - other == length
            i = 0
            while same and i < length:
                same = values[start + i] == values[other + i]
                i += 1
            if same:
                numbers[v] = number
                break
            place = (place + 1) & mask
    return numbers


@njit(error_model="numpy")
def count_pairs(offsets, values, counts):
    """Adds to `counts` the lists with both of two values, the smaller one first; values of a list are distinct."""
    for v in range(offsets.shape[0] - 1):
        for i in range(offsets[v], offsets[v + 1]):
            for j in range(i + 1, offsets[v + 1]):
                a, b = values[i], values[j]
                counts[min(a, b), max(a, b)] += 1


@njit(error_model="numpy")
def count_containers(offsets, values, starts, holders, row_of, bits, enough):
    """Records that hold all codes of each list, counted up to `enough`.

    starts, holders, row_of, bits : who has each code (`visits.levels.holders_of`).
    """
    n = offsets.shape[0] - 1
    found = np.zeros(n, np.int64)
    longest = 1
    for v in range(n):
        longest = max(longest, offsets[v + 1] - offsets[v])
    at, end, row = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    for v in range(n):
        size = offsets[v + 1] - offsets[v]
        for i in range(size):  # the rarest codes first: they rule most records out
            c = values[offsets[v] + i]
            place = i
            while place > 0 and end[place - 1] - at[place - 1] > starts[c + 1] - starts[c]:
                at[place], end[place], row[place] = at[place - 1], end[place - 1], row[place - 1]
                place -= 1
            at[place], end[place], row[place] = starts[c], starts[c + 1], row_of[c]
        if size and row[0] >= 0 and end[0] - at[0] > bits.shape[1]:  # all are frequent: 64 records at a time
            for word in range(bits.shape[1]):
                both = bits[row[0], word]
                for i in range(1, size):
                    both &= bits[row[i], word]
                while both and found[v] < enough:
                    both &= both - np.uint64(1)
                    found[v] += 1
                if found[v] >= enough:
                    break
            continue
        some = size > 0
        while some and at[0] < end[0]:
            record = holders[at[0]]
            every = True
            for i in range(1, size):
                if row[i] >= 0:
                    every = bool((bits[row[i], record >> 6] >> np.uint64(record & 63)) & np.uint64(1))
                else:
                    at[i] = _first_from(holders, at[i], end[i], record)
                    some = at[i] < end[i]
                    every = some and holders[at[i]] == record
                if not every:
                    break
            if every:
                found[v] += 1
                some = found[v] < enough
            at[0] += 1
    return found


@njit(inner=True, error_model="numpy")
def _first_from(holders, a, end, record):
    """The first place from `a` on whose record is not below `record`: steps of 1, 2, 4 … and a search in the last."""
    step = 1
    while a + step < end and holders[a + step] < record:
        a += step
        step += step
    b = min(a + step, end)
    while a < b:
        middle = (a + b) >> 1
        if holders[middle] < record:
            a = middle + 1
        else:
            b = middle
    return a


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


PARTS = 8
"""Keys are numbered in 2^8 parts: a part's table stays in a core's cache."""

MIXING = np.uint64(0x9E3779B97F4A7C15)


@njit(error_model="numpy")
def write_keys(offsets, values, image, bits, keys, place, pool, used):
    """Writes a key of each list's set of images, and returns how much of `pool` is used then.

    image : int32; a value whose image is below 0 vanishes. bits : images are below 2^bits.
    keys, place : int64[lists]. 0 for the empty set; a set of at most 62 bits is its own key; a larger one has a mixed
    key below 0, and its size and labels are in `pool` (int32[lists + values]) from `place` on.
    """
    most = 0
    for v in range(offsets.shape[0] - 1):
        most = max(most, offsets[v + 1] - offsets[v])
    labels = np.empty(most, np.int32)
    for v in range(offsets.shape[0] - 1):
        size = 0
        for i in range(offsets[v], offsets[v + 1]):
            label = image[values[i]]
            at = size
            while label >= 0 and at > 0 and labels[at - 1] >= label:
                at -= 1
            if label < 0 or (at < size and labels[at] == label):
                continue
            for j in range(size, at, -1):
                labels[j] = labels[j - 1]
            labels[at] = label
            size += 1
        if size * bits <= 62:
            keys[v] = size > 0
            for i in range(size):
                keys[v] = (keys[v] << bits) | labels[i]
            continue
        mixed = np.uint64(size)
        place[v], pool[used] = used, size
        for i in range(size):
            mixed = (mixed ^ np.uint64(labels[i] + 1)) * MIXING
            mixed ^= mixed >> np.uint64(29)
            pool[used + 1 + i] = labels[i]
        keys[v] = np.int64(mixed >> np.uint64(1)) | np.int64(-(2**63))
        used += 1 + size
    return used


@njit(error_model="numpy")
def number_sets(keys, place, pool):
    """int32: a number of each set of `write_keys`, 0 for the empty one; equal sets, equal numbers."""
    n = keys.shape[0]
    ends = np.zeros((1 << PARTS) + 1, np.int64)
    for i in range(n):
        ends[np.int64((np.uint64(keys[i]) * MIXING) >> np.uint64(64 - PARTS)) + 1] += 1
    table = np.empty(4 * max(ends) + 16, np.int32)
    for part in range(1 << PARTS):
        ends[part + 1] += ends[part]
    begin = ends[: 1 << PARTS].copy()
    order = np.empty(n, np.int32)
    for i in range(n):
        own = np.int64((np.uint64(keys[i]) * MIXING) >> np.uint64(64 - PARTS))
        order[begin[own]] = i
        begin[own] += 1
    known = keys[order]
    numbers = np.empty(n, np.int32)
    distinct = 0
    for part in range(1 << PARTS):
        room = 16
        while room < 2 * (ends[part + 1] - ends[part]):
            room *= 2
        table[:room] = -1
        for j in range(ends[part], ends[part + 1]):
            if known[j] == 0:
                numbers[order[j]] = 0
                continue
            at = np.int64((np.uint64(known[j]) * MIXING) >> np.uint64(20)) & (room - 1)
            while table[at] >= 0:
                other = table[at]
                same = known[other] == known[j]
                if same and known[j] < 0:
                    a, b = place[order[other]], place[order[j]]
                    for i in range(pool[a] + 1):
                        if pool[a + i] != pool[b + i]:
                            same = False
                            break
                if same:
                    numbers[order[j]] = numbers[order[other]]
                    break
                at = (at + 1) & (room - 1)
            if table[at] < 0:
                table[at] = j
                distinct += 1
                numbers[order[j]] = distinct
    return numbers
