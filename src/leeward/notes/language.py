"""Language identification of notes: English, or a language that the annotators do not read.

The language is that of the most function words (`data/function_words.tsv`), the small-word form of language
identification (Grefenstette 1995). Notes with too few of them (lists, laboratory values) stay undetermined and are
taken as English. Text mostly in another script than Latin is another language.
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
"""Minimum function words of another language for a note to count as in it."""
TIMES: Final = 1.5
"""Ratio of them to English ones that must be exceeded."""
LETTERS: Final = 20
"""Minimum letters for a decision by script."""

WORD = re.compile(r"[^\W\d_]+")
LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]")
LETTER = re.compile(r"[^\W\d_]")


def language_of(text: str) -> str | None:
    """Return the name of a note's language, `another script`, or None if undetermined."""
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
    """Language -> rows (from 1) of its notes, for languages that the annotators do not read."""
    found: dict[str, list[int]] = {}
    for row, text in enumerate(texts, 1):
        language = language_of(text)
        if language not in (None, ENGLISH):
            found.setdefault(str(language), []).append(row)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """Function word -> its languages."""
    text = resources.files("leeward.notes").joinpath("data", "function_words.tsv").read_text("utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            language, words = line.split("\t")
            for word in words.split():
                found[word] = (*found.get(word, ()), language)
    return found
