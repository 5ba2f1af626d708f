"""The cover problem, counted from the released files: codes of a chunk that give away another
(docs/methods/disassociation.md#cover-problem)."""

from __future__ import annotations

import numpy as np

from leeward.analysis.bits import popcount
from leeward.compiled import njit
from leeward.methods.disassociation.measures.published import ITEM, Array, Published


def covers(published: Published) -> dict[str, int]:
    """Pairs (x, y) of a chunk's codes with s(xy) = s(x): whoever knows x learns y.

    `pairs` over all record and shared chunks, `chunks` that hold one, `of_chunks` with two codes or more.
    """
    p = published
    shown = np.flatnonzero(p.kind[p.entry_chunk] != ITEM)
    order = shown[np.argsort(p.entry_chunk[shown], kind="stable")]
    chunk = p.entry_chunk[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(chunk)) + 1, [len(chunk)]]).astype(np.int64)
    if not len(chunk):
        return {"pairs": 0, "chunks": 0, "of_chunks": 0}
    pairs = _count(starts, p.entry_place[order], p.words[chunk[starts[:-1]]], p.bits)
    several = int((np.diff(starts) > 1).sum())
    return {"pairs": int(pairs.sum()), "chunks": int((pairs > 0).sum()), "of_chunks": several}


@njit
def _count(starts: Array, place: Array, words: Array, bits: Array) -> Array:
    """Cover pairs of each chunk; its entries' bitmaps start at `place[starts[c]:starts[c + 1]]`."""
    found = np.zeros(len(starts) - 1, np.int64)
    for c in range(len(starts) - 1):
        for x in range(starts[c], starts[c + 1]):
            for y in range(starts[c], starts[c + 1]):
                missing = 0
                for w in range(words[c]):
                    missing += popcount(bits[place[x] + w] & ~bits[place[y] + w])
                if x != y and missing == 0:
                    found[c] += 1
    return found
