"""Features of the learned annotators: classes and features of words, token arrays for the models, strings for their
training.

A class is what a rule would call the word (a title, a month, a number of five digits, a capitalized word …): pairs of
neighbouring classes are features too, which lets a linear model see "Dr. X", "12/3/2009" and "Name: X". All features
are categorical and each belongs to a word and its place, to a pair of neighbouring classes, to the dictionary's hit, or
to the note (the word follows a title elsewhere in it). A linear model's score of a label is then a sum of rows of small
tables; the sum of a word's rows does not depend on the text and is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from leeward.notes import spans
from leeward.notes.spans import Span
from leeward.notes.vocabulary import PerWord, Seen, Tokens, Vocabulary, read
from leeward.texts import read_parts

LISTS = read_parts("leeward.notes", "classes.txt")
"""Words by class."""

SIGNS = {
    ".": "point",
    ",": "comma",
    ":": "colon",
    ";": "semicolon",
    "-": "dash",
    "–": "dash",
    "/": "slash",
    "(": "open",
    ")": "close",
    "#": "hash",
    "'": "quote",
    "’": "quote",
    "@": "at",
    "_": "underscore",
    "\n": "line",
    "": "edge",
    "%": "percent",
    "*": "star",
    "+": "plus",
}

CLASSES: tuple[str, ...] = (
    "edge",
    "line",
    *sorted(set(SIGNS.values()) - {"edge", "line"}),
    "sign",
    *LISTS,
    *(f"d{digits}" for digits in range(1, 11)),
    "year",
    "initial",
    "capital",
    "upper",
    "mixed",
    "lower",
    "letter",
    "tail",
)
_STOP = frozenset(LISTS["stop"].split())

CLASS_IDS = MappingProxyType({name: number for number, name in enumerate(CLASSES)})


@cache
def _lists() -> dict[str, str]:
    listed: dict[str, str] = {}
    for name, words in LISTS.items():
        for word in words.split():
            listed.setdefault(word, name)
    return listed


def class_of(word: str) -> str:
    """Class of a token; the empty word stands for positions outside the text."""
    if word in SIGNS:
        return SIGNS[word]
    if word.isdigit():
        return "year" if len(word) == 4 and word[:2] in ("19", "20") else f"d{min(len(word), 10)}"
    if not word.isalpha():
        return "sign"
    listed = _lists().get(word.lower())
    if listed == "state" and not word.isupper():
        listed = "stop" if word.lower() in _STOP else None
    return listed or _class_by_case(word)


def _class_by_case(word: str) -> str:
    if len(word) == 1:
        return "initial" if word.isupper() else "letter"
    if word.isupper():
        return "upper"
    if word.islower():
        return "tail" if len(word) == 2 else "lower"
    return "capital" if word[0].isupper() and word[1:].islower() else "mixed"


def shape_of(word: str) -> str:
    """`Xx` for `Brown`, `dd` for `42`: capitals, small letters and digits, runs longer than two cut."""
    if word == "\n":
        return "<line>"
    shape = "".join(
        "X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign
        for sign in word[:12]
    )
    return _LONG_RUN.sub(r"\1\1", shape)


_LONG_RUN = re.compile(r"([^d])\1{2,}", re.DOTALL)


def normal(word: str) -> str:
    """Normalize a token: lower case, numbers by length only, a name for the line break."""
    if word == "\n":
        return "<line>"
    return f"0x{len(word)}" if word.isdigit() and len(word) > 2 else word.lower()


OFFSETS = (-2, -1, 0, 1, 2)
SLOTS: tuple[str, ...] = (*(f"{offset:+d}" for offset in OFFSETS), "key", "head")
"""Positions of a word relative to the labelled token: at a distance, before the last colon on the line, or the last
word of the section's heading."""
CENTRE = OFFSETS.index(0)


