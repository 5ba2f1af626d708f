"""Find a lexicon's terms in words: Aho-Corasick over whole words, the longest match wins.

The automaton (Aho, Corasick: Efficient string matching, CACM 1975) reads the numbers of words instead of their
letters, so that a term never begins or ends inside a word, and an offset never shifts. Time grows with the text, not
with the lexicon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from leeward.errors import require_extra
from leeward.notes.lexicon.concepts import WORD, Key, Lexicon, fold, keys
from leeward.notes.vocabulary import PerWord, Seen, Shared

NEAR = 4
"""Most words between an ambiguous term and the health term that confirms it."""

BASE = 24
"""Digits that number a word; see `_symbols`."""

UNKNOWN = "\0"
"""Symbol of words in no term."""

NO_CONCEPT = -1
"""Owner of a phrase that is no term."""

_SENTENCE_ENDS = frozenset(".;!?\n")


@dataclass(frozen=True)
class Words:
    """A text's words and marks, in order; all lists have one entry per word."""

    text: str
    raw: list[str]
    folded: list[str]
    starts: list[int]
    seen: Seen

    @classmethod
    def of(cls, text: str) -> Words:
        seen = _SHARED.read(text)
        folded = _FOLDED.of(seen.vocabulary)[seen.words].tolist()
        return cls(text, seen.tokens.words, folded, seen.tokens.starts.tolist(), seen)

    def capitals(self) -> list[int]:
        """Indices of words that begin with a capital."""
        places: list[int] = np.flatnonzero(_CAPITAL.of(self.seen.vocabulary)[self.seen.words]).tolist()
        return places

    def end(self, place: int) -> int:
        return self.starts[place] + len(self.raw[place])

    def gap(self, place: int) -> str:
        return self.text[self.end(place) : self.starts[place + 1]]

    @cached_property
    def _shouting(self) -> dict[int, bool]:
        return {}

    def shouts(self, place: int) -> bool:
        """Whether the word's whole line is in capitals, which then carry no information."""
        begin = self.text.rfind("\n", 0, self.starts[place]) + 1
        if begin not in self._shouting:
            end = self.text.find("\n", begin)
            line = self.text[begin : end if end >= 0 else len(self.text)]
            long_words = sum(len(w.strip(".,;:()")) >= 5 for w in line.split())
            self._shouting[begin] = long_words >= 4 and line.upper() == line
        return self._shouting[begin]


_FOLDED = PerWord(fold, object)
_CAPITAL = PerWord(lambda word: word[:1].isupper(), np.bool_)
_SHARED = Shared(WORD)


class Match(NamedTuple):
    """Words `first` to `last` (inclusive) name a concept, given by its place in the lexicon."""

    first: int
    last: int
    concept: int


class _Owner(NamedTuple):
    concept: int
    spellings: frozenset[str]  # empty: any
    ambiguous: bool
    rank: int


class _Pattern(NamedTuple):
    length: int
    owners: tuple[_Owner, ...]


class TermMatcher:
    """A matcher built once from a lexicon; `matches` is stateless and thread-safe."""

    def __init__(self, lexicon: Lexicon) -> None:
        require_extra("Finding terms", "notes", "ahocorasick")
        import ahocorasick

        owners: dict[Key, list[_Owner]] = {}
        for place, concept in enumerate(lexicon.concepts):
            for nth, term in enumerate(concept.terms):
                spellings = frozenset(_spellings(term.text)) if term.exact else frozenset[str]()
                for variant, key in enumerate(keys(term.text)):
                    rank = 2 * (variant > 0) + (nth > 0)
                    owners.setdefault(key, []).append(_Owner(place, spellings, term.ambiguous, rank))
        for phrase in lexicon.phrases:
            for key in keys(phrase):
                owners.setdefault(key, []).append(_Owner(NO_CONCEPT, frozenset(), False, 0))
        self._symbols = _symbols(sorted({word for key in owners for word in key}))
        self._width = len(next(iter(self._symbols.values()), ""))
        unknown, symbols = UNKNOWN * self._width, self._symbols
        self._written = PerWord(lambda word: symbols.get(fold(word), unknown), object)
        self._automaton: Any = None
        if owners:
            self._automaton = ahocorasick.Automaton(ahocorasick.STORE_ANY)
            symbol = self._symbols.__getitem__
            for key, found in owners.items():
                self._automaton.add_word("".join(map(symbol, key)), _Pattern(len(key), _rank(found)))
            self._automaton.make_automaton()

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        return frozenset(self._symbols)

    def matches(self, words: Words) -> list[Match]:
        """Return the terms in a text, ascending, without overlaps (leftmost longest)."""
        if self._automaton is None or not words.raw:
            return []
        written = self._written.of(words.seen.vocabulary)[words.seen.words].tolist()
        plain: list[Match] = []
        doubtful: list[tuple[int, int, list[int]]] = []
        for at, pattern in self._automaton.iter("".join(written)):
            last = at // self._width
            first = last - pattern.length + 1
            concept, others = _accept(words, first, last, pattern)
            if concept is not None:
                plain.append(Match(first, last, concept))
            elif others:
                doubtful.append((first, last, others))
        chosen = leftmost_longest(plain)
        if doubtful:
            backed = _find_backing(words, [m for m in chosen if m.concept != NO_CONCEPT], doubtful)
            chosen = leftmost_longest([*plain, *backed]) if backed else chosen
        return [match for match in chosen if match.concept != NO_CONCEPT]


