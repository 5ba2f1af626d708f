"""E-mail and web addresses, IP numbers, telephone and fax numbers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from leeward.notes.annotators.rules.patterns import Rule, count_digits, find_all, is_free, mark
from leeward.notes.spans import Span

EMAIL = re.compile(r"[\w.+-]+\s?(?:@|\(at\)|\[at\])\s?[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}", re.ASCII)
URL = re.compile(
    r"(?:https?://|ftp://|www\.)[^\s<>\"'),;]+[^\s<>\"'),;.:!?]|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|info|health|io)"
    r"\b(?:/[^\s<>\"'),;]*[^\s<>\"'),;.:!?])?",
    re.IGNORECASE,
)
IP4 = re.compile(r"\d(?<![\d.].)\d{0,2}(?:\.\d{1,3}){3}(?![\d.]\d)")
IP6 = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])")
MAC = re.compile(r"\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b")

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
_DATE = re.compile(
    r"(?:19|20)\d\d[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{2,4}|(?:19|20)\d\d\s?-\s?(?:19|20)\d\d"
)
_CALLED = "phone|telephone|tel|cell|mobile|pager|beeper|page|paged|ext|extension|call|fax|facsimile|x"
_SAID = re.compile(
    rf"\b(?:{_CALLED}|phone number)"
    r"\.?(?:\s+(?:is|at|number|no\.?|#|me|us|him|her))*[\s:#(]*(\+?\(?\d[\d ().-]{2,15}\d)",
)


def find(text: str, low: str) -> Iterator[Span]:
    for rule in (_EMAIL, _URL):
        yield from _find_near_signs(rule, text, low)
    yield from find_all(RULES, text, low)
    yield from _phones(text, low)
    yield from _phones_after_words(low)


def _find_near_signs(rule: Rule, text: str, low: str) -> Iterator[Span]:
    """Spans of a rule in the parts of lines around its words: its pattern takes long on many letters in a row."""
    if not any(word in low for word in rule.words):
        return
    past = 0
    for place in sorted(match.start() for word in rule.words for match in re.finditer(re.escape(word), low)):
        if place < past:
            continue
        start = max(past, place - REACH)
        while start < place and start > past and not text[start - 1].isspace():
            start += 1
        for match in rule.pattern.finditer(text, start, place + 2 * REACH):
            past = match.end()
            if rule.fits is None or rule.fits(text, match):
                yield mark(*match.span(), rule.category)
        past = max(past, place + 1)


def _is_address(text: str, match: re.Match[str]) -> bool:
    """Whether a match is an IP address; of version 6 with more than four characters."""
    try:
        return ipaddress.ip_address(match.group()).version == 4 or len(match.group()) > 4
    except ValueError:
        return False


_EMAIL = Rule("email", EMAIL, ("@", "(at)", "[at]"))
_URL = Rule(
    "url",
    URL,
    ("://", "www.", ".com", ".org", ".net", ".edu", ".gov", ".info", ".health", ".io"),
    fits=lambda text, match: text[match.start() - 1 : match.start()] != "@",
)
RULES = (
    Rule("ip", IP4, fits=_is_address),
    Rule("ip", IP6, (":",), fits=_is_address, near=re.compile(r":[0-9A-Fa-f]{0,4}:")),
    Rule("device", MAC, near=re.compile(r"[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]")),
)


def _phones(text: str, low: str) -> Iterator[Span]:
    past = -1
    for near in _PHONE_NEAR.finditer(text):
        start = near.start()
        if start < past or not is_free(text, start, "/.-"):
            continue
        match = _PHONE.match(text, start)
        if match is None and text[start] == "(":  # "(170-960-1530)"
            start += 1
            match = _PHONE.match(text, start)
        if match and count_digits(match.group()) >= 7 and not _is_date(match.group()):
            past = match.end()
            yield mark(start, past, _kind(low, start))


def _phones_after_words(low: str) -> Iterator[Span]:
    for match in _SAID.finditer(low):
        digits, word = count_digits(match.group(1)), match.group(0)[:8]
        fewest = 4 if word.startswith("x") else 3 if word.startswith(_SHORT) else 5
        if fewest <= digits <= 14 and not _is_date(match.group(1)):
            category = "fax" if word.startswith(("fax", "facs")) else "phone"
            yield mark(*match.span(1), category)


_SHORT = ("pag", "beep", "ext", "tel", "phone")
"""Before numbers that may be short."""


def _is_date(number: str) -> bool:
    return _DATE.fullmatch(number.strip()) is not None


def _kind(low: str, start: int) -> str:
    before = low[max(0, start - 16) : start]
    fax, phone = (max(map(before.rfind, words)) for words in (("fax", "facsimile"), ("phone", "tel")))
    return "fax" if fax > phone else "phone"
