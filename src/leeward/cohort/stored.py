"""A cohort of patients and codes on the disk, for tables larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort


@dataclass(frozen=True)
class StoredCohort:
    """Each patient's set of codes, in files that hold all rows of a patient each.

    head : the cohort without events: name, vocabulary, notices
    files : Parquet with `patient` and `code` (an Enum of all codes), distinct rows, ascending
    codes : the distinct codes, sorted; supports : int64[codes], the patients of each
    patients, events, longest : their number, the rows that were read, the most codes of a patient
    """

    head: Cohort
    files: tuple[Path, ...]
    codes: tuple[str, ...]
    supports: Int64s
    patients: int
    events: int
    longest: int

    def blocks(self) -> Iterator[pl.DataFrame]:
        """The files one after the other: `record` (the patient), `code` (its number)."""
        for file in self.files:
            yield pl.read_parquet(file).select(record="patient", code=pl.col("code").to_physical())

    def facts(self) -> dict[str, Any]:
        return {"name": self.head.name, "vocabulary": self.head.vocabulary, "patients": self.patients,
                "events": self.events, "codes": len(self.codes)}  # fmt: skip
