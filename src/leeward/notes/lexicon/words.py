"""From text to words and back: what counts as one word, when two are the same, and how a term may be written.

A word is a run of letters and digits, with the apostrophes inside it. Blanks and single hyphens only part words;
every other mark is a word of its own, so that no term reaches over a comma or a full stop. A blank line and a
dash between blanks count as marks too. Words are compared folded: case, accents and a possessive `'s` make no
difference. Since folding is done word by word, a place in the words is a place in the original text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_JOINED = "\u0300-\u036f\u00ad"  # combining accents, soft hyphen: inside a word, though no letters

WORD = re.compile(
    rf"([^\W_]+(?:[{_JOINED}]+[^\W_]*)*(?:['’][^\W_]+)*"  # a word
    r"|\n[^\S\n]*\n"  # a blank line
    r"|(?<=\s)[-‐‑]+(?=\s)"  # a dash between blanks
    r"|[^\w\s‐‑-]|_|[-‐‑]{2,})"  # any other mark
)

_HYPHENED, _HYPHEN = re.compile(r"\w[-‐‑]\w"), re.compile(r"(?<=\w)[-‐‑](?=\w)")
_POSSESSED, _POSSESSIVE = re.compile(r"\w['’]s\b"), re.compile(r"['’]s\b")

Key = tuple[str, ...]
"""The folded words of a term."""


def fold(word: str) -> str:
    """What a word is compared by."""
    if word.isascii():
        folded = word.lower()
        return folded[:-2] if folded.endswith("'s") else folded
    plain = unicodedata.normalize("NFKD", word.replace("’", "'").replace("\u00ad", ""))
    folded = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    return folded[:-2] if folded.endswith("'s") else folded


def text_key(text: str) -> Key:
    """The folded words of a text."""
    if text.isascii() and "'" not in text:
        return tuple(WORD.findall(text.lower()))
    return tuple(fold(word) for word in WORD.findall(text))


def plural(word: str) -> str | None:
    """The regular plural of a folded word; None where it would be another word."""
    if len(word) < 3 or not word.isalpha() or not word.isascii():
        return None
    if word.endswith(("sis", "xis")):
        return word[:-2] + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return None if word.endswith("s") and not word.endswith("ss") else word + "es"
    return word + "s"


@lru_cache(maxsize=4096)
def keys(text: str) -> tuple[Key, ...]:
    """The ways a term may be written: as written, hyphens closed up, possessive `s` without its apostrophe,
    last word in the plural. The first is the term as written.
    """
    forms = [text]
    if not text.isascii() or "-" in text or "'" in text:
        if _HYPHENED.search(text):
            forms.append(_HYPHEN.sub("", text))
        forms += [_POSSESSIVE.sub("s", form) for form in forms if _POSSESSED.search(form)]
    found = dict.fromkeys(key for form in forms if (key := text_key(form)))
    for key in list(found):
        many = f"{key[-1]}s" if text[-2:].isalpha() and text[-2:].isupper() else plural(key[-1])
        if many:
            found[(*key[:-1], many)] = None
    return tuple(found)
