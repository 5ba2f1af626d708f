"""MDAV by the conventions of docs/methods/trajectories.md#clustering, on all threads, with the same
result as on one.

Clusters follow one another, but the next ones hardly depend on this one: a cluster grown early from a later seed is
right if none of its members has been taken since, because removing other records never changes the nearest ones. So
threads grow clusters ahead, and those that collide are grown again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward import engine
from leeward.arrays import AnyArray, Bools, Int32s, Int64s, offsets_of, positions_of
from leeward.errors import BadInput
from leeward.methods.trajectories.hierarchies import Axes, Axis, Space
from leeward.methods.trajectories.records import Group, Pairs, Records

RECIPROCAL_BITS = 62
"""Scores of Definition 8 must fit in this many bits."""

BLOCK_YEARS, WIDE_SPAN = 16, 12
"""Blocks of trajectories dismissed by one bound: years of middle age to a block, and the ages of a wide span."""

REFRESH = 0.9
"""The list of active entries is rebuilt when fewer than this share of them still have records."""

NO_LIMIT = 1 << 30


class Columns(NamedTuple):
    """An axis restricted to the values in use, for kernels: columns are the used leaves in depth-first order. `nodes`:
    int32[columns], the node of each column. `low`, `high`: int32 a node, the columns below it (high excluded).
    `parent`, `gain`: of the axis; gain in the kernels' number type: int32 where all sums fit, else int64."""

    nodes: Int32s
    low: Int32s
    high: Int32s
    parent: Int32s
    gain: AnyArray


class Entries(NamedTuple):
    """Distinct trajectories by (length, block, rank); entry d has the pairs offsets[d]:offsets[d + 1].

    code, age : int32, column of each pair.  pair : int32, code column · |age columns| + age column.
    length, rank : int32 a distinct trajectory; ranks order ties (smallest tuple of pairs first).
    group : int32, the sensitive payload value of the entry; -1 without.
    score : int64[longest + 1], 1/n of Definition 8 in units of 1/score[0] (exact while it fits, else rounded
        down: docs/methods/trajectories.md#alignment).
    """

    offsets: Int64s
    code: Int32s
    age: Int32s
    pair: Int32s
    length: Int32s
    rank: Int32s
    group: Int32s
    score: Int64s


@dataclass(frozen=True)
class Problem:
    """Distinct trajectories, and the records of each.

    pairs, axes : the entries as nodes, and both hierarchies, for alignments.
    copies : int32, records of each entry.
    shape : int32, equal for entries with equal trajectories (they differ in their sensitive value).
    block : int32, equal for entries of equal length and similar ages; first_age, last_age : int32 age columns.
    records, record_offsets : the records of each entry, ascending.
    """

    space: Space
    codes: Columns
    ages: Columns
    entries: Entries
    pairs: Pairs
    axes: Axes
    copies: Int32s
    shape: Int32s
    block: Int32s
    first_age: Int32s
    last_age: Int32s
    records: Int64s
    record_offsets: Int64s

    def __len__(self) -> int:
        return len(self.copies)


def make_problem(records: Records, space: Space, k: int) -> Problem:
    """Sort each trajectory by (age, code), find the distinct ones, order them. Raises BadInput for fewer than k
    records, and if the losses would not fit."""
    if len(records) < k:
        raise BadInput(
            f"{len(records):,} patients with a trajectory are fewer than k = {k}; no group of k can be made."
        )
    pairs = records.in_order(space)
    code_rank, age_rank = space.code.rank[pairs.codes], space.age.rank[pairs.ages]
    entry_of, first, shape, rank, block = _distinct(pairs.offsets, code_rank, age_rank, records.group)
    copies = np.bincount(entry_of, minlength=len(first)).astype(np.int32)
    at = positions_of(pairs.offsets, first)
    length = records.lengths()[first].astype(np.int32)
    longest = int(length.max())
    number = np.int32 if space.unit * (longest + 1) < (1 << 29) else np.int64
    code_columns, code = _columns(space.code, pairs.codes, at, number)
    age_columns, age = _columns(space.age, pairs.ages, at, number)
    begins = offsets_of(length)
    group = (
        np.full(len(first), -1, np.int32) if records.group is None else records.group[first].astype(np.int32)
    )
    pair = (code * np.int32(len(age_columns.nodes)) + age).astype(np.int32)
    score = reciprocals(longest, space.unit, k)
    return Problem(
        space,
        code_columns,
        age_columns,
        Entries(begins, code, age, pair, length, rank, group, score),
        Pairs(begins, pairs.codes[at], pairs.ages[at]),
        space.axes(),
        copies,
        shape,
        block,
        np.minimum.reduceat(age, begins[:-1]),
        np.maximum.reduceat(age, begins[:-1]),
        np.argsort(entry_of, kind="stable").astype(np.int64),
        offsets_of(copies),
    )


