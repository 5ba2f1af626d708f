"""Spans of labelled tokens, plainly: one token after the other."""

from __future__ import annotations

from collections.abc import Sequence

from leeward.notes.annotators.learned.labels import FEWEST_DIGITS, OUTSIDE, _has_year, _holds, _is_old
from leeward.notes.spans import Span
from leeward.notes.vocabulary import Tokens


def spans(tokens: Tokens, labels: Sequence[str], source: str) -> list[Span]:
    """Neighbouring tokens of one label are one span, but not over a line's end."""
    found: list[Span] = []
    first = last = -2
    for position in [*range(len(tokens.words)), None]:
        if position is not None and (labels[position] == OUTSIDE or tokens.words[position] == "\n"):
            continue
        if position is not None and position == last + 1 and labels[position] == labels[first]:
            last = position
            continue
        if first >= 0:
            found += _span(tokens, first, last, labels[first], source)
        first = last = -2 if position is None else position
    return found


def _span(tokens: Tokens, first: int, last: int, label: str, source: str) -> list[Span]:
    while first < last and tokens.words[first] in ".,;:-/)'\"":
        first += 1
    while last > first and tokens.words[last] in ",;:-/('\"":
        last -= 1
    words = tokens.words[first : last + 1]
    kind, _, category = label.partition(":")
    if category in ("date", "email", "url", *FEWEST_DIGITS):
        holds = _holds(category, words)
    else:
        holds = any(word.isalnum() for word in words)
    if (category == "age" and _is_old(words)) or (category == "date" and not _has_year(words)):
        kind = "EID"
    return (
        [Span(int(tokens.starts[first]), int(tokens.ends[last]), kind, category, source=source)]
        if holds
        else []
    )  # type: ignore[arg-type]  # labels are made from Kind
