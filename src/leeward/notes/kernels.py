"""Loops over a text's characters: where its tokens are, and which words they are. Arrays in and out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

_NINE, _ZERO = ord("9"), ord("0")
_LINE, _SOFT_HYPHEN, _ACCENT, _PAST_ACCENTS = ord("\n"), 0xAD, 0x300, 0x370


@njit
def cut(
    signs: NDArray[np.uint32], kinds: NDArray[np.uint8]
) -> tuple[bool, NDArray[np.int64], NDArray[np.int64]]:
    """Where tokens start and end; False where a character is not in the table of kinds (0 blank, 1 letter, 2 digit, 3 a
    token by itself)."""
    n = len(signs)
    starts = np.empty(n, np.int64)
    ends = np.empty(n, np.int64)
    count = 0
    before = 0
    for i in range(n):
        if signs[i] >= len(kinds):
            return False, starts[:0], ends[:0]
        kind = kinds[signs[i]]
        if kind != 0:
            if kind == before and kind != 3:
                ends[count - 1] = i + 1
            else:
                starts[count] = i
                ends[count] = i + 1
                count += 1
        before = kind
    return True, starts[:count].copy(), ends[:count].copy()


@njit
def cut_words(
    signs: NDArray[np.uint32], kinds: NDArray[np.uint8]
) -> tuple[bool, NDArray[np.int64], NDArray[np.int64]]:
    """Where words and marks start and end, as `lexicon.words.WORD` has them; False as for `cut`."""
    n = len(signs)
    starts = np.empty(n, np.int64)
    ends = np.empty(n, np.int64)
    count = 0
    i = 0
    for j in range(n):
        if signs[j] >= len(kinds):
            return False, starts[:0], ends[:0]
    while i < n:
        kind = kinds[signs[i]]
        start = i
        i += 1
        if kind == 1 or kind == 2:
            while i < n and _goes_on(signs[i], kinds[signs[i]]):
                i += 1
            while i + 1 < n and _is_apostrophe(signs[i]) and 1 <= kinds[signs[i + 1]] <= 2:
                i += 2
                while i < n and 1 <= kinds[signs[i]] <= 2:
                    i += 1
        elif signs[start] == _LINE:  # a blank line
            while i < n and signs[i] != _LINE and kinds[signs[i]] == 0:
                i += 1
            if i == n or signs[i] != _LINE:
                i = start + 1
                continue
            i += 1
        elif _is_dash(signs[start]):  # two or more, or one between blanks
            while i < n and _is_dash(signs[i]):
                i += 1
            alone = i - start == 1
            if alone and not (
                start > 0 and i < n and _is_blank(signs[start - 1], kinds) and _is_blank(signs[i], kinds)
            ):
                continue
        elif kind == 0:
            continue
        starts[count] = start
        ends[count] = i
        count += 1
    return True, starts[:count].copy(), ends[:count].copy()


@njit(inner=True)
def _goes_on(sign: int, kind: int) -> bool:
    return kind == 1 or kind == 2 or sign == _SOFT_HYPHEN or _ACCENT <= sign < _PAST_ACCENTS


@njit(inner=True)
def _is_apostrophe(sign: int) -> bool:
    return sign == 0x27 or sign == 0x2019


@njit(inner=True)
def _is_dash(sign: int) -> bool:
    return sign == 0x2D or sign == 0x2010 or sign == 0x2011


@njit(inner=True)
def _is_blank(sign: int, kinds: NDArray[np.uint8]) -> bool:
    return sign == _LINE or kinds[sign] == 0


@njit
def alike(signs: NDArray[np.uint32], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Write the number that stands for all of its length (`vocabulary.plain_number`) over each token of three digits or
    more."""
    for token in range(len(starts)):
        start, end = starts[token], ends[token]
        if end - start < 3 or signs[start] > _NINE:
            continue
        number = True
        for i in range(start, end):
            number = number and _ZERO <= signs[i] <= _NINE
        if not number:
            continue
        first, second = signs[start] - _ZERO, signs[start + 1] - _ZERO
        year = end - start == 4 and ((first == 1 and second == 9) or (first == 2 and second == 0))
        for i in range(start, end):
            signs[i] = _ZERO + 3
        if year:
            signs[start] = _ZERO + 2
            for i in range(start + 1, end):
                signs[i] = _ZERO


@njit(inner=True)
def _slot(
    signs: NDArray[np.uint32],
    start: int,
    end: int,
    slots: NDArray[np.int32],
    pool: NDArray[np.uint32],
    bounds: NDArray[np.int64],
) -> np.int64:
    """The slot that holds these characters, or the empty one where they belong."""
    code = np.int64(14695981039)
    for i in range(start, end):
        code = (code ^ np.int64(signs[i])) * np.int64(1099511628211)
    mask = len(slots) - 1
    at = (code ^ (code >> 29)) & mask
    while slots[at] > 0:
        begin = bounds[slots[at] - 1]
        same = bounds[slots[at]] - begin == end - start
        i = 0
        while same and i < end - start:
            same = pool[begin + i] == signs[start + i]
            i += 1
        if same:
            return at
        at = (at + 1) & mask
    return at


@njit
def find(
    signs: NDArray[np.uint32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    slots: NDArray[np.int32],
    pool: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    numbers: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The number of each token's word, −1 where it is not in the table."""
    found = np.empty(len(starts), np.int32)
    for token in range(len(starts)):
        key = slots[_slot(signs, starts[token], ends[token], slots, pool, bounds)] - 1
        found[token] = numbers[key] if key >= 0 else -1
    return found


@njit
def enter(
    slots: NDArray[np.int32], pool: NDArray[np.uint32], bounds: NDArray[np.int64], first: int, past: int
) -> None:
    """Put keys `first` to `past` (exclusive) into the table, where they are not."""
    for key in range(first, past):
        slots[_slot(pool, bounds[key], bounds[key + 1], slots, pool, bounds)] = key + 1
