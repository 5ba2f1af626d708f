"""Kernels: inverted lists and bit words by (code, at least c), their intersection, projection, and the search.

An *item* is a pair (code, level c ≥ 1); a person is on its list with at least c mentions of the code. A multiset is
contained by the people on the lists of all its top items.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.analysis.kernels import by_support, first_not_below, popcount
from leeward.arrays import Int16s, Int32s, Int64s, UInt16s, UInt32s, UInt64s
from leeward.compiled import njit

WORDS_AT_ONCE = 512
"""Bit words intersected before they are counted: 4 kB, so that they stay in the first cache."""


@njit
def item_supports(values: Int32s, counts: Int32s, caps: Int64s, starts: Int64s) -> Int64s:
    """People on each item's list, int64[items]."""
    supports = np.zeros(starts[-1], np.int64)
    for entry in range(len(values)):
        code = values[entry]
        for level in range(min(counts[entry], caps[code])):
            supports[starts[code] + level] += 1
    return supports


@njit
def item_lists(
    offsets: Int64s, values: Int32s, counts: Int32s, caps: Int64s, starts: Int64s, list_offsets: Int64s
) -> UInt32s:
    """The people on each item's list, ascending: uint32[sum of supports]."""
    lists = np.empty(list_offsets[-1], np.uint32)
    filled = list_offsets[:-1].copy()
    for person in range(len(offsets) - 1):
        for entry in range(offsets[person], offsets[person + 1]):
            code = values[entry]
            for level in range(min(counts[entry], caps[code])):
                item = starts[code] + level
                lists[filled[item]] = person
                filled[item] += 1
    return lists


@njit(inner=True)
def _dense_intersection(rows: Int64s, words: UInt64s, limit: int) -> Any:
    """People in all of the bit rows; stops once `limit` are found."""
    kept = np.empty(WORDS_AT_ONCE, np.uint64)
    total = np.int64(0)
    width = words.shape[1]
    for start in range(0, width, WORDS_AT_ONCE):
        length = min(WORDS_AT_ONCE, width - start)
        first = words[rows[0], start : start + length]
        for place in range(length):
            kept[place] = first[place]
        for other in range(1, len(rows)):
            row = words[rows[other], start : start + length]
            for place in range(length):
                kept[place] &= row[place]
        found = np.uint64(0)
        for place in range(length):
            found += popcount(kept[place])
        total += np.int64(found)
        if total >= limit:
            break
    return total


@njit(inner=True)
def _sparse_intersection(
    items: Int64s, list_offsets: Int64s, lists: UInt32s, dense: Int64s, words: UInt64s, limit: int
) -> Any:
    """People on all the lists, the first of which is short; stops once `limit` are found."""
    place = np.empty(len(items), np.int64)
    for j in range(len(items)):
        place[j] = list_offsets[items[j]]
    total = np.int64(0)
    for at in range(list_offsets[items[0]], list_offsets[items[0] + 1]):
        person = lists[at]
        held = True
        for j in range(1, len(items)):
            row = dense[items[j]]
            if row >= 0:
                bit = words[row, person >> np.uint32(6)] >> np.uint64(person & np.uint32(63))
                held = (bit & np.uint64(1)) != 0
            else:
                end = list_offsets[items[j] + 1]
                place[j] = first_not_below(lists, place[j], end, person)
                held = place[j] < end and lists[place[j]] == person
            if not held:
                break
        if held:
            total += 1
            if total >= limit:
                break
    return total


@njit
def intersections(
    asked: Int64s,
    first: int,
    last: int,
    top_items: Int64s,
    list_offsets: Int64s,
    lists: UInt32s,
    dense: Int64s,
    words: UInt64s,
    n: int,
    limit: int,
    out: Int64s,
) -> None:
    """Distinguishability of the multisets first…last-1 into `out`; `asked` are the offsets of their `top_items`."""
    for q in range(first, last):
        length = asked[q + 1] - asked[q]
        if length == 0:
            out[q] = n
            continue
        # The shortest list leads; the likeliest miss comes first.
        items = by_support(top_items[asked[q] : asked[q + 1]], list_offsets)
        if dense[items[0]] >= 0:
            out[q] = _dense_intersection(dense[items], words, limit)
        else:
            out[q] = _sparse_intersection(items, list_offsets, lists, dense, words, limit)


@njit
def project(
    codes: Int32s,
    levels: Int32s,
    floor: int,
    offsets: Int64s,
    values: Int32s,
    counts: Int32s,
    starts: Int64s,
    list_offsets: Int64s,
    lists: UInt32s,
    shared: Any,
    slot: Int16s,
    found: UInt32s,
) -> UInt16s:
    """The overlaps with one record of at least `floor` mentions: uint16[people, codes]. `shared` (uint16[n], zero),
    `slot` (int16[codes], -1) and `found` (uint32[n]) are scratch and left as they came."""
    for j in range(len(codes)):
        slot[codes[j]] = j
        for place in range(list_offsets[starts[codes[j]]], list_offsets[starts[codes[j]] + levels[j]]):
            shared[lists[place]] += np.uint16(1)
    total = 0
    for j in range(len(codes)):
        for place in range(list_offsets[starts[codes[j]]], list_offsets[starts[codes[j]] + 1]):
            person = lists[place]
            if shared[person] >= floor:
                found[total] = person
                total += 1
            shared[person] = 0
    rows = np.zeros((total, len(codes)), np.uint16)
    for r in range(total):
        for entry in range(offsets[found[r]], offsets[found[r] + 1]):
            j = slot[values[entry]]
            if j >= 0:
                rows[r, j] = min(counts[entry], levels[j])
    for j in range(len(codes)):
        slot[codes[j]] = -1
    return rows


