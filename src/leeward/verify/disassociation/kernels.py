"""Kernels of the verifier of disassociation: how often what occurs in a chunk does so, and how many records may hold a
set of codes (docs/methods/disassociation.md#estimating-counts).

Written for the verifier alone; no method uses or shares them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.verify.disassociation.layout import ITEM, Flat

Array = NDArray[Any]

UNLIMITED = np.int64(2**62)


@njit(inner=True)
def _popcount(x: Any) -> Any:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(inner=True)
def _smallest_subset(
    bits: Array, words: int, local: Array, length: int, size: int, partial: Array, chosen: Array
) -> Any:
    """Smallest support of the `size`-subsets of `local[:length]`; partial[d] holds the and of the first d bitmaps."""
    smallest = UNLIMITED
    depth = 0
    chosen[0] = 0
    while depth >= 0:
        if chosen[depth] > length - (size - depth):
            depth -= 1
            if depth >= 0:
                chosen[depth] += 1
            continue
        code = local[chosen[depth]]
        count = np.int64(0)
        for w in range(words):
            word = bits[code * words + w]
            if depth > 0:
                word &= partial[(depth - 1) * words + w]
            partial[depth * words + w] = word
            count += _popcount(word)
        if depth == size - 1:
            smallest = min(smallest, count)
            chosen[depth] += 1
        else:
            chosen[depth + 1] = chosen[depth] + 1
            depth += 1
    return smallest


@njit
def chunk_anonymity(
    start: Array, offsets: Array, values: Array, bounds: Array, codes: Array, kind: Array, m: int
) -> Any:
    """For each record or shared chunk, the smallest support of an occurring set of up to m codes, and the smallest
    number of times that a non-empty subrecord occurs. Supports are anti-monotone, so the subsets of size min(m, length)
    of every subrecord suffice."""
    groups = len(start) - 1
    subset, whole = np.full(groups, UNLIMITED, np.int64), np.full(groups, UNLIMITED, np.int64)
    slot = np.zeros(codes.max() + 1 if len(codes) else 1, np.int64)
    most = longest = cells = 1
    for g in range(groups):
        n = start[g + 1] - start[g]
        most, cells = max(most, n), max(cells, (bounds[g + 1] - bounds[g]) * ((n + 63) // 64))
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    bits, everything = np.zeros(cells, np.uint64), np.zeros((most + 63) // 64, np.uint64)
    partial = np.zeros(min(m, longest) * len(everything), np.uint64)
    rows, done = np.zeros(most, np.int64), np.zeros(most, np.bool_)
    local, chosen = np.zeros(longest + 1, np.int64), np.zeros(longest + 1, np.int64)
    for g in range(groups):
        if kind[g] == ITEM:
            continue
        width = bounds[g + 1] - bounds[g]
        slot[codes[bounds[g] : bounds[g + 1]]] = np.arange(width)
        filled = 0
        for row in range(start[g], start[g + 1]):
            if offsets[row + 1] > offsets[row]:
                rows[filled] = row
                filled += 1
        words = (filled + 63) // 64
        bits[: width * words] = np.uint64(0)
        done[:filled] = False
        for i in range(filled):
            for v in range(offsets[rows[i]], offsets[rows[i] + 1]):
                bits[slot[values[v]] * words + i // 64] |= np.uint64(1) << np.uint64(i % 64)
        for i in range(filled):
            if done[i]:
                continue
            row = rows[i]
            length = offsets[row + 1] - offsets[row]
            for j in range(length):
                local[j] = slot[values[offsets[row] + j]]
            count = _rows_with_all(bits, words, local, length, everything)
            whole[g] = min(whole[g], _mark_equal(everything, filled, length, rows, offsets, done))
            if length > m:
                count = _smallest_subset(bits, words, local, length, m, partial, chosen)
            subset[g] = min(subset[g], count)
    return subset, whole


@njit(inner=True)
def _rows_with_all(bits: Array, words: int, local: Array, length: int, everything: Array) -> Any:
    """How many rows have all of `local[:length]`; `everything` becomes their bitmap."""
    count = np.int64(0)
    for w in range(words):
        word = bits[local[0] * words + w]
        for j in range(1, length):
            word &= bits[local[j] * words + w]
        everything[w] = word
        count += _popcount(word)
    return count


@njit(inner=True)
def _mark_equal(everything: Array, filled: int, length: int, rows: Array, offsets: Array, done: Array) -> Any:
    """Marks the rows of the bitmap that have `length` codes as done, and returns how many they are."""
    same = np.int64(0)
    for i in range(filled):
        equal = offsets[rows[i] + 1] - offsets[rows[i]] == length
        if equal and (everything[i // 64] >> np.uint64(i % 64)) & np.uint64(1):
            same += 1
            done[i] = True
    return same


@njit
def _add(table: Array, low: int, high: int, width: int, a: int, b: int, count: int) -> Any:
    """Add `count` candidates of the pair {a, b} if its smaller code is in this block of the table."""
    x, y = min(a, b), max(a, b)
    if low <= x < high:
        table[(x - low) * width + y] += count


@njit
def pair_candidates(flat: Flat, low: int, high: int, width: int) -> Any:
    """Upper bound, for every pair of codes, on the records that may hold both.

    The table holds rows low … high - 1 (the smaller code of a pair) of the upper triangle, flat; singles
    lie on the diagonal. Codes of one chunk count where they lie in one subrecord; codes of different chunks
    count up to the rarer one; a code of a shared chunk meets what the whole joint cluster holds below it."""
    order, end = flat.order, flat.end
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes, most = flat.bounds, flat.codes, flat.most
    n = len(order)
    table = np.zeros((high - low) * width, np.int32)
    below = np.zeros(width, np.int64)
    touched = np.empty(width, np.int32)
    for at in range(n):
        v = order[at]
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            if kind[g] != ITEM:
                for row in range(start[g], start[g + 1]):
                    for i in range(offsets[row], offsets[row + 1]):
                        for j in range(i + 1, offsets[row + 1]):
                            _add(table, low, high, width, values[i], values[j], 1)
            for i in range(bounds[g], bounds[g + 1]):
                _add(table, low, high, width, codes[i], codes[i], most[i])
                if kind[g] == ITEM:
                    for j in range(i + 1, bounds[g + 1]):
                        _add(table, low, high, width, codes[i], codes[j], most[i])
                for q2 in range(q + 1, node_groups[v + 1]):
                    h = groups_of[q2]
                    for j in range(bounds[h], bounds[h + 1]):
                        _add(table, low, high, width, codes[i], codes[j], min(most[i], most[j]))
        if flat.leaf[v]:
            continue
        n_touched = 0
        for later in range(at + 1, end[v]):
            u = order[later]
            for q in range(node_groups[u], node_groups[u + 1]):
                g = groups_of[q]
                for i in range(bounds[g], bounds[g + 1]):
                    c = codes[i]
                    if below[c] == 0:
                        touched[n_touched] = c
                        n_touched += 1
                    below[c] += most[i]
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            for i in range(bounds[g], bounds[g + 1]):
                for t in range(n_touched):
                    if touched[t] != codes[i]:
                        _add(table, low, high, width, codes[i], touched[t], min(below[touched[t]], most[i]))
        for t in range(n_touched):
            below[touched[t]] = 0
    return table


@njit
def set_candidates(wanted: Array, leaf: int, flat: Flat, stamp: Array, exact: bool) -> Any:
    """Records that may hold all of `wanted`, by a cluster's own chunks and the shared chunks above; a code lies in the
    lowest chunk that has it. 0 when a code is not visible. `stamp` (int64 a code) is scratch. `exact`: whether a record
    may hold these codes and no others, as 0 or more; what it leaves in each record or shared chunk is one of that
    chunk's subrecords."""
    smallest, found, v = UNLIMITED, 0, leaf
    for c in wanted:
        stamp[c] = 1
    while v >= 0 and smallest > 0:
        smallest = min(smallest, flat.records[v])
        for q in range(flat.node_groups[v], flat.node_groups[v + 1]):
            inside, count = _in_chunk(v, flat.groups_of[q], flat, stamp, exact)
            found += inside
            smallest = min(smallest, count)
        v = flat.parent[v]
    for c in wanted:
        stamp[c] = 0
    return smallest if found == len(wanted) else np.int64(0)


