"""The search for levels and classes against the loss of codes as it is measured
(docs/methods/whole-patient.md#search).

The objective is the mean LM of the published vectors over records and columns, plus the share of code occurrences that
the method loses when it runs in the classes. Nothing is estimated by a formula about demographics alone.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leeward.analysis.demographics.classes import Classes, classes_of, enlarge, group_vectors
from leeward.analysis.demographics.columns import Columns, Level
from leeward.arrays import AnyArray, Int32s, Int64s
from leeward.errors import GuaranteeUnreachable
from leeward.randomness import Randomness

Lost = Callable[[Sequence[AnyArray]], Sequence[int]]
"""The code occurrences lost in each of some classes, given as arrays of records: the method runs in each."""

SEARCHED = 50_000
"""Records that the search looks at; of more, an even sample of so many."""

MOST_CANDIDATES = 24
"""Vectors of levels that are all tried; where there are more, the search walks from the coarsest to finer ones."""

LAST = 2
"""Candidates that are measured on all records, where the search looked at a sample."""


@dataclass(frozen=True)
class Point:
    """One candidate: what it is, its classes, mean LM, share of code occurrences lost, and whether on all records."""

    name: str
    classes: int
    loss: float
    lost: float
    whole: bool

    @property
    def objective(self) -> float:
        return self.loss + self.lost


@dataclass(frozen=True)
class Found:
    """The classes, and every point that was measured, in its order."""

    classes: Classes
    frontier: tuple[Point, ...]


@dataclass
class Setting:
    """What a search works with: `occurrences`, the number of codes of each record; `lost`, see `Lost`;
    `searched`, the most records that it looks at (None: `SEARCHED`); `alike`, see `classes_of`."""

    columns: Columns
    keep: Mapping[str, Level]
    k: int
    small: str
    randomness: Randomness
    occurrences: Int64s
    lost: Lost
    searched: int | None = None
    alike: Int64s | None = None
    points: list[Point] = field(default_factory=list)

    @property
    def free(self) -> list[int]:
        return [i for i, name in enumerate(self.columns.names) if name not in self.keep]

    def named(self, levels: Sequence[Level]) -> dict[str, Level]:
        return {self.columns.names[i]: level for i, level in zip(self.free, levels, strict=True)}

    def objective(self, levels: Sequence[Level], records: Int64s | None) -> float:
        named = self.named(levels)
        classes = self.form(named, records)
        name = ", ".join(f"{column}: {level}" for column, level in named.items()) or "as kept"
        return np.inf if classes is None else self.measure(name, classes, records).objective

    def sample(self) -> Int64s | None:
        """The records that are searched; None for all. Drawn from a fixed stream: same data, same sample."""
        n = self.columns.records
        most = self.searched or SEARCHED
        if n <= most:
            return None
        drawn = Randomness.of(n).stream("demographics searched").permutation(n)[:most]
        return np.sort(drawn).astype(np.int64)

    def form(self, levels: Mapping[str, Level], records: Int64s | None) -> Classes | None:
        """The classes of these records (None: all) at some levels of the columns that are not kept; None where `drop`
        would leave nobody, or the sample is too small."""
        inside = self.columns if records is None else self.columns.take(records)
        alike = self.alike if self.alike is None or records is None else self.alike[records]
        kept = frozenset(self.keep)
        try:
            levels = {**levels, **self.keep}
            return classes_of(inside, levels, self.k, self.small, self.randomness, kept, alike)
        except GuaranteeUnreachable:
            if records is None and self.small != "drop":
                raise
            return None

    def count_lost(self, classes: Classes, records: Int64s | None) -> int:
        """The code occurrences that the method loses in classes of these records."""
        return sum(_count_losses(self, classes.members, records))

    def measure(self, name: str, classes: Classes, records: Int64s | None) -> Point:
        """A point of the frontier: the method runs in the classes of these records (None: all)."""
        own = classes.released if records is None else records[classes.released]
        share = self.count_lost(classes, records) / max(1, int(self.occurrences[own].sum()))
        point = Point(name, len(classes), classes.loss(), share, records is None)
        self.points.append(point)
        return point


def search_full(setting: Setting) -> Found:
    """The one vector of levels for everybody with the least objective; GuaranteeUnreachable below k records."""
    records = setting.sample()
    choices = [setting.columns.columns[i].levels() for i in setting.free]
    every = list(itertools.product(*choices))
    tried = dict.fromkeys(every, np.inf)
    if len(every) > MOST_CANDIDATES:
        tried = _walk(choices, lambda levels: setting.objective(levels, records))
    elif len(every) > 1:
        tried = {levels: setting.objective(levels, records) for levels in every}
    best = _possible(tried)
    if records is not None and len(best) > 1:
        best = _possible({levels: setting.objective(levels, None) for levels in best[:LAST]})
    chosen = setting.form(setting.named(best[0]), None)
    if chosen is None:
        raise GuaranteeUnreachable(
            f"no class of demographics has k = {setting.k} patients, so `small: drop` would leave nobody. Keep less of "
            "the demographics (`keep`), or choose `small: merge`."
        )
    return Found(chosen, tuple(setting.points))


def _possible(tried: Mapping[tuple[Level, ...], float]) -> list[tuple[Level, ...]]:
    """The levels at which there are classes, the least objective first; all where there is none."""
    return [levels for levels in sorted(tried, key=tried.__getitem__) if tried[levels] < np.inf] or list(
        tried
    )


def _walk(
    choices: Sequence[Sequence[Level]], objective: Callable[[tuple[Level, ...]], float]
) -> dict[tuple[Level, ...], float]:
    """The objectives on a walk from the coarsest levels: refine the column that helps most, until none helps."""

    def levels_at(places: Sequence[int]) -> tuple[Level, ...]:
        return tuple(map(operator.getitem, choices, places))

    at = [len(levels) - 1 for levels in choices]
    tried = {levels_at(at): objective(levels_at(at))}
    while True:
        steps = [[p - (j == i) for j, p in enumerate(at)] for i in range(len(at)) if at[i] > 0]
        for step in steps:
            if levels_at(step) not in tried:
                tried[levels_at(step)] = objective(levels_at(step))
        value, best = min(((tried[levels_at(step)], step) for step in steps), default=(np.inf, at))
        if value >= tried[levels_at(at)]:
            return tried
        at = best


@dataclass(frozen=True)
class Cut:
    """A cut of a class along a column: which class records below each child go to; the others stay in `rest`."""

    column: int
    into: Mapping[int, int]
    rest: int


def search_local(setting: Setting) -> Found:
    """Top-down: a class is cut along one column at a time, as long as the objective falls.

    At first there is one class for each vector of the kept columns, with nothing of the others. A class can be cut
    along a free column into the children of its node that have at least k records each; the records below smaller
    children keep the node (with the smallest other child, while they are fewer than k). All cuts of a class are
    measured by running the method in the parts, and the best is taken.

    Raises GuaranteeUnreachable: fewer than k records.
    """
    cutting = _Cutting(setting)
    waiting, turn = sorted(cutting.members), 0
    cutting.note("kept columns alone")
    while waiting:
        waiting, turn = cutting.cut_each(waiting), turn + 1
        if waiting:
            cutting.note(f"after {turn} cuts of a class")
    classes = cutting.place_all()
    if cutting.records is not None:
        setting.measure("on all records", classes, None)
    return Found(classes, tuple(setting.points))


Part = tuple[int, AnyArray]
"""A part of a cut: the node that its records get, and the records."""


class _Cutting:
    """Classes while they are cut, by number.

    vector : the nodes of each class, also of those that were cut. members : the records of the classes that are left.
    lost : the code occurrences that the method loses in each. cuts : what became of the others.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.records = setting, setting.sample()
        columns = setting.columns
        self.columns = columns if self.records is None else columns.take(self.records)
        self.levels: dict[str, Level] = {
            **setting.keep, **{columns.names[i]: "all" for i in setting.free}
        }  # fmt: skip
        self.first, of_record = group_vectors(self.columns.vectors(self.levels))
        self.own = np.stack([column.node for column in self.columns.columns], axis=1)
        self.total = int(setting.occurrences[slice(None) if self.records is None else self.records].sum())
        self.vector = dict(enumerate(self.first))
        self.members = {c: np.flatnonzero(of_record == c) for c in self.vector}
        self.lost = dict(zip(self.members, self._count(list(self.members.values())), strict=True))
        self.cuts: dict[int, Cut] = {}

    def _count(self, parts: Sequence[AnyArray]) -> list[int]:
        return _count_losses(self.setting, parts, self.records)

    def note(self, name: str) -> None:
        sizes = [len(records) for records in self.members.values()]
        losses = self.columns.loss(np.stack([self.vector[c] for c in self.members]))
        lost = sum(self.lost[c] for c in self.members) / max(1, self.total)
        loss = float(np.average(losses, weights=sizes))
        self.setting.points.append(Point(name, len(sizes), loss, lost, self.records is None))

    def cut_each(self, classes: Sequence[int]) -> list[int]:
        """Cut each of some classes where that helps most, if it does; the classes that were made."""
        plans = [(c, i, plan) for c in classes for i in self.setting.free if (plan := self._plan(c, i))]
        best: dict[int, tuple[float, int, list[Part], list[int]]] = {}
        for (c, i, plan), lost in zip(plans, self._count_plans(plans), strict=True):
            gain = self._gain(c, i, plan, lost)
            if gain > (best[c][0] if c in best else 0):
                best[c] = gain, i, plan, lost
        return [new for c, (_, i, plan, lost) in best.items() for new in self._cut(c, i, plan, lost)]

    def _count_plans(self, plans: Sequence[tuple[int, int, list[Part]]]) -> list[list[int]]:
        """The code occurrences lost in each part of each plan. Nothing is counted where one child holds all records:
        its label says more and costs nothing."""
        counts = iter(self._count([part for _, _, plan in plans if len(plan) > 1 for _, part in plan]))
        return [[next(counts) for _ in plan] if len(plan) > 1 else [self.lost[c]] for c, _, plan in plans]

    def _plan(self, c: int, i: int) -> list[Part]:
        """The parts of a cut along column i, the last one under the class's own node for what stays; none where it
        cannot be cut."""
        members, at, k = self.members[c], int(self.vector[c][i]), self.setting.k
        child = _child_of(self.columns.columns[i].tree.parent, self.own[members, i], at)
        nodes, counts = np.unique(child[child != at], return_counts=True)
        size = dict(zip(nodes.tolist(), counts.tolist(), strict=True))
        large = sorted((node for node in size if size[node] >= k), key=lambda node: (-size[node], node))
        staying = len(members) - sum(size[node] for node in large)
        while large and 0 < staying < k:
            staying += size[large.pop()]
        parts = [(node, members[child == node]) for node in sorted(large)]
        return [*parts, (at, members[~np.isin(child, large)])] if large and staying else parts

    def _gain(self, c: int, i: int, plan: Sequence[Part], lost: Sequence[int]) -> float:
        """What a cut takes off the objective."""
        if len(plan) == 1:
            return np.inf
        losses = self.columns.columns[i].losses
        saved = sum(len(part) * (losses[self.vector[c][i]] - losses[node]) for node, part in plan)
        less = float(saved) / (self.columns.records * len(self.columns))
        return less - (sum(lost) - self.lost[c]) / self.total

    def _cut(self, c: int, i: int, plan: Sequence[Part], lost: Sequence[int]) -> list[int]:
        made = {}
        for (node, part), count in zip(plan, lost, strict=True):
            made[node] = number = len(self.vector)
            self.vector[number] = self.vector[c].copy()
            self.vector[number][i] = node
            self.members[number], self.lost[number] = part, count
        into = {node: number for node, number in made.items() if node != self.vector[c][i]}
        self.cuts[c] = Cut(i, into, made.get(int(self.vector[c][i]), c))
        del self.members[c]
        return list(made.values())

    def place_all(self) -> Classes:
        """Every record in the class that the cuts lead it to; classes below k, and vectors that the sample lacked,
        as `small` says."""
        setting, columns = self.setting, self.setting.columns
        start, of_record = group_vectors(columns.vectors(self.levels))
        known = {tuple(vector): c for c, vector in enumerate(self.first.tolist())}
        vectors = [*self.vector.values()]
        for each in start:
            if known.setdefault(tuple(each.tolist()), len(vectors)) == len(vectors):
                vectors.append(each)
        begin = [known[tuple(each)] for each in start.tolist()]
        place = np.array(begin)[of_record]
        waiting = sorted(self.cuts.keys() & set(begin))
        while waiting:
            c = waiting.pop(0)
            cut = self.cuts[c]
            column, here = columns.columns[cut.column], np.flatnonzero(place == c)
            child = _child_of(column.tree.parent, column.node[here], int(vectors[c][cut.column]))
            place[here] = [cut.into.get(int(node), cut.rest) for node in child]
            waiting += sorted(self.cuts.keys() & ({*cut.into.values(), cut.rest} - {c}))
        used, number = np.unique(place, return_inverse=True)
        merged, again = group_vectors(np.stack([vectors[c] for c in used]))
        return enlarge(
            columns, merged, again[number.reshape(-1)], setting.k, setting.small, setting.randomness,
            frozenset(setting.keep),
        )  # fmt: skip


def _count_losses(setting: Setting, parts: Sequence[AnyArray], records: Int64s | None) -> list[int]:
    whole = [part if records is None else records[part] for part in parts]
    return list(setting.lost(whole)) if whole else []


def _child_of(parent: Int32s, nodes: Int32s, at: int) -> Int32s:
    """The child of `at` at or above each node; `at` for itself."""
    found = nodes.copy()
    while True:
        above = parent[found]
        climb = (found != at) & (above != at)
        if not climb.any():
            return found
        found = np.where(climb, above, found)
