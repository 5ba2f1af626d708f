"""Words that begin with a capital, found once and looked at by the rules for names and places."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-Ž](?:[\w'’-]*[^\W_]|(?:\.[A-Z])*\.)?")
_POSSESSIVE = re.compile(r"['’]s?$")


class Capital(NamedTuple):
    """A capitalised word, without a possessive `'s`; `low` is in lower case, without points."""

    start: int
    end: int
    word: str
    low: str

    @property
    def initial(self) -> bool:
        """Whether it is one letter, with or without a point."""
        return len(self.word) == 1 or (len(self.word) == 2 and self.word[1] == ".")


def find(text: str) -> list[Capital]:
    """The capitalised words of a text, ascending."""
    found = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        if start and (text[start - 1].isalnum() or text[start - 1] in "@_"):
            continue
        word = match.group()
        if len(word) > 2 and ("'" in word[-2:] or "’" in word[-2:]):
            word = _POSSESSIVE.sub("", word)
            end = start + len(word)
        if len(word) == 1 and text[end : end + 1] == ".":
            word, end = text[start : end + 1], end + 1
        found.append(Capital(start, end, word, word.rstrip(".").lower().replace("’", "'")))
    return found


def gap(text: str, left: Capital, right: Capital) -> str:
    """The text between two words."""
    return text[left.end : right.start]


def before(low: str, start: int, length: int = 28) -> list[str]:
    """The last words in front of a place in the text, on its line, punctuation kept apart from them."""
    piece = low[max(0, start - length) : start]
    return _SPLIT.findall(piece[piece.rfind("\n") + 1 :])


_SPLIT = re.compile(r"[\w'’-]+|[^\w\s]")
