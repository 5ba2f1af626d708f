"""What the parameters claim of single chunks: sensitive codes in item chunks only, and no covers (`safe`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation.files import ITEM
from leeward.verify.disassociation.layout import Layout, first_chunk
from leeward.verify.flat import Longs, find, offsets_of, places_of


def sensitive_codes(layout: Layout, parameters: Mapping[str, Any]) -> list[Check]:
    """Sensitive codes are in item chunks only, where nothing says how many records hold them."""
    stated = {str(code) for code in parameters.get("sensitive") or ()}
    if not stated:
        return []
    named = [code.rsplit("#", 1)[0] if parameters.get("repeats") else code for code in layout.chunks.codes]
    sensitive = np.array([code in stated for code in named] or [False], np.bool_)
    open_chunk = np.zeros(len(layout.chunks.kind), np.bool_)
    open_chunk[layout.group[sensitive[layout.codes]]] = True
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
    covered = covering(layout) > 0
    return [
        of_count(
            "no_covers",
            int(covered.sum()),
            "No code of a chunk is always with another one.",
            "chunks have a code that is always with another one." + first_chunk(layout, covered),
        )
    ]


def covering(layout: Layout) -> Longs:
    """For each chunk but item chunks the pairs (x, y) of its codes such that every subrecord with x has y."""
    chunks, width = layout.chunks, max(len(layout.chunks.codes), 1)
    rows = np.flatnonzero(np.repeat((chunks.kind != ITEM) & (chunks.rows() > 1), chunks.rows()))
    lengths = np.diff(chunks.offsets)[rows]
    owner = np.repeat(np.repeat(np.arange(len(chunks.kind)), chunks.rows())[rows], lengths)
    codes = chunks.values[places_of(chunks.offsets[rows], lengths)]
    column = find(layout.group * width + layout.codes, owner * width + codes, -1)
    holds = csr_array(
        (np.ones(len(column), np.int64), column, offsets_of(lengths)), shape=(len(rows), len(layout.codes))
    )
    together = (holds.T @ holds).tocoo()
    x, y = together.coords
    always = (x != y) & (together.data == layout.supports[x])
    return np.bincount(layout.group[x[always]], minlength=len(chunks.kind))
