"""Cue words (`notes/data/words.txt`), capitalized words, and field labels."""

from __future__ import annotations

import re
from typing import NamedTuple

from leeward.notes.field_labels import Labels, labels_of
from leeward.texts import list_words, read_parts

_LISTS = read_parts("leeward.notes", "words.txt")


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _read_list(name: str) -> frozenset[str]:
    return frozenset(list_words(_LISTS[name], ","))


MONTHS = {
    name: number
    for number, names in enumerate(
        list_words(
            """january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sept sep,
            october oct,november nov,december dec""",
            ",",
        ),
        start=1,
    )
    for name in names.split()
}

TITLES = words(_LISTS["titles"])
DOCTORS = words(_LISTS["doctors"])
CREDENTIALS = words(_LISTS["credentials"])
NAME_TAILS = words(_LISTS["name_tails"])
PARTICLES = words(_LISTS["particles"])

RELATIVES = {
    **dict.fromkeys(_LISTS["female_relatives"].split(), "female"),
    **dict.fromkeys(_LISTS["male_relatives"].split(), "male"),
    **dict.fromkeys(_LISTS["other_relatives"].split(), ""),
}
"""Relative -> implied sex."""

RELATIVE = "|".join(sorted(RELATIVES, key=lambda word: (-len(word), word)))
"""Every relative as alternatives of a pattern, the longest first."""

SEXES = {
    **dict.fromkeys(["male", "man", "boy", "gentleman", "males", "gentlemen"], "male"),
    **dict.fromkeys(["female", "woman", "girl", "lady", "females"], "female"),
}

STATES = {name: short for short, _, name in (line.partition(" ") for line in _LISTS["states"].splitlines())}
ABBREVIATIONS = frozenset(STATES.values())

CITIES = _read_list("cities")
"""Cities of the United States with many people, and some beyond; the dictionary's gazetteer has more."""
COUNTRIES = _read_list("countries")

FEMALE = words(_LISTS["female"])
MALE = words(_LISTS["male"])
GIVEN = FEMALE | MALE
"""Given names that are common in the United States (public knowledge of its censuses)."""

WORDS_TOO = words(_LISTS["words_too"])
"""Given names that are also words: alone, at the beginning of a sentence, they are no evidence."""
NO_NAME = words(_LISTS["no_name"])
"""Words capitalized in headings and sentences that are no part of a name."""
SURNAMES_TOO = words(_LISTS["surnames_too"])
"""Those of these words that are last names: they may continue a name."""
PLAIN = words(_LISTS["plain"])
"""Words that are no name even after a title."""

REPORT_WORDS = words(read_parts("leeward.notes", "report_words.txt")["words"]) | NO_NAME | PLAIN
"""Words of medical reports that alone are no name, in any case (`Benign`, `Gait`, `However`).

Those in the file occur in lower case in three or more public reports (MTS-Dialog, ACI-Bench, MTSamples) and in no list
of names or places of the United States.
"""


_WORD = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-Ž](?<![\w@].)(?:[\w'’-]*[^\W_]|(?:\.[A-Z])*\.)?")


class Capital(NamedTuple):
    """A capitalised word, without a possessive `'s`; `low` is in lower case, without points."""

    start: int
    end: int
    word: str
    low: str

    @property
    def initial(self) -> bool:
        return len(self.word) == 1 or (len(self.word) == 2 and self.word[1] == ".")


def find_capitals(text: str) -> list[Capital]:
    found = []
    for match in _WORD.finditer(text):
        word = match.group()
        word = word[:-2] if word.endswith(("'s", "’s")) else word
        low = word.rstrip(".").lower().replace("’", "'")
        found.append(Capital(match.start(), match.start() + len(word), word, low))
    return found


def gap(text: str, left: Capital, right: Capital) -> str:
    """The text between two words."""
    return text[left.end : right.start]


def before(low: str, start: int, length: int = 28) -> list[str]:
    """Return the last words before a place in the text, on its line, with punctuation as separate words."""
    piece = low[max(0, start - length) : start]
    return _SPLIT.findall(piece[piece.rfind("\n") + 1 :])


_SPLIT = re.compile(r"[\w'’-]+|[^\w\s]")


FIELDS = labels_of("field_labels.txt")
"""Label, lower case, to what it labels."""

FIELD_TABLE = Labels(FIELDS)

NUMBERS = words("""ssn record_number plan_number account_number licence_number vehicle device other_id""")
"""Meanings whose value is a number or code."""
