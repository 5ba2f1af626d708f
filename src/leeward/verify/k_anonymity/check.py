"""Verify a k-anonymous table: equal rows are counted; what it shares with condensed tables is checked as there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from leeward.verify.checks import Check, Source, failing, of_count
from leeward.verify.condensation.check import check as check_table
from leeward.verify.condensation.check import groups_of, layout, plain, strata_of
from leeward.verify.condensation.own_values import is_number
from leeward.verify.flat import Longs
from leeward.verify.manifest import Share
from leeward.verify.storage import UNREADABLE


def check(share: Share, source: Source | None = None) -> list[Check]:
    checks = check_table(share, source)
    table = layout(share)[1]
    if table is None:
        return checks
    checks += equal_rows(share, table)
    if source is None or source.patients is None:
        return checks
    original = plain(source.patients, table)
    detail = f"{table.height:,} rows for {original.height:,} rows of the source."
    checks.append(Check("every_row_once", table.height == original.height, detail))
    groups = groups_of(share)
    if groups is not None and not failing(checks):
        checks += of_groups(share, table, original, *groups)
    return checks


def of_groups(
    share: Share, table: pl.DataFrame, original: pl.DataFrame, source: pl.DataFrame, released: pl.DataFrame
) -> list[Check]:
    """Each group shows the typical value of its source rows in every quasi-identifier, and its other columns as they
    are (docs/methods/k-anonymity.md#values)."""
    names = [str(name) for name in share.manifest["parameters"].get("quasi_identifiers", table.columns)]
    rest = [name for name in table.columns if name not in names]
    before = original[source["row"].to_numpy() - 1].with_columns(source["group"])
    after = table[released["record"].to_numpy()].with_columns(released["group"])
    counted = [each.group_by("group", *rest).len() for each in (before, after)]
    both = counted[0].join(counted[1], on=["group", *rest], how="full", nulls_equal=True, coalesce=True)
    moved = both.filter(pl.col("len").ne_missing(pl.col("len_right"))).height
    events = set(strata_of({"plan": share.manifest["parameters"].get("plan", ())}))
    as_text = [pl.col(name).cast(pl.String) for name in events if name in table.columns]
    order = _orders_of_levels(share)
    before, after = before.with_columns(as_text), after.with_columns(as_text)
    return [
        of_count(
            "typical_values",
            untypical(before, after, names, order),
            "Every group shows its typical value in each quasi-identifier.",
            "values of groups are not typical of their source rows.",
        ),
        of_count(
            "other_columns",
            moved,
            "Columns that are not quasi-identifiers are released as they are.",
            "combinations of columns that are not quasi-identifiers differ from the source's in their group.",
        ),
    ]


def _orders_of_levels(share: Share) -> dict[str, list[str]]:
    """The levels, in their order, of the columns that were declared to be ordered."""
    file = share.kept("ordered.parquet")
    if file is None:
        return {}
    levels = pl.read_parquet(file).group_by("column", maintain_order=True).agg("level")
    return dict(levels.select("column", "level").iter_rows())


def untypical(
    before: pl.DataFrame, after: pl.DataFrame, names: Sequence[str], order: Mapping[str, Sequence[str]]
) -> int:
    """Groups whose released values of a column are not the typical one, summed over columns: missing where most are,
    else one of the most frequent levels, or the mean of numbers to the column's precision (of an ordered level's
    places: to a whole)."""
    theirs, ours, sound = [], [], []
    for name in names:
        value, wide = pl.col(name), 0.5
        kind = before.schema[name]
        if name in order:
            value = value.cast(pl.Enum(order[name])).to_physical().cast(pl.Float64)
        elif is_number(kind):
            value = value.to_physical().cast(pl.Float64).fill_nan(None)
            wide = 0.5 if not kind.is_float() else precision(before[name])
        levels = name not in order and not is_number(kind)
        typical, shown = pl.col(f"typical {name}"), pl.col(f"shown {name}").list.first()
        theirs += [
            (value.drop_nulls().mode() if levels else value.mean()).alias(f"typical {name}"),
            (value.null_count() * 2 > pl.len()).alias(f"absent {name}"),
        ]
        ours.append(value.unique().alias(f"shown {name}"))
        if levels:
            right = shown.is_in(typical)
        else:
            right = (shown - typical).abs() <= wide + 1e-9 * pl.max_horizontal(typical.abs(), 1.0)
        one = pl.col(f"shown {name}").list.len() == 1
        missing = shown.is_null()
        fits = one & (missing == pl.col(f"absent {name}")) & (missing | right)
        sound.append(fits.fill_null(False).alias(name))
    groups = before.group_by("group").agg(theirs).join(after.group_by("group").agg(ours), on="group")
    return sum(int((~found).sum()) for found in groups.select(sound))


def precision(column: pl.Series) -> float:
    """Half a unit of the last decimal that the column's values have; 0 with more than six."""
    values = column.drop_nulls().drop_nans().to_numpy()
    for decimals in range(7):
        scaled = values * 10.0**decimals
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(np.abs(scaled), 1.0)):
            return float(0.5 / 10.0**decimals)
    return 0.0


def equal_rows(share: Share, table: pl.DataFrame) -> list[Check]:
    """k-anonymity: rows that agree on all quasi-identifiers, counted, and their sensitive values."""
    k = share.guarantee("k")
    names = [str(name) for name in share.manifest["parameters"].get("quasi_identifiers", table.columns)]
    if not names or any(name not in table.columns for name in names):
        detail = "A quasi-identifier that the manifest names is not in the table."
        return [Check("k_anonymous_rows", False, detail)]
    sizes = table.group_by(names).len()["len"]
    small = int((sizes < k).sum())
    counted = of_count(
        "k_anonymous_rows",
        small,
        f"Every combination of quasi-identifiers is in at least {k:,} rows.",
        f"combinations of quasi-identifiers are in fewer than {k:,} rows.",
        {"classes": len(sizes), "least": int(sizes.to_numpy().min(initial=table.height))},
    )
    return [counted, *check_sensitive(share, table, names)]


def facts_of(share: Share) -> list[dict[str, Any]]:
    """The columns of the table; no wording fits a table that cannot be read."""
    try:
        return [{"columns": pq.read_schema(share.data("table.parquet")).names}]
    except UNREADABLE:
        return []


ROUNDING = 1e-9
"""Two ways to add up the same distance differ by less."""


def check_sensitive(share: Share, table: pl.DataFrame, names: Sequence[str]) -> list[Check]:
    """Sensitive columns in the rows that agree on all quasi-identifiers, `names`: how frequent a value is, and how far
    the values are from the whole table's (docs/methods/k-anonymity.md#sensitive-columns)."""
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
