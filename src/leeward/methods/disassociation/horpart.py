"""HorPart: bring records with the same codes together (Loukides et al. 2014, Fig. 8).

Splitting "with code a" from "without" again and again is done on inverted lists: a part's chain of splits visits each
(record, code) pair once, instead of scanning the remaining records at every split. Conventions:
docs/methods/disassociation.md#horizontal-partitioning (the part without the code keeps its parent's ignore set).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from leeward.analysis.kernels import empty_list
from leeward.arrays import Bools, Int32s, Int64s, offsets_of
from leeward.compiled import njit
from leeward.methods.disassociation.rules import Rules, Workers


class Clustered(NamedTuple):
    """Code sets in the order of their clusters (leaves): the record at position r has the codes
    values[offsets[r]:offsets[r + 1]], ascending; leaf l has the positions bounds[l] … bounds[l + 1] - 1."""

    offsets: Int64s
    values: Int32s
    bounds: Int64s


@dataclass(frozen=True)
class Partition:
    """A horizontal partitioning: `order` permutes the records, leaf l is `order[leaf_offsets[l]:leaf_offsets[l+1]]`."""

    order: Int32s
    leaf_offsets: Int64s


def gather_records(offsets: Int64s, values: Int32s, partition: Partition, workers: Workers) -> Clustered:
    order = partition.order
    near = Clustered(
        offsets_of(np.diff(offsets)[order]), np.empty(len(values), np.int32), partition.leaf_offsets
    )
    workers.blocks(len(order), lambda lo, hi: gather(offsets, values, order, near, lo, hi))
    return near


def horizontal_partition(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
    """HorPart and the small leaves' pool (docs/methods/disassociation.md#horizontal-partitioning)."""
    return pool_small(split_records(offsets, values, rules, workers), rules.k)


