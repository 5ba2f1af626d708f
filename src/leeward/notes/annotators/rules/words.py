"""Words that tell what is beside them: months, titles, relatives, states, given names, and what is no name.

The lists are in `notes/data/words.txt`.
"""

from __future__ import annotations

from leeward.texts import list_words, read_parts

_LISTS = read_parts("leeward.notes", "words.txt")


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def _read_list(name: str) -> frozenset[str]:
    """A list of names of several words, parted by commas."""
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
"""Each relative with the sex that the word implies."""

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
"""Given names that are words as well: alone, at the beginning of a sentence, they are no evidence."""
NO_NAME = words(_LISTS["no_name"])
"""Words of notes that begin with a capital in headings and sentences and are no part of a name."""
SURNAMES_TOO = words(_LISTS["surnames_too"])
"""Of these, last names of people: they go on a name that has begun."""
PLAIN = words(_LISTS["plain"])
"""Words that are no name even after a title."""

REPORT_WORDS = words(read_parts("leeward.notes", "report_words.txt")["words"]) | NO_NAME | PLAIN
"""Words of medical reports that are no name by themselves, however they are written (`Benign`, `Gait`, `However`).

Those of the file are in small letters in three or more public reports (MTS-Dialog, ACI-Bench, MTSamples) and on no
list of names or places of the United States.
"""
