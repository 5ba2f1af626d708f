"""E-mail and web addresses, IP numbers, telephone and fax numbers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator

from leeward.notes.annotators.rules import hints
from leeward.notes.spans import Span

EMAIL = re.compile(r"[\w.+-]+\s?(?:@|\(at\)|\[at\])\s?[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}", re.ASCII)
URL = re.compile(
    r"(?:https?://|ftp://|www\.)[^\s<>\"'),;]+[^\s<>\"'),;.:!?]|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|info|health|io)"
    r"\b(?:/[^\s<>\"'),;]*[^\s<>\"'),;.:!?])?",
    re.IGNORECASE,
)
IP4 = re.compile(r"\d(?<![\d.].)\d{0,2}(?:\.\d{1,3}){3}(?![\d.]\d)")
IP6 = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])")
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_BYTES = re.compile(r"[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]")
MAC = re.compile(r"\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b")

_DOMAINS = (".com", ".org", ".net", ".edu", ".gov", ".info", ".health", ".io")
REACH = 80
"""Characters before a sign such as @ in which an address may begin."""

_PHONE = re.compile(
    r"(?:\+\d{1,3}[\s.-]?(?:\(0?\d{1,4}\)[\s.-]?)?\d{1,4}(?:[\s.-]?\d{2,4}){1,4}"
    r"|(?:1[\s.-])?\(\d{3}\)\s{0,2}[-.]?\s?\d{3}[\s.-]{0,3}\d{4}"
    r"|(?:1[\s.-])?\d{3}[-.\s/]\s?\d{3}[-.\s]\s?\d{4}"
    r"|\d{3}[-.]\d{4}"
    r"|0\d{2,4}[\s-]\d{3,4}[\s-]?\d{3,4}"
    r"|\(?0\d{1,4}\)?(?:[\s.-]\d{2,4}){2,4}|00\d{2}(?:[\s.-]?\d{2,4}){2,5}|0\d{1,3}-\d{6,8})"
    r"(?![\d-])(?:\s*(?:x|ext\.?|extension)\s?\d{1,6})?",
    re.IGNORECASE,
)
_PHONE_NEAR = re.compile(r"[\d(+](?:(?:(?<=\d)\d{0,3}|(?<=[(+])\d{1,4})[).\s/-]{1,3}\(?\d{1,4}|(?<=\+)\d{5})")
_CALLED = "phone|telephone|tel|cell|mobile|pager|beeper|page|paged|ext|extension|call|fax|facsimile|x"
_SAID = re.compile(
    rf"\b(?:{_CALLED}|phone number)"
    r"\.?(?:\s+(?:is|at|number|no\.?|#|me|us|him|her))*[\s:#(]*(\+?\(?\d[\d ().-]{2,15}\d)",
)
SAYS_PHONE = hints.word_hint(_CALLED.split("|"))
SAYS_DOMAIN = hints.hint(lambda _, small: f".{small}" in _DOMAINS or "www" in small)


def find(text: str, low: str, said: int = hints.EVERY) -> Iterator[Span]:
    """Spans of every kind of contact."""
    if "@" in text or "(at)" in low or "[at]" in low:
        for match in _around(EMAIL, text, low, ("@", "(at)", "[at]")):
            yield Span(*match.span(), "EID", "email", source="rules")
    if "." in text and ("://" in text or (said & SAYS_DOMAIN and ("www" in low or _has_domain(low)))):
        for match in _around(URL, text, low, ("://", "www.", *_DOMAINS)):
            if text[match.start() - 1 : match.start()] != "@":
                yield Span(*match.span(), "EID", "url", source="rules")
    yield from _addresses(text, said)
    if said & hints.FIGURE:
        yield from _phones(text, low)
        if said & SAYS_PHONE:
            yield from _phones_after_words(low)


def _has_domain(low: str) -> bool:
    return any(end in low for end in _DOMAINS)


def _around(pattern: re.Pattern[str], text: str, low: str, signs: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the distinct matches of a pattern in the parts of lines around some signs, ascending."""
    places = sorted(m for sign in signs for m in _places(low, sign))
    past = 0
    for place in places:
        if place < past:
            continue
        start = max(past, place - REACH)
        while start < place and start > past and not text[start - 1].isspace():
            start += 1
        for match in pattern.finditer(text, start, place + 2 * REACH):
            yield match
            past = match.end()
        past = max(past, place + 1)


def _places(low: str, sign: str) -> Iterator[int]:
    place = low.find(sign)
    while place >= 0:
        yield place
        place = low.find(sign, place + 1)


def _addresses(text: str, said: int) -> Iterator[Span]:
    if said & hints.FIGURE and text.count(".") > 2:
        for match in IP4.finditer(text):
            if _is_address(match.group()):
                yield Span(*match.span(), "EID", "ip", source="rules")
    if text.count(":") > 2:
        for match in IP6.finditer(text) if _COLONS.search(text) else ():
            if _is_address(match.group()) and len(match.group()) > 4:
                yield Span(*match.span(), "EID", "ip", source="rules")
        for match in MAC.finditer(text) if _BYTES.search(text) else ():
            yield Span(*match.span(), "EID", "device", source="rules")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _phones(text: str, low: str) -> Iterator[Span]:
    past = -1
    for near in _PHONE_NEAR.finditer(text):
        start = near.start()
        if start < past or (start and (text[start - 1].isalnum() or text[start - 1] in "/.-")):
            continue
        match = _PHONE.match(text, start)
        if match is None and text[start] == "(":  # "(170-960-1530)"
            start += 1
            match = _PHONE.match(text, start)
        if match and _plausible(match.group()):
            past = match.end()
            yield Span(start, past, "EID", _kind(low, start), source="rules")


def _phones_after_words(low: str) -> Iterator[Span]:
    for match in _SAID.finditer(low):
        digits, word = sum(c.isdigit() for c in match.group(1)), match.group(0)[:8]
        fewest = 4 if word.startswith("x") else 3 if word.startswith(_SHORT) else 5
        if fewest <= digits <= 14 and not _is_date(match.group(1)):
            category = "fax" if word.startswith(("fax", "facs")) else "phone"
            yield Span(*match.span(1), "EID", category, source="rules")


_SHORT = ("pag", "beep", "ext", "tel", "phone")
"""Before numbers that may be short."""


def _plausible(number: str) -> bool:
    """Not a date, a year range, or a span of small numbers."""
    return sum(c.isdigit() for c in number) >= 7 and not _is_date(number)


def _is_date(number: str) -> bool:
    return bool(
        re.fullmatch(
            r"\s*(?:(?:19|20)\d\d[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{2,4}|(?:19|20)\d\d\s?-\s?(?:19|20)\d\d)\s*",
            number,
        )
    )


def _kind(low: str, start: int) -> str:
    before = low[max(0, start - 16) : start]
    fax, phone = (
        max(before.rfind("fax"), before.rfind("facsimile")),
        max(before.rfind("phone"), before.rfind("tel")),
    )
    return "fax" if fax > phone else "phone"
