"""Mapping of codes to released labels or to nothing, as published in `codes.parquet`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Named
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.analysis.itemsets import owners_of
from leeward.arrays import Int32s, Int64s, distinct_of, offsets_of, positions_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput
from leeward.release.content import ReleaseTable

SUPPRESSED = -1
"""`Mapping.label_of` of a suppressed code."""

ROWS_A_BATCH = 1 << 16

MOST_WRITTEN = 50
"""Labels with more members show only the first, the last and the count."""

CODES = pa.schema([("code", pa.string()), ("members", pa.list_(pa.string())), ("suppressed", pa.bool_())])
Columns = Named[str, pa.Array]
RECORDS = pa.schema([("record", pa.int64()), ("codes", pa.list_(pa.string()))])


@dataclass(frozen=True)
class Mapping:
    """Global recoding of codes. `labels`: sorted; a generalized code is `(a,b,c)` (see `label_of`). `members`: the
    sorted codes of each label. `suppressed`: the sorted codes that are in no label."""

    labels: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    suppressed: tuple[str, ...]

    @staticmethod
    def of(group_of_code: Int32s, codes: Sequence[str]) -> Mapping:
        """Mapping from a partition: codes of equal non-negative number share a label, negative ones are suppressed."""
        groups: dict[int, list[str]] = {}
        for group, code in zip(group_of_code.tolist(), codes, strict=True):
            groups.setdefault(group if group >= 0 else SUPPRESSED, []).append(code)
        suppressed = groups.pop(SUPPRESSED, [])
        members = sorted((tuple(sorted(group)) for group in groups.values()), key=label_of)
        labels = tuple(label_of(group) for group in members)
        if len(set(labels)) < len(labels):
            raise BadInput(
                "two released labels would read alike: a code of the data looks like a generalized code, "
                "`(a,b)`; rename the codes that begin with a bracket."
            )
        return Mapping(labels, tuple(members), tuple(sorted(suppressed)))

    @property
    def generalized(self) -> int:
        return sum(len(group) for group in self.members if len(group) > 1)

    def label_numbers(self, codes: Sequence[str]) -> Int32s:
        """int32[len(codes)]: index of each code's label, `SUPPRESSED` for suppressed and unknown codes."""
        number = {code: i for i, group in enumerate(self.members) for code in group}
        return np.array([number.get(code, SUPPRESSED) for code in codes], np.int32)

    def unknown(self, codes: Sequence[str]) -> tuple[str, ...]:
        known = {code for group in self.members for code in group}.union(self.suppressed)
        return tuple(code for code in codes if code not in known)

    def apply(self, sets: CodeSets) -> tuple[Int64s, Int32s]:
        """(offsets, labels ascending and distinct) of every record; emptied records are kept."""
        return relabel(sets.offsets, sets.values, self.label_numbers(sets.codes), max(len(self.labels), 1))

    def over(self, codes: Sequence[str]) -> Mapping:
        return replace(self, suppressed=tuple(sorted({*self.suppressed, *self.unknown(codes)})))

    def codes_rows(self) -> pa.Table:
        """One row per released label, then one per suppressed code."""
        n = len(self.suppressed)
        return pa.table(
            {
                "code": [*self.labels, *self.suppressed],
                "members": [*(list(group) for group in self.members), *([] for _ in range(n))],
                "suppressed": [False] * len(self.labels) + [True] * n,
            },
            schema=CODES,
        )


def relabel(offsets: Int64s, values: Int32s, label_of: Int32s, n_labels: int) -> tuple[Int64s, Int32s]:
    """Records with every code replaced by its label (-1: left out), distinct and ascending inside a record."""
    labels = label_of[values]
    keys = distinct_of((owners_of(offsets) * n_labels + labels)[labels >= 0])
    counts = np.bincount(keys // n_labels, minlength=len(offsets) - 1)
    return offsets_of(counts), (keys % n_labels).astype(np.int32)


def records_table(
    labels: Sequence[str],
    offsets: Int64s,
    values: Int32s,
    order: Int64s,
    further: Columns | None = None,
) -> ReleaseTable:
    """`records.parquet` of generalized records in the shuffled `order`, as a stream: labels can be long. `further`:
    additional columns, already in that order."""
    names, further = pa.array(labels, pa.string()), further or {}
    schema = pa.schema([*RECORDS, *((name, column.type) for name, column in further.items())])

    def batches() -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(order), ROWS_A_BATCH):
            chosen = order[begin : begin + ROWS_A_BATCH]
            ends, places = offsets_of(offsets[chosen + 1] - offsets[chosen]), positions_of(offsets, chosen)
            codes = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), names.take(pa.array(values[places])))
            record = pa.array(np.arange(begin, begin + len(chosen), dtype=np.int64))
            carried = [column.slice(begin, len(chosen)) for column in further.values()]
            yield pa.record_batch([record, codes, *carried], schema=schema)

    return ReleaseTable("records.parquet", schema, batches)


def label_of(members: Sequence[str]) -> str:
    """Text of a released label: the code itself, `(a,b,c)`, or `(a,…,z: 5815 codes)` for many members (ascending): it
    is written into every record that holds it (docs/methods/constraints.md#labels)."""
    if len(members) > MOST_WRITTEN:
        return f"({members[0]},…,{members[-1]}: {len(members)} codes)"
    return members[0] if len(members) == 1 else f"({','.join(members)})"


def read_mapping(path: str | Path) -> Mapping:
    """Read the mapping from the `codes.parquet` of an earlier release. Raises BadInput for a file that cannot be read,
    lacks a column, or puts a code in two labels."""
    path = Path(path)
    try:
        rows = pl.read_parquet(path).sort("code")
    except (OSError, pl.exceptions.PolarsError):
        raise BadInput(
            f"{path.name}: no mapping that can be read; name the `codes.parquet` of an earlier release."
        ) from None
    lacking = [name for name in CODES.names if name not in rows.columns]
    if lacking:
        raise BadInput(
            f"{path.name}: a mapping has the columns {', '.join(CODES.names)}; no {lacking[0]!r} here."
        )
    if "class" in rows.columns:
        raise BadInput(
            f"{path.name}: the mapping of a release with demographics, which has one for each class; name that of a "
            "release without."
        )
    kept = rows.filter(~pl.col("suppressed"))
    members = tuple(tuple(sorted(group)) for group in kept["members"].to_list())
    suppressed = tuple(rows.filter(pl.col("suppressed"))["code"].to_list())
    named = [*itertools.chain.from_iterable(members), *suppressed]
    if len(set(named)) < len(named) or not all(members):
        raise BadInput(f"{path.name}: a code is in two rows or a label is empty; the file is damaged.")
    return Mapping(tuple(kept["code"].to_list()), members, suppressed)
