"""Kernels that count the patients whose codes contain a set: through its rarest code, patient by patient."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]


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
def _containing(
    content: Ints,
    start: int,
    length: int,
    skipped: int,
    postings: Longs,
    holders: Ints,
    offsets: Longs,
    values: Ints,
    limit: int,
) -> int:
    """Patients who hold all codes of a set but the one at `skipped` (-1: all), counted up to `limit`."""
    rarest = -1
    for i in range(length):
        if i == skipped:
            continue
        c = content[start + i]
        if rarest < 0 or postings[c + 1] - postings[c] < postings[rarest + 1] - postings[rarest]:
            rarest = c
    if rarest < 0:
        return min(limit, offsets.shape[0] - 1)
    found = 0
    for place in range(postings[rarest], postings[rarest + 1]):
        p = holders[place]
        every = True
        for i in range(length):
            c = content[start + i]
            if i != skipped and c != rarest and not _holds(values, offsets[p], offsets[p + 1], c):
                every = False
                break
        if every:
            found += 1
            if found >= limit:
                break
    return found


@njit(cache=True, nogil=True)
def count_containing(
    content: Ints,
    starts: Longs,
    lengths: Longs,
    postings: Longs,
    holders: Ints,
    offsets: Longs,
    values: Ints,
    limit: int,
) -> Longs:
    """How many patients hold each set, counted up to `limit`."""
    found = np.empty(starts.shape[0], np.int64)
    for s in range(starts.shape[0]):
        found[s] = _containing(content, starts[s], lengths[s], -1, postings, holders, offsets, values, limit)
    return found


@njit(cache=True, nogil=True)
def choose(
    content: Ints, starts: Longs, lengths: Longs, postings: Longs, holders: Ints, offsets: Longs, values: Ints
) -> Longs:
    """The place of the code of each set that leaves the part with most holders (ties: the smallest part).

    Among equal counts the smallest part is the one without the largest code: parts of one set differ first where the
    earlier deleted code stood, and there the one that keeps the smaller code wins.
    """
    found = np.empty(starts.shape[0], np.int64)
    for s in range(starts.shape[0]):
        best, most = -1, -1
        for i in range(lengths[s] - 1, -1, -1):
            held = _containing(
                content, starts[s], lengths[s], i, postings, holders, offsets, values, np.int64(1) << 60
            )
            if held > most:
                best, most = i, held
        found[s] = best
    return found


@njit(cache=True, nogil=True)
def delete(offsets: Longs, values: Ints, set_of: Ints, place: Longs) -> tuple[Longs, Ints]:
    """Visits without the code at `place` of their set (-1: none)."""
    kept = np.zeros(offsets.shape[0], np.int64)
    out = np.empty(values.shape[0], np.int32)
    total = 0
    for v in range(offsets.shape[0] - 1):
        gone = place[set_of[v]] if set_of[v] >= 0 else -1
        for i in range(offsets[v + 1] - offsets[v]):
            if i != gone:
                out[total] = values[offsets[v] + i]
                total += 1
        kept[v + 1] = total
    return kept, out[:total].copy()
