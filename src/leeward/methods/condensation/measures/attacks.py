"""Attacks on a condensed table: exact times, which group's row is nearest, how near the nearest row is, who is in the
table at all; and conditional privacy Π(A|B) = 2^h(A|B) (Agrawal and Aggarwal 2001)."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.analysis.plan import models_of
from leeward.cohort.lenses.table import Floats
from leeward.engine import available_threads
from leeward.errors import BadInput, GuaranteeUnreachable, require_extra
from leeward.methods.condensation.measures.columns import SEED, Both, Longs, Singles
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from scipy.spatial import KDTree

SAMPLE = 1_000

MOST_MEMBERS, SAMPLED_MEMBERS = 20_000, 2_000
"""Rows of which a half is condensed, and rows of each half that are looked for, to infer membership."""

PAIRED = 100_000
"""Rows that conditional privacy is estimated from: of a larger table as many groups as have about so many."""


def linkage(both: Both, sample: int = SAMPLE) -> dict[str, Any] | None:
    """Share of at most `sample` original rows whose nearest released row (standardized numbers and dummies, unweighted)
    comes from their own group, against chance: the mean share of released rows that are from the row's own group."""
    groups = both.groups
    if groups is None:
        return None
    _, before, after, _ = both.dummies
    chosen = choose_rows(len(groups.source_row), sample)
    nearest = nearest_rows(before[groups.source_row[chosen]], after)
    own = groups.source_group[chosen]
    sizes = np.bincount(groups.released)
    return {
        "asked": len(chosen),
        "own_group": float((groups.released[nearest] == own).mean()),
        "chance": float((sizes[own] / len(after)).mean()),
    }


