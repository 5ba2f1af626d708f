"""The ensemble: each character gets the most protective kind of all annotators.

Li & Qin, §4: EID before QID before HMI before OTHER. Among spans of one kind the longest gives the category, then the
member named first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from leeward.notes.spans import PRIORITY, Span


def resolve(answers: Sequence[Sequence[Span]]) -> list[Span]:
    """Merge the spans of several annotators of a text. A partly covered span keeps its other characters; the rest of a
    health term loses its concept. Time and memory grow with the number of spans."""
    spans = [span for answer in answers for span in answer if span.start < span.end]
    order = sorted(range(len(spans)), key=spans.__getitem__)
    pieces: list[Span] = []
    apart = True
    at = 0
    while at < len(order):
        first = spans[order[at]]
        begin, end = at, first.end
        at += 1
        while at < len(order) and spans[order[at]].start < end:
            end = max(end, spans[order[at]].end)
            at += 1
        if at == begin + 1:
            pieces.append(first)
        else:
            apart = False
            pieces += _settle([(_strength(spans[i], i), spans[i]) for i in order[begin:at]], first.start, end)
    return pieces if apart else _join(pieces)


def _settle(ranked: list[tuple[tuple[int, bool, int, int], Span]], start: int, end: int) -> list[Span]:
    """Divide the characters from `start` to `end` among overlapping spans, strongest first."""
    ranked.sort()
    strongest = ranked[0][1]
    if strongest.start == start and strongest.end == end:
        return [strongest]
    starts: list[int] = []  # intervals taken so far, ascending, with `ends`; touching ones are joined
    ends: list[int] = []
    kept: list[tuple[int, int, Span]] = []
    for _, span in ranked:
        first, past = bisect_left(ends, span.start), bisect_right(starts, span.end)
        free = span.start
        for i in range(first, past):
            if free < starts[i]:
                kept.append((free, starts[i], span))
            free = max(free, ends[i])
        if free < span.end:
            kept.append((free, span.end, span))
        taken = min([span.start, *starts[first:past]]), max([span.end, *ends[first:past]])
        starts[first:past], ends[first:past] = [taken[0]], [taken[1]]
    kept.sort(key=lambda piece: piece[0])
    return [_piece(span, a, b) for a, b, span in kept if not _is_remnant(span, a, b)]


def _strength(span: Span, place: int) -> tuple[int, bool, int, int]:
    """Sort key, lowest wins: kind, a health term's concept (only these reach the table), length, member."""
    return PRIORITY[span.kind], span.kind == "HMI" and not span.concept, span.start - span.end, place


def _is_remnant(span: Span, start: int, end: int) -> bool:
    """Whether a piece is the rest of a guessed health term that the dictionary partly covers."""
    return span.kind == "HMI" and not span.concept and (start, end) != (span.start, span.end)


def _piece(span: Span, start: int, end: int) -> Span:
    if (start, end) == (span.start, span.end):
        return span
    return span._replace(start=start, end=end, concept="")


def _join(pieces: Sequence[Span]) -> list[Span]:
    """Join adjacent pieces of one category; health terms stay separate."""
    joined: list[Span] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if (
            last
            and last.end == piece.start
            and last.kind == piece.kind != "HMI"
            and last.category == piece.category
        ):
            joined[-1] = last._replace(end=piece.end, asserted=last.asserted and piece.asserted)
        else:
            joined.append(piece)
    return joined
