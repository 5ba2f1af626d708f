"""Kernels that count the patients whose codes contain a set: through its rarest codes, one by one or in bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.analysis.kernels import popcount
from leeward.arrays import Int32s, Int64s, UInt64s
from leeward.compiled import njit

WORDS = 256
"""Words of bits that are joined at a time."""


class Holders(NamedTuple):
    """The patients with code c are holders[postings[c]:postings[c + 1]], the codes of patient p
    values[offsets[p]:offsets[p + 1]], both ascending. bits[row_of[c]] has a bit for each patient with c; row_of is -1
    for codes that few have."""

    postings: Int64s
    holders: Int32s
    offsets: Int64s
    values: Int32s
    row_of: Int32s
    bits: UInt64s


class Lists(NamedTuple):
    """The patients with each code c among `people`, the holders of `code` or everybody (-1): patients[first[c]:first[c]
    + counts[c]]."""

    code: Any
    people: Any
    patients: Int32s
    counts: Int64s
    first: Int64s


@njit
def _holds(values: Int32s, low: int, high: int, code: int) -> bool:
    place = low + np.searchsorted(values[low:high], code)
    return bool(place < high and values[place] == code)


@njit
def _common(content: Int32s, start: int, length: int, skipped: int, row_of: Int32s, bits: UInt64s) -> int:
    """Number of patients with all codes of a set but the one at `skipped`; all these codes have rows of bits."""
    total = 0
    both = np.empty(WORDS, np.uint64)
    for first in range(0, bits.shape[1], WORDS):
        last = min(bits.shape[1], first + WORDS)
        both[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for i in range(length):
            if i != skipped:
                row = bits[row_of[content[start + i]]]
                for w in range(first, last):
                    both[w - first] &= row[w]
        for w in range(last - first):
            total += popcount(both[w])
    return total


@njit
def _beside(code: int, sets: int, held: Holders, counts: Int64s, first: Int64s) -> Int32s:
    """Holders of a code by other code: counts[c] patients from first[c] on. Empty where so few sets have this code as
    their rarest that going through its holders for each of them is cheaper."""
    postings, holders, offsets, values, _, _ = held
    entries = 0
    for place in range(postings[code], postings[code + 1]):
        entries += offsets[holders[place] + 1] - offsets[holders[place]]
    if entries > sets * (postings[code + 1] - postings[code]):
        return np.empty(0, np.int32)
    counts[:] = 0
    for place in range(postings[code], postings[code + 1]):
        for i in range(offsets[holders[place]], offsets[holders[place] + 1]):
            counts[values[i]] += 1
    total = 0
    for c in range(counts.shape[0]):
        first[c] = total
        total += counts[c]
    found = np.empty(entries, np.int32)
    for place in range(postings[code], postings[code + 1]):
        for i in range(offsets[holders[place]], offsets[holders[place] + 1]):
            found[first[values[i]]] = holders[place]
            first[values[i]] += 1
    first -= counts
    return found


@njit(inner=True)
def _has_others(
    p: int, content: Int32s, start: int, length: int, skipped: int, one: int, two: int, held: Holders
) -> bool:
    """Whether a patient with the codes `one` and `two` has a set's other codes too."""
    _, _, offsets, values, row_of, bits = held
    for i in range(length):
        c = content[start + i]
        if i == skipped or c in (one, two):
            continue
        if row_of[c] >= 0:
            every = (bits[row_of[c], p >> 6] >> np.uint64(p & 63)) & np.uint64(1) != 0
        else:
            every = _holds(values, offsets[p], offsets[p + 1], c)
        if not every:
            return False
    return True


@njit(inner=True)
def _rarest(content: Int32s, start: int, length: int, skipped: int, lists: Lists) -> tuple[int, int]:
    """The rarest code of a set but the one at `skipped` and `lists.code` (-1: no other), and the number of these."""
    rarest, others = -1, 0
    for i in range(length):
        c = int(content[start + i])
        if i != skipped and c != lists.code:
            others += 1
            if rarest < 0 or lists.counts[c] < lists.counts[rarest]:
                rarest = c
    return rarest, others


@njit(inner=True)
def _containing(
    content: Int32s,
    start: int,
    length: int,
    skipped: int,
    lists: Lists,
    held: Holders,
    needed: int,
    limit: int,
) -> int:
    """Number of patients with all codes of a set but the one at `skipped` (-1: all), counted up to `limit`; if there
    are fewer than `needed`, any number below it may be returned."""
    rarest, others = _rarest(content, start, length, skipped, lists)
    if rarest < 0:
        return min(limit, lists.people)
    most, begin = lists.counts[rarest], lists.first[rarest]
    if others == 1 or most < needed:
        return min(limit, most)
    if lists.code < 0 and held.row_of[rarest] >= 0 and limit >= most:
        return _common(content, start, length, skipped, held.row_of, held.bits)
    found = 0
    for place in range(most):
        p = lists.patients[begin + place]
        found += _has_others(p, content, start, length, skipped, lists.code, rarest, held)
        if found >= limit or found + most - place - 1 < needed:
            break
    return found


@njit
def count_containing(
    order: Int64s,
    rarest: Int64s,
    content: Int32s,
    starts: Int64s,
    lengths: Int64s,
    skipped: Int64s,
    held: Holders,
    needed: Int64s,
    limit: int,
    found: Int64s,
) -> None:
    """Number of patients with all codes of each set but the one at `skipped`: exact from `needed` on, capped at
    `limit`. `order`: of the sets; those with the same rarest code (-1: none is left) are consecutive."""
    counts, first = np.empty(held.row_of.shape[0], np.int64), np.empty(held.row_of.shape[0], np.int64)
    nobody = np.empty(0, np.int32)
    everybody = Lists(
        np.int64(-1), held.offsets.shape[0] - 1, held.holders, np.diff(held.postings), held.postings[:-1]
    )
    lists = everybody
    last = 0
    for at in range(order.shape[0]):
        s = order[at]
        code = rarest[s]
        if at == last:
            while last < order.shape[0] and rarest[order[last]] == code:
                last += 1
            beside = nobody if code < 0 else _beside(code, last - at, held, counts, first)
            lists = Lists(code, counts[code], beside, counts, first) if beside.shape[0] else everybody
        found[s] = _containing(content, starts[s], lengths[s], skipped[s], lists, held, needed[s], limit)
