"""Terms of a lexicon in a text, by looking at every place for every spelling; beside words.py and matching.py.

Nothing is shared with them: characters are read one by one, and each term is tried at each word.
"""

from __future__ import annotations

import unicodedata

HYPHENS = "-‐‑"
APOSTROPHES = "'’"


def is_letter(c: str) -> bool:
    return c.isalnum()


def is_joined(c: str) -> bool:
    return "\u0300" <= c <= "\u036f" or c == "\u00ad"


def words_of(text: str) -> list[tuple[int, int]]:
    """Start and end of every word and of every mark that parts terms."""
    found = []
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        if is_letter(c):
            j = i + 1
            while j < n:
                joined = j
                while joined < n and is_joined(text[joined]):
                    joined += 1
                apostrophe = text[j] in APOSTROPHES and j + 1 < n and is_letter(text[j + 1])
                if is_letter(text[j]):
                    j += 1
                elif joined > j and "’" not in text[i:j] and "'" not in text[i:j]:
                    j = joined  # an accent after an apostrophe ends the word
                elif apostrophe:
                    j += 2
                else:
                    break
            found.append((i, j))
            i = j
        elif c == "\n":
            j = i + 1
            while j < n and text[j].isspace() and text[j] != "\n":
                j += 1
            if j < n and text[j] == "\n":
                found.append((i, j + 1))
                i = j + 1
            else:
                i += 1
        elif c.isspace():
            i += 1
        elif c in HYPHENS:
            j = i
            while j < n and text[j] in HYPHENS:
                j += 1
            alone = i > 0 and text[i - 1].isspace() and j < n and text[j].isspace()
            if alone or j - i >= 2:
                found.append((i, j))
            i = j
        else:
            found.append((i, i + 1))
            i += 1
    return found


def folded(word: str) -> str:
    kept = [
        c
        for c in unicodedata.normalize("NFKD", word.replace("’", "'"))
        if not unicodedata.combining(c) and c != "\u00ad"
    ]
    low = "".join(kept).casefold()
    return low[:-2] if low.endswith("'s") else low


def find(text: str, terms: dict[str, str]) -> list[tuple[int, int, str]]:
    """Start, end and concept of the terms in a text: leftmost first, the longest of those; `terms` are the
    spellings and their concepts.
    """
    places = words_of(text)
    folds = [folded(text[a:b]) for a, b in places]
    spelled = [([folded(term[a:b]) for a, b in words_of(term)], concept) for term, concept in terms.items()]
    found = []
    at = 0
    while at < len(places):
        fitting = [(len(s), c) for s, c in spelled if s and folds[at : at + len(s)] == s]
        if not fitting:
            at += 1
            continue
        length, concept = max(fitting, key=lambda f: f[0])
        found.append((places[at][0], places[at + length - 1][1], concept))
        at += length
    return found
