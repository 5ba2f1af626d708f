"""Surrogates: made-up identities of the same form, the same for the same words of the same patient.

What replaces what follows from a keyed hash of patient, category and word (HMAC-SHA-256), so that nothing but the key
has to be kept and every engine gives the same text. Dates of a patient all move by the same number of days.
"""

from __future__ import annotations

import re
from functools import cache

from leeward.notes.annotators.rules import dates
from leeward.notes.annotators.rules.demographics import OLDEST
from leeward.notes.annotators.rules.places import TAILS
from leeward.notes.annotators.rules.words import STATES
from leeward.notes.identities.keys import Keys
from leeward.notes.identities.names import pool, rename

FARTHEST = 365
"""Days by which a patient's dates move at most; never by none."""


def surrogate(keys: Keys, patient: str, category: str, text: str, year: int = 2001) -> str:
    """The replacement of an identity of `category` that reads `text`; never the text itself.

    `year` is that of the visit, for dates without one.
    """
    if category == "date":
        return dates.shift(text, days(keys, patient), year) or "[DATE]"
    if category == "age":
        return f"over {OLDEST}"
    if category == "name":
        return rename(keys, patient, text)
    if category in ("place", "facility"):
        return _place(keys, patient, category, text)
    if category == "address" and re.search(r"[^\W\d_]{3}", text):
        house = 1 + keys.number(patient, "house", text) % 998
        return f"{house} {_pick(keys, streets(), patient, category, text)}"
    if category == "email":
        return f"person{keys.number(patient, category, text.lower()) % 10**8}@example.org"
    if category == "url":
        return f"https://example.org/{keys.number(patient, category, text.lower()) % 10**8}"
    if category == "ip":
        return f"192.0.2.{1 + keys.number(patient, category, text) % 254}"  # reserved for documents, RFC 5737
    if category in ("biometric", "photo") and not any(c.isdigit() for c in text):
        return f"[{category.upper()}]"
    return _digits(keys, patient, category, text)


def days(keys: Keys, patient: str) -> int:
    """By how many days the dates of a patient move: 1 to 365, forward or back."""
    drawn = keys.number(patient, "shift") % (2 * FARTHEST)
    return drawn - FARTHEST if drawn < FARTHEST else drawn - FARTHEST + 1


@cache
def towns() -> tuple[str, ...]:
    """Last names of the United States with the endings of its towns."""
    from faker.providers.address.en_US import Provider as Addresses

    return tuple(
        sorted({f"{name}{end}" for name in pool("last").american[::3] for end in Addresses.city_suffixes[:6]})
    )


@cache
def streets() -> tuple[str, ...]:
    """Last names of the United States with the words of its streets."""
    return tuple(
        f"{name} {kind}"
        for name in pool("last").american[::5]
        for kind in ("Street", "Avenue", "Road", "Lane")
    )


def _pick(keys: Keys, choices: tuple[str, ...], *parts: str) -> str:
    return choices[keys.number(*parts) % len(choices)]


def _other(keys: Keys, choices: tuple[str, ...], word: str, *parts: str) -> str:
    """A choice that is not the word itself."""
    new = _pick(keys, choices, *parts)
    return new if new.lower() != word.lower() else choices[(choices.index(new) + 1) % len(choices)]


def _place(keys: Keys, patient: str, category: str, text: str) -> str:
    if text.lower() in STATES:
        return _other(keys, tuple(s.title() for s in STATES), text, patient, category, text.lower())
    if len(text) == 2 and text.isupper():
        return _other(keys, tuple(STATES.values()), text, patient, category, text)
    town = _other(keys, towns(), text, patient, category, text.lower())
    tail = text.split()[-1]
    return f"{town} {tail}" if category == "facility" and tail.lower() in TAILS else town


def _digits(keys: Keys, patient: str, category: str, text: str) -> str:
    """The same form with other digits and letters, so that a record number still looks like one."""
    bits = keys.number(patient, category, text.lower())
    out = []
    for sign in text:
        if sign.isdigit():
            bits, drawn = divmod(bits, 10) if bits else (0, 7)
            out.append(str(drawn))
        elif sign.isascii() and sign.isalpha():
            bits, drawn = divmod(bits, 26) if bits else (0, 23)
            out.append(chr((65 if sign.isupper() else 97) + drawn))
        else:
            out.append(sign)
    new = "".join(out)
    return new if new != text else new[:-1] + ("1" if new[-1] != "1" else "2")
