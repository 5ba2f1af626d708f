"""Surrogates: fictitious identities of the same form, consistent within a patient.

A surrogate follows from a keyed hash of patient, category and word (HMAC-SHA-256), so that only the key has to be kept
and every engine gives the same text. All dates of a patient move by the same number of days.

A third of the names are American, a third from other countries, a third built from letters. A built name is in no list,
like most names that annotators miss: an attacker who looks for unlisted words finds both.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, Literal

from leeward.errors import require_extra
from leeward.notes.annotators.rules import dates
from leeward.notes.annotators.rules.demographics import OLDEST
from leeward.notes.annotators.rules.places import TAILS
from leeward.notes.annotators.rules.words import (
    CREDENTIALS,
    FEMALE,
    MALE,
    NAME_TAILS,
    PARTICLES,
    REPORT_WORDS,
    STATES,
    TITLES,
)
from leeward.notes.identities.keys import Keys
from leeward.notes.lexicon.concepts import fold

AMERICAN = "en_US"
ABROAD = """
az_AZ cs_CZ da_DK de_AT de_CH de_DE de_LU en en_GB en_IE en_IN en_KE en_NZ en_PK es_AR es_CL es_CO es_ES es_MX et_EE
fi_FI fr_BE fr_CA fr_CH fr_DZ fr_FR hr_HR hu_HU id_ID is_IS it_IT lv_LV nl_BE nl_NL no_NO pl_PL pt_BR pt_PT ro_RO sk_SK
sl_SI sv_SE sw tr_TR tw_GH uz_UZ yo_NG zu_ZA
"""
"""Faker's lists of names in Latin letters, without their accents."""

Kind = Literal["female", "male", "last"]
SEXES: tuple[Kind, ...] = ("female", "male")
FAKER = {"female": "first_names_female", "male": "first_names_male", "last": "last_names"}

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
LISTED = re.compile(r"(?<!\S)[A-Z][A-Za-z'-]+(?!\S)")
ACCENTS = re.compile("[\u0300-\u036f]")
KEPT = TITLES | CREDENTIALS | NAME_TAILS | PARTICLES
SHORTEST, LONGEST = 4, 11
"""Length limits of a built name."""


@dataclass(frozen=True)
class Pool:
    """Names of one kind."""

    american: tuple[str, ...]
    abroad: tuple[str, ...]
    text: str
    """All names made of letters only, in lower case, one per line, in hash order."""
    all: frozenset[str]


@cache
def pool(kind: Kind) -> Pool:
    """The names of a kind. Raises BadInput if Faker is not installed."""
    american = _list_names([AMERICAN], kind)
    abroad = _list_names(ABROAD.split(), kind) - american
    everyone = frozenset(name.lower() for name in american | abroad)
    letters = sorted(filter(str.isalpha, sorted(everyone)), key=lambda name: zlib.crc32(name.encode()))
    return Pool(tuple(sorted(american)), tuple(sorted(abroad)), "\n".join(("", *letters, "")), everyone)


def _list_names(locales: Iterable[str], kind: Kind) -> set[str]:
    require_extra("A list of names", "notes", "faker")
    people: list[Any] = [
        importlib.import_module(f"faker.providers.person.{locale}").Provider for locale in locales
    ]
    names = {name for each in people for name in getattr(each, FAKER[kind], ())}
    plain = ACCENTS.sub("", unicodedata.normalize("NFKD", " ".join(names)))
    return {word for word in set(LISTED.findall(plain)) if word.lower() not in KEPT}


def rename(keys: Keys, patient: str, text: str) -> str:
    """Replace the words of a person's name; titles and particles stay. The first word becomes a first name, of the same
    sex where a list knows it. Any other word becomes a first name where lists know it as one and not as a last name,
    and a last name otherwise."""
    words = [match for match in WORD.finditer(text) if match.group().lower() not in KEPT]
    behind = (match.start() for match in words if match.start() > text.find(","))  # "Brown, James"
    first = next(behind, words[0].start()) if len(words) > 1 else None
    return WORD.sub(lambda match: _rename_word(keys, patient, match.group(), match.start() == first), text)


def _rename_word(keys: Keys, patient: str, word: str, is_first: bool) -> str:
    low = fold(word)
    if word.lower() in KEPT:
        return word
    if len(word) == 1:
        letter = "ABCDEFGHJKLMNOPRSTVW"[keys.number(patient, "initial", low) % 20]
        return letter if word.isupper() else letter.lower()
    kinds = _kinds(low, is_first)
    new = next(
        name
        for attempt in count()
        if (name := _draw(keys, kinds, patient, "name", low, str(attempt))).lower() != low
    )
    return new.upper() if word.isupper() else new.lower() if word.islower() else new