def exact_times(both: Both, sample: int = SAMPLE) -> dict[str, Any] | None:
    """An attacker who knows all but the times guesses the exact time of the nearest released row of the stratum.

    Shares of the `asked` patients whose exact time is guessed right: by the nearest row, by a random row of the stratum
    (`chance`), by a random row of the patient's own group (`in_group`, above 1/k where times tie). Numbers are compared
    by their ranks inside the stratum, levels as dummies. None where the release has no exact times.
    docs/methods/condensation.md has the section least k.
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
        if len(both.table) > sample:
            most = min(max(1, round(sample * len(rows) / len(both.table))), len(rows))
            chosen = rows[np.sort(random.choice(len(rows), most, replace=False))]
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
    in_group = _in_group(both, own)
    return {
        "time": times[0],
        "asked": asked,
        "right": right / asked,
        "chance": chance / asked,
        "k": k,
        **({} if in_group is None else {"in_group": in_group}),
    }


def other_times(both: Both) -> dict[str, Any] | None:
    """Somebody who knows one exact time of a patient (`told`) reads another one (`read`) in the rows of the stratum
    that show it; of several pairs of times the one that is right most often.

    All patients whose two times differ are asked; several rows count by their share. None where fewer than two times
    are exact, or where no patient's two differ.
    """
    times = both.release.guarantee.get("facts", {}).get("exact", ())
    strata, k = _strata(both), int(both.release.guarantee["k"])
    found: list[dict[str, Any]] = []
    for told, read in itertools.permutations(times, 2):
        patients = both.table.frame.filter(pl.col(told) != pl.col(read)).select(*strata, told, read)
        shown = both.made.group_by(*strata, told).len("rows")
        right = both.made.group_by(*strata, told, read).len("right")
        asked = patients.join(shown, on=[*strata, told]).join(right, on=[*strata, told, read], how="left")
        if asked.height:
            share = float((asked["right"].fill_null(0) / asked["rows"]).to_numpy().mean())
            found.append({"told": told, "read": read, "asked": asked.height, "right": share, "k": k})
    return max(found, key=lambda each: float(each["right"]), default=None)


def coarse_times(both: Both) -> dict[str, Any] | None:
    """Share of rows whose stratum and coarse time occur in one group only, whose column values can then be read; None
    where times are not coarse."""
    given = both.release.parameters
    plan = models_of(given.get("plan", ()))
    times = [*given.get("time", ()), *(model.time for model in plan if model.time)]
    if both.groups is None or not given.get("coarsen_time") or not times:
        return None
    keys = [*_strata(both), times[0]]
    made = both.made.with_columns(__group__=pl.Series(both.groups.released))
    groups = made.select(pl.col("__group__").n_unique().over(keys)).to_series()
    return {"rows": len(groups), "one_group": float((groups == 1).sum() / len(groups))}


def _in_group(both: Both, time: Floats) -> float | None:
    if both.groups is None:
        return None
    rows = pl.DataFrame({"group": both.groups.source_group, "time": time[both.groups.source_row]})
    same = pl.col("same").cast(pl.Int64)
    times = rows.group_by("group", "time").len("same").group_by("group")
    groups = times.agg(all=same.sum(), pairs=(same**2).sum()).sort("group")
    return float((groups["pairs"] / groups["all"]).sum() / rows.height)


def _strata(both: Both) -> list[str]:
    given = both.release.parameters
    events = [model.event for model in models_of(given.get("plan", ())) if model.event]
    return list(dict.fromkeys([*given.get("strata", ()), *events]))


def _codes(both: Both, strata: list[str], frame: pl.DataFrame) -> pl.Series:
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
        for side, values, own, wanted in ((0, before, rows, chosen), (1, after, made, made)):
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
    """Distance from released rows to the closest original one, beside that between original rows. In standard
    deviations, as in `linkage`. `original`: from an original row to the closest other one, which is what a new sample
    of the same population would show."""
    _, before, after, _ = both.dummies
    tree = tree_of(before)
    asked, chosen = choose_rows(len(after), sample), choose_rows(len(before), sample)
    made, own = two_distances(after[asked], tree)[:, 0], two_distances(before[chosen], tree)[:, 1]
    return {"asked": len(asked), "released": _quantiles(made), "original": _quantiles(own)}


def tree_of(rows: Singles) -> KDTree:
    """A tree in which the rows nearest to others are found exactly (Euclid, double precision)."""
    require_extra("The nearest row", "models", "scipy")
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


def choose_rows(rows: int, sample: int) -> np.ndarray:
    if sample < 1:
        raise BadInput("`sample` must be at least 1.")
    random = np.random.Generator(np.random.Philox(SEED))
    return np.arange(rows) if rows <= sample else np.sort(random.choice(rows, sample, replace=False))


def _quantiles(values: Floats) -> dict[str, float]:
    low, median = np.quantile(values, [0.05, 0.5])
    return {"5%": float(low), "median": float(median), "zero": float((values == 0.0).mean())}


def membership(
    both: Both, most_rows: int = MOST_MEMBERS, sample: int = SAMPLED_MEMBERS
) -> dict[str, Any] | None:
    """One half of the source is condensed anew as the release was; the attacker compares distances to the result.

    The attacker knows whole rows (times too) and takes the better of two signs: the distance to the nearest row, and
    its ratio to the distance to the second nearest. `auc`: the probability that a patient who is in it looks nearer
    than one who is not; `caught`: the share of those in it who are named while 1 % of the others are. None where a half
    cannot be condensed, or not as an earlier version did. docs/methods/condensation.md has the section membership.
    """
    from leeward.engine import make
    from leeward.methods.condensation.condense import condense, ready
    from leeward.methods.condensation.parameters import Condensation

    if both.release.method != "condensation" or sample < 1:
        return None
    if not set(both.release.parameters) <= {field.name for field in fields(Condensation)}:
        return None
    random = np.random.Generator(np.random.Philox(SEED))
    rows = random.permutation(len(both.table))[:most_rows]
    inside, outside = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    half = replace(both.table, frame=both.table.frame[np.sort(inside)])
    own, kept = Randomness(SEED, True), both.release.parameters.get("relations", ())
    try:
        parameters = Condensation(**{**both.release.parameters, "relations": ("none", *kept)})
        if parameters.needs_pilot:
            return None
        prepared, kernel = ready(parameters, half, own)
        made = condense(prepared, kernel, make("local", threads=1), own, max(len(half), 1)).frame
    except (BadInput, GuaranteeUnreachable):
        return None
    _, before, after, _ = replace(both, made=made).dummies
    near, far = (
        two_distances(before[np.sort(each)[:sample]], tree_of(after)).T for each in (inside, outside)
    )
    for first, second in (near, far):
        second[:] = first / np.maximum(second, 1e-9)
    auc, caught = max(
        (area(-own, -other), float((own < np.quantile(other, 0.01)).mean()))
        for own, other in zip(near, far, strict=True)
    )
    return {"asked": len(near[0]) + len(far[0]), "auc": auc, "caught": caught}


def area(positive: Floats, negative: Floats) -> float:
    """Area under the curve: how often a positive value is above a negative one, equal ones by half; both not empty."""
    ordered = np.sort(negative)
    reached = sum(np.searchsorted(ordered, positive, side) for side in ("left", "right"))
    return float(np.mean(reached) / (2 * len(negative)))


def privacy(both: Both, bins: int = 20, permutations: int = 20) -> dict[str, Any] | None:
    """Π(original | released) of each column: rows paired inside their groups by random permutations, averaged. A number
    has `bins` equal bins over the original's range (their width is stated); levels give 1 … number of levels."""
    if bins < 2 or permutations < 1:
        raise BadInput("`measure.privacy`: `bins` must be at least 2 and `permutations` at least 1.")
    if both.groups is None:
        return None
    row, own, group = both.groups
    random = np.random.Generator(np.random.Philox(SEED))
    chosen = some_groups(group, random)
    source = np.flatnonzero(chosen[own])
    order = row[source[np.argsort(own[source], kind="stable")]]
    made = np.flatnonzero(chosen[group])
    # Groups are whole numbers: adding a number below 1 shuffles inside them.
    pairings = [made[np.argsort(group[made] + random.random(len(made)))] for _ in range(permutations)]
    rows = []
    for each in both.table.columns:
        column, before, after = both.columns(each.name)
        before = before[order]
        if not np.isnan(before).all():
            of_levels = column.kind in ("levels", "ordered")
            shuffled = [after[pairing] for pairing in pairings]
            rows.append({"column": column.name, **_of_column(before, shuffled, None if of_levels else bins)})
    return {
        "bins": bins,
        "permutations": permutations,
        "pairing": "within groups, at random",
        "rows": len(made),
        "columns": rows,
    }


