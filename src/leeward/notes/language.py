"""Which language a note is in, as far as the annotators need to know: English, or one that they do not read.

A note is counted by its function words (`data/function_words.tsv`), the small-word form of language identification
(Grefenstette 1995): which language's small words it uses most. Notes without enough of them (lists, laboratory
values) stay undecided and are taken as English. Writing that is mostly not Latin is another language by its letters
alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final

ENGLISH: Final = "English"
OTHER: Final = "another script"
LEAST: Final = 6
"""Function words of another language, at least, before a note is said to be in it."""
TIMES: Final = 1.5
"""So many times more of them than English ones."""
LETTERS: Final = 20
"""Letters, at least, before their script counts."""

WORD = re.compile(r"[^\W\d_]+")
LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]")
LETTER = re.compile(r"[^\W\d_]")


def language_of(text: str) -> str | None:
    """The language of a note by name, `another script`, or None where too little shows it."""
    if not text.isascii():  # every letter of ASCII is Latin
        letters = len(LETTER.findall(text))
        if letters >= LETTERS and 2 * len(LATIN.findall(text)) < letters:
            return OTHER
    known = _languages()
    hits: Counter[str] = Counter()
    for word, count in Counter(WORD.findall(text.lower())).items():
        for language in known.get(word, ()):
            hits[language] += count
    if not hits:
        return None
    best = max((name for name in hits if name != ENGLISH), key=lambda name: hits[name], default=ENGLISH)
    if hits[best] >= LEAST and hits[best] > TIMES * hits[ENGLISH]:
        return best
    return ENGLISH if hits[ENGLISH] >= LEAST else None


def foreign_notes(texts: Iterable[str]) -> dict[str, list[int]]:
    """Language -> the rows (from 1) of notes in it, of the languages that the annotators do not read."""
    found: dict[str, list[int]] = {}
    for row, text in enumerate(texts, 1):
        language = language_of(text)
        if language not in (None, ENGLISH):
            found.setdefault(str(language), []).append(row)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """Function word -> the languages that have it."""
    text = resources.files("leeward.notes").joinpath("data", "function_words.tsv").read_text("utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            language, words = line.split("\t")
            for word in words.split():
                found[word] = (*found.get(word, ()), language)
    return found
