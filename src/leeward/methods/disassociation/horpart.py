"""HorPart: bring records with the same codes together (Loukides et al. 2014, Fig. 8).

Splitting "with code a" from "without" again and again is done on inverted lists: a part's chain of splits visits each
(record, code) pair once, instead of scanning the remaining records at every split. Conventions:
docs/methods/disassociation.md#horizontal-partitioning (the part without the code keeps its parent's ignore set).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s, offsets_of
from leeward.compiled import njit
from leeward.methods.disassociation.rules import Rules, Workers


@dataclass(frozen=True)
class Partition:
    """A horizontal partitioning: `order` permutes the records, leaf l is `order[leaf_offsets[l]:leaf_offsets[l+1]]`."""

    order: Int32s
    leaf_offsets: Int64s


def gather_records(offsets: Int64s, values: Int32s, order: Int32s, workers: Workers) -> tuple[Int64s, Int32s]:
    """The code sets of `order`, in that order."""
    new_offsets = offsets_of(np.diff(offsets)[order])
    new_values = np.empty(new_offsets[-1], np.int32)
    workers.blocks(len(order), lambda lo, hi: gather(offsets, values, order, new_offsets, new_values, lo, hi))
    return new_offsets, new_values


def horizontal_partition(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
    """HorPart and the small leaves' pool (docs/methods/disassociation.md#horizontal-partitioning)."""
    return pool_small(split_records(offsets, values, rules, workers), rules.k)


