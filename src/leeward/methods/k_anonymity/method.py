"""k-anonymity by Mondrian groups whose quasi-identifiers take the group's typical value: groups of at least k rows by
median cuts (LeFevre, DeWitt and Ramakrishnan 2006, strict partitioning; docs/methods/k-anonymity.md#groups)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.analysis.demographics.classes import limited_counts, sensitive_columns
from leeward.analysis.plan import Model, check_models, models_of
from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.table import (
    Column,
    Floats,
    Table,
    as_levels,
    encode,
    refuse_names,
    refuse_numberings,
)
from leeward.contracts.k_anonymity import CONTRACT
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.k_anonymity.parameters import KAnonymity
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable


def protect(
    parameters: KAnonymity,
    cohort: Cohort,
    engine: Any = None,
    *,
    randomness: Randomness | None = None,
    population: Any = None,
) -> Anonymized:
    """Generalize the quasi-identifiers to group values: means of numbers, medians of ordered levels, modes. Raises
    BadInput for an unknown column, or one that would be published as it is and identifies its rows;
    GuaranteeUnreachable for fewer than k rows, or a sensitive value that is too frequent in the table."""
    if population is not None:
        raise BadInput("k-anonymity needs no population; leave `population` out.")
    table = cohort.table()
    if len(table) < parameters.k:
        raise GuaranteeUnreachable(
            f"{table.name}: {len(table):,} rows are fewer than k = {parameters.k:,}. Choose a smaller k or "
            "give more rows."
        )
    randomness = randomness or Randomness.of(None)
    everything = tuple(column.name for column in table.columns)
    names = parameters.quasi_identifiers or tuple(n for n in everything if n not in parameters.unknown)
    if not names:
        raise BadInput(f"{table.name}: every column is sensitive; name the `quasi_identifiers` too.")
    columns = _columns_of(table, names, models_of(parameters.plan))
    labels, frame = _generalize(table, columns, parameters.k, limit_of(parameters, table))
    order = randomness.stream("k-anonymity", "records").permutation(len(table))
    frame = frame[order]
    by_row = pa.table({"row": np.arange(1, len(table) + 1), "group": labels})
    released = pa.table({"record": np.arange(len(table)), "group": labels[order]})
    sizes = np.bincount(labels)
    public = parameters.public(quasi_identifiers=names)
    words = CONTRACT.words(public, columns=[column.name for column in table.columns])
    return Anonymized(
        method=parameters.name,
        parameters=public,
        guarantee=Guarantee.of(CONTRACT, words, public),
        records=frame.height,
        tables=(ReleaseTable.of("table.parquet", frame.to_arrow()),),
        readme=words.readme,
        custody_tables=(
            ReleaseTable.of("source_rows.parquet", by_row),
            ReleaseTable.of("released_rows.parquet", released),
            *_order_tables(columns),
        ),
        custody={
            "algorithm": "mondrian",
            "groups": len(sizes),
            "least": int(sizes.min()),
            "most": int(sizes.max()),
        },
        seeded=randomness.seeded,
    )


def _columns_of(table: Table, names: Sequence[str], models: Sequence[Model]) -> list[Column]:
    """The quasi-identifiers, events of the plan as levels; BadInput where another column identifies its rows."""
    check_models(models, table)
    columns = [table.column(name, "`quasi_identifiers`") for name in names]
    planned = {*names, *(name for model in models for name in model.columns())}
    refuse_numberings(table, planned)
    refuse_names(table, planned)
    events = {model.event for model in models}
    return [as_levels(table, each.name) if each.name in events else each for each in columns]


def limit_of(parameters: KAnonymity, table: Table) -> Callable[[Int64s], bool]:
    """Whether some rows may be a group by the sensitive columns: no value too frequent, and none too far from its share
    of the whole table. BadInput for an unknown column; GuaranteeUnreachable for a value too frequent in the table."""
    for name in parameters.unknown:
        table.column(name, "`sensitive_columns` or `closeness`")
    ells, most = parameters.sensitive_columns or {}, parameters.closeness or {}
    rare = sensitive_columns(table.frame, ells)
    for column in rare:
        limited_counts(column, np.zeros(len(table), np.int64), 1)
    near = [(distance_to_all(table.frame[name]), t) for name, t in most.items()]
    return lambda rows: (
        not any(column.is_frequent(rows) for column in rare)
        and all(distance(rows) <= t for distance, t in near)
    )


def distance_to_all(column: pl.Series) -> Callable[[Int64s], float]:
    """t-closeness (Li, Li and Venkatasubramanian, ICDE 2007; docs/methods/k-anonymity.md#sensitive-columns): the earth
    mover's distance from the values of some rows to those of all, 0 (alike) to 1. Of numbers and dates the
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


def _order_tables(columns: list[Column]) -> tuple[ReleaseTable, ...]:
    """The levels of ordered columns in their order, which the verifier cannot know from the data."""
    rows = [(each.name, str(level)) for each in columns if each.kind == "ordered" for level in each.levels]
    if not rows:
        return ()
    names, levels = zip(*rows, strict=True)
    return (ReleaseTable.of("ordered.parquet", pa.table({"column": names, "level": levels})),)


def _generalize(
    table: Table, columns: list[Column], k: int, may_stand: Callable[[Int64s], bool]
) -> tuple[np.ndarray, pl.DataFrame]:
    """The group of each row, and the table with each group's typical values; a missing value counts as one below the
    least, so that missing values stay together."""
    values = []
    for column in columns:
        own = encode(table.frame[column.name], column, table.name)
        absent = np.isnan(own)
        values.append(np.where(absent, -1.0 if absent.all() else float(np.nanmin(own)) - 1.0, own))
    labels = mondrian(np.column_stack(values), k, may_stand)
    typical = (
        column.decode(_typical(column, each, labels)) for column, each in zip(columns, values, strict=True)
    )
    return labels, table.frame.with_columns(*typical)


def _typical(column: Column, values: Floats, labels: np.ndarray) -> Floats:
    """Each group's typical permissible value; missing where most of the group's values are."""
    least = column.low if not np.isnan(column.low) else 0.0
    frame = pl.DataFrame({"group": labels, "value": pl.Series(values)}).with_columns(
        pl.when(pl.col("value") < least).then(None).otherwise(pl.col("value")).alias("value")
    )
    known = pl.col("value").drop_nulls()
    value = known.mode().sort().first() if column.is_categorical else known.mean()
    typical = frame.group_by("group").agg(
        pl.when(pl.col("value").null_count() * 2 > pl.len()).then(None).otherwise(value).alias("typical")
    )
    found = pl.DataFrame({"group": labels}).join(typical, on="group", how="left", maintain_order="left")[
        "typical"
    ]
    return column.permissible(found.cast(pl.Float64).fill_null(np.nan).to_numpy())


def mondrian(values: Floats, k: int, may_stand: Callable[[Int64s], bool] = lambda rows: True) -> np.ndarray:
    """int64[rows]: the group of each row of `values` (float64[rows, columns], no NaN); every group has k rows or more.
    A part is cut at the median of the column with the widest range (relative to the whole table; equal ranges: the
    first column) that leaves k rows on both sides, both of which `may_stand`; equal values stay together."""
    spread = np.ptp(values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    labels = np.zeros(len(values), np.int64)
    waiting = [np.arange(len(values))]
    count = 0
    while waiting:
        part = waiting.pop()
        left = _cut(values, part, spread, k, may_stand)
        if left is None:
            labels[part] = count
            count += 1
        else:
            waiting += [part[~left], part[left]]
    return labels


def _cut(
    values: Floats, part: Int64s, spread: Floats, k: int, may_stand: Callable[[Int64s], bool]
) -> np.ndarray | None:
    if len(part) < 2 * k:
        return None
    for column in np.argsort(-np.ptp(values[part], axis=0) / spread, kind="stable"):
        own = values[part, column]
        if own.min() == own.max():
            return None
        median = np.partition(own, (len(own) - 1) // 2)[(len(own) - 1) // 2]
        for left in (own <= median, own < median):
            if k <= int(left.sum()) <= len(own) - k and may_stand(part[left]) and may_stand(part[~left]):
                return np.asarray(left)
    return None
