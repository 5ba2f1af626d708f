"""Kernels that count the patients whose codes contain a set: through its rarest code, one by one or in bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.analysis.kernels import popcount
from leeward.arrays import Int32s, Int64s, UInt64s
from leeward.compiled import njit

WORDS = 256
"""Words of bits that are joined at a time."""


class Holders(NamedTuple):
    """The patients of each code, and the codes of each patient.

    postings, holders : the patients with code c, ascending, are holders[postings[c]:postings[c + 1]].
    offsets, values : the codes of patient p, ascending, are values[offsets[p]:offsets[p + 1]].
    row_of, bits : bits[row_of[c]] has a bit for each patient with c; row_of is -1 for codes that few have.
    """

    postings: Int64s
    holders: Int32s
    offsets: Int64s
    values: Int32s
    row_of: Int32s
    bits: UInt64s


@njit
def _holds(values: Int32s, low: int, high: int, code: int) -> bool:
    """Whether `code` is among the ascending values[low:high]."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low < end and values[low] == code


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


@njit(inner=True)
def _holding_all(
    those: Int32s,
    begin: int,
    end: int,
    content: Int32s,
    start: int,
    length: int,
    skipped: int,
    one: int,
    two: int,
    held: Holders,
    needed: int,
    limit: int,
) -> int:
    """Number of the patients those[begin:end], all with the codes `one` and `two`, who have a set's other codes too;
    counting stops as in `_containing`."""
    _, _, offsets, values, row_of, bits = held
    found = 0
    for place in range(begin, end):
        p = those[place]
        every = True
        for i in range(length):
            c = content[start + i]
            if i == skipped or c in (one, two):
                continue
            if row_of[c] >= 0:
                every = (bits[row_of[c], p >> 6] >> np.uint64(p & 63)) & np.uint64(1) != 0
            else:
                every = _holds(values, offsets[p], offsets[p + 1], c)
            if not every:
                break
        if every:
            found += 1
            if found >= limit:
                break
        elif found + end - place - 1 < needed:
            break
    return found


@njit(inner=True)
def _containing(
    content: Int32s,
    start: int,
    length: int,
    skipped: int,
    held: Holders,
    needed: int,
    limit: int,
) -> int:
    """Number of patients with all codes of a set but the one at `skipped` (-1: all), counted up to `limit`.

    If there are fewer than `needed`, any number below it may be returned.
    """
    postings, holders, offsets, _, row_of, bits = held
    rarest = -1
    left = length - (skipped >= 0)
    for i in range(length):
        if i == skipped:
            continue
        c = content[start + i]
        if rarest < 0 or postings[c + 1] - postings[c] < postings[rarest + 1] - postings[rarest]:
            rarest = c
    if rarest < 0:
        return min(limit, offsets.shape[0] - 1)
    most = postings[rarest + 1] - postings[rarest]
    if left == 1 or most < needed:
        return min(limit, most)
    if row_of[rarest] >= 0 and limit >= most:
        return _common(content, start, length, skipped, row_of, bits)
    return _holding_all(
        holders, postings[rarest], postings[rarest + 1], content, start, length, skipped, rarest, rarest,
        held, needed, limit,
    )  # fmt: skip


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
def _containing_beside(
    content: Int32s,
    start: int,
    length: int,
    skipped: int,
    rarest: int,
    beside: Int32s,
    counts: Int64s,
    first: Int64s,
    held: Holders,
    needed: int,
    limit: int,
) -> int:
    """As `_containing`, through the two rarest codes: `beside`, `counts` and `first` are those of `_beside`."""
    second = -1
    for i in range(length):
        c = content[start + i]
        if i != skipped and c != rarest and (second < 0 or counts[c] < counts[second]):
            second = c
    if second < 0:
        return min(limit, counts[rarest])
    most = counts[second]
    if length - (skipped >= 0) == 2 or most < needed:
        return min(limit, most)
    return _holding_all(
        beside, first[second], first[second] + most, content, start, length, skipped, rarest, second,
        held, needed, limit,
    )  # fmt: skip


@njit
def count_containing(
    order: Int64s,
    rarest: Int64s,
    content: Int32s,
    starts: Int64s,
    lengths: Int64s,
    skipped: Int64s,
    held: Holders,
    needed: int,
    limit: int,
    found: Int64s,
) -> None:
    """Number of patients with all codes of each set but the one at `skipped`: exact from `needed` on,
    capped at `limit`.

    order : of the sets; those with the same rarest code (-1: none is left) are consecutive.
    """
    counts, first = (
        np.empty(held.postings.shape[0] - 1, np.int64),
        np.empty(held.postings.shape[0] - 1, np.int64),
    )
    beside = np.empty(0, np.int32)
    last = 0
    for at in range(order.shape[0]):
        s = order[at]
        code = rarest[s]
        if at == last:
            while last < order.shape[0] and rarest[order[last]] == code:
                last += 1
            if code >= 0:
                beside = _beside(code, last - at, held, counts, first)
        if code >= 0 and beside.shape[0]:
            found[s] = _containing_beside(
                content, starts[s], lengths[s], skipped[s], code, beside, counts, first, held, needed, limit
            )
        else:
            found[s] = _containing(content, starts[s], lengths[s], skipped[s], held, needed, limit)


@njit
def choose(
    order: Int64s,
    rarest: Int64s,
    content: Int32s,
    starts: Int64s,
    lengths: Int64s,
    likely: Int64s,
    held: Holders,
    most: Int64s,
    found: Int64s,
) -> None:
    """The place of the code of each set that leaves the part with most holders (ties: the smallest part).

    Among equal counts the smallest part is the one without the largest code: parts of one set differ first where the
    earlier deleted code stood, and there the one that keeps the smaller code wins. The part without the rarest code
    (its place is `likely`, and `most` patients hold the part) mostly wins; counting of the others stops as soon as they
    cannot win. order : as for `count_containing`.
    """
    unlimited = np.int64(1) << 60
    counts, first = (
        np.empty(held.postings.shape[0] - 1, np.int64),
        np.empty(held.postings.shape[0] - 1, np.int64),
    )
    beside = np.empty(0, np.int32)
    last = 0
    for at in range(order.shape[0]):
        s = order[at]
        if at == last:
            while last < order.shape[0] and rarest[order[last]] == rarest[s]:
                last += 1
            beside = _beside(rarest[s], last - at, held, counts, first)
        start, length = starts[s], lengths[s]
        best, largest = likely[s], most[s]
        for i in range(length - 1, -1, -1):
            if i == likely[s]:
                continue
            needed = largest if i > best else largest + 1
            if beside.shape[0]:
                others = _containing_beside(
                    content, start, length, i, rarest[s], beside, counts, first, held, needed, unlimited
                )
            else:
                others = _containing(content, start, length, i, held, needed, unlimited)
            if others >= needed:
                best, largest = i, others
        found[s] = best
