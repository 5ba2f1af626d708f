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
from leeward.verify.manifest import Share

ROUNDING = 1e-9
"""Two ways to add up the same distance differ by less."""


def check_sensitive(share: Share, table: pl.DataFrame, names: Sequence[str]) -> list[Check]:
    """`names`: the quasi-identifiers, all of them columns of the table."""
    number = table.select(pl.struct(names).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    found, limits = [], {"sensitive_columns": ("rare", count_frequent), "closeness": ("near", count_far)}
    for limit, (word, count) in limits.items():
        stated = share.manifest["parameters"].get(limit) or {}
        wrong = len(set(stated) - set(table.columns))
        wrong += sum(count(number, table[each], stated[each]) for each in stated if each in table.columns)
        good = f"Rows that agree on all quasi-identifiers keep the limits of `{limit}`."
        bad = f"times rows that agree on all quasi-identifiers break a limit of `{limit}`, or the column is not there."
        found += [of_count(f"sensitive_values_{word}", wrong, good, bad)] if stated else []
    return found


def count_frequent(number: Longs, column: pl.Series, ell: int) -> int:
    """Values, but missing ones, that more than 1 in `ell` rows of a class have."""
    rows = pl.DataFrame({"class": number, "value": column.cast(pl.String)})
    held = rows.drop_nulls().group_by("class", "value").len()
    most = np.bincount(number)[held["class"].to_numpy()] // ell  # a product with a large L would overflow
    return int((held["len"].to_numpy() > most).sum())


def count_far(number: Longs, column: pl.Series, most: float) -> int:
    return int((distances(number, column) > most + ROUNDING).sum())


def distances(number: Longs, column: pl.Series) -> Any:
    """float64[classes]: the earth mover's distance of each class from the whole table, by quantiles: the rows of a
    class, in order, are equal parts of it, and each part moves to the values that the same part of the table has."""
    ordered = is_number(column.dtype)
    known = (
        column.fill_nan(None) if column.dtype.is_float() else column if ordered else column.cast(pl.String)
    )
    place = known.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    place -= place.min()
    shares, sizes = np.bincount(place) / len(place), np.bincount(number)
    if not ordered:  # what a class has too much of must move, and as far as anything else
        cells, counts = np.unique(number * len(shares) + place, return_counts=True)
        own, value = np.divmod(cells, len(shares))
        return np.bincount(own, weights=np.maximum(counts / sizes[own] - shares[value], 0.0))
    order = np.lexsort((place, number))
    own, value = number[order], place[order]
    low = (np.arange(len(order)) - (np.cumsum(sizes) - sizes)[own]) / sizes[own]
    high = low + 1 / sizes[own]
    below, moments = (np.append(0.0, np.cumsum(each)) for each in (shares, shares * np.arange(len(shares))))
    cut = np.clip(below[value], low, high)  # up to there the table's values are smaller
    start, middle, end = (np.interp(each, below, moments) for each in (low, cut, high))
    moved = value * (2 * cut - low - high) + start + end - 2 * middle
    return np.bincount(own, weights=moved) / max(1, len(shares) - 1)
