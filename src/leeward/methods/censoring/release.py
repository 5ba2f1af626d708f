"""The release and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.analysis.containment import Multisets
from leeward.arrays import AnyArray, Bools, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.contracts.censoring import CONTRACT
from leeward.methods.whole_patient import add_classes, records_table
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.analysis.demographics.search import Found
    from leeward.methods.censoring.parameters import Censoring

PEOPLE = "people.parquet"
"""Custody of scope `groups` with demographics: the labels that everybody of the population would be published with."""


@dataclass(frozen=True)
class Outcome:
    """Censored records, in the order of the sample, and what is told of them.

    kept : the records of the sample that are released, censored; places : which these are, ascending.
    start_caps, caps : int64[codes], before and at the end (`scope: record` leaves them as they were).
    facts, notices : for the custodian. exact : bool[records], whether the record's search was exact.
    people : of the population. found : the classes of the sample's patients, with demographics; class_caps : the caps
    at the end of each; class_notices : after all others; tables : for the custodian.
    """

    kept: Multisets
    start_caps: Int64s
    caps: Int64s
    facts: Mapping[str, Any]
    notices: tuple[str, ...] = ()
    exact: Bools | None = None
    places: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    people: int = 0
    found: Found | None = None
    class_caps: Sequence[Int64s] = ()
    class_notices: tuple[str, ...] = ()
    tables: tuple[ReleaseTable, ...] = ()


def release_of(
    method: Censoring,
    sample: CodeCounts,
    outcome: Outcome,
    order: Int64s,
    payload: pl.DataFrame | None,
    notices: Sequence[str],
    seeded: bool,
) -> Anonymized:
    """The release; `order` gives the place of each released record in the sample, here and in the payload of those that
    are released."""
    words = CONTRACT.words(method.public())
    classes = None if outcome.found is None else outcome.found.classes.without_left_out()
    caps = _custody_caps(sample, outcome) if classes is None else _caps_of_classes(sample, outcome, classes)
    codes = _codes(sample, outcome.kept.take(order))
    made = Anonymized(
        method=method.name,
        parameters=method.public(),
        guarantee=Guarantee.of(CONTRACT, words, method.public()),
        records=len(sample),
        tables=(records_table(order, classes, payload, codes=codes),),
        readme=words.readme,
        custody_tables=(
            ReleaseTable.of("records.parquet", _custody_records(outcome, order)),
            ReleaseTable.of("caps.parquet", caps),
            *outcome.tables,
        ),
        custody={"population": outcome.people, **outcome.facts},
        notices=tuple(notices),
        seeded=seeded,
    )
    return made if outcome.found is None else add_classes(made, outcome.found, outcome.class_notices)


def _codes(sample: CodeCounts, kept: Multisets) -> pa.Array:
    """A list for each record: its codes, each as often as it is shown."""
    codes = pa.array(sample.codes, pa.string()).take(pa.array(np.repeat(kept.values, kept.counts)))
    return pa.ListArray.from_arrays(pa.array(offsets_of(kept.sizes()).astype(np.int32)), codes)


def _custody_records(outcome: Outcome, order: Int64s) -> pa.Table:
    """`record` and `place`: the record's patient, counted from 0 in ascending order of the sample's identifiers."""
    columns: dict[str, AnyArray] = {"record": np.arange(len(order)), "place": outcome.places[order]}
    if outcome.exact is not None:
        columns["exact"] = outcome.exact[order]
    return pa.table(columns)


def _custody_caps(sample: CodeCounts, outcome: Outcome) -> pa.Table:
    """What became of each code: its caps, and its mentions as they were read and as they are to be released."""
    return pa.table(
        {
            "code": pa.array(sample.codes, pa.string()),
            "highest": pa.array(sample.most()),
            "cap": pa.array(outcome.start_caps),
            "final_cap": pa.array(outcome.caps),
            "mentions": np.bincount(sample.values, sample.counts, len(sample.codes)).astype(np.int64),
            "shown": np.bincount(outcome.kept.values, outcome.kept.counts, len(sample.codes)).astype(
                np.int64
            ),
        }
    )


def _caps_of_classes(sample: CodeCounts, outcome: Outcome, classes: Classes) -> pa.Table:
    tables = []
    for number, caps in enumerate(outcome.class_caps):
        own = np.flatnonzero(classes.of_record == number)
        part = replace(outcome, kept=outcome.kept.take(own), caps=caps)
        table = _custody_caps(take(sample, own), part)
        table = table.filter(pc.greater(table["mentions"], 0))
        tables.append(table.add_column(0, "class", pa.array([number] * table.num_rows, pa.int64())))
    return pa.concat_tables(tables)


def take(sample: CodeCounts, records: Int64s) -> CodeCounts:
    part = Multisets(sample.offsets, sample.values, sample.counts).take(records)
    return replace(
        sample,
        offsets=part.offsets,
        values=part.values,
        counts=part.counts,
        patients=sample.patients.gather(records),
        rows=sample.rows[records],
    )