def _symbols(words: Sequence[str]) -> dict[str, str]:
    """Encode each word as a string of one length, such that none begins inside another. The automaton searches the
    branches of a node linearly: with one symbol per word the root would have thousands, with digits to the base `BASE`
    no node has more than that."""
    width = 1
    while BASE**width < len(words):
        width += 1
    return {
        word: "".join(chr(0x100 + BASE * (p > 0) + n // BASE ** (width - 1 - p) % BASE) for p in range(width))
        for n, word in enumerate(words)
    }


def leftmost_longest(matches: Iterable[Match]) -> list[Match]:
    """Resolve overlapping matches: the leftmost, then the longest."""
    chosen: list[Match] = []
    past = 0
    for match in sorted(matches, key=lambda m: (m.first, -m.last, m.concept)):
        if match.first >= past:
            chosen.append(match)
            past = match.last + 1
    return chosen


def _spellings(text: str) -> list[str]:
    """Exact spellings of a term: words separated by one blank, also with the plural `s` of abbreviations."""
    written = " ".join(WORD.findall(text))
    return [written, written + "s"]


def _rank(owners: list[_Owner]) -> tuple[_Owner, ...]:
    """Sort owners: exact spellings, plain terms, ambiguous terms; one owner per concept."""
    if len(owners) == 1:
        return tuple(owners)
    ordered = sorted(owners, key=lambda o: (o.ambiguous, not o.spellings, o.rank, o.concept))
    best: dict[tuple[int, frozenset[str]], _Owner] = {}
    for owner in ordered:
        best.setdefault((owner.concept, owner.spellings), owner)
    return tuple(best.values())


def _accept(words: Words, first: int, last: int, pattern: _Pattern) -> tuple[int | None, list[int]]:
    """Return the concept these words certainly name, or else the candidates."""
    others: list[int] = []
    for owner in pattern.owners:
        if owner.spellings and (
            " ".join(words.raw[first : last + 1]) not in owner.spellings or words.shouts(first)
        ):
            continue
        if not owner.ambiguous:
            return owner.concept, []
        if owner.concept not in others:
            others.append(owner.concept)
    return None, others


def _find_backing(
    words: Words, chosen: list[Match], doubtful: list[tuple[int, int, list[int]]]
) -> list[Match]:
    """Confirm ambiguous matches: the text names the concept plainly, or a single meaning has a health term nearby."""
    named = {match.concept for match in chosen}
    starts = {match.first for match in chosen}
    ends = {match.last for match in chosen}
    backed = []
    for first, last, concepts in doubtful:
        known = [c for c in concepts if c in named]
        if len(known) == 1:
            backed.append(Match(first, last, known[0]))
        elif len(concepts) == 1 and _has_neighbour(words, first, last, starts, ends):
            backed.append(Match(first, last, concepts[0]))
    return backed


def _has_neighbour(words: Words, first: int, last: int, starts: set[int], ends: set[int]) -> bool:
    for place in range(last + 1, min(last + 2 + NEAR, len(words.raw))):
        if words.raw[place][0] in _SENTENCE_ENDS:
            break
        if place in starts:
            return True
    for place in range(first - 1, max(first - 2 - NEAR, -1), -1):
        if words.raw[place][0] in _SENTENCE_ENDS:
            break
        if place in ends:
            return True
    return False
