"""Annotator that applies all rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leeward.notes import field_labels as labels
from leeward.notes.annotators.ensemble import resolve
from leeward.notes.annotators.rules import (
    abroad,
    contacts,
    dates,
    demographics,
    names,
    numbers,
    places,
    words,
)
from leeward.notes.annotators.rules.patterns import find_all, mark
from leeward.notes.spans import Span

_VISIT = re.compile(
    r"(?<!last )(?<!previous )(?<!previously )(?<!prior )\b(?:visit(?:ed|s)?|seen|saw|admit(?:ted|s)?|admission|"
    r"discharged?|presented|presents?|presenting|evaluated(?! by)|examined(?! by)|"
    r"arrived|came in|came to|consulted|consultation|encounter|date of service|service date|dos|today|"
    r"pleasure of seeing|hospitali[sz]ed|"
    r"check-?up|attended|transferred|assessed|here on|reviewed on|session|brought in)\b"
)
_OTHER = re.compile(
    r"\b(?:born|birth|dob|died|death|deceased|expired|surgery|operation|underwent|performed|biops\w+|x-?rays?|mri|ct|scan|"
    r"diagnosed|dx|vaccin\w+|immuni[sz]\w+|lmp|menstrual|since|married|dictated|transcribed|signed|scheduled|started|"
    r"prescribed|appointment|next|until|return|due|injury|accident|fell|onset|began|last|labs?|labou?ratory|drawn|results?|dated|"
    r"follow(?:ed)?[- ]?up|f/u|mother|father|sister|brother|history)\b"
)

_SENTENCE = re.compile(r"[.;!?]\s+(?=[A-Z\d])")


@dataclass(frozen=True)
class Rules:
    """Annotator by patterns and context, for HIPAA's categories and the table's quasi-identifiers."""

    name: str = "rules"

    def annotate(self, text: str) -> list[Span]:
        """Return the spans of a text, ascending, without overlaps; EID before QID, then the longer."""
        return self.annotate_lower(text, dates.lower(text))

    def annotate_lower(self, text: str, low: str) -> list[Span]:
        return resolve([list(_find(text, low))])


def _find(text: str, low: str) -> Iterator[Span]:
    fields = labels.find(text, low, words.FIELD_TABLE)
    capitals = words.find_capitals(text)
    yield from contacts.find(text, low)
    yield from numbers.find(text, low, fields)
    yield from _dates(text, low, fields)
    yield from names.find(text, low, capitals, fields)
    yield from places.find(text, low, capitals, fields)
    yield from abroad.find(text, low)
    yield from demographics.find(text, low, fields)


def _dates(text: str, low: str, fields: Sequence[labels.Label]) -> Iterator[Span]:
    """Dates of the visit are quasi-identifiers, all others explicit identifiers."""
    labelled = {f.value: f.meaning for f in fields if f.meaning in ("visit_date", "other_date")}
    past = 0
    for written in dates.find(text, low):
        meaning = next((m for v, m in labelled.items() if v <= written.start <= v + 12), None)
        of_visit = (
            meaning == "visit_date" if meaning else _of_visit(text, low, past, written.start, written.end)
        )
        yield mark(written.start, written.end, "date", "QID" if of_visit else "EID")
        past = written.end
    yield from find_all(dates.DAYS, text, low)


def _of_visit(text: str, low: str, past: int, start: int, end: int) -> bool:
    """Whether the words before a date, in its sentence, speak of a visit rather than of another event."""
    begin = max(past, start - 70, low.rfind("\n", 0, start) + 1)
    for stop in _SENTENCE.finditer(text, begin, start):
        word = text[max(0, stop.start() - 2) : stop.start()].lower()
        if word not in ("dr", "mr", "ms", "rs") and not (len(word) == 2 and word[0] == " "):
            begin = stop.end()
    before = low[begin:start]
    visit = max((m.end() for m in _VISIT.finditer(before)), default=-1)
    if visit < 0:
        heads = start == 0 or not low[:start].strip()
        return heads and low[end : end + 2].strip() in ("", ":", "-", ",", ".")
    other = max((m.end() for m in _OTHER.finditer(before)), default=-1)
    return visit > other
