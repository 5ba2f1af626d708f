"""Counting the people who share a visit's set, by fingerprints of sets."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit


@njit(error_model="numpy")
def fingerprints(offsets, values, keys):
    """uint64 of each list: the wrapped sum of its values' random keys."""
    found = np.zeros(offsets.shape[0] - 1, np.uint64)
    for v in range(found.shape[0]):
        for i in range(offsets[v], offsets[v + 1]):
            found[v] += keys[values[i]]
    return found


@njit(error_model="numpy")
def count_people(prints, person, table, seen, last, count):
    """(place of each visit's fingerprint in the table, how many differ); counts the people of each place.

    The visits of a person are together. table : uint64[power of two, more than twice the visits]; seen : bool of it;
    last : int64 of it, all -1; count : int64 of it, zeros.
    """
    mask = np.uint64(table.shape[0] - 1)
    places = np.empty(prints.shape[0], np.int64)
    distinct = 0
    for v in range(prints.shape[0]):
        place = np.int64((prints[v] ^ (prints[v] >> np.uint64(32))) & mask)
        while seen[place] and table[place] != prints[v]:
            place = (place + 1) & np.int64(mask)
        if not seen[place]:
            seen[place] = True
            table[place] = prints[v]
            distinct += 1
        places[v] = place
        if last[place] != person[v]:
            last[place] = person[v]
            count[place] += 1
    return places, distinct
