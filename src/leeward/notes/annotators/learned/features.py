"""Features of a note's tokens, as arrays for the models and as strings for their training.

All features are categorical and each belongs to a word and its place (`words.py`), to a pair of neighbouring classes,
to the dictionary's hit, or to the note (the word follows a title elsewhere in it). A linear model's score of a
label is then a sum of rows of small tables, and a word's rows are the same wherever it is: they are added up once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.notes import categories
from leeward.notes.annotators.learned import kernels
from leeward.notes.annotators.learned.labels import places_of
from leeward.notes.annotators.learned.words import (
    CENTRE,
    CLASS_IDS,
    CLASSES,
    SLOTS,
    class_of,
    features_at,
)
from leeward.notes.spans import Span
from leeward.notes.vocabulary import PerWord, Seen, Tokens, Vocabulary, read

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


@dataclass(frozen=True)
class Looked:
    """A note as the models see it; one entry a token. `words` are numbers in `vocabulary`; `key` and `head` are indices
    of tokens or −1."""

    tokens: Tokens
    vocabulary: Vocabulary
    words: NDArray[np.int32]
    classes: NDArray[np.int16]
    key: NDArray[np.int32]
    head: NDArray[np.int32]
    again: NDArray[np.bool_]
    hits: NDArray[np.uint8]


_CLASSES = PerWord(lambda word: CLASS_IDS[class_of(word)], np.int16)
_FLAGS = PerWord(
    lambda word: (
        kernels.CAPITAL * (word[:1].isupper() and len(word) > 1) + kernels.UPPER * (word == word.upper())
    ),
    np.uint8,
)
_MARKS = tuple(CLASS_IDS[name] for name in ("colon", "line", "point", "title", "role"))


def look(text: str, dictionary_spans: Sequence[Span], seen: Seen | None = None) -> Looked:
    """Split a text, unless it has been `seen`, and find what the features of its tokens need."""
    tokens, vocabulary, words = seen or read(text)
    classes, flags = _CLASSES.of(vocabulary)[words], _FLAGS.of(vocabulary)[words]
    key, head, again = kernels.context(words, classes, flags, *_MARKS)
    hits = _hits(tokens, dictionary_spans)
    return Looked(tokens, vocabulary, words, classes, key, head, again, hits)


def _hits(tokens: Tokens, spans: Sequence[Span]) -> NDArray[np.uint8]:
    none = HIT_IDS[""]
    marks = np.full(len(tokens.words), none, np.uint8)
    for span, place in zip(spans, places_of(tokens, spans), strict=True):
        marks[place] = HIT_IDS.get(f"{span.kind}:{span.category}", none)
    return marks


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
