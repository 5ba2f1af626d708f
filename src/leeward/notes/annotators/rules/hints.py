"""Prefilter of rules by the words of a text: a rule whose words are absent is skipped.

Hints are computed once per vocabulary word; a text's hints are the union over its words. A hint is necessary, never
sufficient: every match of the rule's pattern has a word that gives the hint (a word here is a run of letters, or of
digits, or a sign). Tests check each hint against its pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np

from leeward.notes.vocabulary import PerWord, Seen

EVERY = -1
"""All hints: no rule is skipped."""
MOST = 62
"""Hints are the bits of one number."""

_SAID: dict[str, int] = {}
_SPEAKS: list[tuple[int, Callable[[str, str], object]]] = []
_given = 0
_FOLDED = str.maketrans({"ſ": "s", "ı": "i", "İ": "i"})
"""Letters that `re.IGNORECASE` equates with others and `str.lower` does not."""


def _new() -> int:
    global _given
    if _given == MOST:
        raise ValueError(f"there are {MOST} hints already")
    _given += 1
    return 1 << (_given - 1)


def word_hint(words: Collection[str]) -> int:
    """A hint of some words or signs, in small or capital letters."""
    number = _new()
    for word in words:
        _SAID[word] = _SAID.get(word, 0) | number
    return number


def hint(speaks: Callable[[str, str], object], *words: str) -> int:
    """A hint of words of letters of which `speaks(word, the same in small letters)` is true, and of some more."""
    number = word_hint(words)
    _SPEAKS.append((number, speaks))
    return number


def parts(words: Collection[str]) -> int:
    """A hint of words that contain one of these parts."""
    has = re.compile("|".join(sorted(words))).search
    return hint(lambda _, small: has(small))


def of(seen: Seen) -> int:
    """The hints of a text."""
    return int(np.bitwise_or.reduce(_HINTS.of(seen.vocabulary)[seen.words], initial=0))


def _of_word(word: str) -> int:
    if word[:1].isdecimal():
        return sum(number for number, length in _FIGURES if len(word) >= length) | (
            SOME_YEAR * (word == "2000")
        )
    small = word.translate(_FOLDED).lower()
    found = _SAID.get(small, 0)
    if word[:1].isalnum():
        for number, speaks in _SPEAKS:
            if speaks(word, small):
                found |= number
    return found


_HINTS = PerWord(_of_word, np.int64)

FIGURE, THREE_FIGURES, FOUR_FIGURES, SIX_FIGURES = _new(), _new(), _new(), _new()
"""Digits; so many side by side, or more."""
_FIGURES = ((FIGURE, 1), (THREE_FIGURES, 3), (FOUR_FIGURES, 4), (SIX_FIGURES, 6))
SOME_YEAR = _new()
"""A year from 1900 to 2099 (`vocabulary.plain_number`)."""
