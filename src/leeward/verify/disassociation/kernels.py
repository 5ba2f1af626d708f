"""Kernels of the verifier of disassociation: how often what occurs in a chunk does so
(docs/methods/disassociation.md).

Written for the verifier alone; no method uses or shares them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.verify.disassociation.files import ITEM

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
