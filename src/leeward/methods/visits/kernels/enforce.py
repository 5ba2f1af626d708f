"""Kernels of the enforcement step: visit sets held by too few patients lose a code, or climb.

A set's hash is the wrapped sum of its codes' hashes, so that a set without one code is found by a subtraction; every
look-up compares the codes themselves, so hashes affect speed only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.arrays import Int32s, Int64s, UInt64s
from leeward.compiled import njit

FREE, DEAD, EMPTY = -1, -1, -2
"""Free place of a look-up table; `people` of a set whose visits have all become another set; `became` of a set whose
visits have no code left."""


class Sets(NamedTuple):
    """Distinct sets, one entry a set, with room for further ones. `content`, `starts`, `lengths`: the codes of set s,
    ascending, are content[starts[s]:starts[s] + lengths[s]]. `hashes`: of its codes. `people`: patients who hold it
    (DEAD: gone), at most k where it is safe. `became`: the set that a dead one turned into (EMPTY: none)."""

    content: Int32s
    starts: Int64s
    lengths: Int32s
    hashes: UInt64s
    people: Int32s
    became: Int32s


class Lists(NamedTuple):
    """The holders of sets with too few holders, as linked lists: `patient[e]` has the set in `times[e]` visits. `head`:
    the first entry of each set, -1 for none. `after`: the entry that follows."""

    head: Int32s
    after: Int32s
    patient: Int32s
    times: Int32s


class Codes(NamedTuple):
    """The codes of each patient: `times[e]` visits with `codes[e]`, starts[p] <= e < starts[p + 1], codes ascending.
    `frequency`: patients with each code."""

    starts: Int64s
    codes: Int32s
    times: Int32s
    frequency: Int64s


@njit(inline="always")
def _slot(h: Any, mask: Any) -> Any:
    x = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((x ^ (x >> np.uint64(32))) & mask)


@njit
def fill_table(table: Int32s, hashes: UInt64s, first: int, last: int) -> None:
    """Put the sets first … last - 1 into the look-up table (they are known to be distinct)."""
    mask = np.uint64(table.shape[0] - 1)
    for s in range(first, last):
        place = _slot(hashes[s], mask)
        while table[place] != FREE:
            place = (place + 1) & np.int64(mask)
        table[place] = s


@njit(inline="always")
def _entry(codes: Int32s, starts: Int64s, p: int, c: int) -> Any:
    """Index of patient p's count of code c."""
    low, high = starts[p], starts[p + 1]
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < c:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _replace_code(content: Int32s, start: int, length: int, place: int, node: int, out: Int32s) -> int:
    """Write the set with the code at `place` replaced by `node` (removed if -1), ascending; return its length."""
    size = 0
    pending = node >= 0
    for i in range(length):
        c = content[start + i]
        if pending and node <= c:
            out[size] = node
            size += 1
            pending = False
            if c == node:
                continue
        if i == place:
            continue
        out[size] = c
        size += 1
    if pending:
        out[size] = node
        size += 1
    return size


@njit
def _find(table: Int32s, known: Sets, h: Any, wanted: Int32s, size: int) -> int:
    content, starts, lengths, hashes = known.content, known.starts, known.lengths, known.hashes
    mask = np.uint64(table.shape[0] - 1)
    place = _slot(h, mask)
    while True:
        s = table[place]
        if s == FREE:
            return -1
        if hashes[s] == h and lengths[s] == size:
            same = True
            for i in range(size):
                if content[starts[s] + i] != wanted[i]:
                    same = False
                    break
            if same:
                return s
        place = (place + 1) & np.int64(mask)


@njit(inner=True)
def _holder(lists: Lists, t: int, p: int) -> int:
    e = lists.head[t]
    while e >= 0 and lists.patient[e] != p:
        e = lists.after[e]
    return e


@njit
def _count_union(lists: Lists, s: int, t: int) -> int:
    found = 0
    e = lists.head[t]
    while e >= 0:
        found += 1
        e = lists.after[e]
    e = lists.head[s]
    while e >= 0:
        found += _holder(lists, t, lists.patient[e]) < 0
        e = lists.after[e]
    return found


@njit(inner=True)
def _merge_lists(lists: Lists, s: int, t: int) -> None:
    head, after, patient, times = lists
    e = head[s]
    while e >= 0:
        following = after[e]
        other = _holder(lists, t, patient[e])
        if other >= 0:
            times[other] += times[e]
        else:
            after[e] = head[t]
            head[t] = e
        e = following


