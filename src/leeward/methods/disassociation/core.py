"""Disassociation from flat code sets to flat clusters, chunks and joint clusters, in threads.

Nothing here knows of files or frames. Threads change nothing: they share work out in blocks whose results do not
depend on who computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from leeward.engine import available_threads, over_blocks
from leeward.engine import pool as threads_of
from leeward.methods.disassociation.horpart import gather, split_all, split_chain
from leeward.methods.disassociation.refine import Setting, SharedChunks, leaf_clusters, refine
from leeward.methods.disassociation.settle import BLOCK, count_supports, find_stranded, recut, settle_block
from leeward.methods.disassociation.verpart import place_leaves

SMALLEST_BLOCK = 2048
NO_LIMIT = 2**62


class Pool:
    """Runs kernels over blocks of an index range in threads (the kernels release the interpreter lock)."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or available_threads()

    def blocks(self, n: int, run: Callable[[int, int], object]) -> list[object]:
        """`run(lo, hi)` over blocks of 0…n-1; results in block order."""
        return over_blocks(run, n, threads=self.threads, smallest=SMALLEST_BLOCK) if n else []

    def tasks(self, runs: list[Callable[[], object]]) -> None:
        """Independent tasks, the first ones first."""
        with threads_of(min(self.threads, len(runs))) as workers:
            for done in [workers.submit(run) for run in runs]:
                done.result()


@dataclass(frozen=True)
class Partition:
    """A horizontal partitioning: `order` permutes the records, leaf l is `order[leaf_offsets[l]:leaf_offsets[l+1]]`."""

    order: NDArray[np.int32]
    leaf_offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Disassociated:
    """Clusters and chunks as flat arrays, records in the order of the clusters.

    order : int32[n], the record at each position
    offsets, values : the code sets in that order
    leaf_offsets : int64[leaves + 1], positions
    leaf_codes, leaf_chunk, leaf_n_codes, leaf_n_chunks : each leaf's distinct codes and their record chunk (-1: item
        chunk), from position `offsets[leaf_offsets[l]]` on
    fit_alone : whether a leaf may have an empty item chunk
    shared : joint nodes and shared chunks
    condition_fired : how often the empty-item-chunk condition moved a code
    """

    order: NDArray[np.int32]
    offsets: NDArray[np.int64]
    values: NDArray[np.int32]
    leaf_offsets: NDArray[np.int64]
    leaf_codes: NDArray[np.int32]
    leaf_chunk: NDArray[np.int32]
    leaf_n_codes: NDArray[np.int32]
    leaf_n_chunks: NDArray[np.int32]
    fit_alone: NDArray[np.bool_]
    shared: SharedChunks
    condition_fired: int


@dataclass(frozen=True)
class Rules:
    """What the kernels need to know, over the code numbers of one data set."""

    k: int
    m: int
    constraint_of: NDArray[np.int32]
    n_constraints: int
    sensitive: NDArray[np.bool_]
    max_cluster: int
    nested: bool = False
    safe: bool = False
    refine: bool = True
    settle: bool = False
    recut: bool = False
    max_joint: int = NO_LIMIT
    max_passes: int = NO_LIMIT


