"""Regroup clusters after HorPart, beyond the paper. Any grouping into clusters of at least k records keeps the
guarantee.

Recutting: records whose codes would all be in an item chunk move to a cluster that keeps one of them
(docs/methods/disassociation.md#recutting). ℓ-diversity (paper, Section 7, with the change in
docs/methods/disassociation.md#diversity-of-sensitive-codes): sensitive codes never leave the item chunk; besides, no
more than one record in ℓ of a cluster may hold a given one. A cluster beyond that is merged with near ones that lower
the share; occurrences still above it are suppressed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.analysis.itemsets import owners_of
from leeward.analysis.kernels import empty_list
from leeward.arrays import Bools, Int32s, Int64s, offsets_of, positions_of
from leeward.compiled import njit
from leeward.methods.disassociation.horpart import (
    Clustered,
    Partition,
    gather_records,
    place_in,
    regroup,
)
from leeward.methods.disassociation.rules import Rules, Workers

TRIES = 16
"""Clusters tried for each code of a record."""

REACH = 64
"""Leaves to each side, in HorPart's order of similarity, with which a leaf may be merged."""


class Supports(NamedTuple):
    """Leaf l has the distinct codes code[at[l]:at[l + 1]], ascending, each in `support` of its records."""

    at: Int64s
    code: Int32s
    support: Int32s


@njit
def count_supports(near: Clustered, n_codes: int) -> Supports:
    leaves = len(near.bounds) - 1
    code = np.empty(len(near.values), np.int32)
    support = np.empty(len(near.values), np.int32)
    at = np.zeros(leaves + 1, np.int64)
    count = np.zeros(n_codes, np.int32)
    filled = 0
    for leaf in range(leaves):
        begin = filled
        for c in near.values[near.offsets[near.bounds[leaf]] : near.offsets[near.bounds[leaf + 1]]]:
            if count[c] == 0:
                code[filled] = c
                filled += 1
            count[c] += 1
        code[begin:filled].sort()
        for i in range(begin, filled):
            support[i] = count[code[i]]
            count[code[i]] = 0
        at[leaf + 1] = filled
    return Supports(at, code[:filled].copy(), support[:filled].copy())


def improve_partition(
    offsets: Int64s, values: Int32s, partition: Partition, rules: Rules, workers: Workers
) -> Partition:
    """Recut clusters with stranded records if the rules ask for it."""
    if not rules.recut:
        return partition
    near = gather_records(offsets, values, partition, workers)
    supports = count_supports(near, rules.n_codes)
    kept = supports.support >= rules.k
    code, leaf = supports.code[kept], owners_of(supports.at)[kept]
    hosts_at = offsets_of(np.bincount(code, minlength=rules.n_codes))
    leaf_of = owners_of(near.bounds).astype(np.int32)
    recut(near, supports, hosts_at, leaf[np.argsort(code, kind="stable")], rules, leaf_of)
    return regroup(partition, leaf_of)


@njit
def recut(
    near: Clustered, supports: Supports, hosts_at: Int64s, hosts: Int64s, rules: Rules, leaf_of: Int32s
) -> None:
    """Move records that would be wholly in their leaf's item chunk to any leaf that keeps one of their codes.

    A leaf that this would leave below k is dissolved as a whole, if all its records find a place. `supports` counts
    only the codes that each leaf had at first: enough, since a host is chosen by a code it keeps.
    `hosts_at`, `hosts`: code c is kept by the leaves hosts[hosts_at[c]:hosts_at[c + 1]].
    """
    bounds, k, cap = near.bounds, rules.k, 2 * rules.max_cluster
    size = np.diff(bounds)
    gone = np.zeros(len(size), np.bool_)
    for leaf in range(len(size)):
        b, e = bounds[leaf], bounds[leaf + 1]
        movers = [p for p in range(b, e) if _count_kept(near, supports, leaf, p, rules) == 0]
        dissolve = size[leaf] - len(movers) < k
        if len(movers) == 0 or (dissolve and (e - b > cap or size[leaf] != e - b)):
            continue
        targets = empty_list()
        for p in [p for p in range(b, e)] if dissolve else movers:  # noqa: C416 (a list of Numba's)
            there = _best_host(near, supports, hosts_at, hosts, leaf, p, size, gone, rules)
            if there >= 0 and not dissolve:
                _move(near, supports, leaf, there, p, size, leaf_of)
            elif there >= 0:
                targets.append(there)
        if dissolve and len(targets) == e - b:
            for p in range(b, e):
                _move(near, supports, leaf, targets[p - b], p, size, leaf_of)
            gone[leaf] = True


