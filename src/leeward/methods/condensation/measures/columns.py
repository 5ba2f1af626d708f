"""A table before and after: moments and level counts of its columns, their correlations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.table import Column, Floats, Table, encode
from leeward.errors import BadInput
from leeward.release import Release

SEED = 20140110
"""Of samples and resamples: the same release gives the same figures."""

CORRELATED = 30
"""Columns (numbers and dummies) of a correlation matrix, at most."""

BLOCK = 1 << 18
"""Rows that are summed at a time."""

Longs = NDArray[np.int64]
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Both:
    """A table before and after.

    table : the original; made : the release, with the original's column types
    source_row, source_group, group : the custody's groups (source rows from 0; group of each released row), or None
    """

    release: Release
    table: Table
    made: pl.DataFrame
    source_row: Longs | None
    source_group: Longs | None
    group: Longs | None
    _dummies: dict[str, tuple[list[str], Singles, Singles, list[bool]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def columns(self, name: str) -> tuple[Column, Floats, Floats]:
        """A column with its values before and after."""
        column = self.table.column(name)
        return column, self.table.encode(name), encode(self.made[name], column, "release")


def pair_tables(release: Release, cohort: Cohort) -> Both:
    """Bring the release and its source together."""
    table = cohort.table()
    made = release.table("table.parquet").collect()
    if made.columns != table.frame.columns:
        raise BadInput(
            f"{table.name}: its columns are not those of the release; give the source it was made from."
        )
    made = made.with_columns(
        [
            pl.col(name).cast(kind)
            for name, kind in table.frame.schema.items()
            if isinstance(kind, pl.Enum | pl.Categorical)
        ]
    )
    source, released = (release.custody_table(name) for name in ("source_rows", "released_rows"))
    if source is None or released is None:
        return Both(release, table, made, None, None, None)
    source, released = source.sort("row"), released.sort("record")
    rows, groups = source["row"].to_numpy() - 1, source["group"].to_numpy()
    return Both(release, table, made, rows, groups, released["group"].to_numpy())


def dummies(both: Both) -> tuple[list[str], Singles, Singles, list[bool]]:
    """Numbers and dummies of both tables in the original's standard deviations, missing values at its mean.

    Names, two float32[rows, columns], and which columns are the first level of theirs (computed once).
    """
    if "all" in both._dummies:
        return both._dummies["all"]
    columns = [each for each in both.table.columns if each.missing < len(both.table)]
    names, first = [], []
    for each in columns:
        levels = [f"{each.name}={level}" for level in each.levels] if each.is_categorical else [each.name]
        names += levels
        first += [len(levels) > 1, *[False] * (len(levels) - 1)]
    sides = tuple(np.empty((rows, len(names)), np.float32) for rows in (len(both.table), both.made.height))
    place = 0
    for each in columns:  # a column at a time: large tables are not in memory twice
        column, *values = both.columns(each.name)
        for number in range(len(column.levels)) if column.is_categorical else (None,):
            before, after = values if number is None else [(v == number).astype(float) for v in values]
            sides[0][:, place], sides[1][:, place] = _scale(before, after)
            place += 1
    both._dummies["all"] = names, sides[0], sides[1], first
    return both._dummies["all"]


def _scale(before: Floats, after: Floats) -> tuple[Singles, Singles]:
    """Both in standard deviations of `before`, missing values at its mean, in single precision."""
    middle, spread = float(np.nanmean(before)), float(np.nanstd(before))
    scale = spread if spread > 0 else 1.0
    one, two = (
        np.nan_to_num((each - middle) / scale, nan=0.0).astype(np.float32) for each in (before, after)
    )
    return one, two


def marginals(both: Both) -> dict[str, Any]:
    """Means, medians, sums and standard deviations of numbers, frequencies of levels, missing values."""
    numbers: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = []
    for each in both.table.columns:
        column, before, after = both.columns(each.name)
        if column.kind in ("levels", "ordered"):
            levels += _frequencies(column, before, after)
        elif not np.isnan(before).all():
            numbers.append({"column": column.name, "before": _moments(before), "after": _moments(after)})
    rows = {"before": len(both.table), "after": both.made.height}
    return {"rows": rows, "numbers": numbers, "levels": levels}


def _moments(values: Floats) -> dict[str, float | int | None]:
    """None where every value is missing."""
    known = values[~np.isnan(values)]
    moments: dict[str, Callable[[Floats], Any]] = {
        "mean": np.mean, "median": np.median, "sum": np.sum, "sd": np.std,
    }  # fmt: skip
    found = {name: float(moment(known)) if len(known) else None for name, moment in moments.items()}
    return {**found, "missing": len(values) - len(known)}


def _frequencies(column: Column, before: Floats, after: Floats) -> list[dict[str, Any]]:
    rows = []
    for number, level in enumerate((*column.levels, None)):
        counts = [int((np.isnan(v) if level is None else v == number).sum()) for v in (before, after)]
        if any(counts):
            name = "(missing)" if level is None else str(level)
            rows.append({"column": column.name, "level": name, "before": counts[0], "after": counts[1]})
    return rows


def correlations(both: Both) -> dict[str, Any]:
    """Pearson correlations of numbers and dummies before and after (the first level of each column left out)."""
    names, before, after, first = dummies(both)
    shown = [place for place in range(len(names)) if not first[place]][:CORRELATED]
    matrices = [_correlation(each, shown) for each in (before, after)]
    gap = np.abs(matrices[0] - matrices[1])[np.triu_indices(len(shown), 1)]
    one, two = (np.round(each, 4).tolist() for each in matrices)
    return {
        "columns": [names[place] for place in shown],
        "before": one,
        "after": two,
        "mean_difference": float(gap.mean()) if len(gap) else 0.0,
        "largest_difference": float(gap.max()) if len(gap) else 0.0,
    }


def _correlation(values: Singles, columns: list[int]) -> Floats:
    """Of some columns; sums run over blocks of rows, so that a large table is not copied."""
    blocks = range(0, len(values), BLOCK)
    mean = sum(values[start : start + BLOCK, columns].sum(axis=0, dtype=np.float64) for start in blocks)
    mean /= len(values)
    products = np.zeros((len(columns), len(columns)))
    for start in blocks:
        moved = values[start : start + BLOCK, columns] - mean
        products += moved.T @ moved
    spread = np.sqrt(np.diagonal(products))
    found: Floats = products / np.outer(*(2 * [np.where(spread > 0, spread, 1.0)]))
    return found
