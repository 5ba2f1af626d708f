"""Tokens of texts and a shared vocabulary of numbered words, so that each word's properties are computed only once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PIECES = re.compile(r"([^\W\d_]+|\d+|[^\w\s]|_|\n)")
"""Tokens of the learned annotators and of the rules: runs of letters, runs of digits, single signs, line breaks."""

KEPT_WORDS = 60_000
"""Most words of a shared vocabulary; a larger one is started anew."""


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
    """Words in order of arrival; word 0 is the empty one. Thread-safe. With `numbers_alike`, numbers of three digits or
    more are merged by length (`plain_number`)."""

    def __init__(self, pattern: re.Pattern[str], *, numbers_alike: bool) -> None:
        self._pattern = pattern
        self._numbers_alike = numbers_alike
        self._lock = threading.Lock()
        self._number_of = {"": 0}
        self.words = [""]

    def read(self, text: str) -> Seen:
        tokens = tokens_of(text, self._pattern)
        words = tokens.words
        if self._numbers_alike:
            words = [plain_number(word) if word.isdigit() else word for word in words]
        with self._lock:
            known = self._number_of
            numbers = [known.setdefault(word, len(known)) for word in words]
            self.words += list(islice(reversed(known), len(known) - len(self.words)))[::-1]
        return Seen(tokens, self, np.array(numbers, dtype=np.int32))


class PerWord:
    """Per-word properties of a vocabulary as array rows, computed once per word. Thread-safe."""

    def __init__(self, of_word: Callable[[str], Any], dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self._of_word = of_word
        self._lock = threading.Lock()
        self._none = np.zeros((0, *shape), dtype=dtype)
        self._held: tuple[Vocabulary | None, NDArray[Any], int] = (None, self._none, 0)

    def of(self, vocabulary: Vocabulary) -> NDArray[Any]:
        """Return the rows of all words, by number. A returned array changes only in rows of later words."""
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
    """Return the array, or a longer copy of its filled rows if it lacks room for this many rows."""
    if needed <= len(array):
        return array
    grown = np.zeros((max(needed, 2 * len(array), 1024), *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def plain_number(word: str) -> str:
    """Representative of a number, one per length; years are kept."""
    if len(word) < 3 or not word.isdigit():
        return word
    return "2000" if len(word) == 4 and word[:2] in ("19", "20") else "3" * len(word)


class Shared:
    """Vocabulary shared within the process, started anew when too large."""

    def __init__(
        self, pattern: re.Pattern[str], *, numbers_alike: bool = False, kept: int = KEPT_WORDS
    ) -> None:
        self._new = partial(Vocabulary, pattern, numbers_alike=numbers_alike)
        self._kept = kept
        self._current = self._new()

    def read(self, text: str) -> Seen:
        vocabulary = self._current
        if len(vocabulary.words) > self._kept:
            vocabulary = self._current = self._new()
        return vocabulary.read(text)


read = Shared(PIECES, numbers_alike=True).read
"""Tokenize a text by `PIECES` and number its words."""
