"""Search in a public vocabulary: what it finds, in which order and how fast, depends on the list alone."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from leeward.queries.index.counts import Index
from leeward.queries.language.query import fold, quote
from leeward.queries.language.vocabulary import Terms

MOST: Final = 20
"""Terms found at once."""


@dataclass(frozen=True)
class Found:
    """A term as it is asked for, and how a person calls it."""

    name: str
    label: str
    asked: str
    """As it is written in a question: in quotation marks where it holds a sign of the language."""


class _Key:
    """A vocabulary as a key of the cache: by identity, as it never changes while it is open."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def __hash__(self) -> int:
        return id(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.terms is self.terms


@lru_cache(maxsize=32)
def _sort_names(key: _Key) -> tuple[str, ...]:
    return tuple(sorted(key.terms.names))


def search(index: Index, text: str, most: int = MOST) -> list[Found]:
    """Terms whose name, code, label or synonym begins with `text` or else holds it; labels before synonyms, by name.

    Empty where the vocabulary is no list.
    """
    wanted = fold(text)
    if not isinstance(index.terms, Terms) or not wanted:
        return []
    terms = index.terms
    names = _sort_names(_Key(terms))
    at = bisect_left(names, wanted)
    found: dict[str, None] = {}
    while at < len(names) and names[at].startswith(wanted) and len(found) < most:
        found.setdefault(terms.names[names[at]])
        at += 1
    if len(found) < most and len(wanted) > 1:
        for name in names:
            if wanted in name:
                found.setdefault(terms.names[name])
                if len(found) >= most:
                    break
    # A term's own name or label before what is only a synonym of it.
    found_first = sorted(found, key=lambda name: not fold(terms.shown(name)).startswith(wanted))
    return [Found(name, terms.shown(name), _term_in_query(terms, name)) for name in found_first]


def _term_in_query(terms: Terms, name: str) -> str:
    """A term as a question writes it: its label, where that names this term and no other."""
    label = terms.shown(name)
    return quote(label if terms.names.get(fold(label)) == name else name)
