"""The kernel: one cell of one stratum in, as many made rows out (what an engine's `map_groups` runs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from leeward.arrays import offsets_of
from leeward.cohort.lenses.table import Floats
from leeward.compiled import njit
from leeward.errors import VerificationFailed
from leeward.methods.condensation.grouping import How, group
from leeward.methods.condensation.keeping import keep, refill
from leeward.methods.condensation.prepare import Layout
from leeward.methods.condensation.relations import Relation, Rules, rules_of
from leeward.methods.condensation.synthesis import (
    POOLED_ROWS,
    Longs,
    Synthesis,
    moments,
    pool_scores,
    synthesize,
)
from leeward.randomness import Randomness

CELL, ROW, GROUP = "__cell__", "__row__", "__group__"
Marginals = Literal["group", "nearest", "centroid"]
FACTS = ("moved", "before", "after", "fell_back", "identical", "broken")


@dataclass(frozen=True)
class CellKernel:
    """Condenses a cell; sent to wherever the engine works. `marginals`: `group` takes the group's own values by rank,
    `nearest` the nearest permissible value, `centroid` the permissible value nearest to the group's mean, for every row
    alike."""

    layout: Layout
    k: int
    how: How
    marginals: Marginals
    synthesis: Literal["sampled", "exact"]
    draw: Literal["normal", "uniform"]
    match_times: bool
    relations: tuple[Relation, ...]
    coarsen_time: bool
    coarsen_groups: int
    randomness: Randomness

    def schema(self) -> pa.Schema:
        """Of what the kernel returns: source row, group number inside the cell, made values, the cell's facts."""
        made = [f"v{place}" for place in range(len(self.layout.features))]
        floats = [*made, *(f"__{fact}__" for fact in FACTS)]
        kinds = dict.fromkeys((CELL, ROW, GROUP), pa.int64()) | dict.fromkeys(floats, pa.float64())
        return pa.schema(kinds)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Condense a cell: columns `__cell__`, `__row__` and `v0`, `v1`, … (the features' values, NaN missing)."""
        features = self.layout.features
        cell = int(rows.column(CELL)[0].as_py())
        values = {
            feature.column.name: rows.column(f"v{place}").to_numpy(zero_copy_only=False)
            for place, feature in enumerate(features)
        }
        grouping = group(self.layout.points(values), self.k, self.how, self._stream(cell, "groups"))
        order, offsets = grouping.order, grouping.offsets
        if int(np.diff(offsets).min()) < self.k:
            raise VerificationFailed("a group has fewer than k rows; nothing was written.")
        values = {name: each[order] for name, each in values.items()}
        made, fell_back, identical, broken = self.make_rows(values, offsets, cell)
        facts = (grouping.moved, grouping.before, grouping.after, fell_back, identical, broken)
        n = len(order)
        arrays = [
            np.full(n, cell),
            rows.column(ROW).to_numpy()[order],
            np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)),
            *(made[feature.column.name] for feature in features),
            *(np.concatenate([[float(fact)], np.zeros(n - 1)]) for fact in facts),
        ]
        return pa.table([pa.array(each) for each in arrays], schema=self.schema())

    def make_rows(
        self, values: Mapping[str, Floats], offsets: Longs, cell: int
    ) -> tuple[dict[str, Floats], int, int, int]:
        """Made values, group by group; groups that fell back, groups of identical rows, rows that break relations."""
        generator = self._stream(cell, "fill")
        filled = dict(values)
        absent: dict[str, NDArray[np.bool_]] = {}
        for feature in self.layout.features:
            name = feature.column.name
            missing = np.isnan(values[name])
            if missing.any():
                filled[name] = fill(values[name], offsets, generator.random(len(missing)), feature.fallback)
                if feature.keeps_missing:
                    absent[name] = missing
        rules = self._rules(values) if self.relations else None
        if rules:
            imputed = {name: np.isnan(values[name]) & (name not in absent) for name in values}
            refill(rules, filled, imputed, offsets)
        done = self._synthesize(self.layout.matrix(filled, absent), offsets, cell)
        steps = self._stream(cell, "steps")
        made = {
            feature.column.name: self._column(place, done.rows, filled, absent, offsets, steps)
            for place, feature in enumerate(self.layout.features)
        }
        broken = 0
        if rules:
            own = {name: np.where(absent.get(name, False), np.nan, each) for name, each in filled.items()}
            broken = keep(rules, made, own, offsets)
        return made, done.fell_back, done.identical, broken

    def _synthesize(self, matrix: Floats, offsets: Longs, cell: int) -> Synthesis:
        """Synthetic rows, or scores for matching by rank, by the marginals and the sizes of groups."""
        if self.marginals == "centroid":
            means, _ = moments(matrix, offsets)
            return Synthesis(np.repeat(means, np.diff(offsets), axis=0), 0, 0)
        generator = self._stream(cell, "rows")
        attribute = self.layout.attribute() if self.marginals == "group" else None
        if attribute is None or not self._needs_pooling(offsets):
            return synthesize(
                matrix, offsets, self.k, generator, mode=self.synthesis, draw=self.draw, attribute=attribute
            )
        scores = pool_scores(matrix, offsets, generator, attribute, self.draw)
        fell_back = len(offsets) - 1 if self.synthesis == "exact" else 0
        return Synthesis(scores, fell_back, count_identical(matrix, offsets))

    def _rules(self, values: Mapping[str, Floats]) -> Rules:
        columns = {feature.column.name: feature.column for feature in self.layout.features}
        matched = self.layout.features if self.match_times else ()
        times = {each.column.name for each in matched if each.role == "time"}
        return rules_of(self.relations, values, columns, times, times if self.coarsen_time else ())

    def _column(
        self,
        place: int,
        synthetic: Floats,
        filled: Mapping[str, Floats],
        absent: Mapping[str, NDArray[np.bool_]],
        offsets: Longs,
        steps: np.random.Generator,
    ) -> Floats:
        feature, where = self.layout.features[place], self.layout.places[place]
        column, name = feature.column, feature.column.name
        scores = self._raw(synthetic, where.columns)
        own, absent_here = filled[name], absent.get(name)
        if feature.role == "time" and self.match_times:
            if self.coarsen_time:
                return column.permissible(group_medians(own, join_groups(offsets, self.coarsen_groups)))
            return group_numbers(np.ascontiguousarray(scores[:, 0]), own, offsets, own, True, 0.0, 0.0)
        if column.is_categorical:
            if where.indicator is not None:  # missing is one more level
                missing = slice(where.indicator, where.indicator + 1)
                scores = np.column_stack([scores, self._raw(synthetic, missing)])
            return self._levels(np.ascontiguousarray(scores), own, absent_here, offsets, len(column.levels))
        gone = None
        if where.indicator is not None:
            gone = self._missing(synthetic, where.indicator, absent_here, offsets)
        if self.marginals == "group":
            score = np.ascontiguousarray(scores[:, 0])
            known = own
            if gone is not None and absent_here is not None:
                score, known = np.where(gone, np.nan, score), np.where(absent_here, np.nan, own)
            drawn = steps.uniform(-0.5, 0.5, len(own))
            range_ = (column.low, column.high) if self._needs_pooling(offsets) else (0.0, 0.0)
            return column.permissible(group_numbers(score, known, offsets, drawn, False, *range_))
        made = column.permissible(scores[:, 0])
        return made if gone is None else np.where(gone, np.nan, made)

    def _levels(
        self, scores: Floats, own: Floats, absent: NDArray[np.bool_] | None, offsets: Longs, levels: int
    ) -> Floats:
        """Level numbers; NaN for the level after the last, which is 'missing'."""
        if self.marginals == "group":
            codes = np.where(absent, levels, own) if absent is not None else own
            given = group_levels(scores, codes.astype(np.int64), offsets, scores.shape[1])
        else:
            given = scores.argmax(axis=1)
        return np.where(given == levels, np.nan, given.astype(np.float64))

    def _needs_pooling(self, offsets: Longs) -> bool:
        return self.marginals == "group" and int(np.diff(offsets).min()) < POOLED_ROWS

    def _missing(
        self, synthetic: Floats, indicator: int, absent: NDArray[np.bool_] | None, offsets: Longs
    ) -> NDArray[np.bool_]:
        """Which made rows are to miss the value: as many as in the group, or where the indicator rounds to 1."""
        score = self._raw(synthetic, slice(indicator, indicator + 1))[:, 0]
        if self.marginals != "group":
            return np.asarray(score > 0.5)
        if absent is None:
            return np.zeros(len(score), bool)
        both = np.column_stack([-score, score])
        return np.asarray(group_levels(both, absent.astype(np.int64), offsets, 2) == 1)

    def _raw(self, synthetic: Floats, columns: slice) -> Floats:
        """Synthetic columns in the units of the values (0 … 1 for dummies)."""
        raw: Floats = synthetic[:, columns] * self.layout.scales[columns] + self.layout.centres[columns]
        return raw

    def _stream(self, cell: int, what: str) -> np.random.Generator:
        return self.randomness.stream("condensation", what, cell)