@njit(inner=True)
def _best_host(
    near: Clustered,
    supports: Supports,
    hosts_at: Int64s,
    hosts: Int64s,
    leaf: int,
    p: int,
    size: Int64s,
    gone: Bools,
    rules: Rules,
) -> int:
    """Of at most `TRIES` leaves for each of its codes the first that keeps most codes of record p; -1 if none does."""
    best, best_kept = -1, 0
    for c in near.values[near.offsets[p] : near.offsets[p + 1]]:
        n_hosts = hosts_at[c + 1] - hosts_at[c]
        start = ((p + 1) * 2654435761) % n_hosts if n_hosts > TRIES else 0
        for q in range(0 if rules.sensitive[c] else min(TRIES, n_hosts)):
            there = hosts[hosts_at[c] + (start + q) % n_hosts]
            if there == leaf or gone[there] or size[there] >= 2 * rules.max_cluster:
                continue
            here = _count_kept(near, supports, there, p, rules)
            if here > best_kept:
                best, best_kept = there, here
    return best


@njit(inner=True)
def _count_kept(near: Clustered, supports: Supports, leaf: int, p: int, rules: Rules) -> int:
    """Codes of record p that k records of the leaf hold."""
    kept = 0
    for c in near.values[near.offsets[p] : near.offsets[p + 1]]:
        i = place_in(supports.code, supports.at[leaf], supports.at[leaf + 1], c)
        kept += int(i >= 0 and supports.support[i] >= rules.k and not rules.sensitive[c])
    return kept


@njit
def _move(
    near: Clustered, supports: Supports, home: int, there: int, p: int, size: Int64s, leaf_of: Int32s
) -> None:
    for c in near.values[near.offsets[p] : near.offsets[p + 1]]:
        for leaf, step in ((home, -1), (there, 1)):
            i = place_in(supports.code, supports.at[leaf], supports.at[leaf + 1], c)
            if i >= 0:
                supports.support[i] += step
    size[home] -= 1
    size[there] += 1
    leaf_of[p] = there


def diversify(
    offsets: Int64s, values: Int32s, partition: Partition, sensitive: Bools, ell: int
) -> tuple[Partition, int, Int64s]:
    """Merge leaves until every sensitive code is in at most one record in `ell`, then suppress the excess. Returns the
    partition, the number of merges, and the places in `values` of what goes (a record may become empty)."""
    leaf_of, merged = _merge(gather_records(offsets, values, partition, Workers(1)), sensitive, ell)
    healed = regroup(partition, leaf_of)
    excess = _find_excess(gather_records(offsets, values, healed, Workers(1)), sensitive, ell)
    return healed, merged, positions_of(offsets, healed.order)[excess]


@njit
def _count(near: Clustered, leaf: int, sensitive: Bools, count: Int32s, step: int) -> int:
    """Add `step` for each sensitive occurrence of the leaf; returns the largest count met."""
    most = 0
    for c in near.values[near.offsets[near.bounds[leaf]] : near.offsets[near.bounds[leaf + 1]]]:
        if sensitive[c]:
            count[c] += step
            most = max(most, count[c])
    return most


@njit
def _merge(near: Clustered, sensitive: Bools, ell: int) -> tuple[Int32s, int]:
    bounds = near.bounds
    leaves = len(bounds) - 1
    count = np.zeros(len(sensitive), np.int32)
    free = np.ones(leaves, np.bool_)  # not yet merged with another
    leaf_of = np.full(bounds[leaves], -1, np.int32)
    merged = 0
    for leaf in range(leaves):
        if not free[leaf]:
            continue
        leaf_of[bounds[leaf] : bounds[leaf + 1]] = leaf
        worst = _count(near, leaf, sensitive, count, 1)
        size = bounds[leaf + 1] - bounds[leaf]
        distance = 0
        while worst * ell > size and distance < 2 * REACH:
            distance += 1  # right, left, right, … ever farther
            other = leaf + (distance + 1) // 2 if distance % 2 else leaf - distance // 2
            if other < 0 or other >= leaves or not free[other]:
                continue
            more = bounds[other + 1] - bounds[other]
            joint = max(worst, _count(near, other, sensitive, count, 1))
            if joint * ell * size < worst * ell * (size + more) or joint * ell <= size + more:
                leaf_of[bounds[other] : bounds[other + 1]] = leaf
                free[other] = free[leaf] = False
                worst = joint
                size += more
                merged += 1
            else:
                _count(near, other, sensitive, count, -1)
        for other in range(max(0, leaf - REACH), min(leaves, leaf + REACH + 1)):
            if leaf_of[bounds[other]] == leaf:
                _count(near, other, sensitive, count, -1)
    return leaf_of, merged


@njit
def _find_excess(near: Clustered, sensitive: Bools, ell: int) -> Int64s:
    """The places of occurrences above one record in `ell`: the records with the most other codes lose theirs first."""
    offsets, values, bounds = near
    count = np.zeros(len(sensitive), np.int32)
    left = np.diff(offsets)
    found = empty_list()
    for leaf in range(len(bounds) - 1):
        b, e = bounds[leaf], bounds[leaf + 1]
        _count(near, leaf, sensitive, count, 1)
        for p in b + np.argsort(-left[b:e], kind="mergesort"):
            for j in range(offsets[p], offsets[p + 1]):
                c = values[j]
                if sensitive[c] and count[c] * ell > e - b:
                    count[c] -= 1
                    left[p] -= 1
                    found.append(j)
        count[values[offsets[b] : offsets[e]]] = 0
    return np.array(found)
