"""The words that were seen, by number: what is known of a word is found once, whichever note or model asks.

Texts are cut and their words looked up in kernels, in a hash table over the words' characters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.notes import kernels
from leeward.notes.tokens import Tokens, tokens_of

KEPT_WORDS = 60_000
"""Words that are remembered; beyond, remembering starts anew."""

TABLED = 0x2800
"""Characters whose kind is in a table; texts with others are cut by the pattern itself."""


class Seen(NamedTuple):
    """A text's tokens, and their words' numbers in `vocabulary`."""

    tokens: Tokens
    vocabulary: Vocabulary
    words: NDArray[np.int32]


class Cutting(NamedTuple):
    """A way to cut texts: in a kernel; plainly, where a character is not in its table; and whether numbers of three
    digits or more stand for all of their length (`plain_number`)."""

    kernel: Callable[..., tuple[bool, NDArray[np.int64], NDArray[np.int64]]]
    plainly: Callable[[str], Tokens]
    numbers_alike: bool


class Vocabulary:
    """Words in the order in which they came; word 0 is the empty one. Safe for threads."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self.lock = threading.Lock()
        self.words: list[str] = []
        self._number_of: dict[str, int] = {}
        # The hash table. `slots` hold keys' places plus one; a key is characters of `pool`, and the number of its word.
        self._slots = np.zeros(4096, dtype=np.int32)
        self._pool = np.zeros(8192, dtype=np.uint32)
        self._bounds = np.zeros(1025, dtype=np.int64)
        self._numbers = np.zeros(1024, dtype=np.int32)
        self._keys = 0
        self._number("")

    @property
    def size(self) -> int:
        """Entries in the table."""
        return self._keys

    def read(self, text: str) -> Seen:
        """The tokens of a text with their words; words that are new are added."""
        signs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).copy()
        known, starts, ends = self._cutting.kernel(signs, _kinds())
        tokens = Tokens(text, starts, ends) if known else self._cutting.plainly(text)
        starts, ends = tokens.starts, tokens.ends
        if self._cutting.numbers_alike:
            kernels.alike(signs, starts, ends)
        with self.lock:
            words = kernels.find(signs, starts, ends, self._slots, self._pool, self._bounds, self._numbers)
            missed = np.flatnonzero(words < 0)
            if len(missed):
                bounds = zip(starts[missed].tolist(), ends[missed].tolist(), strict=True)
                keys = [signs[a:b].tobytes().decode("utf-32-le", "surrogatepass") for a, b in bounds]
                for key in dict.fromkeys(keys):
                    self._enter(key)
                words[missed] = [self._number_of[key] for key in keys]
            return Seen(tokens, self, words)

    def _enter(self, key: str) -> None:
        """Put a key into the table."""
        signs = np.frombuffer(key.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        begin = self._bounds[self._keys]
        self._pool = _with_room(self._pool, begin + len(signs))
        self._bounds = _with_room(self._bounds, self._keys + 2)
        self._numbers = _with_room(self._numbers, self._keys + 1)
        self._pool[begin : begin + len(signs)] = signs
        self._bounds[self._keys + 1] = begin + len(signs)
        alike = self._cutting.numbers_alike and key[0].isdigit()
        self._numbers[self._keys] = self._number_of[key] = self._number(plain_number(key) if alike else key)
        self._keys += 1
        first = self._keys - 1
        if 4 * self._keys > len(self._slots):
            self._slots = np.zeros(4 * len(self._slots), dtype=np.int32)
            first = 0
        kernels.enter(self._slots, self._pool, self._bounds, first, self._keys)

    def _number(self, word: str) -> int:
        """The number of a word, which is given one where it has none."""
        number = self._number_of.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number


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


@cache
def _kinds() -> NDArray[np.uint8]:
    """Of each character up to `TABLED`: 0 blank, 1 letter, 2 digit, 3 a token by itself."""
    return np.array([_kind_of(chr(code)) for code in range(TABLED)], dtype=np.uint8)


def _kind_of(sign: str) -> int:
    if sign in "_\n":
        return 3
    if sign.isspace():
        return 0
    if sign.isdecimal():
        return 2
    return 1 if sign.isalnum() else 3


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

    def __init__(self, cutting: Cutting, kept: int = KEPT_WORDS) -> None:
        self._cutting = cutting
        self._kept = kept
        self._current = Vocabulary(cutting)

    def read(self, text: str) -> Seen:
        """A text's tokens with their words."""
        vocabulary = self._current
        if vocabulary.size > self._kept:
            vocabulary = self._current = Vocabulary(self._cutting)
        return vocabulary.read(text)


read = Shared(Cutting(kernels.cut, tokens_of, numbers_alike=True)).read
"""A text's tokens (`tokens.py`), with their words."""
