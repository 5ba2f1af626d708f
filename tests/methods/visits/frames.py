"""Cohorts out of plain dictionaries, the example of docs/methods/visits.md#worked-example, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from leeward.cohort.cohort import Cohort
from leeward.release.content import Anonymized, ReleaseTable

Records = Mapping[str, Sequence[Sequence[str]]]

EXAMPLE: Records = {
    "A": [["401.00", "401.01"], ["427.31"]],
    "B": [["401.01", "427.31"]],
    "C": [["401.02"]],
    "D": [["427.31", "810.01"]],
    "E": [["810.00"], ["401.02"]],
    "F": [["695.40"]],
}


def cohort(records: Records, patients: pl.DataFrame | None = None, vocabulary: str | None = "icd9") -> Cohort:
    """A cohort; visits are numbered through all patients."""
    rows, number = [], 0
    for patient, visits in records.items():
        for visit in visits:
            number += 1
            rows += [(patient, number, code) for code in visit]
    codes = [code for _, _, code in rows]
    events = pl.DataFrame(
        {
            "patient": pl.Series([patient for patient, _, _ in rows], dtype=pl.String),
            "code": pl.Series(codes, dtype=pl.Enum(sorted(set(codes)))),
            "row": pl.Series(range(1, len(rows) + 1), dtype=pl.UInt32),
            "visit": pl.Series([visit for _, visit, _ in rows], dtype=pl.Int64),
        }
    )
    return Cohort(events=events, patients=patients, name="made up", vocabulary=vocabulary)


def sets_of(records: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, list[frozenset[str]]]:
    """The same as the oracle wants it."""
    return {patient: [frozenset(visit) for visit in visits] for patient, visits in records.items()}


def frame(table: ReleaseTable) -> pl.DataFrame:
    """A release table as a frame."""
    made = pl.from_arrow(pa.Table.from_batches(table.batches(), table.schema))
    assert isinstance(made, pl.DataFrame)
    return made


def named(tables: Sequence[ReleaseTable], path: str) -> pl.DataFrame:
    return frame(next(table for table in tables if table.path == path))


def released(anonymized: Anonymized) -> dict[str, list[list[str]]]:
    """The released visits of each patient, sorted (undoing the shuffle by the custodian's file)."""
    people = dict(named(anonymized.custody_tables, "patients.parquet").select("record", "patient").rows())
    found: dict[str, list[list[str]]] = {patient: [] for patient in people.values()}
    for record, codes in named(anonymized.tables, "visits.parquet").select("record", "codes").rows():
        found[people[record]].append(codes)
    return {patient: sorted(visits) for patient, visits in sorted(found.items())}


def expected(data: Mapping[str, Sequence[frozenset[str]]]) -> dict[str, list[list[str]]]:
    """The oracle's result in the same form: emptied visits are dropped."""
    return {
        patient: sorted(sorted(visit) for visit in visits if visit)
        for patient, visits in sorted(data.items())
    }
