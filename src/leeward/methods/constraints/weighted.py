"""Distinct code sets with the number of patients that hold each: the input of these methods.

Short code sets repeat in real cohorts, so counting them first saves time; an engine can run this step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import Int32s, Int64s
from leeward.cohort.lenses.code_sets import CodeSets

if TYPE_CHECKING:
    from leeward.engine import Engine


@dataclass(frozen=True)
class WeightedSets:
    """Distinct records: like `CodeSets` without patients, with `weight` int64[R] ≥ 1; shortest records first."""

    offsets: Int64s
    values: Int32s
    weight: Int64s
    codes: tuple[str, ...]


def merge_records(offsets: Int64s, values: Int32s, weight: Int64s, codes: tuple[str, ...]) -> WeightedSets:
    """Merge equal records and add their weights; sorted by length, then lexicographically."""
    lengths = np.diff(offsets)
    parts: list[tuple[Int32s, Int64s]] = []
    for length in np.unique(lengths):
        chosen = lengths == length
        table = values[offsets[:-1][chosen][:, None] + np.arange(length)]
        parts.append(_distinct_rows(table, weight[chosen]))
    sizes = np.concatenate([np.full(len(table), table.shape[1], np.int64) for table, _ in parts])
    flat = np.concatenate([table.ravel() for table, _ in parts]).astype(np.int32)
    weights = np.concatenate([w for _, w in parts])
    return WeightedSets(np.concatenate(([0], np.cumsum(sizes))), flat, weights, codes)


def _distinct_rows(table: Int32s, weight: Int64s) -> tuple[Int32s, Int64s]:
    if table.shape[1] == 0:
        return table[:1], np.array([weight.sum()], np.int64)
    order = np.lexsort(table.T[::-1])
    table, weight = table[order], weight[order]
    first = np.ones(len(table), np.bool_)
    first[1:] = (table[1:] != table[:-1]).any(axis=1)
    return table[first], np.add.reduceat(weight, np.flatnonzero(first))


RECORDS_A_PART = 50_000
"""Patients per kernel call."""

COUNTED = pa.schema([("codes", pa.list_(pa.int32())), ("weight", pa.int64())])


def count_records(sets: CodeSets, engine: Engine | None = None) -> WeightedSets:
    """The distinct records of a cohort with their weights; the same on every engine."""
    if engine is None or engine.name == "local":
        return merge_records(sets.offsets, sets.values, np.ones(len(sets), np.int64), sets.codes)
    records = np.repeat(np.arange(len(sets), dtype=np.int64), sets.lengths())
    rows = pl.DataFrame({"part": records // RECORDS_A_PART, "record": records, "code": sets.values})
    found = engine.map_groups(engine.frame(rows), "part", count_sets, COUNTED).combine_chunks()
    lists = found.column("codes").combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    values = lists.values.to_numpy().astype(np.int32)
    return merge_records(offsets, values, found.column("weight").to_numpy(), sets.codes)


def count_sets(rows: pa.Table) -> pa.Table:
    """Kernel: count the distinct code sets of (part, record, code) rows sorted by record and code."""
    record = rows.column("record").to_numpy()
    values = rows.column("code").to_numpy().astype(np.int32)
    starts = np.flatnonzero(np.concatenate(([True], record[1:] != record[:-1])))
    offsets = np.append(starts, len(record)).astype(np.int64)
    distinct = merge_records(offsets, values, np.ones(len(starts), np.int64), ())
    lists = pa.ListArray.from_arrays(pa.array(distinct.offsets, pa.int32()), pa.array(distinct.values))
    return pa.table({"codes": lists, "weight": pa.array(distinct.weight)}, schema=COUNTED)