def split_records(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
    """HorPart before small leaves are pooled."""
    n = len(offsets) - 1
    order = np.arange(n, dtype=np.int32)
    n_codes = rules.n_codes
    begins, codes = split_chain(
        offsets, values, order, 0, n, rules.sensitive, rules, -1,
        np.zeros(n_codes, np.int32), np.empty((n_codes, 2), np.int64),
    )  # fmt: skip
    parts = gather_records(offsets, values, Partition(order, begins), workers)
    near = np.arange(n, dtype=np.int32)
    leaf_begins = np.zeros(n, np.bool_)

    def run(i: int) -> None:
        lo, hi = begins[i], begins[i + 1]
        if codes[i] < 0:  # the records without a frequent code are a leaf already
            leaf_begins[lo] = True
        else:
            split_all(parts.offsets, parts.values, near, lo, hi, codes[i], rules, leaf_begins)

    workers.tasks([partial(run, i) for i in np.argsort(-np.diff(begins), kind="stable")])
    return Partition(order[near], np.append(np.flatnonzero(leaf_begins), n))


def pool_small(partition: Partition, k: int) -> Partition:
    """Pool leaves below k in creation order and cut them into blocks of k, after the proper leaves."""
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
    """Like `pool_small`, but each block of pooled records takes the place of its first record, so that neighbours stay
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
    """The partition with records moved to `leaf_of`; records keep their order inside a leaf, empty leaves go."""
    by_leaf = np.argsort(leaf_of, kind="stable")
    sizes = np.bincount(leaf_of)
    return Partition(partition.order[by_leaf], offsets_of(sizes[sizes > 0]))


@njit
def split_chain(
    offsets: Int64s,
    values: Int32s,
    order: Int32s,
    lo: int,
    hi: int,
    ignored: Bools,
    rules: Rules,
    u: int,
    count: Int32s,
    span: Int64s,
) -> tuple[Int64s, Int64s]:
    """Split `order[lo:hi]` by its most frequent codes that are not `ignored` until the rest is a leaf; codes of the
    constraint u come first (-1: of any).

    Permutes `order[lo:hi]`; returns the bounds of the parts, and the code that each holds (-1: the rest, a leaf).
    `count` (zeros, and left so) and `span` (two columns) are scratch with a row for each code of the domain.
    """
    n = hi - lo
    touched = empty_list()
    for r in order[lo:hi]:
        for c in values[offsets[r] : offsets[r + 1]]:
            if not ignored[c]:
                if count[c] == 0:
                    touched.append(c)
                count[c] += 1
    present = np.sort(np.array(touched))
    lists = np.empty(count[present].sum(), np.int32)  # places of the records with each code, code by code
    total = 0
    for c in present:
        span[c, 0] = span[c, 1] = total
        total += count[c]
    for i in range(n):
        r = order[lo + i]
        for c in values[offsets[r] : offsets[r + 1]]:
            if not ignored[c]:
                lists[span[c, 1]] = i
                span[c, 1] += 1
    taken = np.zeros(n, np.bool_)
    out = np.empty(n, np.int32)
    active = present
    begins, codes = empty_list(), empty_list()
    filled = 0
    while n - filled >= rules.max_cluster:
        a, active = _next_code(active, count, rules.constraint_of, u)
        if a < 0:
            break
        u = -1
        begins.append(lo + filled)
        codes.append(a)
        for i in lists[span[a, 0] : span[a, 1]]:
            if not taken[i]:
                taken[i] = True
                r = order[lo + i]
                out[filled] = r
                filled += 1
                for c in values[offsets[r] : offsets[r + 1]]:
                    count[c] -= int(not ignored[c])
    if filled < n:
        begins.append(lo + filled)
        codes.append(-1)
        out[filled:] = order[lo:hi][~taken]
    begins.append(hi)
    order[lo:hi] = out
    count[present] = 0
    return np.array(begins), np.array(codes)


@njit(inner=True)
def _next_code(active: Int64s, count: Int32s, constraint_of: Int32s, u: int) -> tuple[int, Int64s]:
    """The most frequent code (the least of equals): of the constraint u, else of any, else of none; -1 if no code is
    left. And the codes that are left."""
    active = active[count[active] > 0]
    best, most, most_bound = -1, 0, -1
    for c in active:
        v = constraint_of[c]
        bound = int(v >= 0) + int(v >= 0 and v == u)
        if bound > most_bound or (bound == most_bound and count[c] > most):
            best, most, most_bound = c, count[c], bound
    return best, active


@njit
def split_all(
    offsets: Int64s,
    values: Int32s,
    order: Int32s,
    lo: int,
    hi: int,
    first_ignored: int,
    rules: Rules,
    leaf_begins: Bools,
) -> None:
    """HorPart of `order[lo:hi]`, whose records all hold the code `first_ignored`. Permutes `order[lo:hi]` and marks
    every leaf's first position in `leaf_begins`."""
    if hi - lo < rules.max_cluster:
        leaf_begins[lo] = True
        return
    ignored = rules.sensitive.copy()
    n_codes = len(ignored)
    count = np.zeros(n_codes, np.int32)
    span = np.empty((n_codes, 2), np.int64)
    path = np.empty(n_codes + 1, np.int32)
    depth = 0  # codes on the path are ignored
    stack = [(lo, hi, first_ignored, 0)]
    while len(stack) > 0:
        begin, end, code, level = stack.pop()
        while depth > level:
            depth -= 1
            ignored[path[depth]] = False
        path[depth] = code
        depth += 1
        ignored[code] = True
        u = rules.constraint_of[code]
        b, c = split_chain(offsets, values, order, begin, end, ignored, rules, u, count, span)
        for i in range(len(c)):
            if c[i] < 0 or b[i + 1] - b[i] < rules.max_cluster:
                leaf_begins[b[i]] = True
            else:
                stack.append((b[i], b[i + 1], c[i], depth))


@njit(inner=True)
def place_in(values: Int32s, begin: int, end: int, value: int) -> Any:
    place = begin + np.searchsorted(values[begin:end], value)
    return place if place < end and values[place] == value else -1


@njit
def gather(offsets: Int64s, values: Int32s, order: Int32s, near: Clustered, lo: int, hi: int) -> None:
    """Copy the codes of the records `order[lo:hi]` to their place in `near`, whose offsets are set already."""
    for i in range(lo, hi):
        r, at = order[i], near.offsets[i]
        for j in range(offsets[r], offsets[r + 1]):
            near.values[at] = values[j]
            at += 1
