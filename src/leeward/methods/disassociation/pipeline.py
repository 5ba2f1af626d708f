"""Disassociation from flat code sets to flat clusters, chunks and joint clusters (docs/methods/disassociation.md).

Partition the records, split every cluster's codes into chunks, refine. Nothing here knows of files or frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leeward.arrays import Bools, Int32s, Int64s
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.joins import Leaves
from leeward.methods.disassociation.partition import (
    Partition,
    gather_records,
    partition_records,
    rows_to_leaves,
)
from leeward.methods.disassociation.refine import SharedChunks, leaf_clusters, refine
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.verpart import place_leaves
from leeward.methods.disassociation.workers import Workers


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

    order: Int32s
    offsets: Int64s
    values: Int32s
    leaf_offsets: Int64s
    leaf_codes: Int32s
    leaf_chunk: Int32s
    leaf_n_codes: Int32s
    leaf_n_chunks: Int32s
    fit_alone: Bools
    shared: SharedChunks
    condition_fired: int


def disassociate(
    sets: CodeSets, rules: Rules, workers: Workers, partition: Partition | None = None
) -> Disassociated:
    """Clusters and chunks of a data set (or one partition of it): VerPart of every leaf and Refine over all of them.

    `partition` where the records are partitioned already.
    """
    partition = partition or partition_records(sets, rules, workers)
    offsets, values = gather_records(sets.offsets, sets.values, partition.order, workers)
    leaf_offsets = partition.leaf_offsets
    leaves = len(leaf_offsets) - 1
    leaf_codes = np.empty(len(values), np.int32)
    leaf_chunk = np.empty(len(values), np.int32)
    leaf_n_codes = np.zeros(leaves, np.int32)
    leaf_n_chunks = np.zeros(leaves, np.int32)
    fit_alone = np.zeros(leaves, np.bool_)
    fired = workers.blocks(
        leaves,
        lambda lo, hi: place_leaves(
            offsets, values, leaf_offsets, lo, hi, rules, leaf_codes, leaf_chunk, leaf_n_codes, leaf_n_chunks,
            fit_alone,
        ),
    )  # fmt: skip
    n_codes = rules.n_codes
    item_left, holders = count_items(offsets, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes)
    shared = refine(
        leaf_clusters(offsets, values, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes),
        Leaves(rows_to_leaves(leaf_offsets), np.diff(leaf_offsets), item_left, fit_alone),
        rules,
        holders=holders,
        blocks=workers.blocks,
    )
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


@njit
def count_items(
    offsets: Int64s,
    leaf_offsets: Int64s,
    leaf_codes: Int32s,
    leaf_chunk: Int32s,
    leaf_n_codes: Int32s,
    n_codes: int,
) -> tuple[Int32s, Int64s]:
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
