"""Labels of the learned annotators, and conversion between spans and token labels.

Tokens carry a kind and a category, without a mark for a span's first token: two identities side by side without a
sign between them are rare, and a joined span removes both. One label, `other_id`, stands for all numbers that name a
person in a register: which register it is, the rules read from the words around it, and all of them are removed alike.
Dates have one label, `QID:date`: whether a date is the visit's, which the table needs, or another, which is an explicit
identifier, is the rules' to say, and the ensemble lets an EID win. A date without a year is an EID, as the table could
not use it; so is an age above 89, by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from leeward.notes.annotators.learned.features import class_of, places_of
from leeward.notes.spans import Kind, Span
from leeward.notes.vocabulary import Tokens
from leeward.texts import list_words

OUTSIDE = "O"
OLD = 89
"""Ages above are explicit identifiers."""

CATEGORIES: dict[Kind, tuple[str, ...]] = {
    "EID": ("name", "address", "facility", "phone", "email", "url", "other_id"),
    "QID": ("date", "age", "sex", "race", "zip", "place"),
    "HMI": ("symptom", "disease", "test", "drug"),
}

FEWEST_DIGITS = {"phone": 4, "other_id": 2, "zip": 5, "age": 1}
"""Minimum digits of a span, by category."""

LABELS: tuple[str, ...] = (
    OUTSIDE,
    *(f"{kind}:{category}" for kind, categories in CATEGORIES.items() for category in categories),
)

SAME = {"fax": "phone", "ip": "url"} | dict.fromkeys(
    list_words("ssn record_number plan_number account_number licence_number vehicle device biometric photo"),
    "other_id",
)
"""Finer categories of the corpora and of the rules, and the label that learns them."""


def label_of(span: Span) -> str:
    """The label of a span's tokens; `O` for a category that no label learns."""
    kind = "QID" if span.category in ("date", "age") else span.kind
    label = f"{kind}:{SAME.get(span.category, span.category)}"
    return label if label in LABELS else OUTSIDE


def labels_of(tokens: Tokens, spans: Sequence[Span]) -> list[str]:
    """One label a token. Where spans overlap, the earlier one has the token."""
    labels = np.full(len(tokens.words), OUTSIDE, object)
    ordered = sorted(spans, reverse=True)
    for span, place in zip(ordered, places_of(tokens, ordered), strict=True):
        labels[place] = label_of(span)
    return list(labels)


def spans_of(tokens: Tokens, labels: Sequence[str], source: str) -> list[Span]:
    """Join neighbouring tokens of one label into spans, if they hold what they are called; a line break ends a span.
    Signs at either end belong to the sentence, unless they open or close the thing itself."""
    lines = np.fromiter(map("\n".__eq__, tokens.words), np.bool_, len(tokens.words))
    run_labels = np.where(lines, OUTSIDE, np.asarray(labels, object))
    bounds = [0, *(np.flatnonzero(run_labels[1:] != run_labels[:-1]) + 1).tolist(), len(lines)]
    runs = [
        (first, past) for first, past in pairwise(bounds) if first < past and run_labels[first] != OUTSIDE
    ]
    spans = (_span(tokens, first, past - 1, run_labels[first], source) for first, past in runs)
    return [span for span in spans if span is not None]


def _span(tokens: Tokens, first: int, last: int, label: str, source: str) -> Span | None:
    words = tokens.words
    while first < last and words[first] in _NO_BEGIN:
        first += 1
    while last > first and words[last] in _NO_END:
        last -= 1
    kind: Any
    kind, _, category = label.partition(":")
    own = words[first : last + 1]
    if not _holds(category, own):
        return None
    if (category == "age" and _is_old(own)) or (category == "date" and not _has_year(own)):
        kind = "EID"
    return Span(int(tokens.starts[first]), int(tokens.ends[last]), kind, category, source=source)


_NO_BEGIN, _NO_END = frozenset(".,;:-/)'\""), frozenset(",;:-/('\"")
"""Signs that no span begins with, and that none ends with."""


def _holds(category: str, words: list[str]) -> bool:
    """Whether words fit their category: a number has digits, an e-mail address its `@`."""
    if category == "date":
        return _could_be_a_date(words)
    if category == "email":
        return "@" in words
    if category == "url":
        return "." in words or "/" in words
    if category in FEWEST_DIGITS:
        return sum(len(word) for word in words if word.isdigit()) >= FEWEST_DIGITS[category]
    return any(map(str.isalnum, words))


def _could_be_a_date(words: list[str]) -> bool:
    """Two or more numbers or months, and no number that stands for neither day, month nor year: 122/86 is none."""
    numbers = [word for word in words if word.isdecimal()]
    fits = [_is_year(number) or (len(number) <= 2 and int(number) <= 31) for number in numbers]
    if len(fits) > 2 and len(numbers[-1]) == 2:
        fits[-1] = True  # a year in two digits
    return _parts_of_a_date(words) > 1 and all(fits)


def _is_year(word: str) -> bool:
    return len(word) == 4 and word[:2] in ("19", "20") and word.isdigit()


def _is_old(words: list[str]) -> bool:
    return any(word.isdecimal() and int(word) > OLD for word in words)


def _has_year(words: list[str]) -> bool:
    """Whether a date names a year: in four digits, or as the last of three parts."""
    return any(map(_is_year, words)) or _parts_of_a_date(words) > 2


def _parts_of_a_date(words: list[str]) -> int:
    return sum(word.isdigit() or class_of(word) == "month" for word in words)
