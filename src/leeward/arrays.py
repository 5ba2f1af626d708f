"""Types of flat arrays by their width, offsets of packed lists, distinct values, counted nouns.

Kernels are compiled for one width: an alias says which, and says the same everywhere.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

AnyArray: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[np.bool_]
Int8s: TypeAlias = NDArray[np.int8]
Int16s: TypeAlias = NDArray[np.int16]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt16s: TypeAlias = NDArray[np.uint16]
UInt32s: TypeAlias = NDArray[np.uint32]
UInt64s: TypeAlias = NDArray[np.uint64]
Float64s: TypeAlias = NDArray[np.float64]


def offsets_of(lengths: ArrayLike) -> Int64s:
    """Where each of the lists with these lengths begins when they are packed, and where the last one ends.

    List i of `values` is `values[offsets[i]:offsets[i + 1]]`: int64[len(lengths) + 1], the first of them 0.
    """
    sizes = np.asarray(lengths)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def ranges_of(starts: AnyArray, sizes: AnyArray) -> Int64s:
    """From each start as many numbers upwards as its size says, one range after the other."""
    bounds = offsets_of(sizes)
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], sizes)


def positions_of(offsets: Int64s, chosen: AnyArray) -> Int64s:
    """Where the values of some of the packed lists are, one list after the other."""
    return ranges_of(offsets[chosen], offsets[chosen + 1] - offsets[chosen])


def distinct_of(values: Int64s) -> Int64s:
    """The distinct values, ascending. `np.unique` gives the same by hashing, in ten times the seconds where millions of
    values differ."""
    ordered = np.sort(values)
    found: Int64s = ordered[np.append(np.ones(min(1, len(ordered)), np.bool_), ordered[1:] != ordered[:-1])]
    return found


def number_lists(offsets: Int64s, values: AnyArray) -> Int64s:
    """A number for each packed list, the same for equal lists: int64[lists], 0 for the empty one. Lists are numbered by
    their first values, then these numbers with the next values, and so on."""
    numbers, lengths = np.zeros(len(offsets) - 1, np.int64), np.diff(offsets)
    width, made = int(values.max(initial=0)) + 1, 1
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        distinct, found = np.unique(
            numbers[longer] * width + values[offsets[longer] + place], return_inverse=True
        )
        numbers[longer] = found + made
        made += len(distinct)
    return numbers


def occurrences(values: Int64s) -> Int64s:
    """How many equal values stand before each value: int64[values]."""
    order = np.argsort(values, kind="stable")
    nth = np.empty(len(values), np.int64)
    nth[order] = np.arange(len(values)) - np.searchsorted(values[order], values[order])
    return nth


def first_lists(offsets: Int64s, values: AnyArray) -> tuple[Int64s, Int64s]:
    """The first of each different packed list, ascending, and for each list its place among these: int64[lists]."""
    _, first, number = np.unique(number_lists(offsets, values), return_index=True, return_inverse=True)
    return np.sort(first), np.argsort(np.argsort(first))[number]


def count_noun(noun: str, n: int, plural: str | None = None) -> str:
    """`1 code`, `2 codes`, `1,200 codes`; `plural` where an s is not enough."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
