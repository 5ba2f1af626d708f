"""Counting through an engine: how many patients hold each distinct code set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.constraints.weighted import WeightedSets, merge_records, weigh

if TYPE_CHECKING:
    from leeward.engine import Engine

RECORDS_A_PART = 50_000
"""Patients whose sets one kernel call counts."""

COUNTED = pa.schema([("codes", pa.list_(pa.int32())), ("weight", pa.int64())])


def count_records(sets: CodeSets, engine: Engine | None = None) -> WeightedSets:
    """The distinct records of a cohort with their weights; the same on every engine."""
    if engine is None or engine.name == "local":
        return weigh(sets)
    records = np.repeat(np.arange(len(sets), dtype=np.int64), sets.lengths())
    rows = pl.DataFrame({"part": records // RECORDS_A_PART, "record": records, "code": sets.values})
    found = engine.map_groups(engine.frame(rows), "part", count_sets, COUNTED).combine_chunks()
    lists = found.column("codes").combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    values = lists.values.to_numpy().astype(np.int32)
    return merge_records(offsets, values, found.column("weight").to_numpy(), sets.codes)


def count_sets(rows: pa.Table) -> pa.Table:
    """Kernel: (part, record, code) rows, by record and code, to distinct code sets and their counts."""
    record = rows.column("record").to_numpy()
    values = rows.column("code").to_numpy().astype(np.int32)
    starts = np.flatnonzero(np.concatenate(([True], record[1:] != record[:-1])))
    offsets = np.append(starts, len(record)).astype(np.int64)
    distinct = merge_records(offsets, values, np.ones(len(starts), np.int64), ())
    lists = pa.ListArray.from_arrays(pa.array(distinct.offsets, pa.int32()), pa.array(distinct.values))
    return pa.table({"codes": lists, "weight": pa.array(distinct.weight)}, schema=COUNTED)
