"""Horizontal partitioning: records that share codes, in clusters of at least k (docs/methods/disassociation.md).

HorPart, the small parts' pool, and the steps beyond the paper: fitting and recutting.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leeward.arrays import Int32s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.fit import aim_of, block_records, fit_block, purity
from leeward.methods.disassociation.horpart import gather, split_all, split_chain
from leeward.methods.disassociation.recut import count_supports, find_stranded, recut
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.workers import Workers

LARGEST = 20
"""A fitted cluster does not grow beyond so many times k records (or twice `max_cluster`)."""


@dataclass(frozen=True)
class Partition:
    """A horizontal partitioning: `order` permutes the records, leaf l is `order[leaf_offsets[l]:leaf_offsets[l+1]]`."""

    order: Int32s
    leaf_offsets: Int64s


def partition_records(
    sets: CodeSets, rules: Rules, workers: Workers, weight: float | None = None
) -> Partition:
    """HorPart, fitted where the rules ask for it, and recut; `weight` in place of the fitted one's own."""
    if rules.fit:
        first = fit_partition(sets.offsets, sets.values, rules, workers, weight)
    else:
        first = horizontal_partition(sets.offsets, sets.values, rules, workers)
    return improve_partition(sets.offsets, sets.values, first, rules, workers)


def gather_records(offsets: Int64s, values: Int32s, order: Int32s, workers: Workers) -> tuple[Int64s, Int32s]:
    """The code sets of `order`, in that order."""
    new_offsets = offsets_of(np.diff(offsets)[order])
    new_values = np.empty(new_offsets[-1], np.int32)
    workers.blocks(len(order), lambda lo, hi: gather(offsets, values, order, new_offsets, new_values, lo, hi))
    return new_offsets, new_values


def horizontal_partition(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
    """HorPart and the small leaves' pool (docs/methods/disassociation.md#horizontal-partitioning)."""
    return pool_small(split_records(offsets, values, rules, workers), rules.k)


def fit_partition(
    offsets: Int64s, values: Int32s, rules: Rules, workers: Workers, weight: float | None = None
) -> Partition:
    """HorPart, then records move, clusters are dissolved and split while the objective grows
    (docs/methods/disassociation.md#fitted-partitioning)."""
    k = rules.k
    partition = pool_in_place(split_records(offsets, values, rules, workers), k)
    near = gather_records(offsets, values, partition.order, workers)
    bounds = partition.leaf_offsets
    at, codes, support = count_supports(*near, bounds, rules.n_codes)
    most = max(2 * rules.max_cluster, LARGEST * k)
    aim = aim_of(purity(at, support, codes, bounds, k, rules.sensitive), k, most)
    aim = aim if weight is None else aim._replace(weight=weight)
    frequent = int((np.bincount(values, minlength=rules.n_codes) >= k).sum())
    blocks = cut_blocks(bounds, block_records(k, frequent))
    cluster_of = np.empty(len(partition.order), np.int32)

    def run(first: int, last: int) -> Callable[[], object]:
        return lambda: fit_block(*near, bounds, first, last, aim, rules.sensitive, cluster_of)

    workers.tasks([run(first, last) for first, last in blocks])
    return regroup(partition, cluster_of)


def cut_blocks(leaf_offsets: Int64s, records: int) -> list[tuple[int, int]]:
    """Runs of leaves, first and last + 1, of about equally many records and at most about `records`, or one leaf."""
    n = int(leaf_offsets[-1])
    wanted = -(-n // records)
    edges = np.searchsorted(leaf_offsets, n * np.arange(1, wanted) // wanted)
    edges = np.unique(np.concatenate([[0], edges, [len(leaf_offsets) - 1]]))
    return list(itertools.pairwise(edges.tolist()))


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
