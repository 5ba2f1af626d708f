"""Read `visits.parquet` as flat integer arrays, for the verifier alone: no method reads with this code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leeward.verify.flat import Ints, Longs, offsets_of, places_of
from leeward.verify.storage import open_encoded


@dataclass(frozen=True)
class VisitLists:
    """Visits in the order of the file; a record or visit is -1 where the file has a null, or no such column."""

    record: Longs
    visit: Longs
    offsets: Longs
    """Visit v holds `values[offsets[v] : offsets[v + 1]]`, indices into `labels`, in the order of the file."""
    values: Ints
    labels: tuple[str, ...]
    """Sorted, so that comparing indices compares labels."""
    nulls: int = 0
    """Nulls of the file, in whatever column; the arrays hold an empty list or nothing in their place."""

    def __len__(self) -> int:
        return len(self.record)

    def sizes(self) -> Longs:
        """Number of labels of each visit."""
        return self.offsets[1:] - self.offsets[:-1]

    def take(self, rows: Longs) -> VisitLists:
        """Some of the visits, in the order given."""
        lengths = self.sizes()[rows]
        values = self.values[places_of(self.offsets[rows], lengths)]
        return VisitLists(
            self.record[rows], self.visit[rows], offsets_of(lengths), values, self.labels, self.nulls
        )

    def relabelled(self, labels: tuple[str, ...]) -> VisitLists:
        """The same visits with indices into other sorted labels, which contain these."""
        if labels == self.labels or not self.labels:
            return VisitLists(self.record, self.visit, self.offsets, self.values, labels, self.nulls)
        places = np.searchsorted(np.array(labels, dtype=object), np.array(self.labels, dtype=object))
        values = places.astype(np.int32)[self.values]
        return VisitLists(self.record, self.visit, self.offsets, values, labels, self.nulls)


def read_visits(file: Path) -> VisitLists:
    """The visits of a file with `record`, `codes` and perhaps `visit`; OSError or ArrowInvalid where it is none."""
    stored = open_encoded(file, ("codes",))
    columns = [name for name in ("record", "visit", "codes") if name in stored.schema_arrow.names]
    if not {"record", "codes"} <= set(columns):
        raise pa.ArrowInvalid("no column `record` or `codes`")
    # One at a time: lists of texts kept as dictionaries cannot be read across groups, each of which has its own.
    parts = [stored.read_row_group(group, columns) for group in range(stored.num_row_groups)]
    table = pa.concat_tables(parts) if parts else stored.read(columns)
    nulls = sum(table.column(name).null_count for name in columns)
    lists = table.column("codes")
    flat = pc.list_flatten(lists)
    nulls += flat.null_count
    labels, values = _number_texts(flat)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    offsets = offsets_of(lengths)
    record = _whole_numbers(table.column("record"))
    visit = _whole_numbers(table.column("visit")) if "visit" in columns else np.full(len(record), -1)
    return VisitLists(record, visit, offsets, values, labels, nulls)


def _number_texts(flat: Any) -> tuple[tuple[str, ...], Ints]:
    """The sorted distinct texts of a chunked array, and each text's place among them; a null gets place 0."""
    pieces = [
        piece if pa.types.is_dictionary(piece.type) else piece.dictionary_encode() for piece in flat.chunks
    ]
    names = [np.array(piece.dictionary.to_pylist(), dtype=object) for piece in pieces]
    labels = sorted({name for each in names for name in each if name is not None})
    place = {name: number for number, name in enumerate(labels)}
    values = [
        np.array([place.get(name, 0) for name in each] or [0], np.int32)[
            pc.fill_null(piece.indices, 0).to_numpy(zero_copy_only=False)
        ]
        for piece, each in zip(pieces, names, strict=True)
    ]
    return tuple(labels), np.concatenate(values) if values else np.zeros(0, np.int32)


def _whole_numbers(column: Any) -> Longs:
    return pc.fill_null(column.cast(pa.int64()), -1).to_numpy().astype(np.int64)
