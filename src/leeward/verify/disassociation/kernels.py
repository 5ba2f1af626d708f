"""Kernels of the verifier of disassociation: flat arrays in, violation counts out
(docs/methods/disassociation.md).

Written for the verifier alone; no method uses or shares them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Array = NDArray[Any]

RECORD, SHARED, ITEM = 0, 1, 2
UNLIMITED = np.int64(2**62)


@njit
def preorder(parent: Array) -> Any:
    """Preorder of a forest: (position of each node, end of its subtree's range); positions -1 inside a
    cycle."""
    n = len(parent)
    head = np.full(n + 1, -1, np.int32)
    following = np.full(n, -1, np.int32)
    for v in range(n - 1, -1, -1):
        p = parent[v] if parent[v] >= 0 else n
        following[v] = head[p]
        head[p] = v
    position = np.full(n, -1, np.int32)
    end = np.zeros(n, np.int32)
    walked = np.empty(n, np.int32)
    waiting = np.empty(n + 1, np.int32)  # siblings still to be walked, the deepest last
    waiting[0] = head[n]
    at, left = 0, 1
    while left:
        left -= 1
        v = waiting[left]
        while v != -1:
            position[v], end[v] = at, at + 1
            walked[at] = v
            at += 1
            waiting[left] = following[v]
            left += 1
            v = head[v]
    for v in walked[:at][::-1]:  # children come before their parents
        if parent[v] >= 0:
            end[parent[v]] = max(end[parent[v]], end[v])
    return position, end


@njit
def chunk_codes(start: Array, offsets: Array, values: Array, place: Array) -> Any:
    """Distinct codes of each chunk with supports: (offsets, codes, supports, non-empty rows, rows whose codes do not
    ascend). `place`: of each code among the sorted ones; where codes ascend none is twice in a row."""
    groups = len(start) - 1
    bounds = np.zeros(groups + 1, np.int64)
    codes = np.empty(len(values), np.int32)
    supports = np.empty(len(values), np.int64)
    filled_rows = np.zeros(groups, np.int64)
    unordered = np.zeros(groups, np.int64)
    slot = np.full(max(len(place), 1), -1, np.int64)
    at = 0
    for g in range(groups):
        first = at
        for row in range(start[g], start[g + 1]):
            if offsets[row + 1] > offsets[row]:
                filled_rows[g] += 1
            falls = False
            for i in range(offsets[row], offsets[row + 1]):
                c = values[i]
                if slot[c] < first:
                    slot[c] = at
                    codes[at] = c
                    supports[at] = 0
                    at += 1
                supports[slot[c]] += 1
                falls |= i > offsets[row] and place[c] <= place[values[i - 1]]
            unordered[g] += falls
        bounds[g + 1] = at
    return bounds, codes[:at].copy(), supports[:at].copy(), filled_rows, unordered


@njit
def bad_numbers(start: Array, number: Array, rows_expected: Array) -> Any:
    """Rows of each chunk whose subrecord number is not one of 0 … rows - 1, or is taken already."""
    groups = len(start) - 1
    bad = np.zeros(groups, np.int64)
    taken = np.full(rows_expected.max() + 1 if groups else 1, -1, np.int64)
    for g in range(groups):
        for row in range(start[g], start[g + 1]):
            s = number[row]
            if s < 0 or s >= rows_expected[g] or taken[s] == g:
                bad[g] += 1
            else:
                taken[s] = g
    return bad


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
def domains(
    order: Array,
    end: Array,
    leaf: Array,
    node_groups: Array,
    groups_of: Array,
    kind: Array,
    bounds: Array,
    codes: Array,
    n_codes: int,
) -> Any:
    """Walk the forest in preorder with the codes of the shared chunks above in view.

    Returns (first node index, or -1, and number of nodes whose visible chunks share a code that they must
    not share; bool[g]: shared chunks with a code that also lies in a record chunk or a lower shared chunk
    below)."""
    n = len(order)
    overlapping = 0
    first_overlap = -1
    strict = np.zeros(len(kind), np.bool_)
    above = np.full(n_codes, -1, np.int64)
    here = np.full(n_codes, -1, np.int64)
    undo_code = np.empty(max(len(codes), 1), np.int32)
    undo_value = np.empty(max(len(codes), 1), np.int64)
    undone_at = 0
    open_nodes = np.empty(n + 1, np.int64)
    open_marks = np.empty(n + 1, np.int64)
    depth = 0
    for at in range(n):
        v = order[at]
        while depth > 0 and end[open_nodes[depth - 1]] <= at:
            depth -= 1
            while undone_at > open_marks[depth]:
                undone_at -= 1
                above[undo_code[undone_at]] = undo_value[undone_at]
        clash = False
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            for i in range(bounds[g], bounds[g + 1]):
                c = codes[i]
                if here[c] == v:
                    clash = True
                here[c] = v
                if above[c] >= 0:
                    if kind[g] == ITEM:
                        clash = True
                    else:
                        strict[above[c]] = True
        if clash:
            overlapping += 1
            if first_overlap == -1:
                first_overlap = v
        if not leaf[v]:
            open_nodes[depth] = v
            open_marks[depth] = undone_at
            depth += 1
            for q in range(node_groups[v], node_groups[v + 1]):
                g = groups_of[q]
                if kind[g] != SHARED:
                    continue
                for i in range(bounds[g], bounds[g + 1]):
                    c = codes[i]
                    undo_code[undone_at] = c
                    undo_value[undone_at] = above[c]
                    undone_at += 1
                    above[c] = g
    return first_overlap, overlapping, strict
