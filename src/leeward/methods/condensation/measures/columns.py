"""A table before and after: moments and level counts of its columns, their correlations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

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


class Groups(NamedTuple):
    """The custody's groups: source rows (from 0) with their groups, and the group of each released row."""

    source_row: Longs
    source_group: Longs
    released: Longs


@dataclass(frozen=True)
class Both:
    """A table before and after, the release with the original's column types; `groups` is None without custody."""

    release: Release
    table: Table
    made: pl.DataFrame
    groups: Groups | None

    def columns(self, name: str) -> tuple[Column, Floats, Floats]:
        column = self.table.column(name)
        return column, self.table.encode(name), encode(self.made[name], column, "release")

    @cached_property
    def dummies(self) -> tuple[list[str], Singles, Singles, list[bool]]:
        """Numbers and dummies of both tables in the original's standard deviations, missing values at its mean: names,
        two float32[rows, columns], and which columns are the first level of theirs."""
        columns = [each for each in self.table.columns if each.missing < len(self.table)]
        width = sum(len(each.levels) if each.is_categorical else 1 for each in columns)
        before, after = (np.empty((rows, width), np.float32) for rows in (len(self.table), self.made.height))
        names, first = [], []
        parts = chain.from_iterable(self._parts(each.name) for each in columns)
        for place, (name, is_first, one, other) in enumerate(parts):
            names.append(name)
            first.append(is_first)
            before[:, place], after[:, place] = _scale(one, other)
        return names, before, after, first

    def _parts(self, name: str) -> Iterator[tuple[str, bool, Floats, Floats]]:
        """A number, or the dummies of a column's levels: the name, whether it is the first of several, the values."""
        column, before, after = self.columns(name)
        if not column.is_categorical:
            yield name, False, before, after
        for number, level in enumerate(column.levels if column.is_categorical else ()):
            sides = ((each == number).astype(float) for each in (before, after))
            yield f"{name}={level}", number == 0 and len(column.levels) > 1, *sides


def pair_tables(release: Release, table: Table) -> Both:
    made = release.table("table.parquet").collect()
    if made.columns != table.frame.columns:
        raise BadInput(
            f"{table.name}: its columns are not those of the release; give the source it was made from."
        )
    levels = {n: k for n, k in table.frame.schema.items() if isinstance(k, pl.Enum | pl.Categorical)}
    made = made.cast(levels)  # type: ignore[arg-type]  # types by the names of columns
    source, released = (release.custody_table(name) for name in ("source_rows", "released_rows"))
    if source is None or released is None:
        return Both(release, table, made, None)
    source, released = source.sort("row"), released.sort("record")
    groups = [each["group"].to_numpy() for each in (source, released)]
    return Both(release, table, made, Groups(source["row"].to_numpy() - 1, *groups))


def _scale(before: Floats, after: Floats) -> tuple[Singles, Singles]:
    middle, spread = float(np.nanmean(before)), float(np.nanstd(before))
    scale = spread if spread > 0 else 1.0
    one, two = (np.nan_to_num((each - middle) / scale).astype(np.float32) for each in (before, after))
    return one, two


def marginals(both: Both) -> dict[str, Any]:
    """Means, medians, sums and standard deviations of numbers, frequencies of levels, missing values."""
    numbers, levels = [], []
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
    names, before, after, first = both.dummies
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
