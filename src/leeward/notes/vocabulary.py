"""Texts cut into tokens, and the words that were seen, by number: what is known of a word is found once, whichever note
or model asks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PIECES = re.compile(r"([^\W\d_]+|\d+|[^\w\s]|_|\n)")
"""Tokens of the learned annotators and of the rules: runs of letters, runs of digits, single signs, line breaks."""

KEPT_WORDS = 60_000
"""Words that are remembered; beyond, remembering starts anew."""


class Tokens(NamedTuple):
    """Token `i` is `words[i]`, `text[starts[i]:ends[i]]`."""

    text: str
    words: list[str]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def tokens_of(text: str, pattern: re.Pattern[str] = PIECES) -> Tokens:
    """The tokens of a text, each a match of the pattern, which has one group around it all."""
    pieces = pattern.split(text)  # gap, token, gap, token, …, gap
    bounds = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
    return Tokens(text, pieces[1::2], bounds[:-1:2].copy(), bounds[1::2].copy())


class Seen(NamedTuple):
    """A text's tokens, and their words' numbers in `vocabulary`."""

    tokens: Tokens
    vocabulary: Vocabulary
    words: NDArray[np.int32]


class Vocabulary:
    """Words in the order in which they came; word 0 is the empty one. Safe for threads.

    With `numbers_alike`, numbers of three digits or more stand for all of their length (`plain_number`).
    """

    def __init__(self, pattern: re.Pattern[str], *, numbers_alike: bool) -> None:
        self._pattern = pattern
        self._numbers_alike = numbers_alike
        self._lock = threading.Lock()
        self._number_of = {"": 0}
        self.words = [""]

    def read(self, text: str) -> Seen:
        """The tokens of a text with their words; words that are new are added."""
        tokens = tokens_of(text, self._pattern)
        words = list(map(plain_number, tokens.words)) if self._numbers_alike else tokens.words
        with self._lock:
            known = self._number_of
            numbers = [known.setdefault(word, len(known)) for word in words]
            self.words += dict.fromkeys(w for w in words if known[w] >= len(self.words))
        return Seen(tokens, self, np.array(numbers, dtype=np.int32))


class PerWord:
    """What is known of each word of a vocabulary, as rows of an array: found once a word. Safe for threads."""

    def __init__(self, of_word: Callable[[str], Any], dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self._of_word = of_word
        self._lock = threading.Lock()
        self._none = np.zeros((0, *shape), dtype=dtype)
        self._held: tuple[Vocabulary | None, NDArray[Any], int] = (None, self._none, 0)

    def of(self, vocabulary: Vocabulary) -> NDArray[Any]:
        """The rows of all words, by number. An array that was handed out is never written to but in rows of words that
        came later."""
        known = len(vocabulary.words)
        held, rows, filled = self._held
        if held is vocabulary and filled >= known:
            return rows
        with self._lock:
            held, rows, filled = self._held
            if held is not vocabulary:
                rows, filled = self._none, 0
            rows = _with_room(rows, known)
            for number in range(filled, known):
                rows[number] = self._of_word(vocabulary.words[number])
            self._held = (vocabulary, rows, max(filled, known))
            return rows


def _with_room(array: NDArray[Any], needed: int) -> NDArray[Any]:
    """The array with room for so many rows; a longer copy of the filled ones where it is too short."""
    if needed <= len(array):
        return array
    grown = np.zeros((max(needed, 2 * len(array), 1024), *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def plain_number(word: str) -> str:
    """A number that stands for `word`, one for all of its length; years stand for themselves."""
    if len(word) < 3 or not word.isdigit():
        return word
    return "2000" if len(word) == 4 and word[:2] in ("19", "20") else "3" * len(word)


class Shared:
    """A vocabulary that everybody in this process shares, begun anew where it has become too large."""

    def __init__(
        self, pattern: re.Pattern[str], *, numbers_alike: bool = False, kept: int = KEPT_WORDS
    ) -> None:
        self._new = partial(Vocabulary, pattern, numbers_alike=numbers_alike)
        self._kept = kept
        self._current = self._new()

    def read(self, text: str) -> Seen:
        """A text's tokens with their words."""
        vocabulary = self._current
        if len(vocabulary.words) > self._kept:
            vocabulary = self._current = self._new()
        return vocabulary.read(text)


read = Shared(PIECES, numbers_alike=True).read
"""A text's tokens as `PIECES` has them, with their words."""
