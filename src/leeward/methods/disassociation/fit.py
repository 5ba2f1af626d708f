"""Fitted partitioning: clusters that count many occurrences and are pure.

See docs/methods/disassociation.md#fitted-partitioning.

A code's occurrences are in a record chunk when k records of the cluster hold it. For a cluster of N records with
supports s the objective is

    J = w · Σ_{s ≥ k} s + (1 - w) · (Σ_{s ≥ k} s²) / N

and the partitioning's is their sum. Records move to the cluster where the sum grows most, small clusters are
dissolved and large ones split where it grows. Every accepted step raises it, so the search ends. The guarantee does
not depend on it: any grouping into clusters of at least k records may follow.

Blocks of consecutive clusters are fitted by themselves, so threads change nothing. Inside a block only codes with k
records or more are used (no cluster can count another), numbered locally so that the table of supports is small.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from leeward.analysis.kernels import empty_list
from leeward.arrays import Bools, Int32s, Int64s
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.fit_moves import Aim, Block, count_in, improve, members_of, value_of
from leeward.methods.disassociation.horpart import (
    Clustered,
    Partition,
    gather_records,
    pool_in_place,
    regroup,
    split_records,
)
from leeward.methods.disassociation.recut import Supports, count_supports
from leeward.methods.disassociation.rules import Rules, Workers

BLOCK_RECORDS = 60_000
"""Records of a block, and of a cluster, at most: a support fits 16 bits."""

FEWEST_BLOCK_RECORDS = 5_000
BLOCK_CELLS = 1 << 22
"""Cells (clusters × codes) of a block's table of supports: more would not fit a processor's cache."""

TOGETHER = 1 << 20
"""Pairs of codes counted at once when a cluster is split."""

PURE = 0.4
"""The data are pure if their `purity` before the search is at least this: few codes per patient, or few
codes in all (UCI .53 to .72; long records with thousands of codes .22 to .34)."""

ROUNDS = 4
"""Rounds of moves, at most."""

TOLD_BY_K = 5
"""k of the start whose purity tells the weight in classes."""

LARGEST = 20
"""A fitted cluster does not grow beyond this many times k records (or twice `max_cluster`, if that is more)."""


def aim_of(purity: float, k: int, cap: int) -> Aim:
    """Aim with w = .4 (less below k = 5) if the start is pure, .1 if it is not (long records). Chosen on UCI and on
    made-up records of 12 of 3,000 codes, for k from 2 to 25."""
    return Aim(k, min(cap, BLOCK_RECORDS), min(0.4, 0.08 * k) if purity >= PURE else 0.1, ROUNDS)


def block_records(k: int, n_codes: int) -> int:
    """Records of a block, so that its table of supports has about `BLOCK_CELLS` cells."""
    return max(FEWEST_BLOCK_RECORDS, min(BLOCK_RECORDS, BLOCK_CELLS * k // max(n_codes, 1)))


@njit
def split(b: Block, clusters: int, aim: Aim) -> int:
    """Repeatedly split clusters of at least 2k records by the code that raises the objective most; returns the new
    number of clusters. `b` has room for one cluster per k records."""
    k = aim.k
    member_at, member = members_of(b, clusters)
    free = empty_list()  # numbers of dissolved clusters
    todo = [(0, member_at[0], member_at[0]) for _ in range(0)]
    for x in range(clusters):
        if b.sums[x, 0] == 0:
            free.append(x)
        if b.sums[x, 0] >= 2 * k:
            todo.append((x, member_at[x], member_at[x + 1]))
    place = np.full(b.support.shape[1], -1, np.int32)
    together = np.empty(max(TOGETHER, b.support.shape[1]), np.int64)
    while len(todo) > 0:
        x, first, last = todo.pop()
        part = member[first:last].copy()
        best = _best_split(b, x, part, aim, place, together)
        if best < 0:
            continue
        if len(free) > 0:
            other = free.pop()
        else:
            other = clusters
            clusters += 1
        b.kept[x] = b.kept[other] = False
        has = np.array([(b.code[b.at[p] : b.at[p + 1]] == best).any() for p in part])
        middle = first + has.sum()
        member[first:middle], member[middle:last] = part[has], part[~has]
        for p in member[middle:last]:
            count_in(b, p, x, k, -1)
            count_in(b, p, other, k, 1)
            b.home[p] = other
        if middle - first >= 2 * k:
            todo.append((x, first, middle))
        if last - middle >= 2 * k:
            todo.append((other, middle, last))
    return clusters


@njit(inner=True)
def _best_split(b: Block, x: int, members: Int32s, aim: Aim, place: Int32s, together: Int64s) -> int:
    """The code by which to split cluster x so that the objective grows most; -1 if it grows by none. `place`, -1
    throughout, and `together` are scratch."""
    k, weight, size = aim.k, aim.weight, len(members)
    own = np.flatnonzero(b.support[x] >= k)
    place[own] = np.arange(len(own))
    supports = b.support[x][own].astype(np.int64)
    best, best_value = -1, value_of(b.sums[x, 1], b.sums[x, 2], size, weight) + 1e-9
    lines = max(1, TOGETHER // max(len(own), 1))
    for begin in range(0, len(own), lines):
        end = min(begin + lines, len(own))
        _count_together(b, members, place, begin, end, len(own), together)
        for i in range(begin, end):
            if supports[i] > size - k:
                continue
            inside = together[(i - begin) * len(own) : (i - begin + 1) * len(own)]
            value = _worth(inside, supports[i], k, weight) + _worth(
                supports - inside, size - supports[i], k, weight
            )
            if value > best_value:
                best, best_value = own[i], value
    place[own] = -1
    return best


@njit(inner=True)
def _worth(supports: Int64s, size: int, k: int, weight: float) -> float:
    plain, square = 0, 0
    for s in supports:
        if s >= k:
            plain += s
            square += s * s
    return value_of(plain, square, size, weight)


@njit(inner=True)
def _count_together(
    b: Block,
    members: Int32s,
    place: Int32s,
    begin: int,
    end: int,
    n_own: int,
    together: Int64s,
) -> None:
    """Count the members that hold both of two codes: `together[(i - begin) * n_own + q]` for the codes at places i,
    from `begin` to `end`, and q."""
    together[: (end - begin) * n_own] = 0
    held = np.empty(n_own + 1, np.int32)
    for p in members:
        n = 0
        for j in range(b.at[p], b.at[p + 1]):
            held[n] = place[b.code[j]]  # stays only where n grows: no branch to mispredict
            n += int(place[b.code[j]] >= 0)
        for i in held[:n]:
            if begin <= i < end:
                for q in held[:n]:
                    together[(i - begin) * n_own + q] += 1


@njit
def block_of(near: Clustered, first: int, last: int, k: int, ignored: Bools) -> Block:
    """Leaves `first…last-1` as a block, over the codes that at least k of its records hold."""
    offsets, values, bounds = near
    begin, end = bounds[first], bounds[last]
    n = end - begin
    total = np.zeros(len(ignored), np.int64)
    for c in values[offsets[begin] : offsets[end]]:
        total[c] += 1
    local = np.full(len(ignored), -1, np.int32)
    n_codes = 0
    for c in np.argsort(-total, kind="mergesort"):  # frequent codes first: their supports share cache lines
        if total[c] >= k and not ignored[c]:
            local[c] = n_codes
            n_codes += 1
    at = np.zeros(n + 1, np.int64)
    code = np.empty(offsets[end] - offsets[begin], np.int32)
    filled = 0
    for p in range(begin, end):
        for j in range(offsets[p], offsets[p + 1]):
            if local[values[j]] >= 0:
                code[filled] = local[values[j]]
                filled += 1
        at[p - begin + 1] = filled
    room = n // k  # clusters of k records and more
    b = Block(
        at,
        code[:filled].copy(),
        np.empty(n, np.int32),
        np.zeros((room, n_codes), np.uint16),
        np.zeros((room, 3), np.int64),
        np.zeros(room, np.bool_),
    )
    for x in range(last - first):
        for p in range(bounds[first + x] - begin, bounds[first + x + 1] - begin):
            b.home[p] = x
            count_in(b, p, x, k, 1)
    return b


@njit
def fit_block(near: Clustered, first: int, last: int, aim: Aim, ignored: Bools, cluster_of: Int32s) -> None:
    """Fit leaves `first…last-1`: no cluster below k, none grown beyond `aim.cap`. `cluster_of` receives each record's
    cluster. A block of n records has at most n // k clusters, so numbers that begin with its first record // k are its
    own."""
    bounds = near.bounds
    begin = bounds[first]
    base = begin // aim.k
    if np.diff(bounds[first : last + 1]).max() > BLOCK_RECORDS:
        for x in range(first, last):  # a leaf has more records than a support can count: keep all leaves
            cluster_of[bounds[x] : bounds[x + 1]] = base + x - first
        return
    b = block_of(near, first, last, aim.k, ignored)
    improve(b, last - first, aim)
    clusters = split(b, last - first, aim)
    improve(b, clusters, aim)
    for p in range(len(b.home)):
        cluster_of[begin + p] = base + b.home[p]


def purity(bounds: Int64s, supports: Supports, rules: Rules) -> float:
    """Σ s²/N over the supports of k and more, as a share of all occurrences."""
    size = np.repeat(np.diff(bounds), np.diff(supports.at))
    known = ~rules.sensitive[supports.code]
    counted = known & (supports.support >= rules.k)
    s = supports.support.astype(np.float64)
    return float((s * s / size)[counted].sum() / max(s[known].sum(), 1.0))


def start_of(
    offsets: Int64s, values: Int32s, rules: Rules, workers: Workers
) -> tuple[Partition, Clustered, float]:
    """The clusters that fitting begins with, and their purity."""
    partition = pool_in_place(split_records(offsets, values, rules, workers), rules.k)
    near = gather_records(offsets, values, partition, workers)
    return partition, near, purity(near.bounds, count_supports(near, rules.n_codes), rules)


def with_weight(sets: CodeSets, rules: Rules, workers: Workers) -> Rules:
    """The rules with the weight that all records ask for in clusters of some k, to fit classes of them: a class has too
    few records to tell, and few clusters of a large k are pure."""
    small = rules._replace(k=TOLD_BY_K, max_cluster=TOLD_BY_K * TOLD_BY_K)
    pure = start_of(sets.offsets, sets.values, small, workers)[2]
    return rules._replace(weight=aim_of(pure, rules.k, 0).weight)


def fit_partition(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
    """Run HorPart, then move records, dissolve and split clusters while the objective grows
    (docs/methods/disassociation.md#fitted-partitioning)."""
    k = rules.k
    partition, near, pure = start_of(offsets, values, rules, workers)
    if pure < PURE and rules.max_cluster > 2 * k:
        smaller = rules._replace(max_cluster=max(2 * k, rules.max_cluster // 2))
        partition, near, _ = start_of(offsets, values, smaller, workers)
    aim = aim_of(pure, k, max(2 * rules.max_cluster, LARGEST * k))
    aim = aim._replace(weight=rules.weight or aim.weight)
    frequent = int((np.bincount(values, minlength=rules.n_codes) >= k)[~rules.sensitive].sum())
    blocks = cut_blocks(near.bounds, block_records(k, frequent))
    cluster_of = np.empty(len(partition.order), np.int32)
    workers.tasks([partial(fit_block, near, *ends, aim, rules.sensitive, cluster_of) for ends in blocks])
    return regroup(partition, cluster_of)


def cut_blocks(leaf_offsets: Int64s, records: int) -> list[tuple[int, int]]:
    """Runs of leaves (first, last + 1) of about equally many records, at most about `records`, or of one leaf."""
    n = int(leaf_offsets[-1])
    wanted = -(-n // records)
    edges = np.searchsorted(leaf_offsets, n * np.arange(1, wanted) // wanted)
    edges = np.unique(np.concatenate([[0], edges, [len(leaf_offsets) - 1]]))
    return list(itertools.pairwise(edges.tolist()))
