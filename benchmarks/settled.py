"""Settled partitioning of disassociation (ours; what `fitted` is compared with): records move to a neighbouring cluster
where fewer codes end in item chunks.

HorPart leaves almost every second record in a part below k, which is then pooled with strangers. Cutting later
(clusters of 10k) and letting each record choose among the clusters of its neighbourhood keeps more codes in record
chunks (docs/benchmarks/disassociation-quality.md). A code of a record is in a record chunk when k records of the
cluster hold it, so a move changes the number of occurrences in item chunks by what follows from the two clusters'
supports alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from numba import njit
from numpy.typing import NDArray

from leeward.methods.disassociation import Disassociation, horpart, pipeline
from leeward.methods.disassociation.rules import Rules, Workers

BLOCK = 256
"""Leaves that a record may choose from: consecutive in HorPart's order, so they share their first codes."""

ROUNDS = 4
TRIES = 16
"""Clusters that a record looks at for each of its codes in an item chunk."""

MAX_CLUSTER, MAX_JOINT = 10, 80
"""Parts that are split and the largest joint cluster, as multiples of k: larger ones blur which codes go together."""

MAX_PASSES = 24

improve_partition, refine = pipeline.improve_partition, pipeline.refine


def method_of(partitioning: str, k: int, **more: Any) -> Disassociation:
    """The parameters of a partitioning; `settled` needs `settling` around the run."""
    if partitioning != "settled":
        return Disassociation(k=k, partitioning=partitioning, **more)  # type: ignore[arg-type]
    return Disassociation(k=k, partitioning="recut", max_cluster=MAX_CLUSTER * k, **more)


@contextmanager
def settling(partitioning: str = "settled") -> Iterator[None]:
    """Inside, HorPart's clusters are settled, and refining ends as it did for them; no change for others."""
    if partitioning != "settled":
        yield
        return

    def improve(offsets: Any, values: Any, first: Any, rules: Rules, workers: Workers) -> horpart.Partition:
        settled = settle(offsets, values, first, rules, workers)
        return improve_partition(offsets, values, settled, rules, workers)

    def limited(near: Any, chunks: Any, rules: Rules, blocks: Any) -> Any:
        limits = rules._replace(max_joint=MAX_JOINT * rules.k, max_passes=MAX_PASSES)
        return refine(near, chunks, limits, blocks)

    with (
        patch.object(pipeline, "improve_partition", improve),
        patch.object(pipeline, "refine", limited),
    ):
        yield


def settle(
    offsets: Any, values: Any, first: horpart.Partition, rules: Rules, workers: Workers
) -> horpart.Partition:
    """The partition after records moved inside blocks of leaves."""
    near = horpart.gather_records(offsets, values, first, workers)
    leaves = len(first.leaf_offsets) - 1
    leaf_of = np.empty(len(first.order), np.int32)

    def run(start: int) -> Callable[[], object]:
        return lambda: settle_block(
            *near, start, min(start + BLOCK, leaves), rules.k, 2 * rules.max_cluster,
            rules.n_codes, rules.sensitive, leaf_of,
        )  # fmt: skip

    workers.tasks([run(start) for start in range(0, leaves, BLOCK)])
    return horpart.regroup(first, leaf_of)


@njit(nogil=True)
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


@njit(nogil=True)
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


@njit(nogil=True)
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
