"""Kernels of the verifiers of visits, trajectories and generalized codes: which sets are equal, who shares a
set, which original trajectories a published one can stand for; and how much flows through a graph."""

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
    """Records that hold all codes of each list, counted up to `enough`. starts, holders, row_of, bits: who has each
    code (`visits.levels.holders_of`)."""
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
def generalizes(published, c_low, c_high, a_low, a_high, offsets, codes, ages, records, originals, in_order):
    """bool: whether the pairs of an original can be those of the published record in the same place. The pairs of
    records begin at `published`, those of originals at `offsets`; `c_low` … `a_high` are leaf intervals of the
    published pairs (high excluded). Every published pair takes a pair of the original of its own."""
    found = np.empty(len(records), np.bool_)
    for i in range(len(records)):
        p, end = published[records[i]], published[records[i] + 1]
        j, last = offsets[originals[i]], offsets[originals[i] + 1]
        pairs = c_low[p:end], c_high[p:end], a_low[p:end], a_high[p:end], codes[j:last], ages[j:last]
        found[i] = _in_order(*pairs) if in_order else _in_any_order(*pairs)
    return found


@njit(inner=True, error_model="numpy")
def _in_order(c_low, c_high, a_low, a_high, codes, ages):
    """The leftmost fit of each pair in turn finds an order-preserving matching whenever there is one."""
    p = 0
    for j in range(len(codes)):
        if p < len(c_low) and c_low[p] <= codes[j] < c_high[p] and a_low[p] <= ages[j] < a_high[p]:
            p += 1
    return p == len(c_low)


@njit(inner=True, error_model="numpy")
def _in_any_order(c_low, c_high, a_low, a_high, codes, ages):
    """Augmenting paths (Kuhn) find a matching in any order."""
    m, n = len(c_low), len(codes)
    if n < m:
        return False
    taker, seen, reached_by = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.empty(n, np.int64)
    has, queue = np.full(m, -1, np.int64), np.empty(m, np.int64)
    for p in range(m):
        queue[0], first, last, free = p, 0, 1, -1
        while first < last and free < 0:
            q = queue[first]
            first += 1
            for j in range(n):
                inside = c_low[q] <= codes[j] < c_high[q] and a_low[q] <= ages[j] < a_high[q]
                if seen[j] == p or not inside:
                    continue
                seen[j], reached_by[j] = p, q
                if taker[j] < 0:
                    free = j
                    break
                queue[last] = taker[j]
                last += 1
        if free < 0:
            return False
        while free >= 0:  # along the path back to p, everyone takes the pair found for them
            q = reached_by[free]
            taker[free] = q
            free, has[q] = has[q], free
    return True


@njit(error_model="numpy")
def sum_images(offsets, values, image, words):
    """uint64: the sum of `words` over the distinct images of each list's values; an image below 0 is none."""
    sums = np.zeros(offsets.shape[0] - 1, np.uint64)
    last = np.full(words.shape[0], -1, np.int64)
    for v in range(len(sums)):
        for i in range(offsets[v], offsets[v + 1]):
            label = image[values[i]]
            if label >= 0 and last[label] != v:
                last[label] = v
                sums[v] += words[label]
    return sums


@njit
def push_flow(first, head, back, room, source, sink):
    """The largest flow from `source` to `sink` (Dinic 1970). Edges from node v are `first[v]` to `first[v + 1]`, each
    with its end `head`, the place `back` of the edge the other way and the `room` left on it, which is changed."""
    n, flow = first.shape[0] - 1, 0
    queue, path = np.empty(n, np.int64), np.empty(n, np.int64)
    while True:
        level = np.full(n, -1, np.int64)  # edges from the source, through edges with room
        level[source], queue[0] = 0, source
        begin, end = 0, 1
        while begin < end and level[sink] < 0:
            node = queue[begin]
            begin += 1
            for edge in range(first[node], first[node + 1]):
                if room[edge] > 0 and level[head[edge]] < 0:
                    level[head[edge]] = level[node] + 1
                    queue[end] = head[edge]
                    end += 1
        if level[sink] < 0:
            return flow
        following = first.copy()  # the edge that is tried next from each node
        node, length = source, 0
        while True:
            edge = following[node]
            if node == sink:
                pushed = room[path[:length]].min()
                for step in path[:length]:
                    room[step] -= pushed
                    room[back[step]] += pushed
                flow += pushed
                node, length = source, 0
            elif edge < first[node + 1]:
                if room[edge] > 0 and level[head[edge]] == level[node] + 1:
                    path[length] = edge
                    node = head[edge]
                    length += 1
                else:
                    following[node] += 1
            elif length > 0:
                length -= 1
                node = head[back[path[length]]]
                following[node] += 1
            else:
                break
