"""Features of a note's tokens, as arrays for the models and as strings for their training.

All features are categorical and each belongs to a word and its place (`words.py`), to a pair of neighbouring classes,
to the dictionary's hit, or to the note (the word follows a title elsewhere in it). A linear model's score of a
label is then a sum of rows of small tables, and a word's rows are the same wherever it is: they are added up once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.notes import categories
from leeward.notes.annotators.learned import kernels
from leeward.notes.annotators.learned.tokens import Tokens, tokens_of
from leeward.notes.annotators.learned.words import (
    CENTRE,
    CLASS_IDS,
    CLASSES,
    SLOTS,
    class_of,
    features_at,
    plain_number,
)
from leeward.notes.spans import Span

PAIRS: tuple[tuple[int, int], ...] = ((-1, 0), (0, 1), (-1, 1), (-2, -1))
"""Distances of the two tokens whose classes make a feature."""

HITS: tuple[str, ...] = (
    "beyond",
    "",
    *(f"EID:{category}" for category in categories.EID),
    *(f"QID:{category}" for category in categories.QID),
    *(f"HMI:{category}" for category in categories.HMI),
)
"""What the dictionary can say of a token."""
HIT_IDS = {name: number for number, name in enumerate(HITS)}
AROUND = (-2, -1, 0, 1, 2, 3)
"""Distances of the dictionary's hits and of named words that make features."""

KEPT_WORDS = 60_000
"""Words whose class is remembered; beyond, remembering starts anew."""


@dataclass(frozen=True)
class Looked:
    """A note as the models see it; one entry a token but for `distinct`: its words with long numbers all alike, each
    once; `places` are the tokens' places among them. `key` and `head` are indices of tokens or −1.
    """

    tokens: Tokens
    distinct: list[str]
    places: NDArray[np.int32]
    classes: NDArray[np.int16]
    key: NDArray[np.int32]
    head: NDArray[np.int32]
    again: NDArray[np.bool_]
    hits: NDArray[np.uint8]


class WordNumbers:
    """Numbers for words, given as they come; word 0 is the empty one. Safe for threads; forgets all when full."""

    def __init__(self, kept: int = KEPT_WORDS) -> None:
        self.kept = kept
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget all words."""
        self.numbers: dict[str, int] = {"": 0}
        self.words: list[str] = [""]

    def of(self, words: Sequence[str]) -> list[int]:
        """The numbers of `words`. The caller holds `lock` as long as the numbers must stay valid."""
        numbers = self.numbers
        found = [numbers.get(word, -1) for word in words]
        if -1 in found:
            if len(numbers) + len(words) > self.kept:
                self.clear()
                numbers = self.numbers
            for word in words:
                if word not in numbers:
                    numbers[word] = len(self.words)
                    self.words.append(word)
            found = [numbers[word] for word in words]
        return found


_classes: dict[str, int] = {}


def look(text: str, dictionary_spans: Sequence[Span]) -> Looked:
    """Split a text and find what the features of its tokens need."""
    tokens = tokens_of(text)
    words = [plain_number(word) if word[0].isdigit() else word for word in tokens.words]
    order: dict[str, int] = {}
    places = np.array([order.setdefault(word, len(order)) for word in words], dtype=np.int32)
    distinct = list(order)
    known = _classes
    numbers = [known.get(word, -1) for word in distinct]
    if -1 in numbers:
        if len(known) > KEPT_WORDS:
            known.clear()
        for position, number in enumerate(numbers):
            if number < 0:
                numbers[position] = known[distinct[position]] = CLASS_IDS[class_of(distinct[position])]
    classes = np.array(numbers, dtype=np.int16)
    capital = np.array([word[0].isupper() and len(word) > 1 for word in distinct], dtype=np.bool_)
    upper = np.array([word == word.upper() for word in distinct], dtype=np.bool_)
    if words:
        classes, capital, upper = classes[places], capital[places], upper[places]
    key, head, again = kernels.context(
        places,
        classes,
        capital,
        upper,
        len(order),
        CLASS_IDS["colon"],
        CLASS_IDS["line"],
        CLASS_IDS["point"],
        CLASS_IDS["title"],
        CLASS_IDS["role"],
    )
    return Looked(tokens, distinct, places, classes, key, head, again, _hits(tokens, dictionary_spans))


def _hits(tokens: Tokens, spans: Sequence[Span]) -> NDArray[np.uint8]:
    hits = np.full(len(tokens.words), HIT_IDS[""], dtype=np.uint8)
    if spans:
        first = np.searchsorted(tokens.ends, [span.start for span in spans], side="right").tolist()
        last = np.searchsorted(tokens.starts, [span.end for span in spans], side="left").tolist()
        for span, begin, end in zip(spans, first, last, strict=True):
            hits[begin:end] = HIT_IDS.get(f"{span.kind}:{span.category}", HIT_IDS[""])
    return hits


def attributes(looked: Looked) -> list[list[str]]:
    """Every token's features as strings, as the trainers take them. The models' tables hold the same."""
    words = looked.tokens.words
    n = len(words)
    classes = [CLASSES[number] for number in looked.classes.tolist()]
    hits = looked.hits.tolist()
    again = looked.again.tolist()
    key, head = looked.key.tolist(), looked.head.tolist()
    rows: list[list[str]] = []
    known: dict[tuple[str, int], list[str]] = {}

    def at(word: str, slot: int) -> list[str]:
        found = known.get((word, slot))
        if found is None:
            found = known[word, slot] = features_at(word, slot)
        return found

    for i in range(n):
        row: list[str] = []
        for slot in range(len(SLOTS) - 2):
            j = i + slot - CENTRE
            row += at(words[j] if 0 <= j < n else "", slot)
        row += at(words[key[i]] if key[i] >= 0 else "", len(SLOTS) - 2)
        row += at(words[head[i]] if head[i] >= 0 else "", len(SLOTS) - 1)
        for template, (one, two) in enumerate(PAIRS):
            j, k = i + one, i + two
            row.append(
                pair_feature(
                    template, classes[j] if 0 <= j < n else "edge", classes[k] if 0 <= k < n else "edge"
                )
            )
        for distance in AROUND:
            j = i + distance
            row.append(hit_feature(distance, HITS[hits[j]] if 0 <= j < n else HITS[0]))
            row.append(again_feature(distance, 0 <= j < n and again[j]))
        rows.append(row)
    return rows


def pair_feature(template: int, one: str, two: str) -> str:
    """The feature of two neighbours' classes."""
    return f"pair{template} {one}|{two}"


def hit_feature(distance: int, hit: str) -> str:
    """The feature of the dictionary's hit on a token or its neighbour."""
    return f"hit{distance:+d} {hit}"


def again_feature(distance: int, flag: bool) -> str:
    """The feature of a word that follows a title elsewhere in the note."""
    return f"again{distance:+d} {int(flag)}"
