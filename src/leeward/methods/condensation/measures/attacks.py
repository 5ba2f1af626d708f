"""Attacks on a condensed table: exact times, which group's row is nearest, and how near the nearest row is."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from leeward.analysis.plan import models_of
from leeward.cohort.lenses.table import Floats
from leeward.engine import available_threads
from leeward.errors import BadInput
from leeward.methods.condensation.measures.both import SEED, Both, Singles, dummies
from leeward.methods.condensation.measures.figures import ExactTimes

if TYPE_CHECKING:
    from scipy.spatial import KDTree

SAMPLE = 1_000


def linkage(both: Both, sample: int = SAMPLE) -> dict[str, Any] | None:
    """Share of original rows whose nearest released row comes from their own group, against chance.

    Distances: standardized numbers and dummies, unweighted, all columns. Chance: the share of released rows that are
    from the row's own group, on average. A random sample of at most `sample` rows asks.
    """
    if both.group is None or both.source_row is None or both.source_group is None:
        return None
    before, after = standardize(both)
    chosen = _choose_rows(len(both.source_row), sample)
    nearest = nearest_rows(before[both.source_row[chosen]], after)
    own = both.source_group[chosen]
    sizes = np.bincount(both.group)
    return {
        "asked": len(chosen),
        "own_group": float((both.group[nearest] == own).mean()),
        "chance": float((sizes[own] / len(after)).mean()),
    }


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
    keys = [_number_texts(_codes(both, strata, side)) for side in (both.table.frame, both.made)]
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
        before, after = _rank(both, known, rows, chosen, made)
        nearest = nearest_rows(before, after)
        right += float((theirs[made][nearest] == own[chosen]).sum())
        values, counts = np.unique(theirs[made], return_counts=True)
        near = np.minimum(np.searchsorted(values, own[chosen]), len(values) - 1)
        chance += float((counts[near] * (values[near] == own[chosen])).sum() / len(made))
        asked += len(chosen)
    if not asked:
        return None
    k = int(both.release.guarantee["k"])
    return ExactTimes(times[0], asked, right / asked, chance / asked, k, _in_group(both, own))


def other_times(both: Both) -> dict[str, Any] | None:
    """Somebody who knows one exact time of a patient (`told`) reads another one (`read`) in the rows of the stratum
    that show it; of several pairs of times the one that is right most often.

    All patients whose two times differ are asked; several rows count by their share. None where fewer than two times
    are exact, or where no patient's two differ.
    """
    times = both.release.guarantee.get("facts", {}).get("exact", ())
    strata, k = _strata(both), int(both.release.guarantee["k"])
    found: list[dict[str, Any]] = []
    for told, read in permutations(times, 2):
        patients = both.table.frame.filter(pl.col(told) != pl.col(read)).select(*strata, told, read)
        shown = both.made.group_by(*strata, told).len("rows")
        right = both.made.group_by(*strata, told, read).len("right")
        asked = patients.join(shown, on=[*strata, told]).join(right, on=[*strata, told, read], how="left")
        if asked.height:
            share = float((asked["right"].fill_null(0) / asked["rows"]).to_numpy().mean())
            found.append({"told": told, "read": read, "asked": asked.height, "right": share, "k": k})
    return max(found, key=lambda each: float(each["right"]), default=None)


def coarse_times(both: Both) -> dict[str, Any] | None:
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
    return {"rows": rows.height, "one_group": float((groups == 1).sum() / rows.height)}


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


def _number_texts(texts: pl.Series) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order, and the place of each row's."""
    return texts.unique().sort().to_list(), texts.rank("dense").to_numpy() - 1


def _rank(
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


def closest(both: Both, sample: int = SAMPLE) -> dict[str, Any]:
    """Distance from released rows to the closest original one, beside that between original rows.

    In standard deviations, as in `linkage`. `original`: from an original row to the closest other one, which is what a
    new sample of the same population would show.
    """
    before, after = standardize(both)
    tree = tree_of(before)
    asked, chosen = _choose_rows(len(after), sample), _choose_rows(len(before), sample)
    made, own = two_distances(after[asked], tree)[:, 0], two_distances(before[chosen], tree)[:, 1]
    return {"asked": len(asked), "released": _quantiles(made), "original": _quantiles(own)}


def standardize(both: Both) -> tuple[Singles, Singles]:
    """Numbers and dummies of both tables in the original's standard deviations."""
    _, before, after, _ = dummies(both)
    return before, after


def tree_of(rows: Singles) -> KDTree:
    """A tree in which the rows nearest to others are found exactly (Euclid, double precision)."""
    from scipy.spatial import KDTree

    return KDTree(rows, balanced_tree=False)  # cut at midpoints: built as fast, searched ten times faster


def two_distances(asked: Singles, tree: KDTree) -> Floats:
    """Distance of each asked row to the nearest and the second nearest row of the tree, float64[asked, 2]."""
    return np.asarray(tree.query(asked, k=2, workers=available_threads())[0])


def nearest_rows(asked: Singles, rows: Singles) -> np.ndarray:
    """For each asked row the nearest of `rows`; the first of those as near but for rounding."""
    tree = tree_of(rows)
    near, found = tree.query(asked, k=2, workers=available_threads())
    nearest, reach = found[:, 0], near[:, 0] * (1 + 1e-12)
    for place in np.flatnonzero(near[:, 1] <= reach):
        nearest[place] = min(tree.query_ball_point(asked[place], reach[place]))
    return np.asarray(nearest)


def _choose_rows(rows: int, sample: int) -> np.ndarray:
    if sample < 1:
        raise BadInput("`sample` must be at least 1.")
    random = np.random.Generator(np.random.Philox(SEED))
    return np.arange(rows) if rows <= sample else np.sort(random.choice(rows, sample, replace=False))


def _quantiles(values: Floats) -> dict[str, float]:
    low, median = np.quantile(values, [0.05, 0.5])
    return {"5%": float(low), "median": float(median), "zero": float((values == 0.0).mean())}
