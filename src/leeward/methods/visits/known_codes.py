"""Enforcement of level `codes`: any m codes of one visit are shown by at least k patients together, or not at all.

A code is deleted from all visits of a patient, so that no other visit shows it (docs/methods/visits.md#codes).
"""

from __future__ import annotations

import numpy as np

from leeward.arrays import Int32s, Int64s
from leeward.errors import BadInput
from leeward.methods.visits.kernels import known_codes as kernels
from leeward.methods.visits.sets import VisitSets, cut_to, unions

MOST_SETS = 400_000_000
"""More sets of at most m codes than this are refused: they would need more memory than machines have."""

ALPHA = 0.1
"""Weight of the pairs of other patients that a deletion makes rare: 0 keeps more pairs at larger m, a larger weight
keeps more distinct codes."""


def enforce_known_codes(
    visits: VisitSets, labels: int, k: int, m: int, *, merged: bool, order: Int64s
) -> tuple[VisitSets, int]:
    """Delete codes until k patients show any m codes shown together; returns the visits and the number of sweeps.
    `merged`: count patients who have the codes over all their visits, else those with one visit that has them. `order`:
    the patients, in the order of processing. Raises BadInput: the visits have too many sets of m codes."""
    base = labels + 1
    everyone = unions(visits, labels)
    room = int(_count_subsets(np.diff(visits.offsets), m))
    wide = int(_count_subsets(np.diff(everyone.offsets), m)) if merged else 0
    if max(room, wide) > MOST_SETS or base**m >= 2**63:
        raise BadInput(
            f"`m` is {m}: the visits have {max(room, wide):,} sets of at most {m} codes, more than the "
            f"{MOST_SETS:,} that fit into memory. Take a smaller `m`, or `level` visit."
        )
    starts, keys = kernels.subsets_of_visits(
        visits.patient_offsets, visits.offsets, visits.values, m, base, room
    )
    known, numbers = np.unique(keys, return_inverse=True)
    checked = np.ones(len(numbers), np.bool_)
    sets = numbers.astype(np.int32)
    if merged:
        mine = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * len(known) + sets
        widest = int(_count_subsets(np.diff(everyone.offsets).max(keepdims=True), m))
        starts, sets = kernels.subsets_of_unions(everyone.offsets, everyone.values, known, m, base, widest)
        theirs = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * len(known) + sets
        checked = np.isin(theirs, mine)
    codes = _decode(known, m, base)
    knowledge = kernels.Knowledge(starts, sets, checked, codes, (codes >= 0).sum(axis=1))
    kept = np.ones(len(everyone.values), np.bool_)
    sweeps = kernels.enforce(
        knowledge, order, everyone.offsets, everyone.values, kept, max(labels, 1), k, ALPHA
    )
    return cut_to(visits, everyone.keep(kept), labels), int(sweeps)


def _count_subsets(lengths: Int64s, m: int) -> int:
    total, ways = 0, np.ones(len(lengths), np.int64)
    for size in range(1, m + 1):
        ways = ways * np.maximum(lengths - size + 1, 0) // size
        total += int(ways.sum())
    return total


def _decode(known: Int64s, m: int, base: int) -> Int32s:
    """The codes of each key, int32[keys, m], -1 after the last."""
    codes = np.full((len(known), m), -1, np.int32)
    key, size = known.copy(), (known[:, None] >= np.int64(base) ** np.arange(m)).sum(axis=1)
    for place in range(m - 1, -1, -1):
        here = np.flatnonzero(size > place)
        codes[here, place] = key[here] % base - 1
        key[here] //= base
    return codes
