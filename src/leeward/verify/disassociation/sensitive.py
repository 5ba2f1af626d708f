"""What the parameters claim of single chunks: sensitive codes in item chunks only, and no covers (`safe`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leeward.compiled import njit
from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation.files import ITEM, Ints, Longs
from leeward.verify.disassociation.layout import Layout, first_chunk


def sensitive_codes(layout: Layout, parameters: Mapping[str, Any]) -> list[Check]:
    """Sensitive codes are in item chunks only, where nothing says how many records hold them."""
    stated = {str(code) for code in parameters.get("sensitive") or ()}
    if not stated:
        return []
    named = [code.rsplit("#", 1)[0] if parameters.get("repeats") else code for code in layout.chunks.codes]
    sensitive = np.array([code in stated for code in named] or [False], np.bool_)
    group = np.repeat(np.arange(len(layout.chunks.kind)), np.diff(layout.bounds))
    open_chunk = np.zeros(len(layout.chunks.kind), np.bool_)
    open_chunk[group[sensitive[layout.codes]]] = True
    open_chunk &= layout.chunks.kind != ITEM
    return [
        of_count(
            "sensitive_in_item_chunks",
            int(open_chunk.sum()),
            "Sensitive codes are in item chunks only.",
            "record or shared chunks hold a sensitive code." + first_chunk(layout, open_chunk),
        )
    ]


def covers(layout: Layout, parameters: Mapping[str, Any]) -> list[Check]:
    """With `safe` no code of a record or shared chunk is always with another (the cover problem)."""
    if not parameters.get("safe"):
        return []
    chunks = layout.chunks
    width = max(len(chunks.codes), 1)
    found = covering(chunks.start, chunks.offsets, chunks.values, layout.bounds, layout.codes, width)
    covered = (found > 0) & (chunks.kind != ITEM)
    return [
        of_count(
            "no_covers",
            int(covered.sum()),
            "No code of a chunk is always with another one.",
            "chunks have a code that is always with another one." + first_chunk(layout, covered),
        )
    ]


@njit
def covering(start: Longs, offsets: Longs, values: Ints, bounds: Longs, codes: Ints, width: int) -> Longs:
    """For each chunk the pairs (x, y) of its codes such that every subrecord with x has y."""
    found = np.zeros(len(start) - 1, np.int64)
    place = np.zeros(width, np.int64)
    for g in range(len(start) - 1):
        n = bounds[g + 1] - bounds[g]
        if n < 2 or start[g + 1] - start[g] < 2:
            continue
        for j in range(n):
            place[codes[bounds[g] + j]] = j
        both = np.zeros((n, n), np.int64)
        for row in range(start[g], start[g + 1]):
            for a in range(offsets[row], offsets[row + 1]):
                for b in range(offsets[row], offsets[row + 1]):
                    both[place[values[a]], place[values[b]]] += 1
        for x in range(n):
            for y in range(n):
                found[g] += x != y and both[x, y] == both[x, x]
    return found
