"""t-closeness (Li, Li and Venkatasubramanian, ICDE 2007): how far the values of some rows are from those of the
whole table (docs/methods/k-anonymity.md#sensitive-columns)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.arrays import Float64s, Int64s


@dataclass(frozen=True)
class Closeness:
    """A column's values, for the distance of some rows from all.

    place : int64[rows], of each row's value among the distinct ones, ascending; a missing one is the first
    shares : float64[values], of all rows
    ordered : whether values have distances between them, as numbers and dates do by their places
    """

    place: Int64s
    shares: Float64s
    ordered: bool

    def distance(self, rows: Int64s) -> float:
        """The earth mover's distance from the values of `rows` to those of all, 0 (alike) to 1. The paper's
        ordered distance: from a value to the next it is 1 / (values - 1); or its equal one: any other is 1 away."""
        own = np.bincount(self.place[rows], minlength=len(self.shares)) / len(rows)
        if not self.ordered:
            return float(np.abs(own - self.shares).sum() / 2)
        return float(np.abs(np.cumsum(own - self.shares)).sum() / max(1, len(self.shares) - 1))


def closeness_of(column: pl.Series) -> Closeness:
    ordered = column.dtype.is_numeric() or column.dtype.is_temporal()
    column = (
        column.fill_nan(None)
        if column.dtype.is_float()
        else column.cast(pl.String)
        if not ordered
        else column
    )
    place = column.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    place -= int(place.min())
    return Closeness(place, np.bincount(place) / len(place), ordered)