def reciprocals(longest: int, unit: int, k: int) -> Int64s:
    """1/n for n = 1 … longest in units of 1/score[0]: exact (their common denominator) while scores of clusters of up
    to 2k records fit in 62 bits, else in units of 2⁻ᵇ rounded down, with the largest b that fits. Raises BadInput if
    not even 12 bits are left."""
    room = RECIPROCAL_BITS - (unit * longest).bit_length() - (2 * k + 1).bit_length()
    common = int(np.lcm.reduce(np.arange(1, min(longest, 40) + 1, dtype=object))) if longest <= 40 else 0
    if 0 < common.bit_length() <= room:
        scale = common
    elif room >= 12:
        scale = 1 << min(room - 1, 40)
    else:
        raise BadInput(
            f"trajectories of up to {longest:,} pairs with hierarchies this large and k = {k} do not fit in 64-bit "
            "losses; restrict the code hierarchy to a list of codes, or shorten the trajectories."
        )
    return np.array([scale] + [scale // n for n in range(1, longest + 1)], np.int64)


def _columns(axis: Axis, leaves: Int32s, at: Int64s, number: Any) -> tuple[Columns, Int32s]:
    """The columns of the leaves in use, and the column of each of the leaves at some positions."""
    tree, nodes = axis.hierarchy, np.unique(leaves).astype(np.int32)
    low = np.searchsorted(nodes, np.arange(len(tree.parent))).astype(np.int32)
    high = np.searchsorted(nodes, tree.end, side="right").astype(np.int32)
    return Columns(nodes, low, high, tree.parent, axis.gain.astype(number)), low[leaves[at]]


def _distinct(
    offsets: Int64s, code_rank: Int32s, age_rank: Int32s, groups: Int32s | None
) -> tuple[Int64s, Int64s, Int32s, Int32s, Int32s]:
    """Entry of each record; first record, shape, rank and block of each entry."""
    by_tuple, starts = _in_order(offsets, code_rank.astype(np.int64), age_rank.astype(np.int64))
    shape_of = np.empty(len(by_tuple), np.int64)
    shape_of[by_tuple] = np.cumsum(starts) - 1
    kinds = np.zeros(len(by_tuple), np.int64) if groups is None else groups.astype(np.int64)
    key = shape_of * (int(kinds.max()) + 1) + kinds
    _, first, entry_of = np.unique(key, return_index=True, return_inverse=True)
    shape = shape_of[first].astype(np.int32)
    rank = np.empty(len(first), np.int32)
    rank[np.lexsort((first, shape))] = np.arange(len(first))
    lengths = np.diff(offsets)[first]
    youngest, oldest = age_rank[offsets[first]], age_rank[offsets[first + 1] - 1]
    similar = (youngest + oldest) // (2 * BLOCK_YEARS) * 2 + (oldest - youngest > WIDE_SPAN)
    order = np.lexsort((rank, similar, lengths))
    changed = (np.diff(lengths[order]) != 0) | (np.diff(similar[order]) != 0)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    block = offsets_of(changed).astype(np.int32)
    return place[entry_of.reshape(-1)], first[order], shape[order], rank[order], block


def _in_order(offsets: Int64s, code_rank: Int64s, age_rank: Int64s) -> tuple[Int64s, Bools]:
    """Sort records by their tuples of (code, age), prefixes first, ties by number; mark where each tuple begins."""
    keys = (code_rank * (int(age_rank.max()) + 1) + age_rank).tolist()
    tuples = [keys[start:end] for start, end in pairwise(offsets.tolist())]
    order = sorted(range(len(tuples)), key=tuples.__getitem__)
    starts = [True, *(tuples[one] != tuples[other] for one, other in pairwise(order))]
    return np.array(order, np.int64), np.array(starts[: len(order)], np.bool_)


@dataclass(frozen=True)
class Cluster:
    members: Int32s
    codes: Int32s
    ages: Int32s


class _State:
    """Unclustered records of each entry (`copies`), and blocks of the entries that have some."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.copies, self.left = problem, problem.copies.copy(), len(problem.records)
        self.refresh()

    def refresh(self) -> None:
        from leeward.methods.trajectories.kernels.clustering import Blocks

        p, active = self.problem, np.flatnonzero(self.copies).astype(np.int32)
        changes = np.flatnonzero(np.diff(p.block[active])) + 1
        starts = np.concatenate([[0], changes, [len(active)]]).astype(np.int64)
        low = np.minimum.reduceat(p.first_age[active], starts[:-1])
        self.blocks = Blocks(active, starts, low, np.maximum.reduceat(p.last_age[active], starts[:-1]))

    def grow(self, seed: int, target: int, normalised: bool, most: int) -> Cluster:
        """Grow a cluster around a seed from the unclustered records."""
        from leeward.methods.trajectories.kernels import clustering as kernels

        p = self.problem
        found = kernels.grow(
            seed, target, normalised, most, self.blocks, self.copies, p.entries, p.space.unit, p.codes, p.ages,
            p.pairs, p.axes,
        )  # fmt: skip
        return Cluster(*found)


def mdav(
    problem: Problem, k: int, normalised: bool = True, threads: int = 1, most: int = NO_LIMIT
) -> list[Cluster]:
    """Cluster all records of `problem` into groups of k, the last of k … 2k − 1. `most` is how many records of one
    sensitive value a cluster may have; a cluster that cannot be filled without more of one value stays smaller, and the
    caller merges it."""
    state = _State(problem)
    seeds = _Seeds(state)
    ready: dict[int, Cluster] = {}
    clusters: list[Cluster] = []
    with engine.pool(threads) as pool:
        while state.left:
            seed = seeds.farthest(pool, threads)
            if state.left < 2 * k:
                cluster = state.grow(seed, state.left, normalised, most)
            else:
                if seed not in ready:
                    ahead = seeds.following(threads, ready)
                    grown = pool.map(lambda s: state.grow(s, k, normalised, most), ahead)
                    ready.update(zip(ahead, grown, strict=True))
                cluster = ready.pop(seed)
                times = Counter(cluster.members.tolist())
                if any(state.copies[entry] < needed for entry, needed in times.items()):
                    continue  # other clusters took its members
            clusters.append(cluster)
            seeds.take(cluster)
    return clusters


class _Seeds:
    """Seeds: the trajectory farthest from the most frequent one; the order is kept while that one stays the same."""

    def __init__(self, state: _State) -> None:
        self.state = state
        p = state.problem
        self.of_shape = np.bincount(p.shape, weights=p.copies).astype(np.int64).tolist()
        self.entry_of_shape = np.zeros(len(self.of_shape), np.int64)
        self.entry_of_shape[p.shape[::-1]] = np.arange(len(p))[::-1]
        self.shape = p.shape.tolist()
        # Shapes are numbered in the order of ties: (most records, smallest tuple) is the heap's own order.
        self.heap = [(-count, shape) for shape, count in enumerate(self.of_shape)]
        heapq.heapify(self.heap)
        self.mode = -1
        self.order: Sequence[int] = ()
        self.position = 0

    def take(self, cluster: Cluster) -> None:
        for entry in cluster.members.tolist():
            self.state.copies[entry] -= 1
            shape = self.shape[entry]
            self.of_shape[shape] -= 1
            heapq.heappush(self.heap, (-self.of_shape[shape], shape))
        self.state.left -= len(cluster.members)

    def farthest(self, pool: Executor, threads: int) -> int:
        copies = self.state.copies
        if np.count_nonzero(copies) < REFRESH * len(self.state.blocks.active):
            self.state.refresh()
        while -self.heap[0][0] != self.of_shape[self.heap[0][1]]:
            heapq.heappop(self.heap)
        mode = self.heap[0][1]
        if mode != self.mode:
            self.mode, self.position = mode, 0
            self.order = self._by_distance(pool, threads)
        while copies[self.order[self.position]] == 0:
            self.position += 1
        return self.order[self.position]

    def following(self, many: int, ready: dict[int, Cluster]) -> list[int]:
        """The next seeds if no further records were taken, except those with a cluster in `ready`."""
        found: list[int] = []
        spoken_for: set[int] = set()
        for place in range(self.position, len(self.order)):
            entry = self.order[place]
            if self.state.copies[entry] == 0 or entry in spoken_for:
                continue
            if entry in ready:
                spoken_for.update(ready[entry].members.tolist())
                continue
            found.append(entry)
            if len(found) == many:
                break
        return found

    def _by_distance(self, pool: Executor, threads: int) -> Sequence[int]:
        self.state.refresh()
        p, active = self.state.problem, self.state.blocks.active
        mode, length = int(self.entry_of_shape[self.mode]), p.entries.length.astype(np.int64)
        distance = p.space.unit * (length[mode] + length[active]) - 2 * savings(
            p, mode, active, pool, threads
        )
        order: list[int] = active[np.lexsort((p.entries.rank[active], -distance))].tolist()
        return order


def savings(p: Problem, entry: int, others: Int32s, pool: Executor, threads: int) -> Int64s:
    """M(entry, y) for each y in `others`, int64."""
    from leeward.methods.trajectories.kernels import clustering as kernels

    own = slice(int(p.pairs.offsets[entry]), int(p.pairs.offsets[entry + 1]))
    found: NDArray[Any] = np.zeros(len(others), np.int64)

    def part(bounds: tuple[int, int]) -> None:
        a, b = bounds
        kernels.savings(
            p.pairs.codes[own], p.pairs.ages[own], others[a:b], found[a:b], p.entries, p.codes, p.ages
        )

    edges = np.linspace(0, len(others), threads + 1).astype(int).tolist()
    list(pool.map(part, pairwise(edges)))
    return found


def realign(p: Problem, clusters: Sequence[Cluster], k: int) -> list[Cluster]:
    """Align each cluster of k … 2k − 1 again from its best starting member where that lowers the loss. For parts: gains
    about half a per cent, at a hundredth of the clustering's time."""
    from leeward.methods.trajectories.kernels.alignment import publish_in_order

    longest = int(p.entries.length.max())
    codes, ages = np.empty(longest, np.int32), np.empty(longest, np.int32)
    found = []
    for cluster in clusters:
        if k <= len(cluster.members) < 2 * k:
            members = cluster.members.astype(np.int64)
            n, saved = publish_in_order(members, p.pairs, p.axes, p.entries.score, codes, ages)
            if saved > Group(members, cluster.codes, cluster.ages).saving(p.space):
                cluster = Cluster(cluster.members, codes[:n].copy(), ages[:n].copy())
        found.append(cluster)
    return found


def groups_of(problem: Problem, clusters: Sequence[Cluster]) -> list[Group]:
    """Clusters as groups of records; the records of an entry go, ascending, to its clusters in their order."""
    following = problem.record_offsets[:-1].tolist()
    found = []
    for cluster in clusters:
        records = np.empty(len(cluster.members), np.int64)
        for place, entry in enumerate(cluster.members.tolist()):
            records[place] = problem.records[following[entry]]
            following[entry] += 1
        found.append(Group(records, cluster.codes, cluster.ages))
    return found
