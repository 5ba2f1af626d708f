"""Kernels that count the patients whose codes contain a set: through its rarest code, one by one or in bits."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.kernels import popcount
from leeward.compiled import njit

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]

WORDS = 256
"""Words of bits that are joined at a time."""


class Holders(NamedTuple):
    """Who has each code, and what each patient has.

    postings, holders : the patients with code c, ascending, are holders[postings[c]:postings[c + 1]].
    offsets, values : the codes of patient p, ascending, are values[offsets[p]:offsets[p + 1]].
    row_of, bits : bits[row_of[c]] has a bit for each patient with c; row_of is -1 for codes that few have.
    """

    postings: Longs
    holders: Ints
    offsets: Longs
    values: Ints
    row_of: Ints
    bits: Words


@njit
def unite(patient_offsets: Longs, offsets: Longs, values: Ints) -> tuple[Longs, Ints]:
    """(offsets, values) of each patient's union over visits, ascending."""
    n = patient_offsets.shape[0] - 1
    starts = np.zeros(n + 1, np.int64)
    found = np.empty(values.shape[0], np.int32)
    total = 0
    for p in range(n):
        part = np.sort(values[offsets[patient_offsets[p]] : offsets[patient_offsets[p + 1]]])
        for i in range(part.shape[0]):
            if i == 0 or part[i] != part[i - 1]:
                found[total] = part[i]
                total += 1
        starts[p + 1] = total
    return starts, found[:total].copy()


@njit
def _holds(values: Ints, low: int, high: int, code: int) -> bool:
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
def fill_bits(chosen: Ints, postings: Longs, holders: Ints, bits: Words) -> None:
    """bits[row] : a bit for each patient, set for those who hold the code chosen[row]."""
    for row in range(chosen.shape[0]):
        c = chosen[row]
        for place in range(postings[c], postings[c + 1]):
            p = holders[place]
            bits[row, p >> 6] |= np.uint64(1) << np.uint64(p & 63)