def _of_column(before: Floats, shuffled: list[Floats], bins: int | None) -> dict[str, float | None]:
    """The mean conditional privacy of a column over the pairings with its released values."""
    found = []
    for after in shuffled:
        known = ~np.isnan(before) & ~np.isnan(after)
        found.append(conditional_privacy(before[known], after[known], bins=bins))
    return {"privacy": float(np.mean([value for value, _ in found])), "bin_width": found[-1][1]}


def some_groups(group: Longs, random: np.random.Generator) -> NDArray[np.bool_]:
    """Groups with about `PAIRED` rows between them, at random; all of a smaller table."""
    groups = int(group.max()) + 1
    if len(group) <= PAIRED:
        return np.ones(groups, bool)
    drawn = random.choice(groups, max(1, groups * PAIRED // len(group)), replace=False)
    return np.bincount(drawn, minlength=groups) > 0


def conditional_privacy(a: Floats, b: Floats, bins: int | None = 20) -> tuple[float, float | None]:
    """Π(A|B) by the plug-in estimate from pairs (a, b), and the width of A's bins. With `bins` both are numbers: A's
    and B's bins are equal, over the range of A (B's outliers join the outer bins), and h(A|B) = −Σ p_ab log2(p_ab / Δ)
    + Σ p_b log2 p_b. Without, both are levels and Π = 2^H(A|B). Compare at equal Δ only."""
    if bins is None:
        return 2.0 ** entropy(a.astype(np.int64), b.astype(np.int64)), None
    low, high = float(a.min()), float(a.max())
    if high <= low:
        return 0.0, 0.0  # A is a constant: nothing is left to learn
    width = (high - low) / bins
    return width * 2.0 ** entropy(*(bin_numbers(values, low, high, bins) for values in (a, b))), width


def bin_numbers(values: Floats, low: float, high: float, bins: int) -> Longs:
    """The bin of each number, from 0, of `bins` equal ones from `low` to `high`; outliers join the outer bins."""
    width = (high - low) / bins or 1.0
    return np.clip(((values - low) / width).astype(np.int64), 0, bins - 1)


def entropy(a: np.ndarray, b: np.ndarray) -> float:
    """Conditional entropy H(A|B) in bits; `a` and `b` number categories from 0."""
    if not len(a):
        return 0.0
    span = int(b.max()) + 1
    counts_together, counts_alone = np.bincount(a * span + b), np.bincount(b)
    joint = counts_together[counts_together > 0] / len(a)
    alone = counts_alone[counts_alone > 0] / len(b)
    return float(-(joint * np.log2(joint)).sum() + (alone * np.log2(alone)).sum())
