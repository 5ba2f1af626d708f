"""The search for levels and classes against the loss of codes as it is measured
(docs/methods/whole-patient.md#search).

The objective is the mean LM of the published vectors over records and columns, plus the share of code occurrences that
the method loses when it runs in the classes. Nothing is estimated by a formula about demographics alone.
"""

from __future__ import annotations

import itertools
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
        """What is made small."""
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
        """The columns whose level is to be found."""
        return [i for i, name in enumerate(self.columns.names) if name not in self.keep]

    def sample(self) -> Int64s | None:
        """The records that are searched; None for all. Drawn from a fixed stream: same data, same sample."""
        n = self.columns.records
        most = self.searched or SEARCHED
        if n <= most:
            return None
        drawn = Randomness.of(n).stream("demographics searched").permutation(n)[:most]
        return np.sort(drawn).astype(np.int64)

    def form(self, levels: Mapping[str, Level], records: Int64s | None) -> Classes | None:
        """The classes of these records (None: all) at some levels; None where `drop` would leave nobody, or the sample
        is too small."""
        inside = self.columns if records is None else self.columns.take(records)
        alike = self.alike if self.alike is None or records is None else self.alike[records]
        kept = frozenset(self.keep)
        try:
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
    """One level a column for everybody: the vector of levels with the least objective.

    Raises
    ------
    GuaranteeUnreachable
        Fewer than k records.
    """
    columns, keep, records = setting.columns, dict(setting.keep), setting.sample()
    names = [columns.names[i] for i in setting.free]
    choices = [columns.columns[i].levels() for i in setting.free]

    def classes_at(levels: Sequence[Level], some: Int64s | None) -> Classes | None:
        return setting.form({**keep, **dict(zip(names, levels, strict=True))}, some)

    tried: dict[tuple[Level, ...], Point | None] = {}

    def point(levels: tuple[Level, ...], some: Int64s | None) -> Point | None:
        classes = classes_at(levels, some)
        name = ", ".join(f"{n}: {level}" for n, level in zip(names, levels, strict=True)) or "as kept"
        return None if classes is None else setting.measure(name, classes, some)

    every = list(itertools.product(*choices))
    if len(every) <= MOST_CANDIDATES:
        tried = {levels: point(levels, records) for levels in every} if len(every) > 1 else {every[0]: None}
    else:
        _walk(choices, tried, lambda levels: point(levels, records))
    known = {levels: p for levels, p in tried.items() if p is not None}
    best = sorted(known, key=lambda levels: known[levels].objective) or list(tried)
    if records is not None and len(best) > 1:
        again = {levels: point(levels, None) for levels in best[:LAST]}
        last = {levels: p for levels, p in again.items() if p is not None}
        best = sorted(last, key=lambda levels: last[levels].objective) or best
    chosen = classes_at(best[0], None)
    if chosen is None:
        raise GuaranteeUnreachable(
            f"no class of demographics has k = {setting.k} patients, so `small: drop` would leave nobody. Keep less of "
            "the demographics (`keep`), or choose `small: merge`."
        )
    return Found(chosen, tuple(setting.points))


