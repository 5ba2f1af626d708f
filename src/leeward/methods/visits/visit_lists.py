"""`visits.parquet` as flat integer arrays: what a measure or an extract counts in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from leeward.arrays import AnyArray, offsets_of

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

BATCH_ROWS = 1 << 19
MARK = "\x1f"
"""Between the number of a class of demographics and a code."""


def codes_apart(
    class_of: AnyArray, values: Ints, codes: Sequence[str]
) -> tuple[Ints, tuple[str, ...], Longs]:
    """The codes of each class as codes of their own, so that what is counted is counted inside a class: the values over
    them, the codes, and of each `class * len(codes) + code`.

    class_of : int[values], from 0.
    """
    n = max(1, len(codes))
    used, numbers = np.unique(class_of.astype(np.int64) * n + values, return_inverse=True)
    apart = tuple(f"{key // n:06d}{MARK}{codes[key % n]}" for key in used.tolist())
    return numbers.reshape(-1).astype(np.int32), apart, used


@dataclass(frozen=True)
class VisitLists:
    """Visits of a release in some order.

    Attributes
    ----------
    record, visit : int64[n]
    offsets : int64[n + 1], values : int32
        Visit v holds `values[offsets[v]:offsets[v + 1]]`, indices into `labels`, in the order of the file.
    labels : tuple of str
        Sorted, so that comparing indices compares labels.
    nulls : int
        Nulls that the file holds instead of numbers, lists or labels; they are left out of the arrays.
    """

    record: Longs
    visit: Longs
    offsets: Longs
    values: Ints
    labels: tuple[str, ...]
    nulls: int = 0

    def __len__(self) -> int:
        return len(self.record)

    def sizes(self) -> Longs:
        """Number of labels of each visit."""
        return np.diff(self.offsets)

    def take(self, rows: Longs) -> VisitLists:
        """Some of the visits, in the order given."""
        sizes = self.sizes()[rows]
        bounds = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        within = np.repeat(self.offsets[:-1][rows] - bounds[:-1], sizes) + np.arange(bounds[-1])
        return VisitLists(self.record[rows], self.visit[rows], bounds, self.values[within], self.labels)

    def by_record(self) -> VisitLists:
        """The same visits, those of a record together (records ascending); unchanged where they are in that order."""
        if bool((self.record[1:] >= self.record[:-1]).all()):
            return self
        return self.take(np.argsort(self.record, kind="stable"))

    def united(self, records: int) -> tuple[Longs, Ints]:
        """(offsets, values): the distinct labels of each record, ascending; visits of a record are together."""
        from leeward.methods.visits.kernels.containment import unite

        visits = offsets_of(np.bincount(self.record, minlength=records))
        offsets, values = unite(visits, self.offsets, self.values)
        return offsets, values

    def apart(self, class_of: AnyArray) -> VisitLists:
        """The same visits, the labels of each class apart; class_of : int[records]."""
        values, labels, _ = codes_apart(
            np.repeat(class_of[self.record], self.sizes()), self.values, self.labels
        )
        return replace(self, values=values, labels=labels)

    def entries(self) -> pl.DataFrame:
        """`record`, `visit` and `code` (an Enum of the labels), one row an entry."""
        sizes = self.sizes()
        return pl.DataFrame(
            {
                "record": np.repeat(self.record, sizes),
                "visit": np.repeat(self.visit, sizes),
                "code": pl.Series(self.labels, dtype=pl.Enum(self.labels)).gather(self.values),
            }
        )

    def relabelled(self, labels: tuple[str, ...]) -> VisitLists:
        """The same visits, numbered by other sorted labels that contain these."""
        if labels == self.labels:
            return self
        number = {label: place for place, label in enumerate(labels)}
        table = np.array([number[label] for label in self.labels] or [0], np.int32)
        return VisitLists(self.record, self.visit, self.offsets, table[self.values], labels, self.nulls)


def read_visit_lists(file: str | Path) -> VisitLists:
    """The visits of a Parquet file with `record`, `codes` and, where it has it, `visit`.

    Raises
    ------
    OSError, pyarrow.ArrowInvalid
        It cannot be read, or lacks these columns.
    """
    columns = [name for name in ("record", "visit", "codes") if name in pq.read_schema(file).names]
    source = pq.ParquetFile(file, read_dictionary=["codes.list.element"])
    if "record" not in columns or "codes" not in columns:
        raise pa.ArrowInvalid("no column `record` or `codes`")
    total = source.metadata.num_rows
    record, visit = np.zeros(total, np.int64), np.zeros(total, np.int64)
    offsets = np.zeros(total + 1, np.int64)
    values: list[Ints] = []
    numbers: dict[str, int] = {}
    at = nulls = 0
    for batch in source.iter_batches(BATCH_ROWS, columns=columns):
        end = at + batch.num_rows
        for name, target in (("record", record), ("visit", visit)):
            if name in columns:
                column = batch.column(name)
                nulls += column.null_count
                target[at:end] = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
        lists = batch.column("codes")
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        flat = lists.flatten()
        nulls += lists.null_count + flat.null_count
        offsets[at + 1 : end + 1] = lengths
        encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        table = np.array([numbers.setdefault(name, len(numbers)) for name in names] or [0], np.int32)
        values.append(table[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)])
        at = end
    np.cumsum(offsets, out=offsets)
    labels = tuple(sorted(numbers))
    place = np.zeros(max(1, len(labels)), np.int32)
    place[[numbers[label] for label in labels]] = np.arange(len(labels), dtype=np.int32)
    flat_values = np.concatenate(values) if values else np.zeros(0, np.int32)
    return VisitLists(record, visit, offsets, place[flat_values], labels, nulls)