def split_records(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
    """HorPart before small leaves are pooled."""
    n = len(offsets) - 1
    order = np.arange(n, dtype=np.int32)
    n_codes = rules.n_codes
    begins, ends, codes = split_chain(
        offsets, values, order, 0, n, rules.sensitive, rules.constraint_of, -1, rules.max_cluster,
        np.zeros(n_codes, np.int32), np.zeros(n_codes, np.int64),
    )  # fmt: skip
    near_offsets, near_values = gather_records(offsets, values, order, workers)
    near = np.arange(n, dtype=np.int32)
    leaf_begins = np.zeros(n, np.bool_)

    def run(i: int) -> Callable[[], object]:
        if codes[i] < 0:  # what no frequent code holds is a leaf already
            return lambda: leaf_begins.__setitem__(begins[i], True)
        return lambda: split_all(
            near_offsets, near_values, near, begins[i], ends[i], codes[i], rules.sensitive.copy(),
            rules.constraint_of, rules.max_cluster, leaf_begins,
        )  # fmt: skip

    workers.tasks([run(i) for i in np.argsort(begins - ends, kind="stable")])
    return Partition(order[near], np.append(np.flatnonzero(leaf_begins), n))


def pool_small(partition: Partition, k: int) -> Partition:
    """Leaves below k are pooled in creation order and cut into blocks of k, after the proper leaves."""
    sizes = np.diff(partition.leaf_offsets)
    small = sizes < k
    if not small.any():
        return partition
    small_record = np.repeat(small, sizes)
    if small.all():
        return Partition(partition.order, np.array([0, len(partition.order)], np.int64))
    pooled = partition.order[small_record]
    proper = partition.order[~small_record]
    bounds = offsets_of(sizes[~small])
    if len(pooled) >= k:
        cuts = len(proper) + k * np.arange(1, len(pooled) // k + 1)
        cuts[-1] = len(partition.order)
        return Partition(np.concatenate([proper, pooled]), np.concatenate([bounds, cuts]))
    at = bounds[int(np.argmin(sizes[~small])) + 1]
    order = np.concatenate([proper[:at], pooled, proper[at:]])
    return Partition(order, bounds + np.where(bounds >= at, len(pooled), 0))


def pool_in_place(partition: Partition, k: int) -> Partition:
    """As `pool_small`, but a block of pooled records is placed where its first record was, so that neighbours stay
    neighbours."""
    sizes = np.diff(partition.leaf_offsets)
    pooled = np.flatnonzero(np.repeat(sizes < k, sizes))
    if len(pooled) < k or len(pooled) == len(partition.order):
        return pool_small(partition, k)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    cluster[pooled] = len(sizes) + np.minimum(np.arange(len(pooled)) // k, len(pooled) // k - 1)
    _, first, number = np.unique(cluster, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[number]
    return Partition(partition.order[np.argsort(rank, kind="stable")], offsets_of(np.bincount(rank)))


def regroup(partition: Partition, leaf_of: Int32s) -> Partition:
    """The partition after records moved to `leaf_of`; records keep their order inside a leaf, empty leaves go."""
    by_leaf = np.argsort(leaf_of, kind="stable")
    sizes = np.bincount(leaf_of)
    return Partition(partition.order[by_leaf], offsets_of(sizes[sizes > 0]))


@njit
def rows_to_leaves(leaf_offsets: Int64s) -> Int32s:
    leaf_of_row = np.empty(leaf_offsets[-1], np.int32)
    for leaf in range(len(leaf_offsets) - 1):
        leaf_of_row[leaf_offsets[leaf] : leaf_offsets[leaf + 1]] = leaf
    return leaf_of_row


NONE = np.int32(-1)


@njit
def split_chain(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    ignored: NDArray[np.bool_],
    constraint_of: NDArray[np.int32],
    u: int,
    max_size: int,
    count: NDArray[np.int32],
    start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Split `order[lo:hi]` by its most frequent codes until the rest is a leaf.

    Permutes `order[lo:hi]`; returns the parts' begins, ends and the code each holds (-1: the rest, a leaf).
    `count` (zeros) and `start` are scratch, as long as the code domain; `count` is left zeroed.
    """
    n = hi - lo
    touched = np.empty(len(count), np.int32)
    n_touched = 0
    total = 0
    for i in range(lo, hi):
        r = order[i]
        for j in range(offsets[r], offsets[r + 1]):
            c = values[j]
            if not ignored[c]:
                if count[c] == 0:
                    touched[n_touched] = c
                    n_touched += 1
                count[c] += 1
                total += 1
    touched[:n_touched].sort()
    position = 0
    for q in range(n_touched):
        c = touched[q]
        start[c] = position
        position += count[c]
    lists = np.empty(total, np.int32)
    ends = np.empty(n_touched, np.int64)
    for i in range(lo, hi):
        r = order[i]
        for j in range(offsets[r], offsets[r + 1]):
            c = values[j]
            if not ignored[c]:
                lists[start[c]] = i - lo
                start[c] += 1
    for q in range(n_touched):  # `start` now points behind each list
        ends[q] = start[touched[q]]
        start[touched[q]] = q

    taken = np.zeros(n, np.bool_)
    out = np.empty(n, np.int32)
    begins_out = np.empty(n_touched + 1, np.int64)
    ends_out = np.empty(n_touched + 1, np.int64)
    codes_out = np.empty(n_touched + 1, np.int32)
    parts = 0
    filled = 0
    active = touched[:n_touched].copy()
    n_active = n_touched
    while n - filled >= max_size:
        best_u = NONE
        best_constrained = NONE
        best_any = NONE
        kept = 0
        for q in range(n_active):
            c = active[q]
            s = count[c]
            if s == 0:
                continue
            active[kept] = c
            kept += 1
            if best_any < 0 or s > count[best_any]:
                best_any = c
            if constraint_of[c] >= 0:
                if best_constrained < 0 or s > count[best_constrained]:
                    best_constrained = c
                if constraint_of[c] == u and (best_u < 0 or s > count[best_u]):
                    best_u = c
        n_active = kept
        a = best_u
        if u < 0 or a < 0:
            a = best_constrained
        if a < 0:
            a = best_any
        if a < 0:
            break
        u = -1
        first = filled
        q = start[a]
        begin = ends[q - 1] if q > 0 else 0
        for x in range(begin, ends[q]):
            p = lists[x]
            if taken[p]:
                continue
            taken[p] = True
            r = order[lo + p]
            out[filled] = r
            filled += 1
            for j in range(offsets[r], offsets[r + 1]):
                c = values[j]
                if not ignored[c]:
                    count[c] -= 1
        begins_out[parts] = lo + first
        ends_out[parts] = lo + filled
        codes_out[parts] = a
        parts += 1
    if filled < n:
        begins_out[parts] = lo + filled
        for p in range(n):
            if not taken[p]:
                out[filled] = order[lo + p]
                filled += 1
        ends_out[parts] = lo + filled
        codes_out[parts] = NONE
        parts += 1
    for p in range(n):
        order[lo + p] = out[p]
    for q in range(n_touched):
        count[touched[q]] = 0
    return begins_out[:parts], ends_out[:parts], codes_out[:parts]


@njit
def split_all(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    first_ignored: int,
    ignored: NDArray[np.bool_],
    constraint_of: NDArray[np.int32],
    max_size: int,
    leaf_begins: NDArray[np.bool_],
) -> None:
    """HorPart of `order[lo:hi]`, whose records all hold the code `first_ignored` (-1: none was split on yet).

    Permutes `order[lo:hi]` and marks every leaf's first position in `leaf_begins`. `ignored` is restored.
    """
    if hi <= lo:
        return
    if hi - lo < max_size:
        leaf_begins[lo] = True
        return
    n_codes = len(ignored)
    count = np.zeros(n_codes, np.int32)
    start = np.zeros(n_codes, np.int64)
    path = np.empty(n_codes + 1, np.int32)
    depth = 0  # codes on the path are ignored
    stack = [(lo, hi, first_ignored, 0)]
    while len(stack) > 0:
        begin, end, code, level = stack.pop()
        while depth > level:
            depth -= 1
            ignored[path[depth]] = False
        u = -1
        if code >= 0:
            path[depth] = code
            depth += 1
            ignored[code] = True
            u = constraint_of[code]
        b, e, c = split_chain(
            offsets, values, order, begin, end, ignored, constraint_of, u, max_size, count, start
        )
        for i in range(len(b)):
            if c[i] < 0 or e[i] - b[i] < max_size:
                leaf_begins[b[i]] = True
            else:
                stack.append((b[i], e[i], c[i], depth))
    while depth > 0:
        depth -= 1
        ignored[path[depth]] = False


@njit
def gather(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    new_offsets: NDArray[np.int64],
    new_values: NDArray[np.int32],
    lo: int,
    hi: int,
) -> None:
    """Copy records `order[lo:hi]` to their place in a CSR whose offsets are already set."""
    for i in range(lo, hi):
        r = order[i]
        at = new_offsets[i]
        for j in range(offsets[r], offsets[r + 1]):
            new_values[at] = values[j]
            at += 1
