"""The ensemble: each character gets the kind that protects most of all that annotators said of it.

Li & Qin, §4: EID before QID before HMI before OTHER. Of spans of one kind the longest gives the category, then the
member named first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from leeward.notes.spans import PRIORITY, Span


def resolve(answers: Sequence[Sequence[Span]]) -> list[Span]:
    """One answer out of several to a text.

    A span that another covers in part keeps the rest of its characters; what is left of a health term is no term any
    more and loses its concept. Time and memory grow with the number of spans.
    """
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
    """What spans that overlap keep of the characters from `start` to `end`: the strongest takes all of its own."""
    ranked.sort()
    strongest = ranked[0][1]
    if strongest.start == start and strongest.end == end:
        return [strongest]
    starts: list[int] = []  # of what is taken, ascending, with its ends; what touches is joined
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
    """What comes first wins; of health terms those with a concept, as no other reaches the table."""
    return PRIORITY[span.kind], span.kind == "HMI" and not span.concept, span.start - span.end, place


def _is_remnant(span: Span, start: int, end: int) -> bool:
    """What is left of an annotator's guess at a health term that the dictionary knows in part: words beside it."""
    return span.kind == "HMI" and not span.concept and (start, end) != (span.start, span.end)


def _piece(span: Span, start: int, end: int) -> Span:
    if (start, end) == (span.start, span.end):
        return span
    return span._replace(start=start, end=end, concept="")


def _join(pieces: Sequence[Span]) -> list[Span]:
    """Neighbouring pieces of identities of one category as one; health terms stay apart."""
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
