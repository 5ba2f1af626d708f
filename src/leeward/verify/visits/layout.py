"""Lay out a release of visits as flat integer arrays: columns, numbers of records and visits, sorted sets, classes.

In classes of demographics the codes of each class are told apart, so that whatever is counted is counted among the
patients of one class (docs/methods/whole-patient.md#verifier). The attacker knows the exact demographics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.verify.checks import Check, Source, check_numbers, failing, of_count
from leeward.verify.class_labels import read_pairs
from leeward.verify.classes import BETWEEN, Placed, code_of_class, of_class, place_in_classes
from leeward.verify.flat import Ints, Longs, falls_of, lists_of, offsets_of, places_of
from leeward.verify.manifest import Share
from leeward.verify.storage import open_with_dictionaries


@dataclass(frozen=True)
class VisitLists:
    """Visits in the order of the file: visit v holds `values[offsets[v] : offsets[v + 1]]`, indices into the sorted
    `labels`. A record or visit is -1 where the file has a null, or no such column. `nulls`: of the file, in whatever
    column; the arrays hold an empty list or nothing in their place."""

    record: Longs
    visit: Longs
    offsets: Longs
    values: Ints
    labels: tuple[str, ...]
    nulls: int = 0

    def __len__(self) -> int:
        return len(self.record)

    def sizes(self) -> Longs:
        return self.offsets[1:] - self.offsets[:-1]

    def take(self, rows: Longs) -> VisitLists:
        lengths = self.sizes()[rows]
        values = self.values[places_of(self.offsets[rows], lengths)]
        offsets = offsets_of(lengths)
        return replace(self, record=self.record[rows], visit=self.visit[rows], offsets=offsets, values=values)

    def with_labels(self, labels: tuple[str, ...]) -> VisitLists:
        """The same visits with indices into other sorted labels, which contain these."""
        if labels == self.labels:
            return self
        place = {label: number for number, label in enumerate(labels)}
        places = np.array([place[label] for label in self.labels] or [0], np.int32)
        return replace(self, values=places[self.values], labels=labels)


def read_visits(file: Path) -> VisitLists:
    """The visits of a file with `record`, `codes` and perhaps `visit`; OSError or ArrowInvalid where it is none."""
    stored = open_with_dictionaries(file, ("codes",))
    columns = [name for name in ("record", "visit", "codes") if name in stored.schema_arrow.names]
    if not {"record", "codes"} <= set(columns):
        raise pa.ArrowInvalid("no column `record` or `codes`")
    # One group of rows at a time: each has a dictionary of its own.
    parts = [_visits_of(stored.read_row_group(group, columns)) for group in range(stored.num_row_groups)]
    parts = parts or [_visits_of(stored.read(columns))]
    labels = tuple(sorted(set().union(*(part.labels for part in parts))))
    values = [part.with_labels(labels).values for part in parts]
    sizes = np.concatenate([part.sizes() for part in parts])
    record, visit = (np.concatenate([getattr(part, name) for part in parts]) for name in ("record", "visit"))
    nulls = sum(part.nulls for part in parts)
    return VisitLists(record, visit, offsets_of(sizes), np.concatenate(values), labels, nulls)


def _visits_of(table: pa.Table) -> VisitLists:
    nulls = sum(column.null_count for column in table.columns)
    lists = table.column("codes")
    flat = pc.list_flatten(lists)
    nulls += flat.null_count
    labels, values = _number_texts(flat)
    offsets = offsets_of(pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64))
    record = _whole_numbers(table.column("record"))
    visit = (
        _whole_numbers(table.column("visit")) if "visit" in table.column_names else np.full(len(record), -1)
    )
    return VisitLists(record, visit, offsets, values, labels, nulls)


def _number_texts(flat: Any) -> tuple[tuple[str, ...], Ints]:
    """The sorted distinct texts of a chunked array, and each text's place among them; a null gets place 0."""
    if not pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_encode()
    encoded = flat.unify_dictionaries().combine_chunks()
    texts = np.array(encoded.dictionary.to_pylist(), dtype=object)
    order = np.argsort(texts)
    place = np.zeros(max(len(texts), 1), np.int32)
    place[order] = np.arange(len(texts))
    numbers = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    return tuple(texts[order].tolist()), place[numbers]


def _whole_numbers(column: Any) -> Longs:
    return pc.fill_null(column.cast(pa.int64()), -1).to_numpy().astype(np.int64)


TREE = "code_hierarchy.csv"
ROOT = "*"