@njit
def _common(content: Ints, start: int, length: int, skipped: int, row_of: Ints, bits: Words) -> int:
    """Patients who hold all codes of a set but the one at `skipped`, all of them codes with a row of bits."""
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
    those: Ints,
    begin: int,
    end: int,
    content: Ints,
    start: int,
    length: int,
    skipped: int,
    one: int,
    two: int,
    held: Holders,
    needed: int,
    limit: int,
) -> int:
    """Of the patients those[begin:end], who all hold the codes `one` and `two`, how many hold a set's other codes too;
    counted and given up as in `_containing`."""
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
    content: Ints,
    start: int,
    length: int,
    skipped: int,
    held: Holders,
    needed: int,
    limit: int,
) -> int:
    """Patients who hold all codes of a set but the one at `skipped` (-1: all), counted up to `limit`.

    Where there are fewer than `needed` any number below it may be returned.
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
def rarest_places(content: Ints, starts: Longs, lengths: Longs, skipped: Longs, postings: Longs) -> Longs:
    """The place of the code of each set that fewest patients hold, but for the place `skipped` (-1: none is); -1 where
    nothing is left."""
    found = np.full(starts.shape[0], -1, np.int64)
    for s in range(starts.shape[0]):
        for i in range(lengths[s]):
            if i == skipped[s]:
                continue
            c, rarest = content[starts[s] + i], content[starts[s] + found[s]]
            if found[s] < 0 or postings[c + 1] - postings[c] < postings[rarest + 1] - postings[rarest]:
                found[s] = i
    return found


@njit
def _beside(code: int, sets: int, held: Holders, counts: Longs, first: Longs) -> Ints:
    """Who of the holders of a code has each other code: counts[c] patients from first[c] on. Empty where so few sets
    have this code as their rarest that going through its holders for each of them is cheaper."""
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
    content: Ints,
    start: int,
    length: int,
    skipped: int,
    rarest: int,
    beside: Ints,
    counts: Longs,
    first: Longs,
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
    order: Longs,
    rarest: Longs,
    content: Ints,
    starts: Longs,
    lengths: Longs,
    skipped: Longs,
    held: Holders,
    needed: int,
    limit: int,
    found: Longs,
) -> None:
    """How many patients hold each set but for the code at the place `skipped`: exact from `needed` to `limit`, of more
    `limit`.

    order : of the sets, those with the same rarest code (-1: none is left) after one another.
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
    order: Longs,
    rarest: Longs,
    content: Ints,
    starts: Longs,
    lengths: Longs,
    likely: Longs,
    held: Holders,
    most: Longs,
    found: Longs,
) -> None:
    """The place of the code of each set that leaves the part with most holders (ties: the smallest part).

    Among equal counts the smallest part is the one without the largest code: parts of one set differ first where the
    earlier deleted code stood, and there the one that keeps the smaller code wins. The part without the rarest code
    (its place is `likely`, and `most` patients hold the part) mostly wins, and the others are given up as soon as they
    cannot. order : as for `count_containing`.
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


@njit
def delete(
    patient_offsets: Longs, offsets: Longs, values: Ints, set_of: Ints, place: Longs, gone: Any
) -> tuple[Longs, Ints]:
    """Visits of which each patient's lose every code at `place` of the set (-1: none) of any of them.

    A code leaves all visits of a patient together: otherwise the record would still show it of the visit that lost it.
    gone : bool[labels], all False; so again on return.
    """
    kept = np.zeros(offsets.shape[0], np.int64)
    out = np.empty(values.shape[0], np.int32)
    total = 0
    for p in range(patient_offsets.shape[0] - 1):
        first, last = patient_offsets[p], patient_offsets[p + 1]
        for v in range(first, last):
            if set_of[v] >= 0 and place[set_of[v]] >= 0:
                gone[values[offsets[v] + place[set_of[v]]]] = True
        for v in range(first, last):
            for i in range(offsets[v], offsets[v + 1]):
                if not gone[values[i]]:
                    out[total] = values[i]
                    total += 1
            kept[v + 1] = total
        for v in range(first, last):
            if set_of[v] >= 0 and place[set_of[v]] >= 0:
                gone[values[offsets[v] + place[set_of[v]]]] = False
    return kept, out[:total].copy()


@njit
def find_lost(
    patient_offsets: Longs, offsets: Longs, values: Ints, everyone_offsets: Longs, everyone: Ints
) -> tuple[Ints, Ints]:
    """(patient, code) of every code of a patient's visits that the patient's union lacks, ascending."""
    starts, full = unite(patient_offsets, offsets, values)
    patient = np.empty(full.shape[0] - everyone.shape[0], np.int32)
    code = np.empty(patient.shape[0], np.int32)
    total = 0
    for p in range(patient_offsets.shape[0] - 1):
        for i in range(starts[p], starts[p + 1]):
            if not _holds(everyone, everyone_offsets[p], everyone_offsets[p + 1], full[i]):
                patient[total] = p
                code[total] = full[i]
                total += 1
    return patient, code


@njit
def parts_with(
    patient: Ints,
    code: Ints,
    patient_offsets: Longs,
    visit_offsets: Longs,
    visit_values: Ints,
    held: Holders,
) -> tuple[Longs, Longs, Ints]:
    """(entry, offsets, codes): what each visit with the code of an entry shows once the patient shows this code too."""
    visits, most = 0, 0
    for p in patient:
        visits += patient_offsets[p + 1] - patient_offsets[p]
        most += visit_offsets[patient_offsets[p + 1]] - visit_offsets[patient_offsets[p]]
    entry, offsets = np.empty(visits, np.int64), np.zeros(visits + 1, np.int64)
    codes = np.empty(most, np.int32)
    parts = total = 0
    for e in range(patient.shape[0]):
        p, c = patient[e], code[e]
        low, high = held.offsets[p], held.offsets[p + 1]
        for v in range(patient_offsets[p], patient_offsets[p + 1]):
            begin, end = visit_offsets[v], visit_offsets[v + 1]
            if not _holds(visit_values, begin, end, c):
                continue
            for i in range(begin, end):
                if visit_values[i] == c or _holds(held.values, low, high, visit_values[i]):
                    codes[total] = visit_values[i]
                    total += 1
            entry[parts] = e
            parts += 1
            offsets[parts] = total
    return entry[:parts].copy(), offsets[: parts + 1].copy(), codes[:total].copy()
