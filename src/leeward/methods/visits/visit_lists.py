"""`visits.parquet` as flat integer arrays, for measures and extracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.itemsets import owners_of
from leeward.arrays import AnyArray, Int32s, Int64s, offsets_of, positions_of
from leeward.methods.visits.sets import VisitSets, unions
from leeward.release import Release

BATCH_ROWS = 1 << 19
MARK = "\x1f"
"""Separates the number of a class of demographics from a code."""

SEPARATOR = "|"
"""Joins the members of a generalized code: `401.0|401.1`."""


def codes_apart(
    class_of: AnyArray, values: Int32s, codes: Sequence[str]
) -> tuple[Int32s, tuple[str, ...], Int64s]:
    """Separate codes for each class (int[values], from 0), so that counts are inside a class: the values as indices
    into them, the codes, and `class * len(codes) + code` for each."""
    n = max(1, len(codes))
    used, numbers = np.unique(class_of.astype(np.int64) * n + values, return_inverse=True)
    apart = tuple(f"{key // n:06d}{MARK}{codes[key % n]}" for key in used.tolist())
    return numbers.reshape(-1).astype(np.int32), apart, used


def bare(label: str) -> str:
    number, mark, _ = label.partition(MARK)
    return label.replace(number + mark, "") if mark else label


def class_of(label: str) -> int:
    return int(label.partition(MARK)[0])


@dataclass(frozen=True)
class VisitLists:
    """Visits of a release in some order: visit v holds `values[offsets[v]:offsets[v + 1]]`, indices into `labels` in
    the order of the file. Labels are sorted, so that comparing indices compares labels."""

    record: Int64s
    visit: Int64s
    offsets: Int64s
    values: Int32s
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.record)

    def sizes(self) -> Int64s:
        return np.diff(self.offsets)

    def take(self, rows: Int64s) -> VisitLists:
        values = self.values[positions_of(self.offsets, rows)]
        offsets = offsets_of(self.sizes()[rows])
        return VisitLists(self.record[rows], self.visit[rows], offsets, values, self.labels)

    def by_record(self) -> VisitLists:
        """The visits grouped by record (records ascending); unchanged if already in that order."""
        if bool((self.record[1:] >= self.record[:-1]).all()):
            return self
        return self.take(np.argsort(self.record, kind="stable"))

    def sets(self, records: int) -> VisitSets:
        """The visits as sets for the enforcement; they must be grouped by record, ascending."""
        return VisitSets(np.searchsorted(self.record, np.arange(records + 1)), self.offsets, self.values)

    def unite(self, records: int) -> tuple[Int64s, Int32s]:
        """(offsets, values): the distinct labels of each record, ascending; visits of a record are together."""
        united = unions(self.sets(records), len(self.labels))
        return united.offsets, united.values

    def apart(self, class_of: AnyArray) -> VisitLists:
        """The visits with separate labels for each class; class_of : int[records]."""
        of_value = class_of[self.record][owners_of(self.offsets)]
        values, labels, _ = codes_apart(of_value, self.values, self.labels)
        return replace(self, values=values, labels=labels)

    def entries(self) -> pl.DataFrame:
        """`record`, `visit` and `code` (an Enum of the labels), one row an entry."""
        owner = owners_of(self.offsets)
        return pl.DataFrame(
            {
                "record": self.record[owner],
                "visit": self.visit[owner],
                "code": pl.Series(self.labels, dtype=pl.Enum(self.labels)).gather(self.values),
            }
        )


def read_visit_lists(file: str | Path) -> VisitLists:
    """The visits of a Parquet file with `record`, `visit` and `codes`."""
    records, visits, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    values = [np.zeros(0, np.int32)]
    numbers: dict[str, int] = {}
    source = pq.ParquetFile(file, read_dictionary=["codes.list.element"])
    for batch in source.iter_batches(BATCH_ROWS, columns=["record", "visit", "codes"]):
        records.append(batch.column("record").to_numpy())
        visits.append(batch.column("visit").to_numpy())
        lists = batch.column("codes")
        lengths.append(lists.value_lengths().to_numpy())
        flat = lists.flatten()
        encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        table = np.array([numbers.setdefault(name, len(numbers)) for name in names] or [0], np.int32)
        values.append(table[encoded.indices.to_numpy()])
    labels = tuple(sorted(numbers))
    place = np.zeros(max(1, len(labels)), np.int32)
    place[[numbers[label] for label in labels]] = np.arange(len(labels), dtype=np.int32)
    offsets = offsets_of(np.concatenate(lengths))
    return VisitLists(
        np.concatenate(records), np.concatenate(visits), offsets, place[np.concatenate(values)], labels
    )


def lists_of(release: Release) -> VisitLists:
    return read_visit_lists(release.path("visits.parquet")).by_record()


def lists_apart(release: Release) -> VisitLists:
    """The released visits; with demographics, labels are separate for each class, so that counts are inside a class."""
    visits = lists_of(release)
    if not release.demographics:
        return visits
    return visits.apart(ReleasedClasses.read(release).of_records(release))
