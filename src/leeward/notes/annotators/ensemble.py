"""The ensemble: each character gets the kind that protects most of all that annotators said of it.

Li & Qin, §4: EID before QID before HMI before OTHER. Of spans of one kind the longest gives the category, then the
member named first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from leeward.notes.spans import PRIORITY, Span


def resolve(length: int, answers: Sequence[Sequence[Span]]) -> list[Span]:
    """One answer out of several to a text of `length` characters.

    A span that another covers in part keeps the rest of its characters; what is left of a health term is no term any
    more and loses its concept. Time and memory grow with the text and the number of spans.
    """
    spans = [span for answer in answers for span in answer if span.start < span.end]
    if not spans:
        return []
    ordered = sorted(spans)
    if all(one.end <= other.start for one, other in pairwise(ordered)):
        return ordered
    order = sorted(range(len(spans)), key=lambda i: _strength(spans[i], i))
    owner = np.full(length, -1, np.int32)
    for i in reversed(order):  # the strongest last, over all others
        owner[spans[i].start : spans[i].end] = i
    pieces = [(spans[i], start, end) for i, start, end in _runs(owner)]
    return _joined([_piece(*piece) for piece in pieces if not _is_remnant(*piece)])


def _strength(span: Span, place: int) -> tuple[int, bool, int, int]:
    """What comes first wins; of health terms those with a concept, as no other reaches the table."""
    return PRIORITY[span.kind], span.kind == "HMI" and not span.concept, span.start - span.end, place


def _runs(owner: np.ndarray) -> list[tuple[int, int, int]]:
    """Runs of one owner as (owner, start, end), without those of nobody."""
    cuts = np.flatnonzero(owner[1:] != owner[:-1]) + 1
    starts = np.concatenate(([0], cuts))
    ends = np.concatenate((cuts, [len(owner)]))
    owned = zip(owner[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [(i, start, end) for i, start, end in owned if i >= 0]


def _is_remnant(span: Span, start: int, end: int) -> bool:
    """What is left of an annotator's guess at a health term that the dictionary knows in part: words beside it."""
    return span.kind == "HMI" and not span.concept and (start, end) != (span.start, span.end)


def _piece(span: Span, start: int, end: int) -> Span:
    if (start, end) == (span.start, span.end):
        return span
    return span._replace(start=start, end=end, concept="")


def _joined(pieces: Sequence[Span]) -> list[Span]:
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
