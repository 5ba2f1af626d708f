"""What a single word looks like to the learned annotators: its class, and its own features.

A class is what a rule would call the word (a title, a month, a number of five digits, a capitalized word …): pairs of
neighbouring classes are features too, which lets a linear model see "Dr. X", "12/3/2009" and "Name: X".
"""

from __future__ import annotations

from functools import cache, lru_cache
from types import MappingProxyType

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
    """The class of a token; the empty word is what is beyond the text."""
    if word in SIGNS:
        return SIGNS[word]
    if word.isdigit():
        return "year" if len(word) == 4 and word[:2] in ("19", "20") else f"d{min(len(word), 10)}"
    if not word.isalpha():
        return "sign"
    listed = _lists().get(word.lower())
    if listed == "state" and not word.isupper():
        listed = "stop" if word.lower() in _STOP else None
    if listed:
        return listed
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
    short = ""
    for sign in shape:
        if short[-2:] != sign * 2 or (sign == "d"):
            short += sign
    return short


def normal(word: str) -> str:
    """Small letters; numbers all alike but for their length; a name for the line break."""
    if word == "\n":
        return "<line>"
    return f"0x{len(word)}" if word.isdigit() and len(word) > 2 else word.lower()


OFFSETS = (-2, -1, 0, 1, 2)
SLOTS: tuple[str, ...] = (*(f"{offset:+d}" for offset in OFFSETS), "key", "head")
"""Where a word can be, seen from the token that is labelled: at a distance, before the last colon on the line, or the
last word of the section's heading."""
CENTRE = OFFSETS.index(0)


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
