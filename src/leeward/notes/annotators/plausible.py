"""Filter implausible spans of learned annotators: report words as names, scores as dates, doses as identities.

Only spans of the learned members are dropped, when their own words contradict their category. Persons found by rules or
lists are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from leeward.notes.annotators.rules.names import EPONYM
from leeward.notes.annotators.rules.words import REPORT_WORDS
from leeward.notes.spans import Span

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_DOSED = re.compile(
    r"[ -]?\d*(?:\.\d+)?\s?(?:mg|mcg|ml|cc|units?|iu|gm?|%|tabs?|tablets?|capsules?|cream|patch(?:es)?|injections?|gel"
    r"|drops?|inhaler|lotion|ointment|suspension|syrup|p\.o|po\b|q\.?d|b\.?i\.?d|software|catheter|version)(?![^\W\d_])",
    re.IGNORECASE,
)
_RATIO = re.compile(r"\d{1,3}\s?[-/]\s?\d{1,3}")
_OF_DATE = re.compile(
    r"(?:\b(?:on|since|until|till|through|from|dated?|by|before|after|of|seen|visit|admitted|discharged)|:)\s*$"
)
_MONTH = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|spring|summer|autumn|winter)"
)
_OF_AGE = re.compile(r"\b(?:age|aged|old|years?|yrs?|y/?o|birthday|turn(?:s|ed)|m|f)\b")


def plausible(text: str, low: str, spans: Iterable[Span], terms: Collection[str]) -> list[Span]:
    """Keep the spans of a learned annotator whose words do not contradict them; `terms`: words of the lexicon."""
    return [kept for span in spans if (kept := _filter(text, low, span, terms)) is not None]


def _filter(text: str, low: str, span: Span, terms: Collection[str]) -> Span | None:
    if span.kind == "HMI":
        return span
    if span.category in ("name", "facility", "address", "place"):
        return _proper(text, low, span, terms)
    if span.category == "date":
        return None if _is_score(low, span) else span
    digits = sum(c.isdigit() for c in text[span.start : span.end])
    if span.category == "age":
        near = low[max(0, span.start - 14) : span.end + 14]
        return span if digits == 0 or _OF_AGE.search(near) else None
    if span.category in ("phone", "fax", "other_id") and digits < 5:
        whole = digits == 4 and span.category == "other_id" and not low[span.start : span.end].endswith("00")
        return span if whole or _beside_digits(low, span) else None
    return span


def _beside_digits(low: str, span: Span) -> bool:
    """Whether digits adjoin a span, which may then be part of a longer number."""
    around = low[max(0, span.start - 2) : span.start] + low[span.end : span.end + 2]
    return any(c.isdigit() for c in around)


def _proper(text: str, low: str, span: Span, terms: Collection[str]) -> Span | None:
    """Return a name or place with a word that is no report word, trimmed if need be; else None."""
    words = [word.group() for word in _WORD.finditer(low, span.start, span.end)]
    numbered = any(c.isdigit() for c in text[span.start : span.end])
    named = (
        span.category == "facility"
        and len(words) > 1
        and _AT.search(low[max(0, span.start - 6) : span.start])
    )
    if not named and all(w in REPORT_WORDS or w in terms or _MEDICAL.search(w) for w in words):
        return span if numbered and (span.category == "address" or not words) else None
    if span.category != "name":
        return span
    if len(words) == 1 and (_DOSED.match(text, span.end) or _of_eponym(text, low, span)):
        return None
    begun = _NEXT_SENTENCE.search(text, span.start, span.end)  # "J.  However"
    if begun and begun.group(1).lower() in REPORT_WORDS:
        return span._replace(end=begun.start(1)) if begun.start(1) - span.start > 2 else None
    return span


_AT = re.compile(r"(?:\bat|\bfrom|@)\s$")
"""`seen at Mass General`: report words that name a hospital."""
_MEDICAL = re.compile(
    r".{3}(?:ology|ologist|ectomy|itis|oscopy|otomy|ostomy|plasty|graphy|emia|uria|osis|opathy|algia|penia|cillin|mycin"
    r"|azole|statin|sartan|prazole|olol|cycline|ophen|oxacin|amide|azide|idone|xone)$"
)
"""Endings of medical words missing from the lists."""
_NEXT_SENTENCE = re.compile(r"[.,]\s+([A-Z][a-z]+)$")


def _of_eponym(text: str, low: str, span: Span) -> bool:
    """`Babinski sign`, `Foley catheter`; not after a title."""
    title = low[max(0, span.start - 3) : span.start] in ("r. ", "s. ", "mr ", "dr ", "ms ")
    return bool(EPONYM.match(text, span.end)) and not title


def _is_score(low: str, span: Span) -> bool:
    """Whether a date is a score: `5/5`, `7/10`, `28/30` (strength, pain, tests), unless date words precede it."""
    written = low[span.start : span.end].strip()
    if not any(c.isdigit() for c in written):
        return not _MONTH.search(written)
    if (
        sum(c.isdigit() for c in written) < 3
        and not any(sign in written for sign in "/.-")
        and not _MONTH.search(written)
    ):
        return True
    if not _RATIO.fullmatch(written.rstrip("-+ ")) or _OF_DATE.search(
        low[max(0, span.start - 14) : span.start]
    ):
        return False
    first, second = (int(number) for number in re.findall(r"\d+", written))
    return second in (5, 10) or first == 0 or not (1 <= first <= 12 and 1 <= second <= 31)
