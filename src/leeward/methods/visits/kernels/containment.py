"""Kernels that count the patients whose codes contain a set: through its rarest code, one by one or in bits."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.bits import popcount
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def fill_bits(chosen: Ints, postings: Longs, holders: Ints, bits: Words) -> None:
    """bits[row] : a bit for each patient, set for those who hold the code chosen[row]."""
    for row in range(chosen.shape[0]):
        c = chosen[row]
        for place in range(postings[c], postings[c + 1]):
            p = holders[place]
            bits[row, p >> 6] |= np.uint64(1) << np.uint64(p & 63)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
    postings, holders, offsets, values, row_of, bits = held
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
    found = 0
    for place in range(postings[rarest], postings[rarest + 1]):
        p = holders[place]
        every = True
        for i in range(length):
            c = content[start + i]
            if i == skipped or c == rarest:
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
        elif found + postings[rarest + 1] - place - 1 < needed:
            break
    return found


@njit(cache=True, nogil=True)
def count_containing(
    content: Ints,
    starts: Longs,
    lengths: Longs,
    held: Holders,
    limit: int,
    found: Longs,
) -> None:
    """How many patients hold each set: exact below `limit`, else `limit`."""
    for s in range(starts.shape[0]):
        found[s] = _containing(content, starts[s], lengths[s], -1, held, limit, limit)


@njit(cache=True, nogil=True)
def choose(
    content: Ints,
    starts: Longs,
    lengths: Longs,
    held: Holders,
    found: Longs,
) -> None:
    """The place of the code of each set that leaves the part with most holders (ties: the smallest part).

    Among equal counts the smallest part is the one without the largest code: parts of one set differ first where the
    earlier deleted code stood, and there the one that keeps the smaller code wins. The part without the rarest code is
    counted first; it mostly wins, and the others are given up as soon as they cannot.
    """
    unlimited = np.int64(1) << 60
    postings = held.postings
    for s in range(starts.shape[0]):
        start, length = starts[s], lengths[s]
        likely = 0
        for i in range(1, length):
            c, rarest = content[start + i], content[start + likely]
            if postings[c + 1] - postings[c] < postings[rarest + 1] - postings[rarest]:
                likely = i
        best = likely
        most = _containing(content, start, length, likely, held, 0, unlimited)
        for i in range(length - 1, -1, -1):
            if i == likely:
                continue
            needed = most if i > best else most + 1
            others = _containing(content, start, length, i, held, needed, unlimited)
            if others >= needed:
                best, most = i, others
        found[s] = best


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def may_return(
    patient: Ints,
    code: Ints,
    patient_offsets: Longs,
    visit_offsets: Longs,
    visit_values: Ints,
    held: Holders,
    limit: int,
    found: Any,
) -> None:
    """Whether each code could be shown again of its patient: then `limit` others have what each visit with it shows."""
    part = np.empty(16, np.int32)
    for e in range(patient.shape[0]):
        p, c = patient[e], code[e]
        low, high = held.offsets[p], held.offsets[p + 1]
        found[e] = True
        for v in range(patient_offsets[p], patient_offsets[p + 1]):
            begin, end = visit_offsets[v], visit_offsets[v + 1]
            if not _holds(visit_values, begin, end, c):
                continue
            if part.shape[0] < end - begin:
                part = np.empty(2 * (end - begin), np.int32)
            size = 0
            for i in range(begin, end):
                if visit_values[i] == c or _holds(held.values, low, high, visit_values[i]):
                    part[size] = visit_values[i]
                    size += 1
            if _containing(part, 0, size, -1, held, limit, limit) < limit:
                found[e] = False
                break
