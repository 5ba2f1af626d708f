"""Recut: records whose codes would all be in an item chunk move to a cluster that keeps one of them (a step beyond the
paper, docs/methods/disassociation.md#recutting). Any grouping into clusters of at least k records keeps the guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s
from leeward.compiled import njit
from leeward.methods.disassociation.horpart import Partition, gather_records, regroup, rows_to_leaves
from leeward.methods.disassociation.rules import Rules, Workers

TRIES = 16
"""Clusters that a record looks at for each of its codes."""


@njit
def count_supports(
    offsets: NDArray[np.int64], values: NDArray[np.int32], leaf_offsets: NDArray[np.int64], n_codes: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Each leaf's distinct codes, ascending, with their supports."""
    leaves = len(leaf_offsets) - 1
    codes = np.empty(len(values), np.int32)
    support = np.empty(len(values), np.int32)
    at = np.zeros(leaves + 1, np.int64)
    count = np.zeros(n_codes, np.int32)
    filled = 0
    for leaf in range(leaves):
        begin = filled
        for j in range(offsets[leaf_offsets[leaf]], offsets[leaf_offsets[leaf + 1]]):
            c = values[j]
            if count[c] == 0:
                codes[filled] = c
                filled += 1
            count[c] += 1
        codes[begin:filled].sort()
        for i in range(begin, filled):
            support[i] = count[codes[i]]
            count[codes[i]] = 0
        at[leaf + 1] = filled
    return at, codes[:filled].copy(), support[:filled].copy()


@njit
def find_stranded(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    leaf_offsets: NDArray[np.int64],
    at: NDArray[np.int64],
    codes: NDArray[np.int32],
    support: NDArray[np.int32],
    k: int,
    ignored: NDArray[np.bool_],
    lo: int,
    hi: int,
    stranded: NDArray[np.bool_],
) -> None:
    """Mark leaves `lo…hi-1` in which some record's codes would all be in the item chunk."""
    kept = np.zeros(len(ignored), np.bool_)
    for leaf in range(lo, hi):
        for i in range(at[leaf], at[leaf + 1]):
            kept[codes[i]] = support[i] >= k and not ignored[codes[i]]
        for p in range(leaf_offsets[leaf], leaf_offsets[leaf + 1]):
            any_kept = False
            for j in range(offsets[p], offsets[p + 1]):
                any_kept = any_kept or kept[values[j]]
            if not any_kept:
                stranded[leaf] = True
        for i in range(at[leaf], at[leaf + 1]):
            kept[codes[i]] = False