def _walk(
    choices: Sequence[Sequence[Level]],
    tried: dict[tuple[Level, ...], Point | None],
    point: Callable[[tuple[Level, ...]], Point | None],
) -> None:
    """From the coarsest levels on: refine the column by one level that helps most, until none does."""
    at = [len(levels) - 1 for levels in choices]

    def level_names(places: Sequence[int]) -> tuple[Level, ...]:
        return tuple(levels[i] for levels, i in zip(choices, places, strict=True))

    best = tried[level_names(at)] = point(level_names(at))
    while True:
        steps = [[p - (j == i) for j, p in enumerate(at)] for i in range(len(at)) if at[i] > 0]
        for step in steps:
            if level_names(step) not in tried:
                tried[level_names(step)] = point(level_names(step))
        better = [
            (found.objective, step)
            for step in steps
            if (found := tried[level_names(step)]) is not None
            and (best is None or found.objective < best.objective)
        ]
        if not better:
            return
        at = min(better)[1]
        best = tried[level_names(at)]


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

    Raises
    ------
    GuaranteeUnreachable
        Fewer than k records.
    """
    columns, records = setting.columns, setting.sample()
    inside = columns if records is None else columns.take(records)
    nothing: dict[str, Level] = {columns.names[i]: "all" for i in setting.free}
    everywhere = {**dict(setting.keep), **nothing}
    vectors, of_record = group_vectors(inside.vectors(everywhere))
    own = np.stack([column.node for column in inside.columns], axis=1)
    total = int(setting.occurrences[slice(None) if records is None else records].sum())
    lost_of: dict[int, int] = {}
    members = {c: np.flatnonzero(of_record == c) for c in range(len(vectors))}
    vector = {c: vectors[c].copy() for c in members}
    cuts: dict[int, Cut] = {}
    open_classes = sorted(members)
    lost_of |= dict(zip(members, _count_losses(setting, [members[c] for c in members], records), strict=True))
    _note(setting, vector, members, lost_of, total, "kept columns alone", records)
    turn = 0
    while open_classes:
        turn += 1
        plans = {
            (c, i): plan
            for c in open_classes
            for i in setting.free
            if (plan := _plan(inside, own, vector[c], members[c], i, setting.k)) is not None
        }
        cutting = {key: plan for key, plan in plans.items() if len(plan) > 1}
        counts = iter(
            _count_losses(setting, [part for plan in cutting.values() for _, part in plan], records)
        )
        lost = {key: [next(counts) for _ in plan] for key, plan in cutting.items()}
        # Where one child holds all records, its label says more and costs nothing.
        lost |= {(c, i): [lost_of[c]] for (c, i), plan in plans.items() if len(plan) == 1}
        fresh: list[int] = []
        for c in open_classes:
            gains = {
                i: _gain(inside, vector[c], members[c], plans[c, i], i)
                - (sum(lost[c, i]) - lost_of[c]) / total
                for i in setting.free
                if (c, i) in plans
            }
            gains |= {i: np.inf for i in gains if len(lost[c, i]) == 1}
            if not gains or max(gains.values()) <= 0:
                continue
            i = min(gains, key=lambda column: (-gains[column], column))
            into: dict[int, int] = {}
            rest = c
            for (node, part), count in zip(plans[c, i], lost[c, i], strict=True):
                number = len(vector)
                vector[number] = vector[c].copy()
                vector[number][i] = node
                members[number], lost_of[number] = part, count
                fresh.append(number)
                if node == vector[c][i]:
                    rest = number
                else:
                    into[node] = number
            cuts[c] = Cut(i, into, rest)
            del members[c]
        open_classes = fresh
        if fresh:
            _note(setting, vector, members, lost_of, total, f"after {turn} cuts of a class", records)
    classes = _all_records(setting, vector, cuts, everywhere, vectors)
    if records is not None:
        setting.measure("on all records", classes, None)
    return Found(classes, tuple(setting.points))


def _count_losses(setting: Setting, parts: Sequence[AnyArray], records: Int64s | None) -> list[int]:
    whole = [part if records is None else records[part] for part in parts]
    return list(setting.lost(whole)) if whole else []


def _note(
    setting: Setting,
    vector: Mapping[int, Int32s],
    members: Mapping[int, AnyArray],
    lost_of: Mapping[int, int],
    total: int,
    name: str,
    records: Int64s | None,
) -> None:
    """A point of the frontier: the classes as they are now."""
    sizes = np.array([len(members[c]) for c in members])
    losses = setting.columns.loss(np.stack([vector[c] for c in members]))
    lost = sum(lost_of[c] for c in members) / max(1, total)
    setting.points.append(
        Point(name, len(members), float(np.average(losses, weights=sizes)), lost, records is None)
    )


def _plan(
    columns: Columns, own: Int32s, vector: Int32s, members: AnyArray, i: int, k: int
) -> list[tuple[int, AnyArray]] | None:
    """The parts of a cut: (node, records), the class's own node for what stays; None where it cannot be cut."""
    tree = columns.columns[i].tree
    at = int(vector[i])
    child = _child_of(tree.parent, own[members, i], at)
    nodes, counts = np.unique(child[child != at], return_counts=True)
    large = [int(node) for node, count in zip(nodes, counts, strict=True) if count >= k]
    staying = len(members) - int(counts[np.isin(nodes, large)].sum())
    size = dict(zip(nodes.tolist(), counts.tolist(), strict=True))
    large.sort(key=lambda node: (-size[node], node))
    while large and 0 < staying < k:
        staying += size[large.pop()]
    if not large:
        return None
    parts = [(node, members[child == node]) for node in sorted(large)]
    if staying:
        parts.append((at, members[~np.isin(child, large)]))
    return parts


def _child_of(parent: Int32s, nodes: Int32s, at: int) -> Int32s:
    """The child of `at` at or above each node; `at` for itself."""
    found = nodes.copy()
    while True:
        above = parent[found]
        climb = (found != at) & (above != at)
        if not climb.any():
            return found
        found = np.where(climb, above, found)


def _gain(
    columns: Columns, vector: Int32s, members: AnyArray, plan: Sequence[tuple[int, AnyArray]], i: int
) -> float:
    """What the cut takes off the mean LM over all records and columns."""
    losses = columns.columns[i].losses
    saved = sum(len(part) * (losses[vector[i]] - losses[node]) for node, part in plan)
    return float(saved) / (columns.records * len(columns))


def _all_records(
    setting: Setting,
    vector: Mapping[int, Int32s],
    cuts: Mapping[int, Cut],
    levels: Mapping[str, Level],
    first: Int32s,
) -> Classes:
    """Every record in the class that the cuts lead it to; classes below k, and vectors that the sample did not have, as
    `small` says."""
    columns = setting.columns
    start, of_record = group_vectors(columns.vectors(levels))
    known = {tuple(v): c for c, v in enumerate(first.tolist())}
    vectors = [vector[c] for c in range(len(vector))]
    begin = []
    for each in start.tolist():
        if tuple(each) not in known:
            known[tuple(each)] = len(vectors)
            vectors.append(np.array(each, np.int32))
        begin.append(known[tuple(each)])
    place = np.array(begin)[of_record]
    own = np.stack([column.node for column in columns.columns], axis=1)
    waiting = [c for c in sorted(set(begin)) if c in cuts]
    while waiting:
        c = waiting.pop(0)
        cut = cuts[c]
        here = np.flatnonzero(place == c)
        child = _child_of(
            columns.columns[cut.column].tree.parent, own[here, cut.column], int(vectors[c][cut.column])
        )
        place[here] = np.array([cut.into.get(int(node), cut.rest) for node in child], np.int64)
        further = {*cut.into.values(), cut.rest} - {c}
        waiting += [number for number in sorted(further) if number in cuts]
    used, number = np.unique(place, return_inverse=True)
    merged, again = np.unique(np.stack([vectors[c] for c in used]), axis=0, return_inverse=True)
    return enlarge(
        columns, merged.astype(np.int32), again.reshape(-1)[number.reshape(-1)].astype(np.int64), setting.k,
        setting.small, setting.randomness, frozenset(setting.keep),
    )  # fmt: skip