@lru_cache(maxsize=65536)
def features_at(word: str, slot: int) -> list[str]:
    """The features that `word` gives a token from its place `SLOTS[slot]`."""
    name = SLOTS[slot]
    small = normal(word)
    features = [f"{name} w={small}"]
    if slot == CENTRE:
        features += [f"{name} {part}" for part in _features_of(word, small)]
    elif name in ("-1", "+1"):
        features += [f"{name} s={shape_of(word)}", f"{name} c={class_of(word)}", f"{name} e={small[-3:]}"]
    elif name in ("-2", "+2"):
        features.append(f"{name} c={class_of(word)}")
    return features


@lru_cache(maxsize=4096)
def all_features(word: str) -> tuple[list[str], list[int]]:
    """The features of a word in every slot, one after the other, and where each slot's begin."""
    features: list[str] = []
    begins = []
    for slot in range(len(SLOTS)):
        begins.append(len(features))
        features += features_at(word, slot)
    return features, begins


def _features_of(word: str, small: str) -> list[str]:
    parts = [f"s={shape_of(word)}", f"c={class_of(word)}", f"n={min(len(word), 12)}", "b="]
    if word.isalpha() and len(word) > 2:
        parts += [f"p2={small[:2]}", f"p3={small[:3]}", f"p4={small[:4]}"]
        parts += [f"e2={small[-2:]}", f"e3={small[-3:]}", f"e4={small[-4:]}"]
    return parts


PAIRS: tuple[tuple[int, int], ...] = ((-1, 0), (0, 1), (-1, 1), (-2, -1))
"""Distances of the two tokens whose classes make a feature."""

HITS: tuple[str, ...] = (
    "beyond",
    "",
    *(f"EID:{category}" for category in spans.EID),
    *(f"QID:{category}" for category in spans.QID),
    *(f"HMI:{category}" for category in spans.HMI),
)
"""Dictionary hits of a token."""
HIT_IDS = {name: number for number, name in enumerate(HITS)}
AROUND = (-2, -1, 0, 1, 2, 3)
"""Distances of the dictionary's hits and of named words that make features."""


FIXED: tuple[str, ...] = (
    *(
        f"pair{template} {one}|{two}"
        for template in range(len(PAIRS))
        for one, two in product(CLASSES, CLASSES)
    ),
    *(
        feature
        for distance in AROUND
        for feature in (
            *(f"hit{distance:+d} {hit}" for hit in HITS),
            *(f"again{distance:+d} {flag}" for flag in (0, 1)),
        )
    ),
)
"""All features but those of words: of each pair of neighbours, then of each distance."""
_FIRST_OF_PAIR = np.arange(len(PAIRS)) * len(CLASSES) ** 2
_FIRST_AROUND = len(PAIRS) * len(CLASSES) ** 2 + np.arange(len(AROUND)) * (len(HITS) + 2)
BEFORE, AFTER = -AROUND[0], AROUND[-1]
_ONE, _TWO = np.array(PAIRS).T + BEFORE


@dataclass(frozen=True)
class Looked:
    """Model input of a note, a row per token.

    `by_word`: the word in each of SLOTS, as its number in `vocabulary` times the number of slots, plus the slot.
    `fixed`: the token's features of FIXED, by their places there.
    """

    tokens: Tokens
    vocabulary: Vocabulary
    by_word: NDArray[np.int64]
    fixed: NDArray[np.int64]


KEY_REACH = 12
"""Tokens after a colon that still belong to its key."""
HEAD_WORDS = 6
"""Most tokens of a line that can be a heading."""
ROLE_REACH = 3
"""Tokens after the colon of a role (`Attending:`) that may be a name."""

_CLASSES = PerWord(lambda word: CLASS_IDS[class_of(word)], np.int64)
_CAPITAL = PerWord(lambda word: word[:1].isupper() and len(word) > 1, np.bool_)
_SMALL = PerWord(lambda word: word != word.upper(), np.bool_)


