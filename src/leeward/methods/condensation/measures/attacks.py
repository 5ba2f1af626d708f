"""Attacks on a condensed table: exact times, which group's row is nearest, and how near the nearest row is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.analysis.plan import models_of
from leeward.cohort.lenses.table import Floats
from leeward.engine import over_blocks
from leeward.errors import BadInput
from leeward.methods.condensation.kernels import nearest as kernels
from leeward.methods.condensation.measures.both import SEED, Both, Singles, dummies
from leeward.methods.condensation.measures.figures import Closest, CoarseTimes, Distances, ExactTimes, Linkage

SAMPLE = 1_000


def linkage(both: Both, sample: int = SAMPLE) -> Linkage | None:
    """Share of original rows whose nearest released row comes from their own group, against chance.

    Distances: standardized numbers and dummies, unweighted, all columns. Chance: the share of released rows that are
    from the row's own group, on average. A random sample of at most `sample` rows asks.
    """
    if both.group is None or both.source_row is None or both.source_group is None:
        return None
    before, after = standardized(both)
    chosen = _chosen(len(both.source_row), sample)
    nearest, _ = nearest_rows(before[both.source_row[chosen]], after)
    own = both.source_group[chosen]
    sizes = np.bincount(both.group)
    return Linkage(
        len(chosen), float((both.group[nearest] == own).mean()), float((sizes[own] / len(after)).mean())
    )


def exact_times(both: Both, sample: int = SAMPLE) -> ExactTimes | None:
    """An attacker who knows all but the times guesses the exact time of the nearest released row of the stratum.

    Numbers are compared by their ranks inside the stratum, levels as dummies. None where the release has no exact
    times. docs/methods/condensation.md has the section least k.
    """
    times = both.release.guarantee.get("facts", {}).get("exact", ())
    if not times:
        return None
    strata = _strata(both)
    random = np.random.Generator(np.random.Philox(SEED))
    known = [each.name for each in both.table.columns if each.name not in (*times, *strata)]
    keys = [_numbered(_codes(both, strata, side)) for side in (both.table.frame, both.made)]
    place = {key: number for number, key in enumerate(keys[1][0])}
    own, theirs = (each[times[0]].cast(pl.Float64).to_numpy() for each in (both.table.frame, both.made))
    asked, right, chance = 0, 0.0, 0.0
    for number, key in enumerate(keys[0][0]):
        rows = np.flatnonzero(keys[0][1] == number)
        made = np.flatnonzero(keys[1][1] == place.get(key, -1))
        if not len(made):
            continue
        chosen = rows
        most = max(1, round(sample * len(rows) / len(both.table)))
        if len(both.table) > sample:
            chosen = np.sort(random.choice(len(rows), min(most, len(rows)), replace=False))
            chosen = rows[chosen]
        before, after = _ranked(both, known, rows, chosen, made)
        nearest, _ = nearest_rows(before, after)
        right += float((theirs[made][nearest] == own[chosen]).sum())
        values, counts = np.unique(theirs[made], return_counts=True)
        near = np.minimum(np.searchsorted(values, own[chosen]), len(values) - 1)
        chance += float((counts[near] * (values[near] == own[chosen])).sum() / len(made))
        asked += len(chosen)
    if not asked:
        return None
    k = int(both.release.guarantee["k"])
    return ExactTimes(times[0], asked, right / asked, chance / asked, k, _in_group(both, own))


def coarse_times(both: Both) -> CoarseTimes | None:
    """Share of rows whose stratum and coarse time occur in one group only, whose column values can then be read.

    None where times are not coarse.
    """
    given = both.release.parameters
    plan = models_of(given.get("plan", ()))
    times = [*given.get("time", ()), *(model.time for model in plan if model.time)]
    if both.group is None or not given.get("coarsen_time") or not times:
        return None
    rows = both.made.select([*_strata(both), times[0]]).with_columns(pl.Series("__group__", both.group))
    keys = [name for name in rows.columns if name != "__group__"]
    groups = rows.select(pl.col("__group__").n_unique().over(keys)).to_series()
    return CoarseTimes(rows.height, float((groups == 1).sum() / rows.height))


def _in_group(both: Both, time: Floats) -> float | None:
    """How often a random row of a patient's group has the patient's time."""
    if both.group is None or both.source_row is None or both.source_group is None:
        return None
    rows = pl.DataFrame({"group": both.source_group, "time": time[both.source_row]})
    same = pl.col("same").cast(pl.Int64)
    times = rows.group_by("group", "time").len("same").group_by("group")
    groups = times.agg(all=same.sum(), pairs=(same**2).sum()).sort("group")
    return float((groups["pairs"] / groups["all"]).sum() / rows.height)


def _strata(both: Both) -> list[str]:
    given = both.release.parameters
    events = [model.event for model in models_of(given.get("plan", ())) if model.event]
    return list(dict.fromkeys([*given.get("strata", ()), *events]))


def _codes(both: Both, strata: list[str], frame: pl.DataFrame) -> pl.Series:
    """The stratum of each row as text."""
    if not strata:
        return pl.Series([""]).new_from_index(0, frame.height)
    return frame.select(pl.concat_str(pl.col(strata).cast(pl.String), separator="|")).to_series()


def _numbered(texts: pl.Series) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order, and the place of each row's."""
    return texts.unique().sort().to_list(), texts.rank("dense").to_numpy() - 1


