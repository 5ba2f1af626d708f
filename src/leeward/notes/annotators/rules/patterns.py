"""Rules that are a pattern each: what its matches are, and when it is tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from leeward.notes.spans import Kind, Span


def mark(start: int, end: int, category: str, kind: Kind = "EID", asserted: bool = True) -> Span:
    return Span(start, end, kind, category, "", "rules", asserted)


class Rule(NamedTuple):
    """A pattern whose matches, or their last group if it has one, are of a category. Texts with none of `words` (lower
    case) are passed over; `near` is in every match and found faster. With `low` the pattern reads the text in lower
    case; `fits` decides whether a match counts."""

    category: str
    pattern: re.Pattern[str]
    words: tuple[str, ...] = ()
    kind: Kind = "EID"
    low: bool = False
    fits: Callable[[str, re.Match[str]], object] | None = None
    near: re.Pattern[str] | None = None

    def matches(self, text: str, low: str) -> Iterable[re.Match[str]]:
        if self.words and not any(word in low for word in self.words):
            return ()
        if self.near and not self.near.search(text):
            return ()
        return self.pattern.finditer(low if self.low else text)

    def find(self, text: str, low: str) -> Iterator[Span]:
        """The rule's spans in a text."""
        for match in self.matches(text, low):
            if self.fits is None or self.fits(text, match):
                yield mark(*match.span(self.pattern.groups), self.category, self.kind)


def find_all(rules: Iterable[Rule], text: str, low: str) -> Iterator[Span]:
    """The spans of several rules, in the rules' order."""
    for rule in rules:
        yield from rule.find(text, low)


def is_free(text: str, start: int, signs: str) -> bool:
    """Whether no letter, figure or one of these signs is before a place."""
    return start == 0 or not (text[start - 1].isalnum() or text[start - 1] in signs)


def count_digits(text: str) -> int:
    return sum(map(str.isdigit, text))
