"""Outcome of a run of visits and its release: shuffled for the recipient, with the mapping for the custodian."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.analysis.itemsets import owners_of
from leeward.arrays import AnyArray, Int8s, Int32s, Int64s, offsets_of, positions_of
from leeward.cohort.lenses.code_sets import run_starts
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.contracts.visits import CONTRACT
from leeward.methods.visits.bins import Merging
from leeward.methods.visits.parameters import Visits
from leeward.methods.visits.sets import VisitSets, is_in, unions
from leeward.methods.visits.visit_lists import bare, class_of
from leeward.methods.whole_patient import records_table
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes

VISITS = pa.schema([("record", pa.int64()), ("visit", pa.int64()), ("codes", pa.list_(pa.string()))])
BATCH_VISITS = 1 << 18

GONE, EXACT, MERGED, ABOVE = 0, 1, 2, 3
"""Fates of a (visit, code) pair: not shown, or shown as the code itself, a merged code or a node above it."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run, in the lens's order. `labels`: all that visits may hold. `of_code`: each code's label, -1 where
    suppressed. `up`: the node above each label. `mapped`, `enforced`: visits after merging, after enforcement.
    `classes`: of the released patients; codes and labels then carry the class number."""

    lens: Lens
    merging: Merging
    labels: tuple[str, ...]
    of_code: Int32s
    up: Int32s | None
    mapped: VisitSets
    enforced: VisitSets
    steps: int
    classes: Classes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The labels in their released form."""
        return self.labels if self.classes is None else tuple(map(bare, self.labels))

    def fate_of_pairs(self) -> Int8s:
        """Fate of each pair of visit and code of the lens: GONE, EXACT, MERGED or ABOVE."""
        kinds = [
            ABOVE if label is None else EXACT if label == code else MERGED
            for code, label in zip(self.lens.codes, self.merging.label_of, strict=True)
        ]
        up = np.full(len(self.labels) + 1, -1, np.int32)
        if self.up is not None:
            up[:-1] = self.up
        lens = VisitSets(self.lens.patient_offsets, self.lens.offsets, self.lens.values)
        parts = [
            self._fates(before, after, np.array(kinds, np.int8), up)
            for before, after in zip(lens.blocks(), self.enforced.blocks(), strict=True)
        ]
        return np.concatenate([np.zeros(0, np.int8), *parts])

    def _fates(self, before: VisitSets, after: VisitSets, kinds: Int8s, up: Int32s) -> Int8s:
        """The same for the visits of some patients: their pairs of visit and code, and what they show."""
        width = len(self.labels) + 1
        visit = owners_of(before.offsets) * width
        shown = owners_of(after.offsets) * width + after.values
        label = self.of_code[before.values]
        found = np.zeros(len(before.values), np.int8)
        found[(up[label] >= 0) & is_in(visit + up[label], shown)] = ABOVE
        exact = (label >= 0) & is_in(visit + label, shown)
        found[exact] = kinds[before.values[exact]]
        return found


def release_of(
    method: Visits,
    outcome: Outcome,
    payload: pl.DataFrame | None,
    vocabulary: str | None,
    randomness: Randomness,
) -> Anonymized:
    classes = outcome.classes
    parameters = method.public(vocabulary=None if vocabulary is None else Path(vocabulary).name)
    words = CONTRACT.words(parameters)
    released = shuffle(outcome, method.merge_visits, randomness)
    shared = [
        released.table("visits.parquet", outcome.names),
        records_table(released.patient_of_record, classes, payload),
    ]
    if method.enforce == "generalize":
        shared.append(released.hierarchy_table(outcome))
    return Anonymized(
        method=method.name,
        parameters=parameters,
        guarantee=Guarantee.of(CONTRACT, words, parameters),
        records=len(outcome.lens),
        tables=tuple(shared),
        readme=words.readme,
        custody_tables=custody_tables(method, outcome, released),
        custody=_facts(method, outcome),
        notices=_notices(outcome),
        seeded=randomness.seeded,
    )


def _facts(method: Visits, outcome: Outcome) -> dict[str, Any]:
    """Facts of the run for the custodian; pairs of visit and code by their fate."""
    _, exact, merged, above = np.bincount(outcome.fate_of_pairs(), minlength=4).tolist()
    return {
        "level": method.level,
        "patients": len(outcome.lens),
        "visits": outcome.lens.n_visits,
        "codes": len(outcome.lens.codes if outcome.classes is None else set(map(bare, outcome.lens.codes))),
        "merged_codes": outcome.merging.merged,
        "suppressed_codes": outcome.merging.suppressed,
        "emptied_by_suppression": outcome.mapped.count_empty(),
        "emptied_visits": outcome.enforced.count_empty(),
        "steps": outcome.steps,
        "pairs": {"original": len(outcome.lens.values), "exact": exact, "merged": merged, "above": above},
    }


def _notices(outcome: Outcome) -> tuple[str, ...]:
    found = []
    if outcome.merging.suppressed:
        where = (
            "everywhere" if outcome.classes is None else "in their class (codes are counted class by class)"
        )
        found.append(
            f"{outcome.merging.suppressed:,} of {len(outcome.lens.codes):,} codes are held by too few patients even "
            f"after merging and were suppressed {where}."
        )
    empty = outcome.enforced
    kept = np.add.reduceat(np.diff(empty.offsets), empty.patient_offsets[:-1])
    gone = int(np.count_nonzero(kept == 0))
    if gone:
        found.append(f"{gone:,} of {len(outcome.lens):,} records are released without any code.")
    return tuple(found)


