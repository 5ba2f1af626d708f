"""Settle: records move to a neighbouring cluster where fewer codes end in item chunks (a step beyond the paper).

HorPart leaves almost every second record in a part below k, which is then pooled with strangers. Cutting later
(larger clusters) and letting each record choose among the clusters of its neighbourhood keeps more codes in record
chunks and answers counts better at the same time (docs/benchmarks.md has the figures). The guarantee does not depend
on it: any grouping into clusters of at least k records may follow.

A code of a record is in a record chunk when k records of the cluster hold it, so a move changes the number of
occurrences in item chunks by what follows from the two clusters' supports alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

BLOCK = 256
"""Leaves that a record may choose from: consecutive in HorPart's order, so they share their first codes."""

ROUNDS = 4
TRIES = 16
"""Clusters that a record looks at for each of its codes in an item chunk."""


@njit(inner=True)
def leaving(support: NDArray[np.int32], codes: NDArray[np.int32], k: int) -> int:
    """Change of item-chunk occurrences when a record of `codes` leaves a cluster with these supports."""
    change = 0
    for c in codes:
        s = support[c]
        if s < k:
            change -= 1
        elif s == k:
            change += k - 1
    return change


@njit(inner=True)
def entering(support: NDArray[np.int32], codes: NDArray[np.int32], k: int) -> int:
    """Change of item-chunk occurrences when a record of `codes` enters a cluster with these supports."""
    change = 0
    for c in codes:
        s = support[c]
        if s == k - 1:
            change -= k - 1
        elif s < k - 1:
            change += 1
    return change


@njit
def settle_block(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    leaf_offsets: NDArray[np.int64],
    first: int,
    last: int,
    k: int,
    cap: int,
    n_codes: int,
    ignored: NDArray[np.bool_],
    leaf_of: NDArray[np.int32],
) -> int:
    """Move records among leaves `first…last-1` (no leaf below k, none grown beyond `cap`); returns the moves.

    Records are in leaf order; `leaf_of` receives the leaf of each. Every move lowers the block's number of
    occurrences in item chunks, so rounds end.
    """
    leaves = last - first
    begin, end = leaf_offsets[first], leaf_offsets[last]
    # local code numbers, so that the support table fits the cache
    local = np.full(n_codes, -1, np.int32)
    n_local = 0
    codes = np.empty(offsets[end] - offsets[begin], np.int32)
    at = np.zeros(end - begin + 1, np.int64)
    filled = 0
    for p in range(begin, end):
        for j in range(offsets[p], offsets[p + 1]):
            c = values[j]
            if ignored[c]:
                continue
            if local[c] < 0:
                local[c] = n_local
                n_local += 1
            codes[filled] = local[c]
            filled += 1
        at[p - begin + 1] = filled
    support = np.zeros((leaves, n_local), np.int32)
    size = np.empty(leaves, np.int64)
    for leaf in range(leaves):
        size[leaf] = leaf_offsets[first + leaf + 1] - leaf_offsets[first + leaf]
        for p in range(leaf_offsets[first + leaf], leaf_offsets[first + leaf + 1]):
            leaf_of[p] = first + leaf
            for j in range(at[p - begin], at[p - begin + 1]):
                support[leaf, codes[j]] += 1
    moves = 0
    for turn in range(ROUNDS):
        hosts_at = np.zeros(n_local + 1, np.int64)
        for leaf in range(leaves):
            for c in range(n_local):
                if support[leaf, c] >= k - 1:
                    hosts_at[c + 1] += 1
        for c in range(n_local):
            hosts_at[c + 1] += hosts_at[c]
        fill = hosts_at[:-1].copy()
        hosts = np.empty(hosts_at[n_local], np.int32)
        for leaf in range(leaves):
            for c in range(n_local):
                if support[leaf, c] >= k - 1:
                    hosts[fill[c]] = leaf
                    fill[c] += 1
        moved = 0
        for p in range(begin, end):
            mine = codes[at[p - begin] : at[p - begin + 1]]
            home = leaf_of[p] - first
            if size[home] <= k:
                continue
            out = leaving(support[home], mine, k)
            if out >= 0:
                continue
            best, best_change = -1, 0
            for c in mine:
                if support[home, c] >= k:
                    continue
                n_hosts = hosts_at[c + 1] - hosts_at[c]
                if n_hosts == 0:
                    continue
                start = 0
                if n_hosts > TRIES:  # a fixed, scattered window: the same on every machine
                    start = ((p + 1) * 2654435761 + turn * 40503) % n_hosts
                for q in range(min(TRIES, n_hosts)):
                    there = hosts[hosts_at[c] + (start + q) % n_hosts]
                    if there == home or size[there] >= cap:
                        continue
                    change = out + entering(support[there], mine, k)
                    if change < best_change:
                        best, best_change = there, change
            if best >= 0:
                for c in mine:
                    support[home, c] -= 1
                    support[best, c] += 1
                size[home] -= 1
                size[best] += 1
                leaf_of[p] = first + best
                moved += 1
        moves += moved
        if moved == 0:
            break
    return moves


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
