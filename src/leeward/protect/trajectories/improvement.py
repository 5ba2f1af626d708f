"""Local search after MDAV (ours): lower ILM + ALM at the same k.

Rounds of: publish each cluster from its best starting member; swap or move records between near clusters; cluster
three near clusters anew; dissolve clusters whose records fit better elsewhere. Every step raises Σ S·W, exactly the
saving of Definition 8, so the loss only falls; k holds throughout, because no cluster falls below k.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.protect.trajectories import problem
from leeward.protect.trajectories.clustering import Cluster
from leeward.protect.trajectories.problem import Columns, Problem
from leeward.protect.trajectories.run import Group, Records
from leeward.protect.trajectories.space import Space

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

NEIGHBOURS = 24
"""Clusters that each cluster exchanges records with: those whose first member its published pairs keep best."""

REGROUPED = 6
"""Of these, the nearest, taken two at a time to be clustered anew."""

TELL_SECONDS = 0.5
"""Between two reports of how far the search is."""

Tell = Callable[[int, float, float], None]
"""Told the rounds done, the seconds left, and the loss so far (ILM + ALM, each times twice its weight)."""

BLOCK = 256
"""Clusters between two looks at the clock."""


@dataclass
class Progress:
    """What the search did."""

    rounds: int = 0
    swaps: int = 0
    regrouped: int = 0
    dissolved: int = 0
    realigned: int = 0
    stopped_by_clock: bool = False


def improved(
    p: Problem,
    clusters: Sequence[Cluster],
    k: int,
    rounds: int,
    seconds: float,
    threads: int = 1,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> list[Cluster]:
    """Better clusters of the same entries, each of k … 2k − 1 records (a larger one given stays as it is).

    Stops after `rounds`, when a round gains nothing, or when `seconds` are over. `tell` hears, every half second,
    the rounds done, the seconds left and the loss so far.
    """
    from leeward.protect.trajectories import _improve

    state = _State(p, clusters, k)
    done = progress if progress is not None else Progress()
    clock = _Clock(seconds, None if tell is None else lambda left: tell(done.rounds, left, state.loss()))
    shared = (state.members, state.sizes, state.xc, state.xa, state.pairs, state.worth, state.weights)
    longest = p.longest
    done.realigned += state.sweep(clock, lambda a, b: _improve.realign(state.data, a, b, *shared, longest))
    for stamp in range(1, rounds + 1):
        if clock.over:
            break
        made = _round(state, clock, stamp, threads, done)
        done.rounds = stamp
        if not made:
            break
    done.stopped_by_clock = clock.over
    return state.clusters()


TABLE_CELLS = 1 << 24
"""Largest table of gains (nodes × columns) that `realigned` lays out: a part with more codes stays as it was grown."""


def realigned(p: Problem, clusters: Sequence[Cluster], k: int) -> list[Cluster]:
    """The same clusters, each published from the member from which it keeps most; the loss only falls.

    For parts: about half a per cent, at a hundredth of the clustering's time.
    """
    from leeward.protect.trajectories import _improve

    for columns in (p.codes, p.ages):
        if len(columns.nodes) * len(columns.parent) > TABLE_CELLS:
            return list(clusters)
    state = _State(p, clusters, k)
    shared = (state.members, state.sizes, state.xc, state.xa, state.pairs, state.worth, state.weights)
    _improve.realign(state.data, 0, len(state.sizes), *shared, p.longest)
    return state.clusters()


def _round(state: _State, clock: _Clock, stamp: int, threads: int, done: Progress) -> int:
    """One round of all steps; returns how many changes it made."""
    from leeward.protect.trajectories import _improve

    near = state.neighbours(threads)
    close = near[:, :REGROUPED].copy()
    k, longest, since = state.k, state.problem.longest, stamp - 1
    shared = (
        state.members,
        state.sizes,
        state.xc,
        state.xa,
        state.pairs,
        state.worth,
        state.weights,
        state.changed,
    )

    def regroup(a: int, b: int) -> int:
        return int(_improve.regroup(state.data, a, b, close, k, *shared, stamp, since, longest))

    def exchange(a: int, b: int) -> int:
        return int(
            _improve.exchange(state.data, a, b, near, k, *shared, stamp, since, longest, *state.without())
        )

    def dissolve(a: int, b: int) -> int:
        return int(_improve.dissolve(state.data, a, b, near, k, *shared, stamp, longest))

    regrouped = state.sweep(clock, regroup)
    state.fresh[state.changed >= since] = False
    swaps, dissolved = state.sweep(clock, exchange), state.sweep(clock, dissolve)
    done.regrouped += regrouped
    done.swaps += swaps
    done.dissolved += dissolved
    return regrouped + swaps + dissolved


class _Clock:
    """The time limit; `tell` hears the seconds left whenever somebody looks, at most twice a second."""

    def __init__(self, seconds: float, tell: Callable[[float], None] | None = None) -> None:
        self.end = time.monotonic() + seconds
        self.tell, self.told = tell, 0.0

    @property
    def over(self) -> bool:
        now = time.monotonic()
        if self.tell is not None and now - self.told >= TELL_SECONDS:
            self.told = now
            self.tell(max(0.0, self.end - now))
        return now > self.end


class _State:
    """Clusters as arrays, in place; `data` is what the kernels read."""

    def __init__(self, p: Problem, clusters: Sequence[Cluster], k: int) -> None:
        self.problem, self.k = p, k
        # Larger clusters (merged for diversity) are left alone.
        self.fixed = [c for c in clusters if len(c.members) >= 2 * k]
        self.fixed_worth = float(sum(_worth(p, c) * p.score[p.length[c.members]].sum() for c in self.fixed))
        clusters = [c for c in clusters if len(c.members) < 2 * k]
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
        self.less: tuple[Any, ...] | None = None
        for i, c in enumerate(clusters):
            self.members[i, : len(c.members)] = c.members
            self.xc[i, : len(c.codes)] = c.codes
            self.xa[i, : len(c.ages)] = c.ages
            self.worth[i] = _worth(p, c)
            self.weights[i] = p.score[p.length[c.members]].sum()
        self.data = data_of(p)

    def without(self) -> tuple[Any, ...]:
        """What each cluster would be without each of its members, where `fresh`."""
        if self.less is None:
            n, longest = self.xc.shape
            nodes = tuple(np.zeros((n, 2 * self.k, longest), np.int32) for _ in range(2))
            self.less = (*nodes, *(np.zeros((n, 2 * self.k), np.int64) for _ in range(2)))
        return *self.less, self.fresh

    def sweep(self, clock: _Clock, kernel: Callable[[int, int], int]) -> int:
        """The kernel over all clusters, block by block, until the clock is over."""
        made = 0
        for first in range(0, len(self.sizes), BLOCK):
            if clock.over:
                break
            made += int(kernel(first, min(first + BLOCK, len(self.sizes))))
        return made

    def neighbours(self, threads: int) -> Ints:
        """int32[clusters, NEIGHBOURS], -1 where there are fewer."""
        from leeward.protect.trajectories import _kernels

        p = self.problem
        alive = np.flatnonzero(self.sizes)
        entries = self.members[alive, 0].copy()
        by_length = np.argsort(p.length[entries], kind="stable")
        alive, entries = alive[by_length], np.ascontiguousarray(entries[by_length])
        found = np.full((len(self.sizes), NEIGHBOURS), -1, np.int32)
        scores = p.score[p.length[entries]]

        def one(a: int) -> None:
            saved = np.zeros(len(entries), np.int64)
            m = int(self.pairs[a])
            _kernels.savings(
                self.xc[a, :m], self.xa[a, :m], entries, saved, p.offsets, p.code, p.age, p.length,
                p.codes.nodes, p.codes.low, p.codes.high, p.codes.parent, p.codes.gain,
                p.ages.nodes, p.ages.low, p.ages.high, p.ages.parent, p.ages.gain, p.longest,
            )  # fmt: skip
            value = saved * (scores + self.weights[a])
            value[alive == a] = -1
            many = min(NEIGHBOURS, len(value) - 1)
            if many <= 0:
                return
            top = np.argpartition(-value, many - 1)[:many]
            top = top[np.lexsort((alive[top], -value[top]))]
            found[a, :many] = alive[top]

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, alive.tolist()))
        return found

    def loss(self) -> float:
        """ILM + ALM of all records, each times twice its weight (ALGORITHMS §3.2, the closed form)."""
        p = self.problem
        kept = float(self.worth.astype(np.float64) @ self.weights.astype(np.float64)) + self.fixed_worth
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


def _worth(p: Problem, cluster: Cluster) -> int:
    """Σ s of the published pairs."""
    codes, ages = p.codes.gain[cluster.codes], p.ages.gain[cluster.ages]
    return int(codes.astype(np.int64).sum() + ages.astype(np.int64).sum())


def data_of(p: Problem) -> tuple[Any, ...]:
    """What the kernels of `_improve` read, in their order."""
    code_table, code_row = _table(p.codes)
    age_table, age_row = _table(p.ages)
    return (
        p.offsets, p.code, p.age, p.length, p.score,
        code_table, code_row, age_table, age_row,
        p.codes.nodes, p.codes.low, p.codes.high, p.codes.parent, p.codes.published,
        p.ages.nodes, p.ages.low, p.ages.high, p.ages.parent, p.ages.published,
        np.int64(p.unit),
    )  # fmt: skip


def _table(columns: Columns) -> tuple[NDArray[np.int64], Longs]:
    """Gains of every node that can be published against every column, and the row of each node (-1: none)."""
    from leeward.protect.trajectories import _kernels

    reached = np.zeros(len(columns.parent), np.bool_)
    nodes = columns.nodes
    while len(nodes):
        reached[nodes] = True
        above = columns.parent[nodes]
        nodes = np.unique(above[above >= 0])
    rows = np.flatnonzero(reached)
    row_of = np.full(len(reached), -1, np.int64)
    row_of[rows] = np.arange(len(rows))
    table = np.zeros((len(rows), len(columns.nodes)), columns.gain.dtype)
    for row, node in enumerate(rows.tolist()):
        _kernels.fill_row(table[row], node, columns.low, columns.high, columns.parent, columns.gain)
    return table.astype(np.int64), row_of


class Joiner:
    """Adds records to groups one by one, for merges that diversity asks for."""

    def __init__(self, records: Records, space: Space) -> None:
        self.problem = problem.make(records.offsets, records.codes, records.ages, space, 2)
        self.data = data_of(self.problem)
        self.entry = np.empty(len(records), np.int32)
        sizes = np.diff(self.problem.record_offsets)
        self.entry[self.problem.records] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    def joined(self, group: Group, records: Longs) -> Group:
        """The group with these records, aligned in the order given."""
        from leeward.protect.trajectories import _improve

        longest = max(self.problem.longest, len(group.codes))
        xc, xa = np.zeros(longest, np.int32), np.zeros(longest, np.int32)
        m = len(group.codes)
        xc[:m], xa[:m] = group.codes, group.ages
        M = np.empty((longest + 1, longest + 1), np.int64)
        rows = np.empty(longest, np.int64), np.empty(longest, np.int64)
        for record in records.tolist():
            m, _ = _improve.join(self.data, xc, xa, m, self.entry[record], M, *rows)
        return Group(np.concatenate([group.members, records]), xc[:m].copy(), xa[:m].copy())

    def saving(self, group: Group) -> int:
        """Σ s of the published pairs."""
        p = self.problem
        return int(
            p.codes.gain[group.codes].astype(np.int64).sum() + p.ages.gain[group.ages].astype(np.int64).sum()
        )
