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
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
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


@dataclass(frozen=True)
class Looked:
    """Model input of a note, one entry per token. `words` are numbers in `vocabulary`; `key` and `head` are indices
    of tokens or −1."""

    tokens: Tokens
    vocabulary: Vocabulary
    words: NDArray[np.int32]
    classes: NDArray[np.int16]
    key: NDArray[np.int32]
    head: NDArray[np.int32]
    again: NDArray[np.bool_]
    hits: NDArray[np.uint8]


KEY_REACH = 12
"""Tokens after a colon that still belong to its key."""
HEAD_WORDS = 6
"""Most tokens of a line that can be a heading."""


CAPITAL, UPPER = 1, 2
"""Flags of a word: it begins with a capital and goes on; has no small letters."""


@njit
def context(
    ids: NDArray[np.int32],
    classes: NDArray[np.int16],
    flags: NDArray[np.uint8],
    colon: int,
    line: int,
    point: int,
    title: int,
    role: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """For each token: the index of the word before the last colon on its line (−1: none), the index of the last word
    of the section's heading, and whether its word follows a title or a role somewhere in the note."""
    n = len(ids)
    word_count = 0
    for i in range(n):
        word_count = max(word_count, ids[i] + 1)
    key = np.full(n, -1, np.int32)
    head = np.full(n, -1, np.int32)
    named = np.zeros(word_count, np.bool_)
    line_start = 0
    current_key = -1
    current_head = -1
    colon_at = -KEY_REACH - 1
    for i in range(n):
        if classes[i] == line:
            length = i - line_start
            if 0 < length <= HEAD_WORDS and current_key < line_start:
                shouted = True
                for j in range(line_start, i):
                    shouted = shouted and flags[j] & UPPER != 0
                if shouted:
                    current_head = i - 1
            line_start = i + 1
            current_key = -1
            colon_at = -KEY_REACH - 1
        elif classes[i] == colon and i > line_start:
            current_key = i - 1
            colon_at = i
            if i - line_start <= HEAD_WORDS:
                current_head = i - 1
        elif current_key >= 0 and i - colon_at <= KEY_REACH:
            key[i] = current_key
        head[i] = current_head
        if i > 0 and flags[i] & CAPITAL:
            before = i - 1
            if classes[before] == point and before > 0:
                before -= 1
            if classes[before] == title or (
                current_key >= 0 and classes[current_key] == role and i - colon_at <= 3
            ):
                named[ids[i]] = True
    again = np.zeros(n, np.bool_)
    for i in range(n):
        again[i] = named[ids[i]]
    return key, head, again


_CLASSES = PerWord(lambda word: CLASS_IDS[class_of(word)], np.int16)
_FLAGS = PerWord(
    lambda word: CAPITAL * (word[:1].isupper() and len(word) > 1) + UPPER * (word == word.upper()),
    np.uint8,
)
_MARKS = tuple(CLASS_IDS[name] for name in ("colon", "line", "point", "title", "role"))


def look(text: str, dictionary_spans: Sequence[Span], seen: Seen | None = None) -> Looked:
    """Split a text, unless it has been `seen`, and find what the features of its tokens need."""
    tokens, vocabulary, words = seen or read(text)
    classes, flags = _CLASSES.of(vocabulary)[words], _FLAGS.of(vocabulary)[words]
    key, head, again = context(words, classes, flags, *_MARKS)
    hits = _hits(tokens, dictionary_spans)
    return Looked(tokens, vocabulary, words, classes, key, head, again, hits)


def places_of(tokens: Tokens, spans: Sequence[Span]) -> list[slice]:
    firsts = np.searchsorted(tokens.ends, [span.start for span in spans], side="right")
    pasts = np.searchsorted(tokens.starts, [span.end for span in spans], side="left")
    return list(map(slice, firsts.tolist(), pasts.tolist()))


def _hits(tokens: Tokens, spans: Sequence[Span]) -> NDArray[np.uint8]:
    none = HIT_IDS[""]
    marks = np.full(len(tokens.words), none, np.uint8)
    for span, place in zip(spans, places_of(tokens, spans), strict=True):
        marks[place] = HIT_IDS.get(f"{span.kind}:{span.category}", none)
    return marks


def attributes(looked: Looked) -> list[list[str]]:
    """Every token's features as strings, as the trainers take them. The models' tables hold the same."""
    # Tokens are counted from 2: what is beyond the text is around them, and index −1 is beyond, too.
    words = ["", "", *looked.tokens.words, "", "", ""]
    classes = ["edge"] * 2 + [CLASSES[number] for number in looked.classes.tolist()] + ["edge"] * 3
    hits = [HITS[0]] * 2 + [HITS[number] for number in looked.hits.tolist()] + [HITS[0]] * 3
    again = [False] * 2 + looked.again.tolist() + [False] * 3
    rows: list[list[str]] = []
    for i, (key, head) in enumerate(zip(looked.key.tolist(), looked.head.tolist(), strict=True), 2):
        places = [*(i + offset for offset in OFFSETS), key + 2, head + 2]
        row = [feature for slot, place in enumerate(places) for feature in features_at(words[place], slot)]
        for template, (one, two) in enumerate(PAIRS):
            row.append(pair_feature(template, classes[i + one], classes[i + two]))
        for distance in AROUND:
            row += hit_feature(distance, hits[i + distance]), again_feature(distance, again[i + distance])
        rows.append(row)
    return rows


def pair_feature(template: int, one: str, two: str) -> str:
    return f"pair{template} {one}|{two}"


def hit_feature(distance: int, hit: str) -> str:
    return f"hit{distance:+d} {hit}"


def again_feature(distance: int, flag: bool) -> str:
    """The feature of a word that follows a title elsewhere in the note."""
    return f"again{distance:+d} {int(flag)}"