@njit
def recut(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    leaf_offsets: NDArray[np.int64],
    at: NDArray[np.int64],
    codes: NDArray[np.int32],
    support: NDArray[np.int32],
    k: int,
    cap: int,
    ignored: NDArray[np.bool_],
    stranding: NDArray[np.bool_],
    leaf_of: NDArray[np.int32],
) -> int:
    """Send records that would be wholly in their leaf's item chunk to a leaf, anywhere, that keeps one of their codes.

    A leaf of exactly k records is dissolved as a whole, if all its records find a place. Returns the records moved.
    `support` counts only the codes that each leaf had at first: enough, since a host is chosen by a code it keeps.
    """
    n_codes = len(ignored)
    leaves = len(leaf_offsets) - 1
    size = np.diff(leaf_offsets)
    hosts_at = np.zeros(n_codes + 1, np.int64)
    for i in range(len(codes)):
        if support[i] >= k:
            hosts_at[codes[i] + 1] += 1
    for c in range(n_codes):
        hosts_at[c + 1] += hosts_at[c]
    fill = hosts_at[:-1].copy()
    hosts = np.empty(hosts_at[n_codes], np.int32)
    for leaf in range(leaves):
        for i in range(at[leaf], at[leaf + 1]):
            if support[i] >= k:
                hosts[fill[codes[i]]] = leaf
                fill[codes[i]] += 1
    gone = np.zeros(leaves, np.bool_)
    target = np.empty(cap + 1, np.int64)
    moved = 0
    for leaf in range(leaves):
        if not stranding[leaf]:
            continue
        b, e = leaf_offsets[leaf], leaf_offsets[leaf + 1]
        stranded = 0
        for p in range(b, e):
            if _kept_codes(offsets, values, at, codes, support, leaf, p, k, ignored) == 0:
                stranded += 1
        if stranded == 0:
            continue
        dissolve = size[leaf] - stranded < k
        if dissolve and (e - b > cap or size[leaf] != e - b):
            continue
        placed = 0
        for p in range(b, e):
            target[p - b if dissolve else 0] = -1
            if not dissolve and _kept_codes(offsets, values, at, codes, support, leaf, p, k, ignored) > 0:
                continue
            best, best_kept = -1, 0
            for j in range(offsets[p], offsets[p + 1]):
                c = values[j]
                if ignored[c]:
                    continue
                n_hosts = hosts_at[c + 1] - hosts_at[c]
                start = ((p + 1) * 2654435761) % n_hosts if n_hosts > TRIES else 0
                for q in range(min(TRIES, n_hosts)):
                    there = hosts[hosts_at[c] + (start + q) % n_hosts]
                    if there == leaf or gone[there] or size[there] >= cap:
                        continue
                    kept = _kept_codes(offsets, values, at, codes, support, there, p, k, ignored)
                    if kept > best_kept:
                        best, best_kept = there, kept
            if best < 0:
                continue
            placed += 1
            if dissolve:
                target[p - b] = best
            else:
                _move(offsets, values, at, codes, support, leaf, best, p, size, leaf_of)
                moved += 1
        if dissolve and placed == e - b:
            for p in range(b, e):
                _move(offsets, values, at, codes, support, leaf, target[p - b], p, size, leaf_of)
                moved += 1
            gone[leaf] = True
    return moved


@njit(inner=True)
def _kept_codes(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    at: NDArray[np.int64],
    codes: NDArray[np.int32],
    support: NDArray[np.int32],
    leaf: int,
    p: int,
    k: int,
    ignored: NDArray[np.bool_],
) -> int:
    """Codes of record p that k records of the leaf hold."""
    kept = 0
    begin, end = at[leaf], at[leaf + 1]
    for j in range(offsets[p], offsets[p + 1]):
        c = values[j]
        i = begin + np.searchsorted(codes[begin:end], c)
        if not ignored[c] and i < end and codes[i] == c and support[i] >= k:
            kept += 1
    return kept


@njit
def _move(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    at: NDArray[np.int64],
    codes: NDArray[np.int32],
    support: NDArray[np.int32],
    home: int,
    there: int,
    p: int,
    size: NDArray[np.int64],
    leaf_of: NDArray[np.int32],
) -> None:
    for j in range(offsets[p], offsets[p + 1]):
        for leaf, step in ((home, -1), (there, 1)):
            begin, end = at[leaf], at[leaf + 1]
            i = begin + np.searchsorted(codes[begin:end], values[j])
            if i < end and codes[i] == values[j]:
                support[i] += step
    size[home] -= 1
    size[there] += 1
    leaf_of[p] = there


def improve_partition(
    offsets: Int64s, values: Int32s, partition: Partition, rules: Rules, workers: Workers
) -> Partition:
    """Re-cut clusters of stranded records, where the rules ask for it."""
    if not rules.recut:
        return partition
    near, bounds = gather_records(offsets, values, partition.order, workers), partition.leaf_offsets
    leaf_of = rows_to_leaves(bounds)
    supports = count_supports(*near, bounds, rules.n_codes)
    stranding = np.zeros(len(bounds) - 1, np.bool_)

    def look(lo: int, hi: int) -> object:
        return find_stranded(*near, bounds, *supports, rules.k, rules.sensitive, lo, hi, stranding)

    workers.blocks(len(stranding), look)
    cap = 2 * rules.max_cluster
    recut(*near, bounds, *supports, rules.k, cap, rules.sensitive, stranding, leaf_of)
    return regroup(partition, leaf_of)


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
