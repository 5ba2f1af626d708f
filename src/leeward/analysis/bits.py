"""Bits of 64-bit words, for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.compiled import njit


@njit(inline="always")
def popcount(word: Any) -> Any:
    """Number of bits set in a 64-bit word, as an int64 (Warren, Hacker's Delight, figure 5-2)."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
