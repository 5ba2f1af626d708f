"""Kernel of the risk after release: code sets drawn from records."""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.arrays import AnyArray
from leeward.compiled import njit

WORD = 1 << 32
"""A number drawn below it is the generator's next word of 32 bits."""


@njit
def shuffle(stream: Any, values: AnyArray) -> None:
    """As NumPy's `stream.shuffle(values)`, draw by draw: Numba's own takes six seconds to compile."""
    for i in range(len(values) - 1, 0, -1):
        mask = i
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> shift
        j = stream.integers(0, WORD) & mask
        while j > i:
            j = stream.integers(0, WORD) & mask
        values[i], values[j] = values[j], values[i]


@njit
def draw_sets(stream: Any, records: AnyArray, offsets: AnyArray, values: AnyArray, m: int) -> Any:
    """Of each of `records` 1 … m of its codes (record r has values[offsets[r]:offsets[r + 1]], -1 for none), as many as
    there are, ascending: int64[records] where each set ends, and all their codes, int32.

    `stream`, a NumPy generator, draws each size and then a permutation of the record's codes.
    """
    ends = np.empty(len(records), np.int64)
    drawn = np.empty(len(records) * m, np.int32)
    held = np.empty(np.diff(offsets).max(), np.int32)
    at = 0
    for i in range(len(records)):
        n = 0
        for v in range(offsets[records[i]], offsets[records[i] + 1]):
            if values[v] >= 0:
                held[n] = values[v]
                n += 1
        size = stream.integers(1, m + 1)
        shuffle(stream, held[:n])
        first = at
        for code in held[: min(n, size)]:
            place = at
            while place > first and drawn[place - 1] > code:
                drawn[place] = drawn[place - 1]
                place -= 1
            drawn[place] = code
            at += 1
        ends[i] = at
    return ends, drawn[:at]
