"""Recut: records whose codes would all be in an item chunk move to a cluster that keeps one of them (a step beyond the
paper, docs/methods/disassociation.md#recutting). Any grouping into clusters of at least k records keeps the guarantee.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

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