@njit(inner=True)
def _reachable(rows: UInt16s, weights: Int64s, active: Int64s, length: int, column: int, k: int) -> int:
    """The highest level of a column that people of weight ≥ k among the active rows reach."""
    highest = 0
    for a in range(length):
        highest = max(highest, rows[active[a], column])
    while highest > 0:
        weight = 0
        for a in range(length):
            if rows[active[a], column] >= highest:
                weight += weights[active[a]]
        if weight >= k:
            break
        highest -= 1
    return highest


@njit(inner=True)
def _peel(
    rows: UInt16s, weights: Int64s, active: Int64s, length: int, first: int, k: int, needed: int, top: Int64s
) -> int:
    """Lower each column's top to what k people reach, drop rows that then share fewer than `needed`; repeat.

    Works on columns `first`…; returns how many active rows stay, 0 if they weigh less than k or the tops sum to
    less than `needed`: then no part of `needed` mentions has k holders.
    """
    columns = rows.shape[1]
    while True:
        total = 0
        for j in range(first, columns):
            top[j] = _reachable(rows, weights, active, length, j, k)
            total += top[j]
        if total < needed:
            return 0
        kept = 0
        weight = 0
        for a in range(length):
            row = active[a]
            shared = 0
            for j in range(first, columns):
                shared += min(rows[row, j], top[j])
            if shared >= needed:
                active[kept] = row
                kept += 1
                weight += weights[row]
        if weight < k:
            return 0
        if kept == length:
            return kept
        length = kept


@njit
def find_largest_part(
    rows: UInt16s, weights: Int64s, k: int, floor: int, budget: int
) -> tuple[UInt16s, bool, bool]:
    """The largest part shared by people of weight ≥ k: branch and bound over the overlaps with one record.

    Columns are the record's codes in lexicographic order and levels are tried from the top, so parts come in falling
    lexicographic order and of equally large ones the first found is the one with more of the first code, then the
    next (docs/methods/censoring.md#record-scope). `floor`: a part of this size is known to be shared. `budget`:
    cells that may be looked at.

    Returns (levels uint16[m], found, exact): `found` False when no part of `floor` mentions was reached in budget.
    """
    n, m = rows.shape
    best = floor - 1
    answer = np.zeros(m, np.uint16)
    found = False
    active = np.empty((m + 1, n), np.int64)
    length = np.zeros(m + 1, np.int64)
    chosen = np.zeros(m + 1, np.int64)
    top = np.zeros((m + 1, m), np.int64)
    size = np.zeros(m + 1, np.int64)
    active[0] = np.arange(n)
    length[0] = _peel(rows, weights, active[0], n, 0, k, best + 1, top[0])
    if length[0] == 0:
        return answer, found, True
    touched = np.int64(n) * m
    depth = 0
    chosen[0] = top[0, 0]
    while depth >= 0:
        if chosen[depth] < 0:
            depth -= 1
            if depth >= 0:
                chosen[depth] -= 1
            continue
        taken = size[depth] + chosen[depth]
        kept = 0
        weight = 0
        for a in range(length[depth]):
            row = active[depth, a]
            if rows[row, depth] >= chosen[depth]:
                active[depth + 1, kept] = row
                kept += 1
                weight += weights[row]
        touched += length[depth] + kept * (m - depth)
        if weight >= k and depth + 1 == m:
            if taken > best:
                best = taken
                found = True
                answer[:] = chosen[:m]
            chosen[depth] = -1  # lower levels of the last code are smaller
            continue
        if weight >= k:
            kept = _peel(
                rows, weights, active[depth + 1], kept, depth + 1, k, best + 1 - taken, top[depth + 1]
            )
            if kept > 0:
                depth += 1
                length[depth] = kept
                size[depth] = taken
                chosen[depth] = top[depth, depth]
                if touched > budget:
                    return answer, found, False
                continue
        if touched > budget:
            return answer, found, False
        chosen[depth] -= 1
    return answer, found, True


@njit
def chain_states(
    offsets: Int64s, values: Int32s, counts: Int32s, sizes: Int64s, order: Int64s, room: int
) -> tuple[Int64s, Int32s, Int32s]:
    """The states of `chains.states` as (offsets, values, counts); `room` bounds their entries."""
    state_offsets = np.zeros(len(sizes) + sizes.sum() + 1, np.int64)
    state_values = np.empty(room, np.int32)
    state_counts = np.empty(room, np.int32)
    left = counts.copy()
    state = 0
    filled = 0
    mention = 0
    for r in range(len(sizes)):
        for drop in range(sizes[r] + 1):
            if drop > 0:
                left[order[mention]] -= 1
                mention += 1
            for entry in range(offsets[r], offsets[r + 1]):
                if left[entry] > 0:
                    state_values[filled] = values[entry]
                    state_counts[filled] = left[entry]
                    filled += 1
            state += 1
            state_offsets[state] = filled
    return state_offsets, state_values[:filled], state_counts[:filled]