def _kinds(low: str, is_first: bool) -> tuple[Kind, ...]:
    """Candidate kinds of the name that replaces a folded word."""
    if low in FEMALE:
        return ("female",)
    if low in MALE:
        return ("male",)
    sexes = tuple(kind for kind in SEXES if low in pool(kind).all)
    if is_first:
        return sexes or SEXES
    return sexes if sexes and low not in pool("last").all else ("last",)


def _draw(keys: Keys, kinds: tuple[Kind, ...], *parts: str) -> str:
    """Draw a name of one of the kinds: American, foreign, or built from letters."""
    drawn, kind = divmod(keys.number(*parts), len(kinds))
    drawn, third = divmod(drawn, 3)
    names = pool(kinds[kind])
    if third == 2:
        return _put_together(keys, names.text, *parts)
    choices = (names.american, names.abroad)[third]
    return choices[drawn % len(choices)]


def _put_together(keys: Keys, text: str, *parts: str) -> str:
    """Build a name from pieces of the names in `text`; never a word of reports."""
    for attempt in count():
        drawn, made = keys.number(*parts, str(attempt)), "\n"
        while len(made) <= LONGEST and not made[1:].endswith("\n"):
            drawn, place = divmod(drawn, len(text))
            drawn, eighth = divmod(drawn, 8)
            made += _next_piece(text, made[-2:] if eighth else made[-1:], place)
        name = made.strip()
        if made[-1] == "\n" and SHORTEST <= len(name) <= LONGEST and name not in REPORT_WORDS:
            return name.capitalize()
    raise AssertionError  # count() has no end


def _next_piece(text: str, last: str, place: int) -> str:
    """Up to three letters (fewer at a name's end) after the next occurrence of the letters `last` from `place` on. As
    Shannon (1948, section 3) generated words from a book. Only two letters must match, occasionally one: with three,
    half of the names that are in no list could not be built."""
    at = text.find(last, place, -1)
    at = text.find(last, 0, -1) if at < 0 else at
    if at < 0:
        return _next_piece(text, last[1:], place)
    begin = at + len(last)
    end = text.find("\n", begin, begin + 3)
    return text[begin : begin + 3] if end < 0 else text[begin : end + 1]


FARTHEST = 365
"""Largest shift of a patient's dates, in days; the shift is never 0."""


def surrogate(keys: Keys, patient: str, category: str, text: str, year: int = 2001) -> str:
    """Return the replacement of an identity `text` of `category`; never the text itself. `year` is that of the visit,
    for dates without one."""
    if category == "date":
        return dates.shift(text, days(keys, patient), year) or "[DATE]"
    return MAKERS.get(category, _digits)(keys, patient, category, text)


def days(keys: Keys, patient: str) -> int:
    """Shift of a patient's dates in days: 1 to 365, forward or back."""
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
    """Choose something other than the word itself."""
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
    """Redraw digits and letters, keeping the form, so that a record number still looks like one."""
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


def _address(keys: Keys, patient: str, category: str, text: str) -> str:
    if not re.search(r"[^\W\d_]{3}", text):
        return _digits(keys, patient, category, text)
    house = 1 + keys.number(patient, "house", text) % 998
    return f"{house} {_pick(keys, streets(), patient, category, text)}"


def _likeness(keys: Keys, patient: str, category: str, text: str) -> str:
    has_digits = any(c.isdigit() for c in text)
    return _digits(keys, patient, category, text) if has_digits else f"[{category.upper()}]"


def _account(keys: Keys, patient: str, category: str, text: str) -> str:
    """Eight-digit number for an e-mail or web address."""
    return str(keys.number(patient, category, text.lower()) % 10**8)


MAKERS: dict[str, Callable[[Keys, str, str, str], str]] = {
    "age": lambda keys, patient, category, text: f"over {OLDEST}",
    "name": lambda keys, patient, category, text: rename(keys, patient, text),
    "place": _place,
    "facility": _place,
    "address": _address,
    "email": lambda *given: f"person{_account(*given)}@example.org",
    "url": lambda *given: f"https://example.org/{_account(*given)}",
    # Reserved for documents, RFC 5737.
    "ip": lambda keys, *given: f"192.0.2.{1 + keys.number(*given) % 254}",
    "biometric": _likeness,
    "photo": _likeness,
}
"""Category -> function that makes its surrogates; for other categories, digits and letters are redrawn."""
