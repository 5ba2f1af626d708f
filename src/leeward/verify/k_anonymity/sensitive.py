"""Sensitive columns in the rows that agree on all quasi-identifiers: how frequent a value is, and how far the values
are from the whole table's (docs/methods/k-anonymity.md#sensitive-columns)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from leeward.verify.checks import Check, of_count
from leeward.verify.condensation.own_values import is_number
from leeward.verify.flat import Longs

ROUNDING = 1e-9
"""Two ways to add up the same distance differ by less."""


def check_sensitive(parameters: Any, table: pl.DataFrame, names: Sequence[str]) -> list[Check]:
    """`names`: the quasi-identifiers, all of them columns of the table."""
    ells, most = parameters.get("sensitive_columns") or {}, parameters.get("closeness") or {}
    missing = len({*ells, *most} - set(table.columns))
    checks = []
    number = table.select(pl.struct(names).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    if ells:
        checks.append(
            of_count(
                "sensitive_values_rare",
                missing or sum(count_frequent(number, table[name], ell) for name, ell in ells.items()),
                "At most 1 in L of the rows that agree on all quasi-identifiers have the same sensitive value.",
                "sensitive values are those of more than 1 in L of the rows that agree, or are no column.",
            )
        )
    if most:
        far = missing or sum(
            int((distances(number, table[name]) > t + ROUNDING).sum()) for name, t in most.items()
        )
        checks.append(
            of_count(
                "sensitive_values_near",
                far,
                "Sensitive values are nearly as frequent in the rows that agree as in the whole table.",
                "times sensitive values of rows that agree are further from the table's than T, or are no column.",
            )
        )
    return checks


def count_frequent(number: Longs, column: pl.Series, ell: int) -> int:
    """Values, but missing ones, that more than 1 in `ell` rows of a class have."""
    rows = pl.DataFrame({"class": number, "value": column.cast(pl.String)})
    sizes = rows.group_by("class").len("rows")
    held = rows.drop_nulls().group_by("class", "value").len().join(sizes, on="class")
    return int((held["len"].cast(pl.Int64) * ell > held["rows"]).sum())


def distances(number: Longs, column: pl.Series) -> Any:
    """float64[classes]: the earth mover's distance of each class from the whole table, by quantiles: the rows of a
    class, in order, are equal parts of it, and each part moves to the values that the same part of the table has."""
    ordered = is_number(column.dtype)
    known = column if ordered else column.cast(pl.String)
    place = (known.fill_nan(None) if known.dtype.is_float() else known).rank("dense").fill_null(0).to_numpy()
    place = (place - place.min()).astype(np.int64)
    shares, sizes = np.bincount(place) / len(place), np.bincount(number)
    if not ordered:  # what a class has too much of must move, and as far as anything else
        cells, counts = np.unique(number * len(shares) + place, return_counts=True)
        own = cells // len(shares)
        surplus = np.maximum(counts / sizes[own] - shares[cells % len(shares)], 0.0)
        return np.bincount(own, weights=surplus)
    order = np.lexsort((place, number))
    own, value = number[order], place[order]
    low = (np.arange(len(order)) - (np.cumsum(sizes) - sizes)[own]) / sizes[own]
    high = low + 1 / sizes[own]
    below = np.concatenate([[0.0], np.cumsum(shares)])
    moments = np.concatenate([[0.0], np.cumsum(shares * np.arange(len(shares)))])
    cut = np.clip(below[value], low, high)  # up to there the table's values are smaller
    start, middle, end = (np.interp(each, below, moments) for each in (low, cut, high))
    moved = value * (2 * cut - low - high) + start + end - 2 * middle
    return np.bincount(own, weights=moved) / max(1, len(shares) - 1)
