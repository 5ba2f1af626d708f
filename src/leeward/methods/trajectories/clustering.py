"""MDAV by the conventions of docs/methods/trajectories.md#clustering, on as many threads as there are, with the
one answer of one thread.

Clusters follow one another, yet most of what the next ones need does not depend on this one: a cluster grown too
early from a later seed is right if nobody has taken its members since, because taking others away never changes
who is nearest. So threads grow clusters ahead, and those that collide are grown again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward import engine
from leeward.errors import BadInput
from leeward.methods.trajectories.problem import Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

JOININGS = {"thesis": 0, "size": 1, "normalised": 2}
"""How the cost of joining weighs a cluster against the newcomer (docs/methods/trajectories.md#alignment)."""

AHEAD = 1
"""Clusters grown by each thread between two commits; the further ahead, the more collide."""

REFRESH = 0.9
"""The list of entries that still have records is made anew when fewer than this share of it do."""

NO_LIMIT = 1 << 30


@dataclass(frozen=True)
class Cluster:
    """Entries of a problem in joining order (an entry once a record), and what is published for them all."""

    members: Ints
    codes: Ints
    ages: Ints


@dataclass
class Work:
    """What a clustering did: alignments and cells computed in joining, and passes over all records."""

    alignments: int = 0
    cells: int = 0
    passes: int = 0


@dataclass
class _State:
    problem: Problem
    copies: Ints
    left: int
    active: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    starts: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    low: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    high: Ints = field(default_factory=lambda: np.empty(0, np.int32))

    def refresh(self) -> None:
        """Forget the entries without records."""
        self.active = np.flatnonzero(self.copies).astype(np.int32)
        changes = np.flatnonzero(np.diff(self.problem.block[self.active])) + 1
        self.starts = np.concatenate([[0], changes, [len(self.active)]]).astype(np.int64)
        self.low = np.minimum.reduceat(self.problem.first_age[self.active], self.starts[:-1])
        self.high = np.maximum.reduceat(self.problem.last_age[self.active], self.starts[:-1])


def mdav(
    problem: Problem,
    k: int,
    joining: str = "normalised",
    threads: int = 1,
    most: int = NO_LIMIT,
    progress: Callable[[int], None] | None = None,
    work: Work | None = None,
) -> list[Cluster]:
    """Cluster all records of `problem` into groups of k, the last of k … 2k − 1.

    `most` is how many records of one sensitive value a cluster may have; a cluster that cannot be filled without
    more of one value stays smaller, and the caller merges it. Raises BadInput for fewer than k records.
    """
    if problem.total < k:
        raise BadInput(
            f"{problem.total:,} patients with a trajectory are fewer than k = {k}; no group of k can be made."
        )
    work = work if work is not None else Work()
    state = _State(problem, problem.copies.copy(), problem.total)
    state.refresh()
    seeds = _Seeds(state)
    ready: dict[int, Cluster] = {}
    clusters: list[Cluster] = []
    depth = threads * AHEAD if threads > 1 else 1
    with engine.pool(threads) as pool:
        while state.left:
            seed = seeds.farthest(pool, threads, work)
            last = state.left < 2 * k
            if last:
                cluster = _grow(state, seed, state.left, joining, most, work)
            else:
                if seed not in ready:
                    ahead = seeds.following(depth, ready)
                    grown = pool.map(lambda s: _grow(state, s, k, joining, most, work), ahead)
                    ready.update(zip(ahead, grown, strict=True))
                cluster = ready.pop(seed)
                if not _free(cluster, state.copies):
                    continue
            clusters.append(cluster)
            _take(cluster, state, seeds)
            if progress is not None:
                progress(len(cluster.members))
    return clusters


def _free(cluster: Cluster, copies: Ints) -> bool:
    return all(copies[entry] >= times for entry, times in Counter(cluster.members.tolist()).items())


def _take(cluster: Cluster, state: _State, seeds: _Seeds) -> None:
    for entry in cluster.members.tolist():
        state.copies[entry] -= 1
        seeds.taken(entry)
    state.left -= len(cluster.members)


def _grow(state: _State, seed: int, target: int, joining: str, most: int, work: Work) -> Cluster:
    from leeward.methods.trajectories.kernels import clustering as _kernels

    p = state.problem
    blocks = _kernels.Blocks(state.active, state.starts, state.low, state.high)
    members, codes, ages, counted = _kernels.grow(
        seed,
        target,
        JOININGS[joining],
        most,
        blocks,
        state.copies,
        p.entries,
        p.unit,
        p.codes,
        p.ages,
        p.longest,
    )
    work.alignments += int(counted[0])
    work.cells += int(counted[1])
    return Cluster(members, codes, ages)


class _Seeds:
    """Who comes next: the trajectory farthest from the most frequent one, its order kept while that one stays."""

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

    def taken(self, entry: int) -> None:
        """One record of the entry is gone."""
        shape = self.shape[entry]
        self.of_shape[shape] -= 1
        heapq.heappush(self.heap, (-self.of_shape[shape], shape))

    def farthest(self, pool: Executor, threads: int, work: Work) -> int:
        """The entry of the next seed."""
        if len(self.state.active) and np.count_nonzero(self.state.copies) < REFRESH * len(self.state.active):
            self.state.refresh()
        while -self.heap[0][0] != self.of_shape[self.heap[0][1]]:
            heapq.heappop(self.heap)
        mode = self.heap[0][1]
        if mode != self.mode:
            self.mode, self.position = mode, 0
            self.order = self._by_distance(pool, threads)
            work.passes += 1
        copies = self.state.copies
        while copies[self.order[self.position]] == 0:
            self.position += 1
        return self.order[self.position]

    def following(self, many: int, ready: dict[int, Cluster]) -> list[int]:
        """The next seeds, if nothing were taken away: those without a cluster that could still hold."""
        found: list[int] = []
        spoken_for: set[int] = set()
        copies = self.state.copies
        for place in range(self.position, len(self.order)):
            entry = self.order[place]
            if copies[entry] == 0 or entry in spoken_for:
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
        p, active = self.state.problem, self.state.active
        mode = int(self.entry_of_shape[self.mode])
        saved = savings(p, mode, active, pool, threads)
        distance = p.unit * (int(p.length[mode]) + p.length[active].astype(np.int64)) - 2 * saved
        order: list[int] = active[np.lexsort((p.rank[active], -distance))].tolist()
        return order


def savings(p: Problem, entry: int, others: Ints, pool: Executor, threads: int) -> Longs:
    """M(entry, y) of every y in `others`, int64."""
    from leeward.methods.trajectories.kernels import clustering as _kernels

    pairs = slice(int(p.offsets[entry]), int(p.offsets[entry + 1]))
    codes, ages = p.codes.nodes[p.code[pairs]], p.ages.nodes[p.age[pairs]]
    out: NDArray[Any] = np.zeros(len(others), np.int64)

    def part(bounds: tuple[int, int]) -> None:
        a, b = bounds
        _kernels.savings(codes, ages, others[a:b], out[a:b], p.entries, p.codes, p.ages, p.longest)

    edges = np.linspace(0, len(others), threads + 1).astype(int).tolist()
    list(pool.map(part, pairwise(edges)))
    return out


def record_members(problem: Problem, clusters: Sequence[Cluster]) -> list[Longs]:
    """The records of each cluster: copies of an entry go in ascending order to those who took it first."""
    following = problem.record_offsets[:-1].tolist()
    found = []
    for cluster in clusters:
        records = np.empty(len(cluster.members), np.int64)
        for place, entry in enumerate(cluster.members.tolist()):
            records[place] = problem.records[following[entry]]
            following[entry] += 1
        found.append(records)
    return found