def join_groups(offsets: Longs, together: int) -> Longs:
    """The offsets of runs of `together` neighbouring groups; the last run takes what is left."""
    count = len(offsets) - 1
    starts = np.arange(max(1, count // together)) * together
    return np.concatenate([offsets[starts], offsets[-1:]])


def count_identical(rows: Floats, offsets: Longs) -> int:
    """How many groups consist of rows that are all alike."""
    changed = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))
    changed[offsets[:-1]] = False
    return int((~np.logical_or.reduceat(changed, offsets[:-1])).sum())


def fill(values: Floats, offsets: Longs, draws: Floats, fallback: float) -> Floats:
    """NaN replaced by one of the group's known values, chosen by the row's uniform draw; else by `fallback`."""
    missing = np.isnan(values)
    known = values[~missing]
    sizes = np.add.reduceat(~missing, offsets[:-1], dtype=np.int64)
    group = np.repeat(np.arange(len(sizes)), np.diff(offsets))[missing]
    place = np.minimum((draws[missing] * sizes[group]).astype(np.int64), sizes[group] - 1)
    made = values.copy()
    drawn = np.append(known, fallback)[offsets_of(sizes)[group] + place]
    made[missing] = np.where(sizes[group] > 0, drawn, fallback)
    return made


def group_medians(values: Floats, offsets: Longs) -> Floats:
    """Every value replaced by its group's median (of two middle ones, the lower)."""
    sizes = np.diff(offsets)
    ordered = values[np.lexsort((values, np.repeat(np.arange(len(sizes)), sizes)))]
    return np.repeat(ordered[offsets[:-1] + (sizes - 1) // 2], sizes)


@njit
def group_levels(scores: Any, codes: Any, offsets: Any, levels: int) -> Any:
    """Levels with the counts they have in the group: in ascending count (equal counts: in the levels' order), each
    level goes to that many still free rows with the highest scores. `scores`: float64[rows, levels] synthetic dummies.
    `codes`: int64[rows] the group's own levels, in any order. Returns int64[rows]."""
    given = np.empty(len(codes), np.int64)
    counts = np.empty(levels, np.int64)
    for g in range(len(offsets) - 1):
        start, end = offsets[g], offsets[g + 1]
        counts[:] = 0
        for row in range(start, end):
            counts[codes[row]] += 1
        free = np.arange(start, end)
        for level in np.argsort(counts, kind="mergesort"):
            count = counts[level]
            if count == 0:
                continue
            if count == len(free):
                given[free] = level
                break
            ranked = free[np.argsort(-scores[:, level][free], kind="mergesort")]
            given[ranked[:count]] = level
            free = np.sort(ranked[count:])
    return given


@njit
def group_numbers(
    scores: Any, values: Any, offsets: Any, steps: Any, exact: bool, low: float, high: float
) -> Any:
    """The group's own values by rank: the row of rank i gets x(i), moved by |u| towards a neighbour unless `exact`.

    `scores`: float64[rows] synthetic values, NaN where the row is to stay missing. `values`: float64[rows] the group's
    values, NaN where missing, as many as there are NaN scores. `steps`: float64[rows] uniform in (−½, ½): its sign
    chooses the neighbour, at both ends the inward one. With low < high steps are halved and the ends move outwards as
    often as inwards, in proportion to the gap to their neighbour, but for moves that would leave low … high, which turn
    back: small groups keep their variance. Returns float64[rows].
    """
    made = np.full(len(values), np.nan)
    for g in range(len(offsets) - 1):
        start, end = offsets[g], offsets[g + 1]
        own = values[start:end]
        ordered = np.sort(own[~np.isnan(own)])
        ranked = start + np.argsort(scores[start:end], kind="mergesort")  # NaN scores rank last
        for i in range(len(ordered)):
            row = ranked[i]
            alone = exact or len(ordered) < 2
            made[row] = ordered[i] if alone else _moved(ordered, i, steps[row], low, high)
    return made


@njit(inner=True)
def _moved(ordered: Any, i: int, step: float, low: float, high: float) -> float:
    value, last = ordered[i], len(ordered) - 1
    if low < high:
        place = min(max(i if step > 0.0 else i - 1, 0), last - 1)
        move = 0.5 * step * (ordered[place + 1] - ordered[place])
        return value - move if value + move < low or value + move > high else value + move
    up = i == 0 or (step > 0.0 and i < last)
    return value + abs(step) * ((ordered[i + 1] if up else ordered[i - 1]) - value)
