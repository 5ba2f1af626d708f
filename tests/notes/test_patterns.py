"""Patterns of the rules that are written to be found fast, against the plain ones; and texts cut into words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.notes.annotators.rules import (
    abroad,
    contacts,
    dates,
    demographics,
    hints,
    names,
    numbers,
    places,
)
from leeward.notes.lexicon.concepts import WORD, fold, text_key
from leeward.notes.lexicon.matching import Words
from leeward.notes.vocabulary import read

SHORT_DATE = (
    r"(?P<m>0?[1-9]|1[0-2])/(?P<d>0?[1-9]|[12]\d|3[01])(?![\d/%]|\.\d|\s*(?:strength|mm|mg|ml|cm|pain|scale"
    r"|systolic|murmur|in\b|on\b|with\b))"
)
PLAIN: dict[str, tuple[re.Pattern[str], str, Sequence[str]]] = {
    "ssn": (
        numbers.SSN,
        r"(?:\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}|[Xx*]{3}-[Xx*]{2}-\d{4})(?![\d-])",
        "01X*- a",
    ),
    "pattern": (
        numbers._PATTERN,
        r"[A-Z]{1,4}[-:]?\d{2}[-:]\d{3,7}\b|[A-Z]{2,5}[-#]?\d{5,12}\b|[A-Z]{1,3}\d{6,12}\b|\d{2,4}-\d{4,8}\b",
        "019AB-:# a",
    ),
    "groups": (numbers._GROUPS, r"\d{2,4}(?:-(?:[A-Z]|\d{2,6})){1,3}-\d{2,6}(?![\w-])", "019A- "),
    "vehicle": (numbers._LONG_CODE, r"[A-HJ-NPR-Z\d]{17}", "019AH"),
    "short date": (
        dates.SHORT,
        SHORT_DATE,
        "01239/%. mg",
    ),
    "near a date": (dates._NEAR_NUMERIC, r"\d{1,4}\s?[-/.]\s?\d", "019-/. "),
    "ip": (contacts.IP4, r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]\d)", "019. a"),
    "near a phone": (contacts._PHONE_NEAR, r"[(+]?\d{1,4}[).\s/-]{1,3}\(?\d{1,4}|\+\d{5}", "019(+)-/. "),
    "age and sex": (
        demographics.COMPACT,
        r"(?<![\w.,/-])(?P<number>\d{1,2}|1[01]\d)\s?(?:/|-)?\s?(?P<sex>[MF])(?![\w/'’-])",
        "0129MF/- .a",
    ),
    "age": (
        demographics.AGE,
        demographics.AGE.pattern.replace(r"\d\d{0,2}", r"\d{1,3}"),
        ["1", "0", "23", ".5", "1/2", " ", "-", "y", "year", "s", "old", "o", ".", "/", "mo", "d", " of age"],
    ),
    "address": (
        abroad._ADDRESS,
        "|".join(f"(?:{form})" for form in abroad._FORMS),
        [*"AÉa1 ,ou'-", "straße ", "Via ", " rue ", "os ", " Close", " Str. ", "An der ", "C/ ", "de ", "n°"],
    ),
    "legal form": (
        abroad._LEGAL_FORM,
        rf"(?:{abroad._LEGAL})\b|&[ ]{abroad._CAP}",
        [*"A.& /", "Ltd", "S.A", "SA", "S", "s", "p.A", "AG", "Co", "Corp", "Oy", "j", "KGaA", "Inc", "Bank"],
    ),
    "postal code": (
        abroad._GB_CA,
        r"\b(?:[A-Z]{1,2}\d[A-Z\d]?\s\d[ABD-HJLNP-UW-Z]{2}|[ABCEGHJ-NPRSTVXY]\d[A-Z]\s\d[A-Z]\d)\b",
        "01ABKW _",
    ),
}
"""Name -> the pattern, how it would be written plainly, and what texts for it are made of."""


@pytest.mark.parametrize("name", PLAIN)
@given(data=st.data())
def test_a_fast_pattern_finds_what_the_plain_one_finds(name: str, data: st.DataObject) -> None:
    fast, plain, signs = PLAIN[name]
    text = "".join(data.draw(st.lists(st.sampled_from(signs), max_size=60)))
    found = [(match.span(), match.groups()) for match in fast.finditer(text)]
    assert found == [(match.span(), match.groups()) for match in re.finditer(plain, text)]


FIGURE = hints.FIGURE
PASSED_OVER: dict[str, tuple[re.Pattern[str], Callable[[int, str], object]]] = {
    "age": (demographics.AGE, lambda said, _: said & demographics.SAYS_AGE and said & FIGURE),
    "spelled": (
        demographics.SPELLED,
        lambda said, _: said & demographics.SAYS_AGE and said & demographics.SPELLS,
    ),
    "aged": (demographics.AGED, lambda said, _: said & demographics.SAYS_AGED and said & FIGURE),
    "decade": (demographics.DECADE, lambda said, _: said & demographics.SAYS_DECADE and said & FIGURE),
    "age and sex": (demographics.COMPACT, lambda said, _: said & demographics.SAYS_LETTER and said & FIGURE),
    "sex and age": (demographics.PAIR, lambda said, _: said & demographics.SAYS_LETTER and said & FIGURE),
    "sex": (demographics._SEX, lambda said, _: said & demographics.SAYS_SEX),
    "race": (demographics.RACE, lambda said, _: said & demographics.SAYS_RACE),
    "colour": (demographics.RACE_BY_PERSON, lambda said, _: said & demographics.SAYS_COLOUR),
    "named day": (dates.NAMED, lambda said, _: dates.names_days(said)),
    "date": (dates.NUMERIC, lambda said, _: said & FIGURE),
    "month": (dates.WRITTEN, lambda said, _: said & dates.SAYS_MONTH),
    "web": (contacts.URL, lambda said, text: "://" in text or said & contacts.SAYS_DOMAIN),
    "ip": (contacts.IP4, lambda said, _: said & FIGURE),
    "phone": (contacts._PHONE, lambda said, _: said & FIGURE),
    "said phone": (contacts._SAID, lambda said, _: said & contacts.SAYS_PHONE and said & FIGURE),
    "ssn": (numbers.SSN, lambda said, _: said & hints.FOUR_FIGURES),
    "word before a number": (numbers._ALL, lambda said, _: said & numbers.SAYS_NUMBER),
    "code": (numbers._CODE, lambda said, _: said & FIGURE),
    "long number": (numbers._LONG, lambda said, _: said & hints.SIX_FIGURES),
    "pattern": (numbers._PATTERN, lambda said, _: said & hints.THREE_FIGURES),
    "groups": (numbers._GROUPS, lambda said, text: said & FIGURE and text.count("-") > 1),
    "hash": (numbers._HASH, lambda said, _: said & FIGURE),
    "image": (numbers._IMAGE, lambda said, _: said & numbers.SAYS_IMAGE),
    "photo": (numbers._PHOTO, lambda said, _: said & numbers.SAYS_PHOTO),
    "biometric": (numbers._BIOMETRIC, lambda said, _: said & numbers.SAYS_BODY),
    "title": (names._LOWER_TITLE, lambda said, _: said & names.SAYS_LOWER_TITLE),
    "closing": (names._CLOSING, lambda said, _: said & names.SAYS_CLOSING),
    "street": (places.STREET, lambda said, _: said & places.SAYS_STREET and said & FIGURE),
    "box": (places.BOX, lambda said, _: said & places.SAYS_BOX and said & FIGURE),
    "unit": (places.UNIT, lambda said, _: said & places.SAYS_UNIT and said & FIGURE),
    "zip": (places.ZIP_SAID, lambda said, _: said & places.SAYS_ZIP and said & FIGURE),
    "street abroad": (
        abroad._ADDRESS,
        lambda said, text: said & FIGURE and (said & abroad.SAYS_STREET or "C/" in text),
    ),
    "box abroad": (abroad._BOX, lambda said, _: said & abroad.SAYS_BOX),
    "said code": (abroad._SAID_CODE, lambda said, _: said & abroad.SAYS_CODE and said & FIGURE),
    "code abroad": (abroad._GB_CA, lambda said, _: said & FIGURE),
}
"""Name -> a pattern that is not tried without hints, and whether hints (and the text) let it be tried."""


@pytest.mark.parametrize("name", PASSED_OVER)
@given(data=st.data())
def test_a_text_that_is_passed_over_has_no_match(name: str, data: st.DataObject) -> None:
    pattern, tried = PASSED_OVER[name]
    before, after = (data.draw(st.text(st.sampled_from("ab1. -'s\n_"), max_size=4)) for _ in range(2))
    text = before + data.draw(st.from_regex(pattern)) + after
    assert tried(hints.of(read(text)), text) or not pattern.search(text)


def test_a_plain_text_gives_no_hint() -> None:
    assert hints.of(read("Lungs clear, no wheezing.")) == 0


@pytest.mark.parametrize("word", sorted(numbers.WORDS))
def test_every_word_before_a_number_is_found_whole(word: str) -> None:
    plain = re.compile(
        r"\b(?:"
        + "|".join(re.escape(w) for w in sorted(numbers.WORDS, key=len, reverse=True))
        + r")(?![a-rt-z])"
    )
    for low in (word, f"the {word}s 12", f"un{word}", f"{word}ed 12", f"{word} {word}: 4"):
        assert [m.span() for m in numbers._ALL.finditer(low)] == [m.span() for m in plain.finditer(low)]


@given(st.text(st.sampled_from("aB1é'’ -‑.,\n_ß\u0301\u00ad\t\x1f٣≠"), max_size=40))
def test_a_text_is_cut_into_the_words_that_the_pattern_finds(text: str) -> None:
    words, found = Words.of(text), list(WORD.finditer(text))
    assert (words.raw, words.starts) == ([m.group() for m in found], [m.start() for m in found])
    assert words.folded == [fold(m.group()) for m in found] == list(text_key(text))