def context(seen: Seen) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """For each token: the index of the word before the last colon on its line (−1: none), the index of the last word
    of the section's heading (−1: none), and whether its word follows a title or a role somewhere in the note."""
    words, places = seen.words, np.arange(len(seen.words))
    classes, capital, small = (each.of(seen.vocabulary)[words] for each in (_CLASSES, _CAPITAL, _SMALL))
    line, colon, point, title, role = (
        classes == CLASS_IDS[n] for n in ("line", "colon", "point", "title", "role")
    )
    begin = np.maximum.accumulate(np.concatenate(([0], np.where(line, places + 1, 0))))[:-1]  # of the line
    colon &= places > begin
    last_colon = np.maximum.accumulate(np.where(colon, places, -1))
    keyed = last_colon > begin
    key = np.where(keyed & ~line & ~colon & (places - last_colon <= KEY_REACH), last_colon - 1, -1)
    upto = np.concatenate(([0], np.cumsum(small)))  # words with small letters before each token
    shouted = line & (places > begin) & ~keyed & (upto[places] == upto[begin])
    heading = (shouted | colon) & (places - begin <= HEAD_WORDS)
    head = np.maximum.accumulate(np.where(heading, places - 1, -1))
    before = places - 1
    before = before - (point[before] & (before > 0))
    of_role = keyed & role[np.maximum(last_colon, 1) - 1] & (places - last_colon <= ROLE_REACH)
    named = capital & (places > 0) & (title[before] | of_role)
    named_words = np.zeros(words.max(initial=0) + 1, np.bool_)
    named_words[words[named]] = True
    return key, head, named_words[words]


def look(text: str, dictionary_spans: Sequence[Span], seen: Seen | None = None) -> Looked:
    """Split a text, unless it has been `seen`, and find the features of its tokens."""
    seen = seen or read(text)
    count = len(seen.words)
    key, head, again = context(seen)
    # Words, classes, hits and flags of the tokens, and of what is beyond the text around them.
    padded = np.zeros((4, BEFORE + count + AFTER), np.int64)
    classes = _CLASSES.of(seen.vocabulary)[seen.words]
    hits = _hits(seen.tokens, dictionary_spans)
    padded[:, BEFORE : BEFORE + count] = seen.words, classes, hits, again
    words, classes, hits, agains = padded[:, np.arange(count)[:, None] + np.arange(len(AROUND))]
    by_word = np.empty((count, len(SLOTS)), np.int64)
    by_word[:, : len(OFFSETS)] = words[:, : len(OFFSETS)]
    by_word[:, len(OFFSETS) :] = padded[0][np.stack([key, head], axis=1) + BEFORE]
    fixed = np.empty((count, len(PAIRS) + 2 * len(AROUND)), np.int64)
    fixed[:, : len(PAIRS)] = _FIRST_OF_PAIR + classes[:, _ONE] * len(CLASSES) + classes[:, _TWO]
    fixed[:, len(PAIRS) :: 2] = _FIRST_AROUND + hits
    fixed[:, len(PAIRS) + 1 :: 2] = _FIRST_AROUND + len(HITS) + agains
    return Looked(seen.tokens, seen.vocabulary, by_word * len(SLOTS) + np.arange(len(SLOTS)), fixed)


def places_of(tokens: Tokens, spans: Sequence[Span]) -> list[slice]:
    """The tokens that each span has a character of."""
    firsts = np.searchsorted(tokens.ends, [span.start for span in spans], side="right")
    pasts = np.searchsorted(tokens.starts, [span.end for span in spans], side="left")
    return list(map(slice, firsts.tolist(), pasts.tolist()))


def _hits(tokens: Tokens, spans: Sequence[Span]) -> NDArray[np.int64]:
    none = HIT_IDS[""]
    marks = np.full(len(tokens.words), none)
    for span, place in zip(spans, places_of(tokens, spans), strict=True):
        marks[place] = HIT_IDS.get(f"{span.kind}:{span.category}", none)
    return marks


def attributes(looked: Looked) -> list[list[str]]:
    """Every token's features as strings, as the trainers take them. The models' tables hold the same."""
    words = looked.vocabulary.words
    return [
        [name for place in by_word for name in features_at(words[place // len(SLOTS)], place % len(SLOTS))]
        + [FIXED[place] for place in fixed]
        for by_word, fixed in zip(looked.by_word.tolist(), looked.fixed.tolist(), strict=True)
    ]
