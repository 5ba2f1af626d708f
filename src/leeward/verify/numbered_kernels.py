"""Grouping numbers in linear time: sorting keys to count them would cost more than protecting."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit

FEW = 32
"""So many values are sorted by insertion."""


@njit(error_model="numpy")
def values_of_groups(group, value, n):
    """(offsets, values): the distinct values of each group 0 … n-1, ascending; values below 0 are left out."""
    ends = np.zeros(n + 1, np.int64)
    for i in range(group.shape[0]):
        if value[i] >= 0:
            ends[group[i] + 1] += 1
    for g in range(n):
        ends[g + 1] += ends[g]
    begin = ends[:n].copy()
    values = np.empty(ends[n], np.int32)
    for i in range(group.shape[0]):
        if value[i] >= 0:
            values[begin[group[i]]] = value[i]
            begin[group[i]] += 1
    offsets = np.zeros(n + 1, np.int64)
    kept = 0
    for g in range(n):
        low, high = ends[g], ends[g + 1]
        if high - low > FEW:
            values[low:high] = np.sort(values[low:high])
        else:
            for i in range(low + 1, high):
                each, place = values[i], i
                while place > low and values[place - 1] > each:
                    values[place] = values[place - 1]
                    place -= 1
                values[place] = each
        for i in range(low, high):
            if i == low or values[i] != values[kept - 1]:
                values[kept] = values[i]
                kept += 1
        offsets[g + 1] = kept
    return offsets, values[:kept]


@njit(error_model="numpy")
def number_keys(keys, table):
    """(number of each key, how many differ): equal keys get equal numbers, in the order of their first places.

    table : int64[power of two, more than the keys], all -1; used up.
    """
    mask = table.shape[0] - 1
    numbers = np.empty(keys.shape[0], np.int64)
    first = np.empty(keys.shape[0], np.int64)
    distinct = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        if i and key == keys[i - 1]:
            numbers[i] = numbers[i - 1]
            continue
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        place = np.int64(mixed >> np.uint64(17)) & mask
        while table[place] >= 0 and first[table[place]] != key:
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = distinct
            first[distinct] = key
            distinct += 1
        numbers[i] = table[place]
    return numbers, distinct
