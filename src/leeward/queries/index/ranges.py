"""Rows in a range of values, from bitmaps cumulated over the values in order.

Rows with a value from i to j are those below j without those below i: two operations on bitmaps however wide the range
is. Where a bitmap for every value would take too much memory, every b-th is kept and the ends are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyroaring import BitMap

MEMORY = 64 * 2**20
"""Bytes that the cumulated bitmaps of one quasi-identifier may take, about."""
FEW = 4
"""So few values are put together without any preparation."""


class Ranges:
    """The bitmaps of some values in order, of which a row has at most one.

    Bitmaps are cumulated when the first wide range is asked for.
    Threads may share it: at worst two of them cumulate the same.
    """

    def __init__(
        self, values: Sequence[str], bitmap: Callable[[str], BitMap], rows: int, memory: int = MEMORY
    ) -> None:
        self.values = tuple(values)
        self._bitmap = bitmap
        blocks = max(1, min(len(self.values), memory // max(rows // 8, 1)))
        self._block = -(-max(len(self.values), 1) // blocks)
        self._below: list[BitMap] | None = None

    def within(self, found: BitMap, first: int, end: int) -> BitMap:
        """Those rows of `found` whose value is among number `first` to `end` − 1."""
        if end - first <= FEW:
            return self._together(found, first, end)
        low, high = -(-first // self._block), end // self._block
        if low >= high:
            return self._together(found, first, end)
        below = self._cumulate()
        core = (found & below[high]) - below[low]
        core |= self._together(found, first, low * self._block)
        core |= self._together(found, high * self._block, end)
        return core

    def _together(self, found: BitMap, first: int, end: int) -> BitMap:
        kept = BitMap()
        for value in self.values[first:end]:
            kept |= found & self._bitmap(value)
        return kept

    def _cumulate(self) -> list[BitMap]:
        """Rows whose value is below number 0, b, 2b, …"""
        if self._below is None:
            below = [BitMap()]
            for start in range(0, len(self.values) - self._block + 1, self._block):
                parts = [self._bitmap(value) for value in self.values[start : start + self._block]]
                below.append(BitMap.union(below[-1], *parts))
            self._below = below
        return self._below
