"""Kernels of level `codes`: the sets of at most m codes of visits, and deleting until enough patients show each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.arrays import Bools, Float64s, Int32s, Int64s
from leeward.compiled import njit

NEARLY = 7
"""A pair with at most so many patients above k is close to being rare."""


class Knowledge(NamedTuple):
    """The sets that an attacker may know, and who could show them: the codes of patient p could show
    sets[starts[p]:starts[p + 1]], of which those of one visit are `checked`. `codes`: int32[sets, m], ascending, -1
    after the last; `sizes`: their number."""

    starts: Int64s
    sets: Int32s
    checked: Bools
    codes: Int32s
    sizes: Int64s


@njit(inner=True)
def write_subsets(values: Int32s, m: int, base: int, place: Int64s, out: Int64s, used: int) -> int:
    """Append the key of every set of at most m of the ascending `values`. A key has the codes, each plus one, as digits
    to `base`, the smallest first. `place`: int64[m], scratch."""
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
    patient_offsets: Int64s, offsets: Int64s, values: Int32s, m: int, base: int, room: int
) -> tuple[Int64s, Int64s]:
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
def subsets_of_unions(
    starts: Int64s, union_values: Int32s, known: Int64s, m: int, base: int, widest: int
) -> tuple[Int64s, Int32s]:
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
            number = np.searchsorted(known, keys[i])
            if number < known.shape[0] and known[number] == keys[i]:
                found[total] = number
                total += 1
        found[first:total] = np.sort(found[first:total])
        found_starts[p + 1] = total
    return found_starts, found[:total].copy()


@njit
def _whole(codes: Int32s, s: int, shown: Bools, but: int) -> bool:
    """Whether all codes of a set are shown, `but` counted as shown."""
    for i in range(codes.shape[1]):
        c = codes[s, i]
        if c < 0:
            break
        if c != but and not shown[c]:
            return False
    return True


@njit
def _has(codes: Int32s, s: int, code: int) -> bool:
    found = False
    for i in range(codes.shape[1]):
        found = found or codes[s, i] == code
    return found


@njit(inner=True)
def _is_short(e: int, known: Knowledge, support: Int32s, shown: Bools, k: int) -> bool:
    """Whether a patient shows a set of one visit with too few patients."""
    return known.checked[e] and support[known.sets[e]] < k and _whole(known.codes, known.sets[e], shown, -1)


@njit(inner=True)
def _add(amount: float, s: int, known: Knowledge, to: Float64s) -> None:
    for i in range(known.sizes[s]):
        to[known.codes[s, i]] += amount


@njit(inner=True)
def _weigh(
    low: int,
    high: int,
    known: Knowledge,
    support: Int32s,
    shown: Bools,
    k: int,
    short: Float64s,
    cost: Float64s,
) -> bool:
    """Count for each code the sets of fewest codes with too few patients, and how close others are to that; False
    where all sets have enough."""
    sets, sizes = known.sets, known.sizes
    fewest = known.codes.shape[1] + 1
    for e in range(low, high):
        if _is_short(e, known, support, shown, k):
            fewest = min(fewest, sizes[sets[e]])
    if fewest > known.codes.shape[1]:
        return False
    for e in range(low, high):
        s = sets[e]
        if sizes[s] == fewest and _is_short(e, known, support, shown, k):
            _add(1.0, s, known, short)
        if sizes[s] == 2 and k <= support[s] <= k + NEARLY and _whole(known.codes, s, shown, -1):
            _add(1.0 / (1 + support[s] - k), s, known, cost)
    return True


@njit(inner=True)
def _worst(
    low: int,
    high: int,
    known: Knowledge,
    support: Int32s,
    single: Int32s,
    shown: Bools,
    k: int,
    alpha: float,
    room: tuple[Float64s, Float64s],
) -> int:
    """The code to delete from a patient, -1 if all sets have enough patients. Of the sets with too few patients those
    of fewest codes count: the code with the most of them for its cost, then the one that fewest patients show, then the
    smallest. `room`: two float64[labels], zeros; so again."""
    short, cost = room
    if not _weigh(low, high, known, support, shown, k, short, cost):
        return -1
    best, best_key = -1, (0.0, 0.0, 0.0)
    for c in known.codes[known.sets[low:high]].ravel():
        if c >= 0:
            key = (-short[c] / (1.0 + alpha * cost[c]), float(single[c]), float(c))
            if short[c] > 0 and key < best_key:
                best, best_key = int(c), key
    for c in known.codes[known.sets[low:high]].ravel():
        if c >= 0:
            short[c] = cost[c] = 0.0
    return best


@njit(inner=True)
def _count_again(
    c: int, by: int, low: int, high: int, known: Knowledge, support: Int32s, shown: Bools
) -> None:
    """Update the support of all sets with the code c that a patient shows with it."""
    for e in range(low, high):
        if _has(known.codes, known.sets[e], c) and _whole(known.codes, known.sets[e], shown, c):
            support[known.sets[e]] += by


@njit(inner=True)
def _may_return(c: int, low: int, high: int, known: Knowledge, support: Int32s, shown: Bools, k: int) -> bool:
    """Whether every set of one visit that a patient shows again with the code c would have k patients."""
    for e in range(low, high):
        s = known.sets[e]
        if (
            known.checked[e]
            and support[s] + 1 < k
            and _has(known.codes, s, c)
            and _whole(known.codes, s, shown, c)
        ):
            return False
    return True


@njit
def enforce(
    known: Knowledge,
    order: Int64s,
    starts: Int64s,
    union_values: Int32s,
    kept: Bools,
    labels: int,
    k: int,
    alpha: float,
) -> int:
    """Delete codes of patients until k patients show every set that one of them shows of one visit; returns sweeps.
    Then codes return where every set that they newly show has k patients, until none can. `starts`, `union_values`,
    `kept`: the codes of each patient, and whether they are shown (changed in place)."""
    support = np.bincount(known.sets, minlength=known.codes.shape[0]).astype(np.int32)
    single = np.bincount(union_values, minlength=labels).astype(np.int32)
    shown = np.zeros(labels, np.bool_)
    room = np.zeros(labels), np.zeros(labels)
    sweeps = 0
    for deleting in (True, False):
        changed = True
        while changed:
            changed = False
            sweeps += deleting
            for p in order:
                low, high = known.starts[p], known.starts[p + 1]
                mine = slice(starts[p], starts[p + 1])
                shown[union_values[mine]] = kept[mine]
                c = _worst(low, high, known, support, single, shown, k, alpha, room) if deleting else -1
                while c >= 0:
                    changed = True
                    _count_again(c, -1, low, high, known, support, shown)
                    shown[c] = False
                    single[c] -= 1
                    c = _worst(low, high, known, support, single, shown, k, alpha, room)
                for i in range(starts[p], starts[p + 1]):
                    c = np.int64(union_values[i])
                    back = not deleting and not kept[i]
                    if back and _may_return(c, low, high, known, support, shown, k):
                        _count_again(c, 1, low, high, known, support, shown)
                        shown[c] = changed = True
                kept[mine] = shown[union_values[mine]]
                shown[union_values[mine]] = False
    return sweeps
