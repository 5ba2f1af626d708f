"""Kernels of level `codes`: the sets of at most m codes of visits, and deleting until enough patients show each."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NEARLY = 7
"""A pair with at most so many patients above k is about to break for others."""


class Knowledge(NamedTuple):
    """The sets that an attacker may know, and who could show them.

    starts, sets, checked : the sets that the codes of patient p could show are sets[starts[p]:starts[p + 1]];
    checked: those of one visit of p. codes : int32[sets, m], ascending, -1 after the last.
    """

    starts: Longs
    sets: Ints
    checked: Flags
    codes: Ints


@njit
def count_subsets(lengths: Longs, m: int) -> Any:
    """Non-empty sets of at most m codes, over lists of so many codes."""
    total = np.int64(0)
    for length in lengths:
        ways = np.int64(1)
        for size in range(1, min(m, length) + 1):
            ways = ways * (length - size + 1) // size
            total += ways
    return total


@njit(inner=True)
def write_subsets(values: Ints, m: int, base: int, place: Longs, out: Longs, used: int) -> int:
    """Append the key of every set of at most m of the ascending `values`; place : int64[m], scratch.

    A key has the codes, each plus one, as digits to `base`, the smallest first.
    """
    for size in range(1, min(m, values.shape[0]) + 1):
        for i in range(size):
            place[i] = i
        while True:
            key = np.int64(0)
            for i in range(size):
                key = key * base + values[place[i]] + 1
            out[used] = key
            used += 1
            i = size - 1
            while i >= 0 and place[i] == values.shape[0] - size + i:
                i -= 1
            if i < 0:
                break
            place[i] += 1
            for j in range(i + 1, size):
                place[j] = place[j - 1] + 1
    return used


@njit
def subsets_of_visits(
    patient_offsets: Longs, offsets: Longs, values: Ints, m: int, base: int, room: int
) -> tuple[Longs, Longs]:
    """(starts, keys) of the sets of at most m codes that each patient has in one visit, ascending, each once."""
    n = patient_offsets.shape[0] - 1
    starts = np.zeros(n + 1, np.int64)
    keys = np.empty(room, np.int64)
    place = np.empty(m, np.int64)
    total = 0
    for p in range(n):
        end = total
        for v in range(patient_offsets[p], patient_offsets[p + 1]):
            end = write_subsets(values[offsets[v] : offsets[v + 1]], m, base, place, keys, end)
        part = np.sort(keys[total:end])
        for i in range(part.shape[0]):
            if i == 0 or part[i] != part[i - 1]:
                keys[total] = part[i]
                total += 1
        starts[p + 1] = total
    return starts, keys[:total].copy()


@njit
def _find(known: Longs, key: int) -> int:
    low, high = 0, known.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if known[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < known.shape[0] and known[low] == key else -1


@njit
def subsets_of_unions(
    starts: Longs, union_values: Ints, known: Longs, m: int, base: int, widest: int
) -> tuple[Longs, Ints]:
    """(starts, numbers in `known`) of the known sets that each patient's union has, ascending."""
    n = starts.shape[0] - 1
    found_starts = np.zeros(n + 1, np.int64)
    found = np.empty(max(16, known.shape[0]), np.int32)
    keys = np.empty(widest, np.int64)
    place = np.empty(m, np.int64)
    total = 0
    for p in range(n):
        end = write_subsets(union_values[starts[p] : starts[p + 1]], m, base, place, keys, 0)
        if total + end > found.shape[0]:
            grown = np.empty(2 * (total + end), np.int32)
            grown[:total] = found[:total]
            found = grown
        first = total
        for i in range(end):
            number = _find(known, keys[i])
            if number >= 0:
                found[total] = number
                total += 1
        found[first:total] = np.sort(found[first:total])
        found_starts[p + 1] = total
    return found_starts, found[:total].copy()


@njit
def decode(known: Longs, m: int, base: int) -> Ints:
    """The codes of each key, int32[keys, m]."""
    codes = np.full((known.shape[0], m), -1, np.int32)
    for s in range(known.shape[0]):
        size, key = 0, known[s]
        while key > 0:
            size, key = size + 1, key // base
        key = known[s]
        for i in range(size - 1, -1, -1):
            codes[s, i] = key % base - 1
            key //= base
    return codes


@njit
def _whole(codes: Ints, s: int, shown: Flags, but: int) -> bool:
    """Whether all codes of a set are shown, `but` counted as shown."""
    for i in range(codes.shape[1]):
        c = codes[s, i]
        if c < 0:
            break
        if c != but and not shown[c]:
            return False
    return True


@njit
def _has(codes: Ints, s: int, code: int) -> bool:
    found = False
    for i in range(codes.shape[1]):
        found = found or codes[s, i] == code
    return found


