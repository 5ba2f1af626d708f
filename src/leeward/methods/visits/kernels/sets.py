"""Kernels that number equal visit sets and count who holds them.

A set's hash is the wrapped sum of its codes' hashes, so that a set without one code is found by a subtraction; every
look-up compares the codes themselves, so hashes decide nothing but speed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]

FREE = -1


@njit
def hash_codes(n: int) -> Hashes:
    """A hash of each code number (the finalizer of splitmix64)."""
    found = np.empty(n, np.uint64)
    for i in range(n):
        x = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found[i] = x ^ (x >> np.uint64(31))
    return found


@njit(inline="always")
def slot(h: Any, mask: Any) -> Any:
    """The first place of a hash in a table of mask + 1 places."""
    x = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((x ^ (x >> np.uint64(32))) & mask)


@njit
def number_sets(offsets: Longs, values: Ints, of_code: Hashes, table: Ints) -> tuple[Ints, Longs, Hashes]:
    """(set of each visit, first visit of each set, hash of each set); the set of an empty visit is -1.

    `table` : int32[power of two above the number of visits], filled with FREE; used up.
    """
    n = offsets.shape[0] - 1
    mask = np.uint64(table.shape[0] - 1)
    set_of = np.empty(n, np.int32)
    first = np.empty(n, np.int64)
    hashes = np.empty(n, np.uint64)
    sets = 0
    for v in range(n):
        begin, length = offsets[v], offsets[v + 1] - offsets[v]
        if length == 0:
            set_of[v] = -1
            continue
        h = np.uint64(0)
        for i in range(begin, begin + length):
            h += of_code[values[i]]
        place = slot(h, mask)
        while True:
            s = table[place]
            if s == FREE:
                table[place] = sets
                first[sets] = v
                hashes[sets] = h
                set_of[v] = sets
                sets += 1
                break
            other = offsets[first[s]]
            if hashes[s] == h and offsets[first[s] + 1] - other == length:
                same = True
                for i in range(length):
                    if values[begin + i] != values[other + i]:
                        same = False
                        break
                if same:
                    set_of[v] = s
                    break
            place = (place + 1) & np.int64(mask)
    return set_of, first[:sets].copy(), hashes[:sets].copy()


@njit
def count_holders(set_of: Ints, patient_offsets: Longs, sets: int) -> Ints:
    """Distinct patients of each set, int32[sets]."""
    count = np.zeros(sets, np.int32)
    last = np.full(sets, -1, np.int64)
    for p in range(patient_offsets.shape[0] - 1):
        for v in range(patient_offsets[p], patient_offsets[p + 1]):
            s = set_of[v]
            if s >= 0 and last[s] != p:
                last[s] = p
                count[s] += 1
    return count


@njit
def fill_table(table: Ints, hashes: Hashes, first: int, last: int) -> None:
    """Put the sets first … last - 1 into the look-up table (they are known to be distinct)."""
    mask = np.uint64(table.shape[0] - 1)
    for s in range(first, last):
        place = slot(hashes[s], mask)
        while table[place] != FREE:
            place = (place + 1) & np.int64(mask)
        table[place] = s
