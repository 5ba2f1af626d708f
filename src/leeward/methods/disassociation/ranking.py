"""The order in which Refine looks at clusters: by the ranks of their virtual item chunks' codes
(docs/methods/disassociation.md#refining)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from leeward.compiled import njit

RANK_BITS = 21
"""Three ranks fill a word; at most 2^21 - 1 distinct codes."""


@njit
def pack_first_ranks(
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
    lo: int,
    hi: int,
    key: NDArray[np.uint64],
) -> None:
    """Bring each cluster's virtual item chunk into rank order and pack its first three ranks.

    Ranks hardly move from pass to pass, so insertion sort finds nearly everything in place.
    """
    one = uint64(1)
    for c in range(lo, hi):
        # Indices are unsigned, so that none is looked at for being below 0.
        begin, end = uint64(virtual_at[c, 0]), uint64(virtual_at[c, 1])
        highest = np.int32(-1)
        for i in range(begin, end):
            code = virtual_code[i]
            r = rank[uint64(code)]
            if r > highest:
                highest = r
                continue
            j = i
            while j > begin and rank[uint64(virtual_code[j - one])] > r:
                virtual_code[j] = virtual_code[j - one]
                j -= one
            virtual_code[j] = code
        packed = uint64(0)  # 0: the sequence has ended, which sorts first
        for q in range(3):
            packed <<= uint64(RANK_BITS)
            at = begin + uint64(q)
            if at < end:
                packed |= uint64(rank[uint64(virtual_code[at])] + 1)
        key[c] = packed


@njit(inner=True)
def _comes_before(
    a: int, b: int, virtual_at: NDArray[np.int64], virtual_code: NDArray[np.int32], rank: NDArray[np.int32]
) -> bool:
    """Whether the ranks of a from the fourth on are lexicographically smaller than those of b."""
    one = uint64(1)
    i, j = uint64(virtual_at[a, 0] + 3), uint64(virtual_at[b, 0] + 3)
    end_a, end_b = uint64(virtual_at[a, 1]), uint64(virtual_at[b, 1])
    while i < end_a and j < end_b:
        c, d = virtual_code[i], virtual_code[j]
        if c != d:
            return rank[c] < rank[d]
        i += one
        j += one
    return i >= end_a and j < end_b


@njit
def break_ties(
    order: NDArray[np.int64],
    key: NDArray[np.uint64],
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
    first: int,
    last: int,
) -> None:
    """Sort the runs of equal keys that begin in `order[first:last]` by their further ranks, stably.

    A natural merge sort: linear when nearly sorted, as it is from the second pass on.
    """
    n = len(order)
    spare = np.empty(n, np.int64)
    cuts = np.empty(n + 1, np.int64)
    begin = first
    while 0 < begin < last and key[order[begin]] == key[order[begin - 1]]:
        begin += 1
    while begin < last:
        end = begin + 1
        k = key[order[begin]]
        while end < n and key[order[end]] == k:
            end += 1
        if end - begin > 1 and k & uint64((1 << RANK_BITS) - 1) != uint64(0):
            runs = 0
            cuts[0] = begin
            for i in range(begin + 1, end):
                if _comes_before(order[i], order[i - 1], virtual_at, virtual_code, rank):
                    runs += 1
                    cuts[runs] = i
            runs += 1
            cuts[runs] = end
            while runs > 1:
                merged = 0
                for r in range(0, runs, 2):
                    lo, mid = cuts[r], cuts[r + 1]
                    hi = cuts[r + 2] if r + 1 < runs else mid
                    i, j = lo, mid
                    for x in range(lo, hi):
                        if j >= hi or (
                            i < mid and not _comes_before(order[j], order[i], virtual_at, virtual_code, rank)
                        ):
                            spare[x] = order[i]
                            i += 1
                        else:
                            spare[x] = order[j]
                            j += 1
                    for x in range(lo, hi):
                        order[x] = spare[x]
                    cuts[merged] = lo
                    merged += 1
                cuts[merged] = end
                runs = merged
        begin = end


def sort_by_ranks(
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
    blocks: Callable[[int, Callable[[int, int], object]], list[object]],
) -> NDArray[np.int64]:
    """Positions of the clusters, stably sorted by the rank sequence of their virtual item chunks.

    `virtual_at[c]` bounds cluster c's codes in `virtual_code`, which are brought into rank order.
    """
    key = np.empty(len(virtual_at), np.uint64)
    blocks(len(key), lambda lo, hi: pack_first_ranks(virtual_at, virtual_code, rank, lo, hi, key))
    order = np.argsort(key, kind="stable")
    blocks(len(key), lambda lo, hi: break_ties(order, key, virtual_at, virtual_code, rank, lo, hi))
    return order


@njit
def pack_least_ranks(
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
    lo: int,
    hi: int,
    key: NDArray[np.uint64],
) -> None:
    """Pack the three smallest ranks of each cluster's virtual item chunk, which stays in the order that it has."""
    none = np.int32((1 << RANK_BITS) - 1)
    for c in range(lo, hi):
        first, second, third = none, none, none
        for i in range(virtual_at[c, 0], virtual_at[c, 1]):
            r = rank[virtual_code[i]]
            if r < first:
                first, second, third = r, first, second
            elif r < second:
                second, third = r, second
            elif r < third:
                third = r
        key[c] = (
            (uint64(first) << uint64(2 * RANK_BITS)) | (uint64(second) << uint64(RANK_BITS)) | uint64(third)
        )


def sort_by_sketch(
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
    blocks: Callable[[int, Callable[[int, int], object]], list[object]],
) -> NDArray[np.int64]:
    """Positions of the clusters, stably sorted by the three smallest ranks of their virtual item chunks.

    With ranks that are a permutation of the codes, clusters whose chunks are alike come to be neighbours (MinHash).
    """
    key = np.empty(len(virtual_at), np.uint64)
    blocks(len(key), lambda lo, hi: pack_least_ranks(virtual_at, virtual_code, rank, lo, hi, key))
    return np.argsort(key, kind="stable")