@njit
def _size(codes: Ints, s: int) -> int:
    size = 0
    while size < codes.shape[1] and codes[s, size] >= 0:
        size += 1
    return size


@njit(inner=True)
def _worst(
    low: int,
    high: int,
    known: Knowledge,
    support: Ints,
    single: Ints,
    shown: Flags,
    k: int,
    alpha: float,
    room: Any,
) -> int:
    """The code to delete of a patient, -1 where nothing is short.

    Of the sets with too few patients those of fewest codes count: the code with the most of them for its cost, then
    the one that fewest patients show, then the smallest. room : (int32[labels], float64[labels]), zeros; so again.
    """
    short, cost = room
    sets, checked, codes = known.sets, known.checked, known.codes
    fewest = codes.shape[1] + 1
    for e in range(low, high):
        s = sets[e]
        if checked[e] and support[s] < k and _size(codes, s) < fewest and _whole(codes, s, shown, -1):
            fewest = _size(codes, s)
    if fewest > codes.shape[1]:
        return -1
    for e in range(low, high):
        s = sets[e]
        size = _size(codes, s)
        if size != fewest and size != 2:
            continue
        if not _whole(codes, s, shown, -1):
            continue
        if size == fewest and checked[e] and support[s] < k:
            for i in range(size):
                short[codes[s, i]] += 1
        if size == 2 and k <= support[s] <= k + NEARLY:
            for i in range(2):
                cost[codes[s, i]] += 1.0 / (1 + support[s] - k)
    best = -1
    best_score = 0.0
    for e in range(low, high):
        s = sets[e]
        for i in range(_size(codes, s)):
            c = codes[s, i]
            if short[c] == 0:
                continue
            score = short[c] / (1.0 + alpha * cost[c])
            if (
                best < 0
                or score > best_score
                or (
                    score == best_score
                    and (single[c] < single[best] or (single[c] == single[best] and c < best))
                )
            ):
                best, best_score = c, score
    for e in range(low, high):
        s = sets[e]
        for i in range(_size(codes, s)):
            short[codes[s, i]] = 0
            cost[codes[s, i]] = 0.0
    return best


@njit
def enforce(
    known: Knowledge,
    order: Longs,
    starts: Longs,
    union_values: Ints,
    kept: Flags,
    labels: int,
    k: int,
    alpha: float,
) -> int:
    """Delete codes of patients until k patients show every set that one of them shows of one visit; returns sweeps.

    Then codes return where every set that they newly show has k patients, until none can.
    starts, union_values, kept : the codes of each patient, and whether they are shown (changed in place).
    """
    sets, codes = known.sets, known.codes
    support = np.zeros(codes.shape[0], np.int32)
    for e in range(sets.shape[0]):
        support[sets[e]] += 1
    single = np.zeros(labels, np.int32)
    for i in range(union_values.shape[0]):
        single[union_values[i]] += 1
    shown = np.zeros(labels, np.bool_)
    room = (np.zeros(labels, np.int32), np.zeros(labels, np.float64))
    sweeps = 0
    changed = True
    while changed:
        changed = False
        sweeps += 1
        for p in order:
            low, high = known.starts[p], known.starts[p + 1]
            for i in range(starts[p], starts[p + 1]):
                shown[union_values[i]] = kept[i]
            while True:
                c = _worst(low, high, known, support, single, shown, k, alpha, room)
                if c < 0:
                    break
                changed = True
                for e in range(low, high):
                    if _has(codes, sets[e], c) and _whole(codes, sets[e], shown, -1):
                        support[sets[e]] -= 1
                shown[c] = False
                single[c] -= 1
            for i in range(starts[p], starts[p + 1]):
                kept[i] = shown[union_values[i]]
                shown[union_values[i]] = False
    changed = True
    while changed:
        changed = False
        for p in order:
            low, high = known.starts[p], known.starts[p + 1]
            for i in range(starts[p], starts[p + 1]):
                shown[union_values[i]] = kept[i]
            for i in range(starts[p], starts[p + 1]):
                if kept[i]:
                    continue
                c = union_values[i]
                fits = True
                for e in range(low, high):
                    s = sets[e]
                    if (
                        known.checked[e]
                        and support[s] + 1 < k
                        and _has(codes, s, c)
                        and _whole(codes, s, shown, c)
                    ):
                        fits = False
                        break
                if not fits:
                    continue
                for e in range(low, high):
                    if _has(codes, sets[e], c) and _whole(codes, sets[e], shown, c):
                        support[sets[e]] += 1
                shown[c] = True
                kept[i] = True
                changed = True
            for i in range(starts[p], starts[p + 1]):
                shown[union_values[i]] = False
    return sweeps
