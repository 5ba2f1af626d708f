"""The release and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.contracts.censoring import CONTRACT
from leeward.methods.whole_patient import record_labels
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.methods.censoring.parameters import Censoring
    from leeward.methods.censoring.run import Outcome

PEOPLE = "people.parquet"
"""Custody of scope `groups` with demographics: the labels that everybody of the population would be published with."""


@dataclass(frozen=True)
class InClasses:
    """The classes of a sample; the final caps of each."""

    classes: Classes
    caps: Sequence[NDArray[np.int64]]


def release_of(
    method: Censoring,
    sample: CodeCounts,
    outcome: Outcome,
    order: NDArray[np.int64],
    payload: pl.DataFrame | None,
    people: int,
    notices: Sequence[str],
    seeded: bool,
    inside: InClasses | None = None,
) -> Anonymized:
    """The release; `order` gives the place of each released record in the sample (here: of those that are released)."""
    facts = {key: value for key, value in outcome.facts.items() if key != "exact"}
    words = CONTRACT.words(method.public())
    places, caps = order, _custody_caps(sample, outcome)
    labels: dict[str, pa.Array] = {}
    if inside is not None:
        classes = inside.classes.only_released()
        labels = record_labels(classes, order)
        places, caps = inside.classes.released[order], _caps_of_classes(sample, outcome, classes, inside.caps)
    records = _records(sample, outcome, order, labels, payload)
    return Anonymized(
        method=method.name,
        parameters=method.public(),
        guarantee=Guarantee.of(CONTRACT, words, method.public()),
        records=len(sample),
        tables=(ReleaseTable.of("records.parquet", records),),
        readme=words.readme,
        custody_tables=(
            ReleaseTable.of("records.parquet", _custody_records(outcome, order, places)),
            ReleaseTable.of("caps.parquet", caps),
        ),
        custody={"population": people, **facts},
        notices=tuple(notices),
        seeded=seeded,
    )


def _records(
    sample: CodeCounts,
    outcome: Outcome,
    order: NDArray[np.int64],
    labels: Mapping[str, pa.Array],
    payload: pl.DataFrame | None,
) -> pa.Table:
    kept = outcome.kept.take(order)
    names = pa.array(sample.codes, pa.string())
    codes = names.take(pa.array(np.repeat(kept.values, kept.counts)))
    ends = np.concatenate([[0], np.cumsum(kept.sizes())]).astype(np.int32)
    columns = {
        "record": pa.array(np.arange(len(order), dtype=np.int64)),
        "codes": pa.ListArray.from_arrays(pa.array(ends), codes),
        **labels,
    }
    if payload is not None:
        arrow = payload[order].to_arrow()
        columns |= {name: arrow[name] for name in payload.columns}
    return pa.table(columns)


def _custody_records(outcome: Outcome, order: NDArray[np.int64], places: NDArray[np.int64]) -> pa.Table:
    """`record` and `place`: the record's patient, counted from 0 in ascending order of the sample's identifiers."""
    exact = outcome.facts.get("exact")
    columns = {
        "record": pa.array(np.arange(len(order), dtype=np.int64)),
        "place": pa.array(places.astype(np.int64)),
    }
    if exact is not None:
        columns["exact"] = pa.array(exact[order])
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


def _caps_of_classes(
    sample: CodeCounts, outcome: Outcome, classes: Classes, final: Sequence[NDArray[np.int64]]
) -> pa.Table:
    """The same by class, of the codes that the class's records have."""
    from leeward.methods.censoring.classed import take

    tables = []
    for number, caps in enumerate(final):
        own = np.flatnonzero(classes.of_record == number)
        part = replace(outcome, kept=outcome.kept.take(own), caps=caps)
        table = _custody_caps(take(sample, own), part)
        table = table.filter(pc.greater(table["mentions"], 0))
        tables.append(table.add_column(0, "class", pa.array([number] * table.num_rows, pa.int64())))
    return pa.concat_tables(tables)
