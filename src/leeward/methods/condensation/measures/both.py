"""A table before and after, with the custodian's groups."""

from __future__ import annotations

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
    _dummies: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def columns(self, name: str) -> tuple[Column, Floats, Floats]:
        """A column with its values before and after."""
        column = self.table.column(name)
        return column, self.table.encoded(name), encode(self.made[name], column, "release")


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
    folder = None if release.custody is None else release.custody / "data"
    if folder is None or not (folder / "source_rows.parquet").is_file():
        return Both(release, table, made, None, None, None)
    source = pl.read_parquet(folder / "source_rows.parquet").sort("row")
    released = pl.read_parquet(folder / "released_rows.parquet").sort("record")
    return Both(
        release,
        table,
        made,
        source["row"].to_numpy() - 1,
        source["group"].to_numpy(),
        released["group"].to_numpy(),
    )


def dummies(both: Both) -> tuple[list[str], Singles, Singles, list[bool]]:
    """Numbers and dummies of both tables in the original's standard deviations, missing values at its mean.

    Names, two float32[rows, columns], and which columns are the first level of theirs (computed once).
    """
    if "all" not in both._dummies:
        both._dummies["all"] = _dummies(both)
    found: tuple[list[str], Singles, Singles, list[bool]] = both._dummies["all"]
    return found


def _dummies(both: Both) -> tuple[list[str], Singles, Singles, list[bool]]:
    columns = [each for each in both.table.columns if each.missing < len(both.table)]
    names = [
        name
        for each in columns
        for name in (
            [f"{each.name}={level}" for level in each.levels] if each.is_categorical else [each.name]
        )
    ]
    first = [
        each.is_categorical and place == 0 and len(each.levels) > 1
        for each in columns
        for place in range(len(each.levels) if each.is_categorical else 1)
    ]
    sides = tuple(np.empty((rows, len(names)), np.float32) for rows in (len(both.table), both.made.height))
    place = 0
    for each in columns:  # a column at a time: large tables are not in memory twice
        column, *values = both.columns(each.name)
        for number in range(len(column.levels)) if column.is_categorical else (None,):
            before, after = values if number is None else [(v == number).astype(float) for v in values]
            sides[0][:, place], sides[1][:, place] = _scale(before, after)
            place += 1
    return names, sides[0], sides[1], first


def _scale(before: Floats, after: Floats) -> tuple[Singles, Singles]:
    """Both in standard deviations of `before`, missing values at its mean, in single precision."""
    middle, spread = float(np.nanmean(before)), float(np.nanstd(before))
    scale = spread if spread > 0 else 1.0
    one, two = (
        np.nan_to_num((each - middle) / scale, nan=0.0).astype(np.float32) for each in (before, after)
    )
    return one, two