@njit(inner=True)
def _count_losing(s: int, c: int, lists: Lists, held: Codes) -> int:
    """Number of holders of the set s with its code c in no other visits."""
    loss = 0
    e = lists.head[s]
    while e >= 0:
        loss += held.times[_entry(held.codes, held.starts, lists.patient[e], c)] == lists.times[e]
        e = lists.after[e]
    return loss


@njit(inner=True)
def _exchange(s: int, c: int, node: int, lists: Lists, held: Codes) -> None:
    """All visits with the set s lose the code c, and gain `node` (-1: nothing)."""
    e = lists.head[s]
    while e >= 0:
        p, times = lists.patient[e], lists.times[e]
        place = _entry(held.codes, held.starts, p, c)
        held.times[place] -= times
        held.frequency[c] -= held.times[place] == 0
        if node >= 0:
            place = _entry(held.codes, held.starts, p, node)
            held.frequency[node] += held.times[place] == 0
            held.times[place] += times
        e = lists.after[e]


@njit(inner=True)
def _change(s: int, known: int, size: int, k: int, known_sets: Sets, lists: Lists) -> int:
    """By how many there are more sets with too few patients once s is the set `known` (-1: a new one, or none)."""
    if known < 0:
        return 0 if size > 0 else -1
    return -2 if known_sets.people[known] < k and _count_union(lists, s, known) >= k else -1


@njit(inner=True)
def _choose(
    s: int,
    k: int,
    relative: bool,
    up: Int32s,
    of_code: UInt64s,
    table: Int32s,
    known_sets: Sets,
    lists: Lists,
    held: Codes,
    best_set: Int32s,
) -> tuple[int, int, int, Any]:
    """(place of the code to remove, codes after, number of the set after or -1, its hash) for the set s.

    The code is the one with the fewest violating sets after; then one that leaves no new node behind before one that
    climbs; then the one that the fewest patients lose entirely (`relative`: as a share of its patients); then the
    lowest frequency; then the smallest code. Quotients of whole numbers below 2**26 are equal or differ as floats too.
    The set after is written to `best_set`.
    """
    content, length, start = known_sets.content, known_sets.lengths[s], known_sets.starts[s]
    trial = np.empty(length + 1, np.int32)
    best, best_size, best_known, best_hash = -1, 0, -1, np.uint64(0)
    best_key = (9.0, 0.0, 0.0, 0.0)
    for i in range(length):
        c = content[start + i]
        node = up[c]
        size = _replace_code(content, start, length, i, node, trial)
        climbs = node >= 0 and size == length
        h = known_sets.hashes[s] - of_code[c]
        if climbs:
            h += of_code[node]
        known = _find(table, known_sets, h, trial, size) if size > 0 else -1
        change = _change(s, known, size, k, known_sets, lists)
        if change > best_key[0]:
            continue
        loss, frequency = float(_count_losing(s, c, lists, held)), float(held.frequency[c])
        key = (float(change), 1.0 * climbs, loss / frequency if relative else loss, frequency)
        if key < best_key:
            best, best_size, best_known, best_hash, best_key = i, size, known, h, key
            best_set[:size] = trial[:size]
    return best, best_size, best_known, best_hash


@njit
def enforce_bucket(
    chosen: Int32s,
    k: int,
    relative: bool,
    up: Int32s,
    of_code: UInt64s,
    table: Int32s,
    known: Sets,
    lists: Lists,
    held: Codes,
    sets: int,
    used: int,
) -> tuple[int, int, int]:
    """One step for each set of `chosen` (equally many codes, equally many that climb; in order) that still has too few:
    all visits equal to the set lose a code, or have the node above it in its place. Arrays of sets have room for
    len(chosen) further ones, `content` for their codes. Returns (sets, entries of `content` used, steps)."""
    content, starts, lengths, hashes, people, became = known
    steps = 0
    for s in chosen:
        if people[s] >= k or people[s] == DEAD:
            continue
        steps += 1
        after = np.empty(lengths[s] + 1, np.int32)
        place, size, t, h = _choose(s, k, relative, up, of_code, table, known, lists, held, after)
        c = content[starts[s] + place]
        _exchange(s, c, up[c] if size == lengths[s] else -1, lists, held)
        if size == 0:
            t = EMPTY
        elif t < 0:
            t = sets
            starts[t], lengths[t], hashes[t] = used, size, h
            content[used : used + size] = after[:size]
            used += size
            people[t], lists.head[t], became[t] = people[s], lists.head[s], t
            sets += 1
            fill_table(table, hashes, t, t + 1)
        elif people[t] < k:
            together = _count_union(lists, s, t)
            if together < k:
                _merge_lists(lists, s, t)
            people[t] = together
        became[s] = t
        people[s] = DEAD
    return sets, used, steps
