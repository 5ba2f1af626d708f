"""Kernels of `itemsets`: bitmaps of rows as words of 64 bits, patients as stretches of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.kernels import grown, popcount
from leeward.compiled import njit

Array = NDArray[Any]


@njit
def set_bits(words: Array, members: Array) -> None:
    """Set the bit of each member in uint64[ceil(rows / 64)]."""
    for i in range(len(members)):
        m = np.int64(members[i])
        words[m >> 6] |= np.uint64(1) << np.uint64(m & 63)


@njit
def rows_in_both(a: Array, b: Array) -> Any:
    """Number of rows in both bitmaps."""
    total = np.int64(0)
    for w in range(len(a)):
        total += popcount(a[w] & b[w])
    return total


@njit
def patients_in_both(a: Array, b: Array, last: Array) -> Any:
    """Number of patients with a row in both bitmaps; `last` has the bit of each patient's last row.

    Adding ones to all rows of a patient but the last one carries into the last one exactly when any of them is set:
    one addition looks at 64 rows of however many patients, and the carry goes on into the next word.
    """
    total = np.int64(0)
    carry = np.uint64(0)
    for w in range(len(a)):
        x = a[w] & b[w]
        end = last[w]
        rest = ~end
        low = x & rest
        first = low + rest
        more = np.uint64(1) if first < low else np.uint64(0)
        second = first + carry
        if second < first:
            more = np.uint64(1)
        carry = more
        total += popcount((second | x) & end)
    return total


@njit
def eclat(
    bits: Array,
    supports: Array,
    group: Array,
    last: Array,
    roots: int,
    least: int,
    size: int,
    limit: int,
    by_patient: bool,
) -> Any:
    """Depth-first walk (Eclat; Zaki 2000): (offsets, items, supports), one more than `limit` at most.

    Items are ascending, the first `roots` of them terms; an itemset begins with a term, so that none is without one.
    Items of one `group` (values of a quasi-identifier; −1 for terms) never meet. A set is tried with an item only
    where the set without its own last item was frequent with it.
    """
    items, words = bits.shape
    depth_limit = min(size, items)
    out_offsets = np.zeros(1024, np.int64)
    out_items = np.empty(4096, np.int32)
    out_supports = np.empty(1024, np.int64)
    found = 0
    used = 0
    partial = np.empty((depth_limit, words), np.uint64)
    allowed = np.empty(
        (depth_limit + 1, items), np.int32
    )  # items to try at each depth, with their support there
    support = np.empty((depth_limit + 1, items), np.int64)
    lengths = np.zeros(depth_limit + 1, np.int64)
    place = np.zeros(depth_limit + 1, np.int64)
    chosen = np.zeros(depth_limit + 1, np.int32)
    for i in range(items):
        allowed[0, i] = i
        support[0, i] = supports[i]
    lengths[0] = items
    depth = 0
    while depth >= 0 and found <= limit:
        at = place[depth]
        if at >= lengths[depth] or (depth == 0 and allowed[0, at] >= roots):
            depth -= 1
            if depth >= 0:
                place[depth] += 1
            continue
        item = allowed[depth, at]
        chosen[depth] = item
        out_offsets = grown(out_offsets, found + 2)
        out_supports = grown(out_supports, found + 1)
        out_items = grown(out_items, used + depth + 1)
        for d in range(depth + 1):
            out_items[used] = chosen[d]
            used += 1
        out_supports[found] = support[depth, at]
        found += 1
        out_offsets[found] = used
        if depth + 1 == depth_limit:
            place[depth] += 1
            continue
        if depth == 0:
            partial[0] = bits[item]
        else:
            for w in range(words):
                partial[depth, w] = partial[depth - 1, w] & bits[item, w]
        count = 0
        for j in range(at + 1, lengths[depth]):
            other = allowed[depth, j]
            if group[other] >= 0 and group[other] == group[item]:
                continue
            if by_patient:
                together = patients_in_both(partial[depth], bits[other], last)
            else:
                together = rows_in_both(partial[depth], bits[other])
            if together >= least:
                allowed[depth + 1, count] = other
                support[depth + 1, count] = together
                count += 1
        lengths[depth + 1] = count
        place[depth + 1] = 0
        depth += 1
    return out_offsets[: found + 1].copy(), out_items[:used].copy(), out_supports[:found].copy()
