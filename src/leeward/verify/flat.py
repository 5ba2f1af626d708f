"""Lists packed one after the other, and groups of numbers: what checks do with flat arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]


def distinct(keys: Longs) -> Longs:
    """The distinct keys, ascending (NumPy's own `unique` of whole numbers hashes, which is slower)."""
    keys = np.sort(keys)
    return keys[heads_of(keys)]


def heads_of(ascending: Longs) -> NDArray[np.bool_]:
    """Where another value begins."""
    heads = np.ones(len(ascending), np.bool_)
    heads[1:] = ascending[1:] != ascending[:-1]
    return heads


def offsets_of(lengths: Longs) -> Longs:
    """Where each list begins when lists of these lengths are packed, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def places_of(starts: Longs, lengths: Longs) -> Longs:
    """The places starts[i], starts[i] + 1, … of each list i, list after list."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def values_of_groups(group: Ints | Longs, value: Ints, n: int) -> tuple[Longs, Ints]:
    """(offsets, values): the distinct values of each group 0 … n-1, ascending; values below 0 are left out."""
    width = int(value.max(initial=0)) + 1
    known = value >= 0
    keys = distinct(group[known].astype(np.int64) * width + value[known])
    return np.searchsorted(keys, np.arange(n + 1) * width), (keys % width).astype(np.int32)


def find(numbers: Longs, wanted: Longs, missing: int) -> Longs:
    """Index of each of `wanted` in the ascending `numbers`, `missing` where it is not there."""
    if len(numbers) == 0:
        return np.full(len(wanted), missing, np.int64)
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[place] == wanted, place, missing).astype(np.int64)


def run_sums(words: Words, offsets: Longs) -> Words:
    """The sum of each list, modulo 2^64."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words)])
    return total[offsets[1:]] - total[offsets[:-1]]
