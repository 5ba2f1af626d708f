"""What the local search works on: clusters as arrays, a clock, and threads whose number changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.methods.trajectories.clustering import Cluster
from leeward.methods.trajectories.problem import Columns, Entries, Problem
from leeward.methods.trajectories.records import Group

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

NEIGHBOURS = 24
"""Clusters that each cluster exchanges records with: those whose first member its published pairs keep best."""

TELL_SECONDS = 0.5
"""Between two reports of how far the search is."""

BLOCK, SMALL = 16, 8
"""Tasks a thread does at a time, between two looks at the clock; fewer than SMALL are not shared out."""


class Data(NamedTuple):
    """What the kernels of the search read: the trajectories, both axes, the gain of every node that can be published
    against every column and the row of each node in that table; `unit`; the diversity asked for (0: none)."""

    entries: Entries
    codes: Columns
    ages: Columns
    code_gain: Longs
    code_row: Longs
    age_gain: Longs
    age_row: Longs
    unit: np.int64
    diversity: np.int64


class Clusters(NamedTuple):
    """Clusters as arrays that kernels change in place: int32[n, 2k] members, their number; the published pairs (nodes)
    and their number; Σ s of these (`worth`), and Σ 1/|T| over the members (`weights`)."""

    members: Ints
    sizes: Longs
    xc: Ints
    xa: Ints
    pairs: Longs
    worth: Longs
    weights: Longs


class Without(NamedTuple):
    """What each cluster would be published as without each of its members, where `fresh`."""

    codes: Ints
    ages: Ints
    pairs: Longs
    worth: Longs
    fresh: NDArray[np.bool_]


class Clock:
    """The time limit, `end` on the monotonic clock; each look calls `tell`, at most twice a second."""

    def __init__(self, end: float, tell: Callable[[], None] | None = None) -> None:
        self.end, self.tell, self.told = end, tell, 0.0
        self.ran_out = False

    def look(self) -> None:
        """See what time it is, and call `tell`."""
        now = time.monotonic()
        if self.tell is not None and now - self.told >= TELL_SECONDS:
            self.told = now
            self.tell()
        self.ran_out = now > self.end

    @property
    def over(self) -> bool:
        """Whether the time is over, now."""
        self.look()
        return self.ran_out


class State:
    """Clusters as arrays, in place; `data` is what the kernels read. `fixed`: those that the search leaves alone."""

    def __init__(
        self,
        p: Problem,
        clusters: Sequence[Cluster],
        k: int,
        diversity: int,
        pool: Executor,
        threads: int,
    ) -> None:
        self.problem, self.k = p, k
        self.pool, self.threads = pool, threads
        self.data = data_of(p, diversity)
        free = [k <= len(c.members) < 2 * k and is_diverse(p, c.members, diversity) for c in clusters]
        self.fixed = [c for c, searched in zip(clusters, free, strict=True) if not searched]
        self.places = [i for i, searched in enumerate(free) if searched]
        clusters = [c for c, searched in zip(clusters, free, strict=True) if searched]
        n, longest = len(clusters), p.longest
        self.members = np.zeros((n, 2 * k), np.int32)
        self.sizes = np.array([len(c.members) for c in clusters], np.int64)
        self.xc = np.zeros((n, longest), np.int32)
        self.xa = np.zeros((n, longest), np.int32)
        self.pairs = np.array([len(c.codes) for c in clusters], np.int64)
        self.worth = np.zeros(n, np.int64)
        self.weights = np.zeros(n, np.int64)
        self.changed = np.ones(n, np.int64)
        self.fresh = np.zeros(n, np.bool_)
        self.less: Without | None = None
        for i, c in enumerate(clusters):
            self.members[i, : len(c.members)] = c.members
            self.xc[i, : len(c.codes)] = c.codes
            self.xa[i, : len(c.ages)] = c.ages
            self.worth[i] = worth_of(p, c)
            self.weights[i] = p.score[p.length[c.members]].sum()

    @property
    def arrays(self) -> Clusters:
        """What every kernel changes."""
        return Clusters(self.members, self.sizes, self.xc, self.xa, self.pairs, self.worth, self.weights)

    def without(self) -> Without:
        """What each cluster would be without each of its members, where `fresh`."""
        if self.less is None:
            n, longest = self.xc.shape
            codes, ages = (np.zeros((n, 2 * self.k, longest), np.int32) for _ in range(2))
            pairs, worth = (np.zeros((n, 2 * self.k), np.int64) for _ in range(2))
            self.less = Without(codes, ages, pairs, worth, self.fresh)
        return self.less

    def sweep(self, clock: Clock, kernel: Callable[[int, int], int], many: int) -> int:
        """`kernel(first, last)` over `many` tasks that share nothing, until the clock is over; the sum of results."""
        if clock.over:
            return 0
        if many < SMALL:
            return kernel(0, many)

        def block(first: int) -> int:
            return 0 if clock.ran_out else kernel(first, min(first + BLOCK, many))

        made = 0
        starts = range(0, many, BLOCK)
        for some in map(block, starts) if self.threads == 1 else self.pool.map(block, starts):
            made += some
            clock.look()
        return made

    def in_turn(self, clock: Clock, tasks: Ints, kernel: Callable[[Ints], int]) -> int:
        """`kernel(tasks)` over tasks (rows of clusters) with the outcome of doing them one after the other."""
        from leeward.methods.trajectories.kernels import regroup as _regroup

        level = _regroup.levels(tasks, len(self.sizes))
        tasks = np.ascontiguousarray(tasks[np.argsort(level, kind="stable")])
        ends = np.cumsum(np.bincount(level)).tolist() if len(tasks) else []
        made = 0
        for start, end in pairwise([0, *ends]):
            made += self.sweep(clock, lambda a, b, at=start: kernel(tasks[at + a : at + b]), end - start)  # type: ignore[misc]  # mypy infers no type for the bound default
            if clock.ran_out:
                break
        return made

    def neighbours(self, clock: Clock) -> Ints:
        """int32[clusters, NEIGHBOURS], -1 where there are fewer, or the clock was over first."""
        from leeward.methods.trajectories.kernels import clustering as _kernels

        p = self.problem
        alive = np.flatnonzero(self.sizes)
        entries = self.members[alive, 0].copy()
        by_length = np.argsort(p.length[entries], kind="stable")
        alive, entries = alive[by_length], np.ascontiguousarray(entries[by_length])
        found = np.full((len(self.sizes), NEIGHBOURS), -1, np.int32)
        scores = p.score[p.length[entries]]

        def one(a: int) -> None:
            if clock.ran_out:
                return
            saved = np.zeros(len(entries), np.int64)
            m = int(self.pairs[a])
            _kernels.savings(
                self.xc[a, :m], self.xa[a, :m], entries, saved, p.entries, p.codes, p.ages, p.longest
            )
            value = saved * (scores + self.weights[a])
            value[alive == a] = -1
            many = min(NEIGHBOURS, len(value) - 1)
            if many <= 0:
                return
            top = np.argpartition(-value, many - 1)[:many]
            top = top[np.lexsort((alive[top], -value[top]))]
            found[a, :many] = alive[top]

        for _ in self.pool.map(one, alive.tolist()):
            clock.look()
        return found

    def loss(self, elsewhere: float = 0.0) -> float:
        """ILM + ALM of all records, each times twice its weight (docs/methods/trajectories.md#loss).

        `elsewhere`: Σ S·W of the clusters that this state does not hold.
        """
        p = self.problem
        kept = float(self.worth.astype(np.float64) @ self.weights.astype(np.float64))
        kept += worth_of_all(p, self.fixed) + elsewhere
        return 2 - 2 * kept / (float(p.unit) * float(p.score[0]) * p.total)

    def clusters(self) -> list[Cluster]:
        """The clusters that are left."""
        kept = [
            Cluster(
                self.members[i, : self.sizes[i]].copy(),
                self.xc[i, : self.pairs[i]].copy(),
                self.xa[i, : self.pairs[i]].copy(),
            )
            for i in np.flatnonzero(self.sizes).tolist()
        ]
        return kept + self.fixed


def is_diverse(p: Problem, members: Ints, diversity: int) -> bool:
    """Whether no sensitive value makes up more than 1 in `diversity` of the members; 0: whatever they are."""
    return diversity == 0 or int(np.unique(p.group[members], return_counts=True)[1].max()) * diversity <= len(
        members
    )


def worth_of(p: Problem, cluster: Cluster | Group) -> int:
    """Σ s of the published pairs."""
    codes, ages = p.codes.gain[cluster.codes], p.ages.gain[cluster.ages]
    return int(codes.astype(np.int64).sum() + ages.astype(np.int64).sum())


def worth_of_all(p: Problem, clusters: Sequence[Cluster]) -> float:
    """Σ S·W over the clusters."""
    return float(sum(float(worth_of(p, c)) * float(p.score[p.length[c.members]].sum()) for c in clusters))


TABLE_CELLS = 1 << 24
"""Largest table of gains (nodes × columns) laid out at once; clusters that need more are worked on in slices."""


def slices(p: Problem, clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """The clusters in as few slices as keep the tables of gains small, those with like codes together."""
    return [[clusters[i] for i in places] for places in slices_of(p, clusters)]


def slices_of(p: Problem, clusters: Sequence[Cluster]) -> list[list[int]]:
    """The places of the clusters of each slice."""
    everyone = list(range(len(clusters)))
    if _cells(p.codes) <= TABLE_CELLS and _cells(p.ages) <= TABLE_CELLS:
        return [everyone]
    middle = [float(np.median(p.code[_pairs_of(p, c.members[:1])])) for c in clusters]
    found, waiting = [], [sorted(everyone, key=middle.__getitem__)]
    while waiting:
        places = waiting.pop()
        q = narrow(p, [clusters[i] for i in places])
        if len(places) > 1 and max(_cells(q.codes), _cells(q.ages)) > TABLE_CELLS:
            half = len(places) // 2
            waiting += [places[half:], places[:half]]
        else:
            found.append(sorted(places))
    return found


def narrow(p: Problem, clusters: Sequence[Cluster]) -> Problem:
    """The problem with the columns that these clusters use, if its tables of gains were too large; only their entries
    keep a meaning."""
    if _cells(p.codes) <= TABLE_CELLS and _cells(p.ages) <= TABLE_CELLS:
        return p
    at = _pairs_of(p, np.unique(np.concatenate([c.members for c in clusters])))
    codes, code = _select_columns(p.codes, p.code, at)
    ages, age = _select_columns(p.ages, p.age, at)
    return replace(p, codes=codes, ages=ages, code=code, age=age)


def _pairs_of(p: Problem, entries: Ints) -> Longs:
    return np.concatenate([np.arange(p.offsets[e], p.offsets[e + 1]) for e in entries.tolist()])


def _select_columns(columns: Columns, values: Ints, at: Longs) -> tuple[Columns, Ints]:
    """The columns in use at these places, and the values as such columns."""
    used = np.unique(values[at])
    number = np.zeros(len(columns.nodes), np.int32)
    number[used] = np.arange(len(used))
    low, high = (np.searchsorted(used, bound).astype(np.int32) for bound in (columns.low, columns.high))
    return columns._replace(nodes=columns.nodes[used], low=low, high=high), number[values]


def _cells(columns: Columns) -> int:
    return int(np.count_nonzero(_publishable(columns))) * len(columns.nodes)


def _publishable(columns: Columns) -> NDArray[np.bool_]:
    """The nodes that can be published: the columns' and those above."""
    reached = np.zeros(len(columns.parent), np.bool_)
    nodes = columns.nodes
    while len(nodes):
        reached[nodes] = True
        above = columns.parent[nodes]
        nodes = np.unique(above[above >= 0])
    return reached


def data_of(p: Problem, diversity: int = 0) -> Data:
    """What the kernels of the search read."""
    return Data(
        p.entries, p.codes, p.ages, *_table(p.codes), *_table(p.ages), np.int64(p.unit), np.int64(diversity)
    )


def _table(columns: Columns) -> tuple[NDArray[np.int64], Longs]:
    """Gains of every node that can be published against every column, and the row of each node (-1: none)."""
    from leeward.methods.trajectories.kernels import clustering as _kernels

    reached = _publishable(columns)
    rows = np.flatnonzero(reached)
    row_of = np.full(len(reached), -1, np.int64)
    row_of[rows] = np.arange(len(rows))
    table = np.zeros((len(rows), len(columns.nodes)), columns.gain.dtype)
    for row, node in enumerate(rows.tolist()):
        _kernels.fill_row(table[row], node, columns)
    return table.astype(np.int64), row_of