def gathered(
    offsets: NDArray[np.int64], values: NDArray[np.int32], order: NDArray[np.int32], pool: Pool
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The code sets of `order`, in that order."""
    new_offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(offsets)[order], out=new_offsets[1:])
    new_values = np.empty(new_offsets[-1], np.int32)
    pool.blocks(len(order), lambda lo, hi: gather(offsets, values, order, new_offsets, new_values, lo, hi))
    return new_offsets, new_values


def horizontal_partition(
    offsets: NDArray[np.int64], values: NDArray[np.int32], rules: Rules, pool: Pool
) -> Partition:
    """HorPart and the small leaves' pool (docs/methods/disassociation.md#horizontal-partitioning)."""
    n = len(offsets) - 1
    order = np.arange(n, dtype=np.int32)
    n_codes = len(rules.constraint_of)
    begins, ends, codes = split_chain(
        offsets, values, order, 0, n, rules.sensitive, rules.constraint_of, -1, rules.max_cluster,
        np.zeros(n_codes, np.int32), np.zeros(n_codes, np.int64),
    )  # fmt: skip
    near_offsets, near_values = gathered(offsets, values, order, pool)
    near = np.arange(n, dtype=np.int32)
    leaf_begins = np.zeros(n, np.bool_)

    def run(i: int) -> Callable[[], object]:
        if codes[i] < 0:  # what no frequent code holds is a leaf already
            return lambda: leaf_begins.__setitem__(begins[i], True)
        return lambda: split_all(
            near_offsets, near_values, near, begins[i], ends[i], codes[i], rules.sensitive.copy(),
            rules.constraint_of, rules.max_cluster, leaf_begins,
        )  # fmt: skip

    pool.tasks([run(i) for i in np.argsort(begins - ends, kind="stable")])
    return pool_small(Partition(order[near], np.append(np.flatnonzero(leaf_begins), n)), rules.k)


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
    bounds = np.concatenate([[0], np.cumsum(sizes[~small])])
    if len(pooled) >= k:
        cuts = len(proper) + k * np.arange(1, len(pooled) // k + 1)
        cuts[-1] = len(partition.order)
        return Partition(np.concatenate([proper, pooled]), np.concatenate([bounds, cuts]))
    at = bounds[int(np.argmin(sizes[~small])) + 1]
    order = np.concatenate([proper[:at], pooled, proper[at:]])
    return Partition(order, bounds + np.where(bounds >= at, len(pooled), 0))


def settled(
    offsets: NDArray[np.int64], values: NDArray[np.int32], partition: Partition, rules: Rules, pool: Pool
) -> Partition:
    """Let records choose a better cluster (`settle`), and re-cut clusters of stranded records (`recut`)."""
    cap = 2 * rules.max_cluster
    n_codes = len(rules.constraint_of)
    if rules.settle:
        near = gathered(offsets, values, partition.order, pool)
        leaves = len(partition.leaf_offsets) - 1
        leaf_of = np.empty(len(partition.order), np.int32)
        starts = range(0, leaves, BLOCK)

        def run(first: int) -> Callable[[], object]:
            return lambda: settle_block(
                *near, partition.leaf_offsets, first, min(first + BLOCK, leaves), rules.k, cap, n_codes,
                rules.sensitive, leaf_of,
            )  # fmt: skip

        pool.tasks([run(first) for first in starts])
        partition = regrouped(partition, leaf_of)
    if rules.recut:
        near = gathered(offsets, values, partition.order, pool)
        leaf_of = rows_to_leaves(partition.leaf_offsets)
        supports = count_supports(*near, partition.leaf_offsets, n_codes)
        bounds, stranding = partition.leaf_offsets, np.zeros(len(partition.leaf_offsets) - 1, np.bool_)

        def look(lo: int, hi: int) -> object:
            return find_stranded(*near, bounds, *supports, rules.k, rules.sensitive, lo, hi, stranding)

        pool.blocks(len(stranding), look)
        recut(*near, partition.leaf_offsets, *supports, rules.k, cap, rules.sensitive, stranding, leaf_of)
        partition = regrouped(partition, leaf_of)
    return partition


def regrouped(partition: Partition, leaf_of: NDArray[np.int32]) -> Partition:
    """The partition after records moved to `leaf_of`; records keep their order inside a leaf, empty leaves go."""
    by_leaf = np.argsort(leaf_of, kind="stable")
    sizes = np.bincount(leaf_of, minlength=len(partition.leaf_offsets) - 1)
    return Partition(partition.order[by_leaf], np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))


@njit(cache=True, nogil=True)
def rows_to_leaves(leaf_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    leaf_of_row = np.empty(leaf_offsets[-1], np.int32)
    for leaf in range(len(leaf_offsets) - 1):
        leaf_of_row[leaf_offsets[leaf] : leaf_offsets[leaf + 1]] = leaf
    return leaf_of_row


@njit(cache=True, nogil=True)
def count_items(
    offsets: NDArray[np.int64],
    leaf_offsets: NDArray[np.int64],
    leaf_codes: NDArray[np.int32],
    leaf_chunk: NDArray[np.int32],
    leaf_n_codes: NDArray[np.int32],
    n_codes: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Codes in each leaf's item chunk, and the number of leaves whose item chunk has each code."""
    item_left = np.zeros(len(leaf_n_codes), np.int32)
    holders = np.zeros(n_codes, np.int64)
    for leaf in range(len(leaf_n_codes)):
        base = offsets[leaf_offsets[leaf]]
        for i in range(base, base + leaf_n_codes[leaf]):
            if leaf_chunk[i] < 0:
                item_left[leaf] += 1
                holders[leaf_codes[i]] += 1
    return item_left, holders


def disassociate(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    partition: Partition,
    rules: Rules,
    pool: Pool,
) -> Disassociated:
    """VerPart of every leaf and Refine over all of them, for a given horizontal partitioning."""
    offsets, values = gathered(offsets, values, partition.order, pool)
    leaf_offsets = partition.leaf_offsets
    leaves = len(leaf_offsets) - 1
    leaf_codes = np.empty(len(values), np.int32)
    leaf_chunk = np.empty(len(values), np.int32)
    leaf_n_codes = np.zeros(leaves, np.int32)
    leaf_n_chunks = np.zeros(leaves, np.int32)
    fit_alone = np.zeros(leaves, np.bool_)
    fired = pool.blocks(
        leaves,
        lambda lo, hi: place_leaves(
            offsets, values, leaf_offsets, lo, hi, rules.k, rules.m, rules.constraint_of, rules.n_constraints,
            rules.sensitive, rules.safe, leaf_codes, leaf_chunk, leaf_n_codes, leaf_n_chunks, fit_alone,
        ),
    )  # fmt: skip
    n_codes = len(rules.constraint_of)
    item_left, holders = count_items(offsets, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes)
    if rules.refine:
        shared = refine(
            leaf_clusters(offsets, values, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes),
            Setting(
                leaf_of_row=rows_to_leaves(leaf_offsets),
                leaf_records=np.diff(leaf_offsets),
                fit_alone=fit_alone,
                k=rules.k,
                m=rules.m,
                constraint_of=rules.constraint_of,
                n_constraints=rules.n_constraints,
                sensitive=rules.sensitive,
                max_joint=rules.max_joint,
                max_passes=rules.max_passes,
                nested=rules.nested,
                safe=rules.safe,
            ),
            item_left=item_left,
            holders=holders,
            blocks=pool.blocks,
        )
    else:
        none = np.empty(0, np.int32)
        shared = SharedChunks(np.full(leaves, -1, np.int64), np.empty(0, np.int64), none, none, item_left, 0)
    return Disassociated(
        partition.order,
        offsets,
        values,
        leaf_offsets,
        leaf_codes,
        leaf_chunk,
        leaf_n_codes,
        leaf_n_chunks,
        fit_alone,
        shared,
        sum(f for f in fired if isinstance(f, int)),
    )
