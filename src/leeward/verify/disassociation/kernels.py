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
    """Smallest support of the `size`-subsets of `local[:length]`; partial[d] holds the and of the first d
    bitmaps."""
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
    """Of each record or shared chunk: (smallest support of a code set of size up to m that occurs, smallest
    number of times that a non-empty subrecord occurs). Supports are anti-monotone, so the subsets of size
    min(m, length) of every subrecord suffice."""
    groups = len(start) - 1
    subset = np.full(groups, UNLIMITED, np.int64)
    whole = np.full(groups, UNLIMITED, np.int64)
    n_codes = codes.max() + 1 if len(codes) else 1
    slot = np.zeros(n_codes, np.int64)
    bits = np.zeros(64, np.uint64)
    partial = np.zeros(64, np.uint64)
    rows = np.zeros(64, np.int64)
    done = np.zeros(64, np.bool_)
    local = np.zeros(64, np.int64)
    chosen = np.zeros(64, np.int64)
    everything = np.zeros(1, np.uint64)
    for g in range(groups):
        if kind[g] == ITEM:
            continue
        width = bounds[g + 1] - bounds[g]
        for i in range(width):
            slot[codes[bounds[g] + i]] = i
        filled = 0
        longest = 0
        if len(rows) < start[g + 1] - start[g]:
            rows = np.zeros(2 * (start[g + 1] - start[g]), np.int64)
            done = np.zeros(len(rows), np.bool_)
        for row in range(start[g], start[g + 1]):
            if offsets[row + 1] > offsets[row]:
                rows[filled] = row
                done[filled] = False
                filled += 1
                longest = max(longest, offsets[row + 1] - offsets[row])
        if filled == 0:
            continue
        words = (filled + 63) // 64
        size_bits = width * words
        if len(bits) < size_bits:
            bits = np.zeros(2 * size_bits, np.uint64)
        bits[:size_bits] = np.uint64(0)
        depth = min(m, longest)
        if len(partial) < depth * words:
            partial = np.zeros(2 * depth * words, np.uint64)
        if len(local) < longest + 1:
            local = np.zeros(2 * longest + 2, np.int64)
            chosen = np.zeros(2 * longest + 2, np.int64)
        if len(everything) < words:
            everything = np.zeros(2 * words, np.uint64)
        for i in range(filled):
            row = rows[i]
            for v in range(offsets[row], offsets[row + 1]):
                bits[slot[values[v]] * words + i // 64] |= np.uint64(1) << np.uint64(i % 64)
        for i in range(filled):
            if done[i]:
                continue
            row = rows[i]
            length = offsets[row + 1] - offsets[row]
            for j in range(length):
                local[j] = slot[values[offsets[row] + j]]
            count = np.int64(0)
            for w in range(words):
                word = bits[local[0] * words + w]
                for j in range(1, length):
                    word &= bits[local[j] * words + w]
                everything[w] = word
                count += _popcount(word)
            same = np.int64(0)
            for w in range(words):
                if everything[w] == np.uint64(0):
                    continue
                for b in range(min(64, filled - w * 64)):
                    if (everything[w] >> np.uint64(b)) & np.uint64(1):
                        other = w * 64 + b
                        if offsets[rows[other] + 1] - offsets[rows[other]] == length:
                            same += 1
                            done[other] = True
            whole[g] = min(whole[g], same)
            if length > m:
                count = _smallest_subset(bits, words, local, length, m, partial, chosen)
            subset[g] = min(subset[g], count)
    return subset, whole


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
    order, end, records = flat.order, flat.end, flat.records
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes, supports = flat.bounds, flat.codes, flat.supports
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
                count = records[v] if kind[g] == ITEM else supports[i]
                _add(table, low, high, width, codes[i], codes[i], count)
                if kind[g] == ITEM:
                    for j in range(i + 1, bounds[g + 1]):
                        _add(table, low, high, width, codes[i], codes[j], count)
                for q2 in range(q + 1, node_groups[v + 1]):
                    h = groups_of[q2]
                    for j in range(bounds[h], bounds[h + 1]):
                        other = records[v] if kind[h] == ITEM else supports[j]
                        _add(table, low, high, width, codes[i], codes[j], min(count, other))
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
                    below[c] += records[u] if kind[g] == ITEM else supports[i]
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            for i in range(bounds[g], bounds[g + 1]):
                for t in range(n_touched):
                    if touched[t] != codes[i]:
                        _add(
                            table, low, high, width, codes[i], touched[t], min(below[touched[t]], supports[i])
                        )
        for t in range(n_touched):
            below[touched[t]] = 0
    return table


@njit
def set_candidates(wanted: Array, chain: Array, flat: Flat, stamp: Array, hit: Array) -> Any:
    """Records of one cluster's own chunks and of the shared chunks above (`chain`, the cluster first) that
    may hold all of `wanted`; -1 when a code is not visible. `stamp` (int64 a code) and `hit` are scratch."""
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes = flat.bounds, flat.codes
    smallest = UNLIMITED
    found = 0
    for c in wanted:
        stamp[c] = 1
    for step in range(len(chain)):
        v = chain[step]
        smallest = min(smallest, flat.records[v])
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            inside = 0
            for i in range(bounds[g], bounds[g + 1]):
                if stamp[codes[i]] == 1:
                    stamp[codes[i]] = 2
                    hit[inside] = codes[i]
                    inside += 1
            found += inside
            if inside > 0 and kind[g] != ITEM:
                count = np.int64(0)
                for row in range(start[g], start[g + 1]):
                    have = 0
                    for i in range(offsets[row], offsets[row + 1]):
                        if stamp[values[i]] == 2:
                            have += 1
                    if have == inside:
                        count += 1
                smallest = min(smallest, count)
            for i in range(inside):
                stamp[hit[i]] = 3
    for c in wanted:
        stamp[c] = 0
    return smallest if found == len(wanted) else np.int64(-1)


@njit
def candidates_of_trees(
    wanted: Array, enough: int, leaves: Array, flat: Flat, stamp: Array, hit: Array
) -> Any:
    """Records that may hold all of `wanted`: the best cluster of each tree of nodes, summed until there are
    `enough`."""
    parent = flat.parent
    best = np.zeros(len(parent), np.int64)  # of each root
    chain = np.empty(len(parent), np.int32)
    total = np.int64(0)
    for leaf in leaves:
        depth = 1
        chain[0] = leaf
        while parent[chain[depth - 1]] >= 0:
            chain[depth] = parent[chain[depth - 1]]
            depth += 1
        count = set_candidates(wanted, chain[:depth], flat, stamp, hit)
        root = chain[depth - 1]
        if count > best[root]:
            total += count - best[root]
            best[root] = count
        if total >= enough:
            break
    return total


@njit
def _fits(record: Array, leaf: int, flat: Flat, stamp: Array) -> Any:
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes = flat.bounds, flat.codes
    for c in record:
        stamp[c] = 1
    found = 0
    good = True
    v = leaf
    while v >= 0:
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            inside = 0
            for i in range(bounds[g], bounds[g + 1]):
                if stamp[codes[i]] == 1:
                    stamp[codes[i]] = 2
                    inside += 1
            found += inside
            if kind[g] != ITEM and good:
                match = False
                for row in range(start[g], start[g + 1]):
                    if offsets[row + 1] - offsets[row] != inside:
                        continue
                    have = 0
                    for i in range(offsets[row], offsets[row + 1]):
                        if stamp[values[i]] == 2:
                            have += 1
                    if have == inside:
                        match = True
                        break
                good = match
            if inside > 0:
                for i in range(bounds[g], bounds[g + 1]):
                    if stamp[codes[i]] == 2:
                        stamp[codes[i]] = 3
        if not good:
            break
        v = flat.parent[v]
    for c in record:
        stamp[c] = 0
    return good and found == len(record)


@njit
def fits_somewhere(record: Array, holders: Array, flat: Flat, stamp: Array) -> Any:
    """True when a record is one that some cluster at or below one of `holders` may hold: each code visible,
    and what the record leaves in each record or shared chunk is one of that chunk's subrecords. A code lies
    in the lowest chunk that has it."""
    for v in holders:
        for at in range(flat.position[v], flat.end[v]):
            if flat.leaf[flat.order[at]] and _fits(record, flat.order[at], flat, stamp):
                return True
    return False
