"""Which records hold which codes: record r has the distinct, ascending codes `values[offsets[r]:offsets[r + 1]]`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leeward.arrays import AnyArray, Int32s, Int64s, UInt64s, offsets_of


def owners_of(offsets: Int64s) -> Int64s:
    """The record of each entry of `values`."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def postings(offsets: Int64s, values: Int32s, codes: int) -> tuple[Int64s, Int32s]:
    """Records that hold each code, ascending: (starts int64[codes + 1], records int32)."""
    order = np.argsort(values.astype(np.min_scalar_type(codes)), kind="stable")  # of 16 bits: in linear time
    return offsets_of(np.bincount(values, minlength=codes)), owners_of(offsets)[order].astype(np.int32)


def bit_rows(lists: Sequence[AnyArray], n: int) -> UInt64s:
    """Lists of numbers below n as bits: uint64[len(lists), ceil(n / 64)]."""
    bits = np.zeros((len(lists), (n + 63) // 64), np.uint64)
    for row, numbers in zip(bits, lists, strict=True):
        has = np.zeros(64 * len(row), np.bool_)
        has[numbers] = True
        row[:] = np.packbits(has, bitorder="little").view(np.uint64)
    return bits
