"""t-closeness (Li, Li and Venkatasubramanian, ICDE 2007; docs/methods/k-anonymity.md#sensitive-columns)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from leeward.arrays import Int64s


def distance_to_all(column: pl.Series) -> Callable[[Int64s], float]:
    """The earth mover's distance from the values of some rows to those of all, 0 (alike) to 1. Of numbers and dates the
    paper's ordered distance: 1 / (values - 1) from a value to the next. Else its equal one: 1 to any other value. A
    missing value is the first."""
    ordered = column.dtype.is_numeric() or column.dtype.is_temporal()
    known = (
        column.fill_nan(None) if column.dtype.is_float() else column if ordered else column.cast(pl.String)
    )
    place = np.unique(known.rank("dense").fill_null(0).to_numpy(), return_inverse=True)[1]
    shares = np.bincount(place) / len(place)

    def distance(rows: Int64s) -> float:
        gaps = np.bincount(place[rows], minlength=len(shares)) / len(rows) - shares
        if not ordered:
            return float(np.abs(gaps).sum() / 2)
        return float(np.abs(np.cumsum(gaps)).sum() / max(1, len(shares) - 1))

    return distance