@njit(inner=True)
def _in_chunk(v: int, g: int, flat: Flat, stamp: Array, exact: bool) -> Any:
    """How many of the codes stamped 1 a chunk has, which get another stamp, and how many subrecords hold them."""
    inside, count = 0, UNLIMITED
    for i in range(flat.bounds[g], flat.bounds[g + 1]):
        if stamp[flat.codes[i]] == 1:
            stamp[flat.codes[i]] = 2
            inside += 1
            count = min(count, flat.most[i])
    if flat.kind[g] != ITEM and (inside > 0 or exact):
        left_out = flat.records[v] - (flat.start[g + 1] - flat.start[g]) if inside == 0 else 0  # empty ones
        count = min(count, _rows_with(g, inside, flat, stamp, exact) + left_out)
    for i in range(flat.bounds[g], flat.bounds[g + 1] if inside > 0 else flat.bounds[g]):
        if stamp[flat.codes[i]] == 2:
            stamp[flat.codes[i]] = 3
    return inside, count


@njit(inner=True)
def _rows_with(g: int, inside: int, flat: Flat, stamp: Array, exact: bool) -> Any:
    """Subrecords with all of the `inside` codes stamped 2; `exact`: 1 where one has these and no others."""
    count = np.int64(0)
    for row in range(flat.start[g], flat.start[g + 1]):
        length = flat.offsets[row + 1] - flat.offsets[row]
        if length < inside or (exact and length != inside):
            continue
        have = 0
        for i in range(flat.offsets[row], flat.offsets[row + 1]):
            have += stamp[flat.values[i]] == 2
        count += have == inside
        if exact and count > 0:
            break
    return count


@njit
def candidates_of_trees(wanted: Array, enough: int, leaves: Array, flat: Flat, stamp: Array) -> Any:
    """Records that may hold all of `wanted`: the best cluster of each tree of nodes, summed until there are
    `enough`."""
    best = np.zeros(len(flat.parent), np.int64)  # of each root
    total = np.int64(0)
    for leaf in leaves:
        root = leaf
        while flat.parent[root] >= 0:
            root = flat.parent[root]
        count = set_candidates(wanted, leaf, flat, stamp, False)
        if count > best[root]:
            total += count - best[root]
            best[root] = count
        if total >= enough:
            break
    return total


@njit
def fits_somewhere(record: Array, holders: Array, flat: Flat, stamp: Array) -> Any:
    """True when a record is one that some cluster at or below one of `holders` may hold."""
    for v in holders:
        for at in range(flat.position[v], flat.end[v]):
            leaf = flat.order[at]
            if flat.leaf[leaf] and set_candidates(record, leaf, flat, stamp, True) > 0:
                return True
    return False
