"""Attacks on a condensed table: which group's row is nearest, and how near the nearest row is."""

from __future__ import annotations

import numpy as np

from leeward.cohort.lenses.table import Floats
from leeward.errors import BadInput
from leeward.methods.condensation.measures.both import SEED, Both, Singles, dummies
from leeward.methods.condensation.measures.figures import Closest, Distances, Linkage

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


def closest(both: Both, sample: int = SAMPLE) -> Closest:
    """Distance from released rows to the closest original one, beside that between original rows.

    In standard deviations, as in `linkage`. `original`: from an original row to the closest other one, which is what a
    new sample of the same population would show.
    """
    before, after = standardized(both)
    asked = _chosen(len(after), sample)
    _, made = nearest_rows(after[asked], before)
    chosen = _chosen(len(before), sample)
    _, own = nearest_rows(before[chosen], before, chosen)
    return Closest(len(asked), _quantiles(made), _quantiles(own))


def standardized(both: Both) -> tuple[Singles, Singles]:
    """Numbers and dummies of both tables in the original's standard deviations."""
    _, before, after, _ = dummies(both)
    return before, after


def nearest_rows(
    asked: Singles, rows: Singles, itself: np.ndarray | None = None
) -> tuple[np.ndarray, Floats]:
    """For each asked row the nearest of `rows` and its distance; `itself[i]` is left out."""
    from sklearn.neighbors import NearestNeighbors

    # Searched in single precision; the distance is then computed once more, so that equal rows have distance 0.
    neighbours = 1 if itself is None else 2
    search = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(
        rows.astype(np.float32, copy=False)
    )
    found = search.kneighbors(asked.astype(np.float32, copy=False), return_distance=False)
    nearest = found[:, 0]
    if itself is not None:
        nearest = np.where(nearest == itself, found[:, 1], nearest)
    return nearest, np.sqrt(((asked - rows[nearest]) ** 2).sum(axis=1))


def _chosen(rows: int, sample: int) -> np.ndarray:
    if sample < 1:
        raise BadInput("`sample` must be at least 1.")
    random = np.random.Generator(np.random.Philox(SEED))
    return np.arange(rows) if rows <= sample else np.sort(random.choice(rows, sample, replace=False))


def _quantiles(values: Floats) -> Distances:
    low, median = np.quantile(values, [0.05, 0.5])
    return Distances(float(low), float(median), float((values == 0.0).mean()))
