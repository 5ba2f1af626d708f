"""The ensemble plainly: every character is painted with its strongest span, and the runs of one span read off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from leeward.notes.annotators.ensemble import _is_remnant, _join, _piece, _strength
from leeward.notes.spans import Span


def resolved(length: int, answers: Sequence[Sequence[Span]]) -> list[Span]:
    """One answer out of several to a text of `length` characters."""
    spans = [span for answer in answers for span in answer if span.start < span.end]
    ordered = sorted(spans)
    if all(one.end <= other.start for one, other in pairwise(ordered)):
        return ordered
    owner = [-1] * length
    for i in sorted(range(len(spans)), key=lambda i: _strength(spans[i], i), reverse=True):
        owner[spans[i].start : spans[i].end] = [i] * (spans[i].end - spans[i].start)
    pieces = []
    for i, places in groupby(range(length), key=owner.__getitem__):
        whole = list(places)
        if i >= 0:
            pieces.append((spans[i], whole[0], whole[-1] + 1))
    return _join([_piece(*piece) for piece in pieces if not _is_remnant(*piece)])
