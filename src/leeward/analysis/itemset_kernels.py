"""Kernels of `cohort.itemsets`."""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.analysis.bits import popcount
from leeward.arrays import AnyArray
from leeward.compiled import njit


@njit
def pair_supports(offsets: AnyArray, values: AnyArray, codes: int) -> Any:
    """Support of each pair, upper triangle of int32[codes, codes], singles on the diagonal."""
    table = np.zeros((codes, codes), np.int32)
    for r in range(len(offsets) - 1):
        for i in range(offsets[r], offsets[r + 1]):
            for j in range(i, offsets[r + 1]):
                table[values[i], values[j]] += 1
    return table


@njit(inner=True)
def _and_count(a: AnyArray, b: AnyArray, out: AnyArray) -> Any:
    """out = a & b; returns the number of bits set."""
    total = np.int64(0)
    for w in range(len(a)):
        x = a[w] & b[w]
        out[w] = x
        total += popcount(x)
    return total


@njit
def grown(array: AnyArray, needed: int) -> Any:
    """The array, or a longer one that begins with it."""
    if needed <= len(array):
        return array
    larger = np.empty(max(2 * len(array), needed), array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def eclat(bits: AnyArray, supports: AnyArray, pair: AnyArray, least: int, size: int, limit: int) -> Any:
    """Depth-first walk over the frequent codes; (offsets, ranks, supports), one more than `limit` at most.

    `pair` prunes: a set is tried only when its new code is frequent with every code before it."""
    codes, words = bits.shape
    out_offsets = np.zeros(1024, np.int64)
    out_items = np.empty(4096, np.int32)
    out_supports = np.empty(1024, np.int64)
    found = 0
    used = 0
    depth_limit = min(size, codes)
    partial = np.empty((depth_limit, words), np.uint64)
    chosen = np.zeros(depth_limit + 1, np.int32)
    depth = 0
    while depth >= 0 and found <= limit:
        c = chosen[depth]
        if c >= codes:
            depth -= 1
            if depth >= 0:
                chosen[depth] += 1
            continue
        promising = True
        for d in range(depth):
            if pair[chosen[d], c] < least:
                promising = False
                break
        count = np.int64(0)
        if promising:
            if depth == 0:
                count = supports[c]
                partial[0] = bits[c]
            elif depth == 1 and depth_limit == 2:
                count = np.int64(pair[chosen[0], c])
            else:
                count = _and_count(partial[depth - 1], bits[c], partial[depth])
        if count < least:
            chosen[depth] += 1
            continue
        out_offsets = grown(out_offsets, found + 2)
        out_supports = grown(out_supports, found + 1)
        out_items = grown(out_items, used + depth + 1)
        for d in range(depth + 1):
            out_items[used] = chosen[d]
            used += 1
        out_supports[found] = count
        found += 1
        out_offsets[found] = used
        if depth + 1 < depth_limit:
            chosen[depth + 1] = c + 1
            depth += 1
        else:
            chosen[depth] += 1
    return out_offsets[: found + 1].copy(), out_items[:used].copy(), out_supports[:found].copy()


@njit
def supports(starts: AnyArray, records: AnyArray, offsets: AnyArray, items: AnyArray, n: int) -> Any:
    """Support of each itemset: the rarest code's records, thinned by each other code's, merged or by
    bisection."""
    out = np.empty(len(offsets) - 1, np.int64)
    held = np.empty(0, np.int32)
    for q in range(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        if first == last:
            out[q] = n
            continue
        order = items[first:last].copy()
        for i in range(1, len(order)):  # by rising support
            j = i
            while (
                j > 0
                and starts[order[j] + 1] - starts[order[j]] < starts[order[j - 1] + 1] - starts[order[j - 1]]
            ):
                order[j], order[j - 1] = order[j - 1], order[j]
                j -= 1
        count = starts[order[0] + 1] - starts[order[0]]
        if len(held) < count:
            held = np.empty(2 * count, np.int32)
        held[:count] = records[starts[order[0]] : starts[order[0] + 1]]
        for i in range(1, len(order)):
            low, high = starts[order[i]], starts[order[i] + 1]
            kept = 0
            if count * 16 < high - low:
                for h in range(count):
                    low += np.searchsorted(records[low:high], held[h])
                    if low == high:
                        break
                    if records[low] == held[h]:
                        held[kept] = held[h]
                        kept += 1
            else:
                at = np.int64(0)
                while at < count and low < high:
                    a, b = held[at], records[low]
                    if a == b:
                        held[kept] = a
                        kept += 1
                    at += 1 if a <= b else 0
                    low += 1 if b <= a else 0
            count = kept
        out[q] = count
    return out