def layout(share: Share) -> tuple[list[Check], VisitLists | None]:
    """Records and visits are numbered, sets are sorted."""
    visits = read_visits(share.data("visits.parquet"))
    records, record = int(share.manifest["records"]), share.table("records.parquet")["record"]
    checks = [check_numbers(record, records), *_visit_checks(visits, records)]
    tree = share.data(TREE)
    if tree.is_file():
        shown = {visits.labels[label] for label in np.unique(visits.values).tolist()}
        checks.append(code_hierarchy(tree, shown))
    return checks, None if failing(checks) else visits


def code_hierarchy(file: Path, shown: set[str]) -> Check:
    """The nodes that visits show and those above them, once each: the root, then by their texts."""
    pairs = read_pairs(file)
    if pairs is None:
        return Check("code_hierarchy", False, f"{TREE} cannot be read as node,parent.")
    above, nodes = dict(pairs), [node for node, _ in pairs]
    wanted = shown | {above[node] for node in shown & set(above)} | {ROOT}
    wrong = len(set(nodes) ^ wanted) + (nodes != [ROOT, *sorted(set(nodes) - {ROOT})])
    wrong += above.get(ROOT) != ""
    return of_count(
        "code_hierarchy",
        wrong,
        f"{TREE} lists the {len(nodes):,} nodes that visits show and those above them, in order.",
        f"nodes of {TREE} are not shown or above a shown one, are missing, doubled or out of order.",
    )


def _visit_checks(visits: VisitLists, records: int) -> list[Check]:
    strangers = int(np.count_nonzero((visits.record < 0) | (visits.record >= records)))
    falling = lists_of(falls_of(visits.values, visits.offsets), visits.offsets)
    return [
        of_count(
            "visits_of_records", strangers, "Every visit belongs to a record.", "visits belong to no record."
        ),
        of_count(
            "visits_numbered",
            _count_wrong_numbers(visits),
            "Visits are numbered from 0 inside each record.",
            "records have visit numbers with gaps or repeats.",
        ),
        of_count(
            "sets_sorted",
            len(falling) + int((visits.sizes() == 0).sum()) + visits.nulls,
            "Every visit holds distinct codes in ascending order.",
            "visits have no codes, null codes, repeated codes, or codes out of order.",
        ),
    ]


def _count_wrong_numbers(visits: VisitLists) -> int:
    """Records whose visits are not numbered 0, 1, …; the order of the rows does not matter."""
    record, visit = visits.record, visits.visit
    same = record[1:] == record[:-1]
    if not bool(((record[1:] > record[:-1]) | (same & (visit[1:] > visit[:-1]))).all()):
        order = np.lexsort((visit, record))
        record, visit = record[order], visit[order]
    first = np.ones(len(record), np.bool_)
    first[1:] = record[1:] != record[:-1]
    starts = np.flatnonzero(first)
    wanted = np.arange(len(record)) - np.repeat(starts, np.diff(np.append(starts, len(record))))
    return len(np.unique(record[visit != wanted]))


def apart(visits: VisitLists, placed: Placed) -> VisitLists:
    """The visits, the labels of each class apart."""
    width = max(1, len(visits.labels))
    keys = np.repeat(placed.of_record[visits.record], visits.sizes()) * width + visits.values
    used, values = np.unique(keys, return_inverse=True)
    labels = tuple(code_of_class(key // width, visits.labels[key % width]) for key in used.tolist())
    return replace(visits, values=values.reshape(-1).astype(np.int32), labels=labels)


def source_apart(source: Source, placed: Placed, patients: pl.DataFrame) -> Source:
    """The events of the released patients (`record`, `patient`), the codes of each class apart."""
    classes = pl.DataFrame({"record": np.arange(len(placed.of_record)), "class": placed.of_record})
    owners = patients.select("patient", pl.col("record").cast(pl.Int64)).join(classes, on="record")
    events = source.events.join(owners.drop("record"), on="patient", how="inner", maintain_order="left")
    return replace(source, events=events.with_columns(of_class("code").cast(pl.Categorical)).drop("class"))


def place(share: Share) -> tuple[list[Check], Placed | None]:
    """The checks of the classes, and every record in its class; None where they are not as they must be."""
    checks, placed = place_in_classes(share, share.table("records.parquet").sort("record"))
    return checks, None if failing(checks) else placed


def read_named(share: Share, name: str, placed: Placed | None) -> pl.DataFrame | None:
    """A custodian's table of codes or labels, those of each class apart; None where it does not tell classes apart."""
    file = share.kept(name)
    table = pl.DataFrame() if file is None else pl.read_parquet(file)
    if placed is None:
        return table
    if "class" not in table.columns:
        return None
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(of_class(name) for name in texts).drop("class")


def bare(codes: pl.DataFrame, placed: Placed | None) -> pl.DataFrame:
    """The same table without classes, each row once."""
    if placed is None:
        return codes
    return codes.with_columns(pl.col(pl.String).str.split(BETWEEN).list.last()).unique(maintain_order=True)
