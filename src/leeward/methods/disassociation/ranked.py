"""Clusters that give attackers who know the algorithm as many candidates as those who do not
(docs/proofs.md#algorithm).

Records are split by codes in one random order of roughly falling support; a code is shown in a cluster, or in a joint
cluster, only by its count and only where that reaches a random threshold of k or a little more. No code is tested
together with another, so a refusal reveals nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import uint64

from leeward.analysis.kernels import empty_list, mix
from leeward.arrays import Float64s, Int32s, Int64s, UInt64s, distinct_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.horpart import place_in
from leeward.methods.disassociation.publish import count_table, node_rows
from leeward.methods.disassociation.rules import Rules
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

PASSED_OVER = 1 / 8
"""Probability that a code that could split a part is skipped."""

STEP = 1 / 2
"""A count of k + j reaches its threshold with probability 1 - STEP^(j + 1)."""

LEVELS = (8, 64)
"""Joint clusters are the first parts below these multiples of `max_cluster` records, and all records."""


@dataclass(frozen=True)
class Coins:
    """The secret draws of a run. `order`: the codes in the order in which they may split. `key`: of the random draws
    for a code in a part or (joint) cluster."""

    order: Int32s
    key: int


@dataclass(frozen=True)
class Tree:
    """Records split by codes.

    order, leaf_offsets : as in `Partition`
    above : int64[leaves, levels], the number of the leaf's part of each level, smallest parts first
    identity : uint64[leaves], names each leaf by the splits that made it; level_identity : one array a level
    held_leaf, held_code : the codes that split a leaf off, which all of its records have
    """

    order: Int32s
    leaf_offsets: Int64s
    above: Int64s
    identity: UInt64s
    level_identity: tuple[UInt64s, ...]
    held_leaf: Int64s
    held_code: Int32s


@dataclass(frozen=True)
class Shown:
    """The released nodes and counts of codes.

    parent : int64[nodes], -1 for none, children before parents, the first `leaves` are clusters
    records : int64[nodes]
    node, code, count : int64, ascending by node, then code: the number of records below the node that have the code
        and are not counted further down
    suppressed : number of occurrences counted nowhere
    """

    parent: Int64s
    records: Int64s
    leaves: int
    node: Int64s
    code: Int64s
    count: Int64s
    suppressed: int


def coins_of(sets: CodeSets, k: int, randomness: Randomness) -> Coins:
    """Draw the coins; codes are ordered by their supports with Laplace noise of scale k."""
    supports = np.bincount(sets.values, minlength=len(sets.codes))
    noisy = supports + randomness.stream("ranked", "order").laplace(0.0, k, len(supports))
    return Coins(np.argsort(-noisy, kind="stable").astype(np.int32), randomness.number("ranked", "coins"))


def split(sets: CodeSets, rules: Rules, coins: Coins) -> Tree:
    """Split parts of `rules.max_cluster` records and more until no code is left; no part has fewer than k records."""
    sizes = np.array([times * rules.max_cluster for times in LEVELS], np.int64)
    order, begins, identity, above, link, link_code, link_up, level, level_id = _split(
        sets.offsets, sets.values, coins.order, rules.n_codes, rules.k, rules.max_cluster, sizes,
        np.uint64(coins.key), PASSED_OVER,
    )  # fmt: skip
    by_place = np.argsort(begins, kind="stable")
    leaf, at = np.arange(len(by_place)), link[by_place]
    held = []
    while len(at):
        leaf, at = leaf[at >= 0], at[at >= 0]
        held.append((leaf, link_code[at]))
        at = link_up[at]
    held_leaf, held_code = (np.concatenate(each) for each in zip(*held, strict=True))
    return Tree(
        order,
        np.append(begins[by_place], len(order)),
        above.reshape(-1, len(LEVELS))[by_place],
        identity[by_place],
        tuple(level_id[level == each] for each in range(len(LEVELS))),
        held_leaf,
        held_code,
    )


@njit
def uniform(key: uint64, what: uint64, identity: uint64, code: uint64) -> float:
    """Random number in (0, 1] of a part and a code."""
    x = mix(mix(mix(key ^ what) ^ identity) + code * uint64(0x9E3779B97F4A7C15))
    return float((x >> uint64(11)) + uint64(1)) / 9007199254740992.0


@njit
def _uniforms(key: uint64, what: int, identity: UInt64s, code: Int64s) -> Float64s:
    drawn = np.empty(len(code))
    for i in range(len(code)):
        drawn[i] = uniform(key, uint64(what), identity[i], uint64(code[i]))
    return drawn


@njit
def _split(
    offsets: Int64s,
    values: Int32s,
    by_rank: Int32s,
    n_codes: int,
    k: int,
    max_cluster: int,
    level_sizes: Int64s,
    key: uint64,
    passed_over: float,
) -> tuple[Int32s, Int64s, UInt64s, Int64s, Int64s, Int32s, Int64s, Int64s, UInt64s]:
    """Split depth first. Returns the order of the records; of the leaves, as they were made: where each begins, its
    identity, its parts of each level (one after the other), its last split with a code; of these splits the code and
    the split above; of the parts the level and the identity."""
    order = np.arange(len(offsets) - 1).astype(np.int32)
    begun = np.zeros(len(level_sizes), np.int64)  # parts of each level
    level, level_id = empty_list(), [uint64(0) for _ in range(0)]
    link_code, link_up = empty_list(), empty_list()
    leaf_begin, leaf_id = empty_list(), [uint64(0) for _ in range(0)]
    leaf_above, leaf_link = empty_list(), empty_list()
    # parts that wait: bounds, next rank, last split with a code, identity, parts of each level
    todo = [(0, len(order), 0, -1, uint64(1), np.full(len(level_sizes), -1, np.int64))]
    while len(todo) > 0:
        lo, hi, rank, link, identity, above = todo.pop()
        count = _supports(offsets, values, order[lo:hi], n_codes)
        while True:
            _begin_parts(hi - lo, level_sizes, identity, above, begun, level, level_id)
            if hi - lo < max_cluster or rank == n_codes:
                break
            u = by_rank[rank]
            rank += 1
            c = count[u]
            if min(c, hi - lo - c) < k or uniform(key, uint64(0), identity, uint64(u)) <= passed_over:
                continue
            part = order[lo:hi].copy()
            has = np.array([place_in(values, offsets[r], offsets[r + 1], u) >= 0 for r in part])
            order[lo : lo + c], order[lo + c : hi] = part[has], part[~has]
            count -= _supports(offsets, values, order[lo : lo + c], n_codes)
            link_code.append(u)
            link_up.append(link)
            inside = mix(identity ^ (uint64(2) * uint64(u) + uint64(2)))
            todo.append((lo, lo + c, rank, len(link_up) - 1, inside, above.copy()))
            lo += c
            identity = mix(identity ^ (uint64(2) * uint64(u) + uint64(3)))
        _begin_parts(-1, level_sizes, identity, above, begun, level, level_id)
        leaf_begin.append(lo)
        leaf_id.append(identity)
        leaf_above.extend(above)
        leaf_link.append(link)
    return (
        order, np.array(leaf_begin), np.array(leaf_id), np.array(leaf_above), np.array(leaf_link),
        np.array(link_code), np.array(link_up), np.array(level), np.array(level_id),
    )  # fmt: skip


@njit(inner=True)
def _supports(offsets: Int64s, values: Int32s, records: Int32s, n_codes: int) -> Int64s:
    count = np.zeros(n_codes, np.int64)
    for r in records:
        for c in values[offsets[r] : offsets[r + 1]]:
            count[c] += 1
    return count


@njit(inner=True)
def _begin_parts(
    size: int, level_sizes: Int64s, identity: uint64, above: Int64s, begun: Int64s, level: Any, level_id: Any
) -> None:
    """Number the part of `size` records as one of each level that it is in no part of yet and is small enough for."""
    for x in range(len(above)):
        if above[x] < 0 and size < level_sizes[x]:
            above[x] = begun[x]
            begun[x] += 1
            level.append(x)
            level_id.append(identity)


def show(sets: CodeSets, tree: Tree, k: int, coins: Coins) -> Shown:
    """Count each code in the smallest parts where its count reaches the threshold; the rest is suppressed."""
    n_codes, leaves = len(sets.codes), len(tree.leaf_offsets) - 1
    leaf_of_record = np.empty(len(sets), np.int64)
    leaf_of_record[tree.order] = np.repeat(np.arange(leaves), np.diff(tree.leaf_offsets))
    leaf = np.repeat(leaf_of_record, np.diff(sets.offsets))
    code = sets.values.astype(np.int64)
    parent, levels = joints_of(tree)
    records = np.zeros(len(parent), np.int64)
    records[:leaves] = np.diff(tree.leaf_offsets)
    for node in range(len(parent)):  # children come before parents
        if parent[node] >= 0:
            records[parent[node]] += records[node]
    forced = distinct_of(tree.held_leaf * n_codes + tree.held_code)
    found: list[tuple[Int64s, Int64s]] = []
    for number, (part_of_leaf, node_of_part, identity) in enumerate(levels):
        cells, counts = np.unique(part_of_leaf[leaf] * n_codes + code, return_counts=True)
        part, its = cells // n_codes, cells % n_codes
        drawn = _uniforms(np.uint64(coins.key), number + 1, identity[part], its)
        reached = counts >= k + np.floor(np.log(drawn) / np.log(STEP))
        if number == 0:
            reached |= np.isin(cells, forced)
        reached &= node_of_part[part] >= 0
        found.append((node_of_part[part[reached]] * n_codes + its[reached], counts[reached]))
        left = ~np.isin(part_of_leaf[leaf] * n_codes + code, cells[reached])
        leaf, code = leaf[left], code[left]
    cells, counts = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(cells)
    return Shown(
        parent, records, leaves, cells[order] // n_codes, cells[order] % n_codes, counts[order], len(code)
    )


def joints_of(tree: Tree) -> tuple[Int64s, list[tuple[Int64s, Int64s, UInt64s]]]:
    """The parent of each node (-1 for none), leaves first; and for leaves and each level of joint clusters: each leaf's
    part, each part's node (-1: a part with a single node below), each part's identity."""
    leaves = len(tree.leaf_offsets) - 1
    parent = np.full(leaves, -1, np.int64)
    top = np.arange(leaves)  # the topmost node above each leaf so far
    levels = [(np.arange(leaves), np.arange(leaves), tree.identity)]
    parts = [*tree.above.T, np.zeros(leaves, np.int64)]
    for part_of_leaf, identity in zip(parts, [*tree.level_identity, np.ones(1, np.uint64)], strict=True):
        pairs = np.unique(np.stack([part_of_leaf, top]), axis=1)
        joint = np.bincount(pairs[0], minlength=len(identity)) > 1
        node = np.where(joint, len(parent) + np.cumsum(joint) - 1, -1)
        moves = joint[pairs[0]]
        parent = np.concatenate([parent, np.full(int(joint.sum()), -1, np.int64)])
        parent[pairs[1][moves]] = node[pairs[0][moves]]
        top = np.where(joint[part_of_leaf], node[part_of_leaf], top)
        levels.append((part_of_leaf, node, identity))
    return parent, levels


def tables_of(shown: Shown, codes: tuple[str, ...], randomness: Randomness) -> tuple[ReleaseTable, ...]:
    """`nodes.parquet` and `chunks.parquet`: nodes renumbered in shuffled order, one chunk per code, without empty
    subrecords."""
    old = randomness.stream("nodes").permutation(len(shown.parent)).astype(np.int64)
    number = np.argsort(old)
    nodes = node_rows(old, number, shown.parent, shown.records, shown.leaves)
    kind = (shown.node >= shown.leaves).astype(np.int8)
    chunks = count_table(number[shown.node], kind, shown.code, shown.count, codes)
    return ReleaseTable.of("nodes.parquet", nodes), chunks


def facts_of(shown: Shown) -> dict[str, Any]:
    return {
        "clusters": shown.leaves,
        "joint_clusters": len(shown.parent) - shown.leaves,
        "occurrences": int(shown.count.sum()) + shown.suppressed,
        "item_occurrences": 0,
        "item_only_records": 0,
        "empty_item_chunk_condition_fired": 0,
        "suppressed_occurrences": shown.suppressed,
    }
