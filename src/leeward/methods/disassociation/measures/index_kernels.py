"""Kernels of `published`: a release's tree of nodes, and an index from each code to the chunks that hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.bits import popcount
from leeward.compiled import njit

Array = NDArray[Any]

SHARED, ITEM = 1, 2


@njit
def bottom_up(parent: Array) -> Any:
    """New number of each node: children before parents, subtrees contiguous."""
    n = len(parent)
    head = np.full(n + 1, -1, np.int64)
    following = np.full(n, -1, np.int64)
    for v in range(n):
        p = parent[v] if parent[v] >= 0 else n
        following[v] = head[p]
        head[p] = v
    number = np.full(n, -1, np.int64)
    stack = np.empty(n + 1, np.int64)
    at = 0
    root = head[n]
    while root != -1:
        depth = 0
        stack[0] = root
        while depth >= 0:
            v = stack[depth]
            child = head[v]
            if child == -1:
                number[v] = at
                at += 1
                depth -= 1
            else:
                head[v] = following[child]
                depth += 1
                stack[depth] = child
        root = following[root]
    return number


@njit
def count_entries(start: Array, offsets: Array, values: Array, n_codes: int) -> Any:
    """(distinct codes of each chunk, its 64-bit words a code): only non-empty subrecords take a bit."""
    groups = len(start) - 1
    distinct = np.zeros(groups, np.int64)
    words = np.zeros(groups, np.int64)
    seen = np.full(n_codes, -1, np.int64)
    for g in range(groups):
        filled = 0
        for row in range(start[g], start[g + 1]):
            filled += 1 if offsets[row + 1] > offsets[row] else 0
            for i in range(offsets[row], offsets[row + 1]):
                if seen[values[i]] != g:
                    seen[values[i]] = g
                    distinct[g] += 1
        words[g] = (filled + 63) // 64
    return distinct, words


@njit
def fill_entries(
    start: Array, offsets: Array, values: Array, n_codes: int, first: Array, words: Array, at_bits: Array
) -> Any:
    """One entry a chunk and code: (code, chunk, where its bitmap starts) and the bitmaps."""
    total = first[-1]
    code = np.empty(total, np.int32)
    group = np.empty(total, np.int32)
    place = np.empty(total, np.int64)
    bits = np.zeros(at_bits[-1], np.uint64)
    slot = np.full(n_codes, -1, np.int64)
    for g in range(len(start) - 1):
        used = first[g]
        filled = 0
        for row in range(start[g], start[g + 1]):
            for i in range(offsets[row], offsets[row + 1]):
                c = values[i]
                if slot[c] < first[g]:
                    slot[c] = used
                    code[used] = c
                    group[used] = g
                    place[used] = at_bits[g] + (used - first[g]) * words[g]
                    used += 1
                bits[place[slot[c]] + filled // 64] |= np.uint64(1) << np.uint64(filled % 64)
            filled += 1 if offsets[row + 1] > offsets[row] else 0
    return code, group, place, bits


@njit
def wanting(
    post_at: Array, post_node: Array, post_group: Array, kind: Array, parent: Array, records: Array
) -> Any:
    """int64[entries], records below each entry's node that no node further down counts the code of: with shared chunks
    that repeat codes of chunks below (`nested`) fewer than the node has."""
    found = records[post_node]
    last = np.full(len(parent), -1, np.int64)
    for code in range(len(post_at) - 1):
        for entry in range(post_at[code], post_at[code + 1]):
            last[post_node[entry]] = entry
        for entry in range(post_at[code], post_at[code + 1]):
            up = parent[post_node[entry]]
            while up >= 0:
                above = last[up]
                if above >= post_at[code] and kind[post_group[above]] == SHARED:
                    found[above] -= records[post_node[entry]]
                    break
                up = parent[up]
    return found


@njit
def entry_supports(chunk: Array, place: Array, kind: Array, words: Array, bits: Array) -> Any:
    """Subrecords behind each entry; 0 for item chunks."""
    out = np.zeros(len(chunk), np.int64)
    for e in range(len(chunk)):
        if kind[chunk[e]] != ITEM:
            for w in range(words[chunk[e]]):
                out[e] += popcount(bits[place[e] + w])
    return out
