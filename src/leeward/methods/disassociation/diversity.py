"""ℓ-diversity of sensitive codes (paper, Section 7, with the change in
docs/methods/disassociation.md#diversity-of-sensitive-codes).

Sensitive codes never leave the item chunk; besides, no more than one record in ℓ of a cluster may hold a given one.
A cluster beyond that is merged with the nearest one that heals it; where none does, occurrences are suppressed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.methods.disassociation.partition import Partition, regroup

REACH = 64
"""How many leaves to each side, in HorPart's order of likeness, a leaf may be merged with."""


@dataclass(frozen=True)
class Diverse:
    """A partition in which sensitive codes are rare enough, and the occurrences dropped for it (may be empty)."""

    partition: Partition
    dropped_record: NDArray[np.int64]
    dropped_code: NDArray[np.int32]
    merged: int


def diversify(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    partition: Partition,
    sensitive: NDArray[np.bool_],
    ell: int,
) -> Diverse:
    """Merge leaves until every sensitive code is in at most one record in `ell`, then suppress what remains."""
    leaf_of, merged = _merge(offsets, values, partition.order, partition.leaf_offsets, sensitive, ell, REACH)
    healed = regroup(partition, leaf_of)
    record, code = _excess(offsets, values, healed.order, healed.leaf_offsets, sensitive, ell)
    return Diverse(healed, record, code, merged)


@njit
def _count(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    begin: int,
    end: int,
    sensitive: NDArray[np.bool_],
    count: NDArray[np.int32],
    step: int,
) -> int:
    """Add `step` a sensitive occurrence; returns the largest count met."""
    most = 0
    for p in range(begin, end):
        r = order[p]
        for j in range(offsets[r], offsets[r + 1]):
            if sensitive[values[j]]:
                count[values[j]] += step
                most = max(most, count[values[j]])
    return most


@njit
def _merge(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    leaf_offsets: NDArray[np.int64],
    sensitive: NDArray[np.bool_],
    ell: int,
    reach: int,
) -> tuple[NDArray[np.int64], int]:
    leaves = len(leaf_offsets) - 1
    count = np.zeros(len(sensitive), np.int32)
    free = np.ones(leaves, np.bool_)  # not yet merged with another
    group = np.arange(leaves)
    merged = 0
    for leaf in range(leaves):
        if not free[leaf]:
            continue
        b, e = leaf_offsets[leaf], leaf_offsets[leaf + 1]
        worst = _count(offsets, values, order, b, e, sensitive, count, 1)
        size = e - b
        distance = 0
        while worst * ell > size and distance < 2 * reach:
            distance += 1  # right, left, right, … ever farther
            other = leaf + (distance + 1) // 2 if distance % 2 else leaf - distance // 2
            if other < 0 or other >= leaves or not free[other] or other == leaf:
                continue
            ob, oe = leaf_offsets[other], leaf_offsets[other + 1]
            joint = max(worst, _count(offsets, values, order, ob, oe, sensitive, count, 1))
            if joint * ell * size < worst * ell * (size + oe - ob) or joint * ell <= size + oe - ob:
                group[other] = leaf
                free[other] = False
                free[leaf] = False
                worst = joint
                size += oe - ob
                merged += 1
            else:
                _count(offsets, values, order, ob, oe, sensitive, count, -1)
        for other in range(max(0, leaf - reach), min(leaves, leaf + reach + 1)):
            if group[other] == leaf:
                for p in range(leaf_offsets[other], leaf_offsets[other + 1]):
                    r = order[p]
                    for j in range(offsets[r], offsets[r + 1]):
                        count[values[j]] = 0
    leaf_of = np.empty(len(order), np.int64)
    for leaf in range(leaves):
        leaf_of[leaf_offsets[leaf] : leaf_offsets[leaf + 1]] = group[leaf]
    return leaf_of, merged


@njit
def _excess(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    leaf_offsets: NDArray[np.int64],
    sensitive: NDArray[np.bool_],
    ell: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Occurrences above one record in `ell`: the records with the most other codes lose theirs first."""
    count = np.zeros(len(sensitive), np.int32)
    left = np.diff(offsets)
    record = np.empty(len(values), np.int64)
    code = np.empty(len(values), np.int32)
    n = 0
    for leaf in range(len(leaf_offsets) - 1):
        b, e = leaf_offsets[leaf], leaf_offsets[leaf + 1]
        _count(offsets, values, order, b, e, sensitive, count, 1)
        by_length = np.argsort(-left[order[b:e]], kind="mergesort")
        for x in by_length:
            r = order[b + x]
            for j in range(offsets[r], offsets[r + 1]):
                c = values[j]
                if sensitive[c] and count[c] * ell > e - b:
                    count[c] -= 1
                    left[r] -= 1
                    record[n] = r
                    code[n] = c
                    n += 1
        for p in range(b, e):
            r = order[p]
            for j in range(offsets[r], offsets[r + 1]):
                count[values[j]] = 0
    return record[:n], code[:n]
