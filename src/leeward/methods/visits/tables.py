"""The data files: shuffled for the recipient, with the way back for the custodian."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import Int64s, offsets_of
from leeward.methods.visits.classed import bare, class_of
from leeward.methods.visits.kernels.containment import unite
from leeward.methods.visits.outcome import Outcome
from leeward.methods.visits.parameters import Visits
from leeward.methods.visits.sets import VisitSets, unions
from leeward.methods.whole_patient import record_labels
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes

VISITS = pa.schema([("record", pa.int64()), ("visit", pa.int64()), ("codes", pa.list_(pa.string()))])
BATCH_VISITS = 1 << 18


@dataclass(frozen=True)
class Released:
    """The order in which things are released.

    patient_of_record : the patient's number of each record. visit_order : the released visits (none of them empty) by
    record, in random order inside it. record, number : the columns of those visits.
    """

    visits: VisitSets
    patient_of_record: Int64s
    visit_order: Int64s
    record: Int64s
    number: Int64s

    def visits_table(self, labels: tuple[str, ...]) -> ReleaseTable:
        """`visits.parquet`, made batch by batch."""
        return ReleaseTable("visits.parquet", VISITS, lambda: self._batches(labels))

    def _batches(self, labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        names = pa.array(labels, pa.string())
        offsets, values = self.visits.offsets, self.visits.values
        for first in range(0, len(self.visit_order), BATCH_VISITS):
            chosen = slice(first, first + BATCH_VISITS)
            visits = self.visit_order[chosen]
            sizes = np.diff(offsets)[visits]
            bounds = offsets_of(sizes)
            within = np.repeat(offsets[visits] - bounds[:-1], sizes) + np.arange(bounds[-1])
            codes = pa.ListArray.from_arrays(
                pa.array(bounds.astype(np.int32)), names.take(pa.array(values[within]))
            )
            columns = [pa.array(self.record[chosen]), pa.array(self.number[chosen]), codes]
            yield pa.RecordBatch.from_arrays(columns, schema=VISITS)

    def records_table(self, payload: pl.DataFrame | None, classes: Classes | None) -> ReleaseTable:
        """`records.parquet`: numbers, labels of demographics, and payload."""
        columns = {
            "record": pa.array(np.arange(len(self.patient_of_record), dtype=np.int64)),
            **record_labels(classes, self.patient_of_record),
        }
        if payload is not None:
            arrow = payload[self.patient_of_record].to_arrow()
            columns |= {name: arrow[name] for name in payload.columns}
        return ReleaseTable.of("records.parquet", pa.table(columns))

    def hierarchy_table(self, outcome: Outcome) -> ReleaseTable:
        """`code_hierarchy.csv`: the released labels and the nodes above them; no code that is not released."""
        assert outcome.up is not None  # `enforce: generalize`
        shown = np.bincount(self.visits.values, minlength=len(outcome.labels)) > 0
        shown[outcome.up[np.flatnonzero(shown & (outcome.up >= 0))]] = True
        names, up = outcome.names, outcome.up
        pairs = {names[n]: "*" if up[n] < 0 else names[up[n]] for n in np.flatnonzero(shown)}
        node, parent = ["*", *sorted(pairs)], ["", *(pairs[label] for label in sorted(pairs))]
        return ReleaseTable.of("code_hierarchy.csv", pa.table({"node": node, "parent": parent}))


def shuffle(outcome: Outcome, merge_visits: bool, randomness: Randomness) -> Released:
    """Shuffle the records, and the visits inside each."""
    visits = outcome.enforced
    if merge_visits and len(visits) > len(outcome.lens):
        visits = unions(visits, len(outcome.labels))
    patient_of_record = randomness.stream("visits", "records").permutation(len(outcome.lens))
    record_of_patient = np.empty(len(outcome.lens), np.int64)
    record_of_patient[patient_of_record] = np.arange(len(outcome.lens))
    full = np.flatnonzero(np.diff(visits.offsets) > 0)
    shuffled = full[randomness.stream("visits", "visits").permutation(len(full))]
    record = record_of_patient[visits.patient_of_visit()[shuffled]]
    order = np.argsort(record, kind="stable")
    record, shuffled = record[order], shuffled[order]
    first = np.searchsorted(record, record, side="left")
    return Released(visits, patient_of_record, shuffled, record, np.arange(len(record)) - first)


def custody_tables(method: Visits, outcome: Outcome, released: Released) -> tuple[ReleaseTable, ...]:
    """What the custodian keeps.

    `patients.parquet`: record, patient (identifier), codes (distinct original codes). `visits.parquet`: record, visit,
    row (the first source row of that visit). `codes.parquet`: code, label (null: suppressed), above (where it climbs).
    `labels.parquet`: label, read (source visits with it, before enforcement), shown (rows of `visits.parquet`).
    Both have `class` where there are demographics. At level `containment` also `visit_sets.parquet`: record, codes of
    every source visit's image, before enforcement.
    """
    lens = outcome.lens
    held = _distinct_codes(outcome)
    people = {
        "record": pa.array(np.arange(len(lens), dtype=np.int64)),
        "patient": lens.patients.gather(released.patient_of_record).to_arrow(),
        "codes": pa.array(held[released.patient_of_record]),
    }
    labels = pl.Series(outcome.merging.label_of, dtype=pl.String)
    above: list[str | None] = [None] * len(lens.codes)
    if outcome.up is not None:
        above = [None if c < 0 else _top(outcome, int(c)) for c in outcome.of_code]
    codes = _by_class(
        outcome,
        {
            "code": pa.array(lens.codes, pa.string()),
            "label": labels.to_arrow().cast(pa.string()),
            "above": pa.array(above, pa.string()),
        },
    )
    found = [
        ReleaseTable.of("patients.parquet", pa.table(people)),
        ReleaseTable.of("codes.parquet", codes),
        ReleaseTable.of("labels.parquet", _accounts(outcome, released)),
    ]
    if len(released.visits) == lens.n_visits:
        rows = {
            "record": pa.array(released.record),
            "visit": pa.array(released.number),
            "row": pa.array(lens.rows[released.visit_order].astype(np.int64)),
        }
        found.append(ReleaseTable.of("visits.parquet", pa.table(rows)))
    if method.level in ("codes", "containment"):
        found.append(_visit_sets(outcome, released))
    return tuple(found)


def _accounts(outcome: Outcome, released: Released) -> pa.Table:
    """How many visits hold each label as they were read, and as they are to be released."""
    count = len(outcome.labels)
    return _by_class(
        outcome,
        {
            "label": pa.array(outcome.labels, pa.string()),
            "read": pa.array(np.bincount(outcome.mapped.values, minlength=count)),
            "shown": pa.array(np.bincount(released.visits.values, minlength=count)),
        },
    )


def _by_class(outcome: Outcome, columns: dict[str, pa.Array]) -> pa.Table:
    """A table of codes or labels (the first column); with classes, they are bare and `class` comes before them."""
    if outcome.classes is None:
        return pa.table(columns)
    first = next(iter(columns.values())).to_pylist()
    plain = {
        name: pa.array([None if text is None else bare(text) for text in values.to_pylist()], pa.string())
        for name, values in columns.items()
        if pa.types.is_string(values.type)
    }
    return pa.table({"class": pa.array([class_of(text) for text in first], pa.int64()), **columns, **plain})


def _top(outcome: Outcome, label: int) -> str:
    assert outcome.up is not None  # asked for only then
    above = int(outcome.up[label])
    return outcome.labels[label if above < 0 else above]


def _distinct_codes(outcome: Outcome) -> Int64s:
    """Distinct original codes of each patient."""
    lens = outcome.lens
    return np.diff(unite(lens.patient_offsets, lens.offsets, lens.values)[0])


def _visit_sets(outcome: Outcome, released: Released) -> ReleaseTable:
    """The image of every source visit that has one, under its record's number: what records may show of it."""
    visits = outcome.mapped
    record_of_patient = np.empty(len(outcome.lens), np.int64)
    record_of_patient[released.patient_of_record] = np.arange(len(outcome.lens))
    record = record_of_patient[visits.patient_of_visit()]
    order = np.argsort(record, kind="stable")
    order = order[np.diff(visits.offsets)[order] > 0]
    apart = Released(visits, released.patient_of_record, order, record[order], np.arange(len(order)))
    return ReleaseTable("visit_sets.parquet", VISITS, lambda: apart._batches(outcome.names))
