"""Tiny sources in each format, written by the tests that read them."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl

from leeward.cohort import Cohort, read

Rows = dict[str, list[Any]]

OMOP: dict[str, Rows] = {
    "person": {
        "person_id": [1, 2, 3, 4],
        "gender_concept_id": [8507, 8532, 8507, 8532],
        "year_of_birth": [1960, 1980, 2000, 1970],
        "month_of_birth": [6, None, 2, 1],
        "day_of_birth": [15, None, 29, 1],
        "person_source_value": ["mrn-1", "mrn-2", "mrn-3", "mrn-4"],
        "gender_source_value": ["M", "F", "M", "F"],
    },
    "condition_occurrence": {
        "condition_occurrence_id": [11, 12, 13, 14, 15],
        "person_id": [1, 1, 2, 3, 3],
        "condition_concept_id": [201826, 320128, 201826, 0, 320128],
        "condition_start_date": ["2010-06-14", "2010-06-15", "2015-01-01", "2015-03-01", None],
        "visit_occurrence_id": [101, 101, 102, 103, 103],
        "condition_source_value": ["E11.9", "I10", "E11.9", "I10", "I10"],
    },
    "visit_occurrence": {
        "visit_occurrence_id": [101, 102, 103],
        "person_id": [1, 2, 3],
        "visit_start_date": ["2010-06-14", "2015-01-01", "2015-03-02"],
    },
    "drug_exposure": {
        "drug_exposure_id": [21],
        "person_id": [2],
        "drug_concept_id": [1503297],
        "drug_exposure_start_date": ["2015-01-02"],
        "visit_occurrence_id": [102],
        "drug_source_value": ["metformin"],
    },
    "concept": {
        "concept_id": [201826, 320128],
        "concept_code": ["44054006", "38341003"],
        "vocabulary_id": ["SNOMED", "SNOMED"],
    },
    "note": {
        "note_id": [31, 32],
        "person_id": [1, 2],
        "note_date": ["2010-06-14", "2015-01-01"],
        "note_text": ["First line,\nsecond line.", ""],
    },
}


def frame_of(rows: Rows) -> pl.DataFrame:
    """A table; dates of the source are dates."""
    frame = pl.DataFrame(rows)
    dates = [name for name in frame.columns if name.endswith("date") and frame[name].dtype == pl.String]
    return frame.with_columns(pl.col(name).str.head(10).str.to_date(strict=False) for name in dates)


def write_csv(folder: Path, tables: dict[str, Rows], *, upper: bool = False, gz: bool = False) -> Path:
    """A folder of CSV files."""
    folder.mkdir(exist_ok=True)
    for name, rows in tables.items():
        frame = pl.DataFrame(rows)
        frame = frame.rename(str.upper) if upper else frame
        data = frame.write_csv().encode()
        title = f"{name.upper() if upper else name}.csv"
        if gz:
            (folder / f"{title}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / title).write_bytes(data)
    return folder


def changed(tables: dict[str, Rows], table: str, **columns: list[Any]) -> dict[str, Rows]:
    """The tables with other columns in one of them."""
    return {**tables, table: {**tables[table], **columns}}


def write_ndjson(file: Path, resources: list[dict[str, Any]]) -> None:
    """One resource a line, gzip where the name says so."""
    data = "".join(json.dumps(each) + "\n" for each in resources).encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)


def attachment(text: str, kind: str = "text/plain; charset=utf-8") -> dict[str, Any]:
    """An attachment of a DocumentReference."""
    return {"attachment": {"contentType": kind, "data": base64.b64encode(text.encode()).decode()}}


def kinds(cohort: Cohort) -> dict[str, tuple[int, tuple[int, ...]]]:
    """What a reader noticed: kind to count and rows."""
    return {notice.kind: (notice.count, notice.rows) for notice in cohort.notices}


def whole_ages(cohort: Cohort) -> list[int | None]:
    """Completed years at each event."""
    return [None if age is None else int(age) for age in cohort.require_events()["age"]]


def read_table(source: Any, **options: Any) -> Cohort:
    """A source of the format `table`."""
    return read(source, format="table", **options)