def _ranked(
    both: Both, known: list[str], rows: np.ndarray, chosen: np.ndarray, made: np.ndarray
) -> tuple[Singles, Singles]:
    """Ranks in 0 … 1 and dummies of the `chosen` source rows and of the `made` rows of a stratum."""
    sides: tuple[list[Floats], list[Floats]] = ([], [])
    for name in known:
        column, before, after = both.columns(name)
        for side, values, own, wanted in (
            (0, before, rows, chosen),
            (1, after, made, made),
        ):
            if column.is_categorical:
                levels = range(len(column.levels))
                sides[side].extend((values[wanted] == level) * np.sqrt(0.5) for level in levels)
                continue
            distinct, counts = np.unique(values[own][~np.isnan(values[own])], return_counts=True)
            below = np.concatenate([[0], np.cumsum(counts)])
            asked, back = np.unique(values[wanted], return_inverse=True)
            low, high = (below[np.searchsorted(distinct, asked, where)] for where in ("left", "right"))
            share = ((low + high) / (2.0 * max(1, int(below[-1]))))[back]
            sides[side].append(np.where(np.isnan(values[wanted]), 0.5, share))
    one, two = (np.column_stack(each).astype(np.float32) for each in sides)
    return one, two


def closest(both: Both, sample: int = SAMPLE) -> Closest:
    """Distance from released rows to the closest original one, beside that between original rows.

    In standard deviations, as in `linkage`. `original`: from an original row to the closest other one, which is what a
    new sample of the same population would show.
    """
    before, after = standardized(both)
    asked = _chosen(len(after), sample)
    boxes = Boxes.of(before)
    _, made = nearest_rows(after[asked], before, boxes=boxes)
    chosen = _chosen(len(before), sample)
    _, own = nearest_rows(before[chosen], before, chosen, boxes)
    return Closest(len(asked), _quantiles(made), _quantiles(own))


def standardized(both: Both) -> tuple[Singles, Singles]:
    """Numbers and dummies of both tables in the original's standard deviations."""
    _, before, after, _ = dummies(both)
    return before, after


def nearest_rows(
    asked: Singles, rows: Singles, itself: np.ndarray | None = None, boxes: Boxes | None = None
) -> tuple[np.ndarray, Floats]:
    """For each asked row the nearest of `rows` (in `boxes`) and its distance; `itself[i]` is left out."""
    nearest = (boxes or Boxes.of(rows)).two_nearest(asked, itself)[0][:, 0]
    return nearest, np.sqrt(((asked - rows[nearest]) ** 2).sum(axis=1))


@dataclass(frozen=True)
class Boxes:
    """Rows in boxes, so that near ones are found without a look at all (`kernels.nearest`)."""

    points: Singles
    order: np.ndarray
    begins: np.ndarray
    low: Singles
    high: Singles

    @classmethod
    def of(cls, rows: Singles) -> Boxes:
        """The boxes of rows; they are copied."""
        points, order = np.array(rows, np.float32, order="C"), np.arange(len(rows))
        begins = kernels.cut_into_boxes(points, order)
        return cls(points, order, begins, *kernels.edges_of(points, begins))

    def two_nearest(self, asked: Singles, itself: np.ndarray | None = None) -> tuple[np.ndarray, Floats]:
        """Of each asked row the two nearest rows and their distances, int64 and float64[asked, 2]."""
        given = np.ascontiguousarray(asked, np.float32)
        left_out = np.full(len(given), -1) if itself is None else itself
        blocks = over_blocks(
            lambda first, last: kernels.two_nearest(
                given[first:last],
                left_out[first:last],
                self.points,
                self.order,
                self.begins,
                self.low,
                self.high,
            ),
            len(given),
        )
        where, near = (np.concatenate(each) for each in zip(*blocks, strict=True))
        return where, np.sqrt(near)


def _chosen(rows: int, sample: int) -> np.ndarray:
    if sample < 1:
        raise BadInput("`sample` must be at least 1.")
    random = np.random.Generator(np.random.Philox(SEED))
    return np.arange(rows) if rows <= sample else np.sort(random.choice(rows, sample, replace=False))


def _quantiles(values: Floats) -> Distances:
    low, median = np.quantile(values, [0.05, 0.5])
    return Distances(float(low), float(median), float((values == 0.0).mean()))