@dataclass(frozen=True)
class Released:
    """The order of released records and visits. `patient_of_record`: each record's patient number. `visit_order`: the
    non-empty visits by record, in random order inside it; `record`, `number`: their columns."""

    visits: VisitSets
    patient_of_record: Int64s
    visit_order: AnyArray
    record: AnyArray
    number: AnyArray

    def table(self, path: str, labels: tuple[str, ...]) -> ReleaseTable:
        """The visits with the labels of each, made batch by batch."""
        names, offsets, values = pa.array(labels, pa.string()), self.visits.offsets, self.visits.values

        def batches() -> Iterator[pa.RecordBatch]:
            for first in range(0, len(self.visit_order), BATCH_VISITS):
                chosen = slice(first, first + BATCH_VISITS)
                visits = self.visit_order[chosen]
                bounds = offsets_of(np.diff(offsets)[visits]).astype(np.int32)
                codes = names.take(pa.array(values[positions_of(offsets, visits)]))
                lists = pa.ListArray.from_arrays(pa.array(bounds), codes)
                numbers = [pa.array(each[chosen], pa.int64()) for each in (self.record, self.number)]
                columns = [*numbers, lists]
                yield pa.RecordBatch.from_arrays(columns, schema=VISITS)

        return ReleaseTable(path, VISITS, batches)

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
    visits = outcome.enforced
    if merge_visits and len(visits) > len(outcome.lens):
        visits = unions(visits, len(outcome.labels))
    patient_of_record = randomness.stream("visits", "records").permutation(len(outcome.lens))
    record_of_patient = np.empty(len(patient_of_record), np.int32)
    record_of_patient[patient_of_record] = np.arange(len(patient_of_record))
    full = np.flatnonzero(np.diff(visits.offsets) > 0).astype(np.int32)
    shuffled = full[randomness.stream("visits", "visits").permutation(len(full))]
    record = record_of_patient[visits.patient_of_visit()[shuffled]]
    shuffled = shuffled[np.argsort(record, kind="stable")]
    record.sort()
    starts = run_starts(record)
    sizes = np.diff(np.append(starts, len(record)))
    number = np.arange(len(record), dtype=np.int32) - np.repeat(starts.astype(np.int32), sizes)
    return Released(visits, patient_of_record, shuffled, record, number)


def custody_tables(method: Visits, outcome: Outcome, released: Released) -> tuple[ReleaseTable, ...]:
    """The tables for custody.

    `patients.parquet`: record, patient (identifier), codes (distinct original codes). `visits.parquet`: record, visit,
    row (the first source row of that visit). `codes.parquet`: code, label (null: suppressed), above (where it climbs).
    `labels.parquet`: label, read (source visits with it, before enforcement), shown (rows of `visits.parquet`). Both
    have `class` where there are demographics. At level `containment` also `visit_sets.parquet`: record, codes of every
    source visit's image, before enforcement.
    """
    lens = outcome.lens
    originals = VisitSets(lens.patient_offsets, lens.offsets, lens.values)
    held = np.diff(unions(originals, len(lens.codes)).offsets)
    people = {
        "record": pa.array(np.arange(len(lens), dtype=np.int64)),
        "patient": lens.patients.gather(released.patient_of_record).to_arrow(),
        "codes": pa.array(held[released.patient_of_record]),
    }
    labels = pl.Series(outcome.merging.label_of, dtype=pl.String)
    above: list[str | None] = [None] * len(lens.codes)
    if outcome.up is not None:
        top = np.where(outcome.up < 0, np.arange(len(outcome.labels)), outcome.up)
        above = [None if c < 0 else outcome.labels[top[c]] for c in outcome.of_code]
    codes = _by_class(
        outcome,
        {
            "code": pa.array(lens.codes, pa.string()),
            "label": labels.to_arrow().cast(pa.string()),
            "above": pa.array(above, pa.string()),
        },
    )
    many = len(outcome.labels)
    counted = _by_class(
        outcome,
        {
            "label": pa.array(outcome.labels, pa.string()),
            "read": pa.array(np.bincount(outcome.mapped.values, minlength=many)),
            "shown": pa.array(np.bincount(released.visits.values, minlength=many)),
        },
    )
    found = [
        ReleaseTable.of("patients.parquet", pa.table(people)),
        ReleaseTable.of("codes.parquet", codes),
        ReleaseTable.of("labels.parquet", counted),
    ]
    if len(released.visits) == lens.n_visits:
        rows = {
            "record": pa.array(released.record, pa.int64()),
            "visit": pa.array(released.number, pa.int64()),
            "row": pa.array(lens.rows[released.visit_order].astype(np.int64)),
        }
        found.append(ReleaseTable.of("visits.parquet", pa.table(rows)))
    if method.level in ("codes", "containment"):
        found.append(_visit_sets(outcome, released))
    return tuple(found)


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


def _visit_sets(outcome: Outcome, released: Released) -> ReleaseTable:
    """The image (codes that records may show) of every source visit that has one, with its record's number."""
    visits = outcome.mapped
    record = np.argsort(released.patient_of_record)[visits.patient_of_visit()].astype(np.int32)
    order = np.argsort(record, kind="stable").astype(np.int32)
    order = order[np.diff(visits.offsets)[order] > 0]
    number = np.arange(len(order), dtype=np.int32)
    apart = Released(visits, released.patient_of_record, order, record[order], number)
    return apart.table("visit_sets.parquet", outcome.names)
