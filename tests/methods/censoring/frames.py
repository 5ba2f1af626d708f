"""Cohorts out of plain lists, and Figure 1 of the thesis."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from leeward.cohort.cohort import Cohort
from leeward.release.content import Anonymized

POPULATION = [
    ["250"],
    ["250", "250", "272"],
    ["250", "250", "272", "272"],
    ["401", "401", "401", "401"],
    ["272", "272", "724"],
    ["250"],
    ["272", "724"],
]
SAMPLE = [["250"], ["272", "272", "724"], ["250", "250", "272"]]
CAPS = {"250": 2, "272": 2, "401": 0, "724": 1}


def cohort(
    records: Sequence[Sequence[str]], name: str = "cohort", first: int = 1, **columns: pl.Series
) -> Cohort:
    """A cohort whose patients are numbered from `first` in the order of the records."""
    rows = [(first + number, code) for number, record in enumerate(records) for code in record]
    codes = [code for _, code in rows]
    events = pl.DataFrame(
        {
            "patient": [patient for patient, _ in rows],
            "code": pl.Series(codes, dtype=pl.Enum(sorted(set(codes)))),
            "row": pl.Series(range(1, len(rows) + 1), dtype=pl.UInt32),
            **columns,
        }
    )
    return Cohort(events=events, name=name)


def released(anonymized: Anonymized) -> list[list[str]]:
    """The released code lists in the order of the sample (undoing the shuffle by the custodian's file)."""
    codes = table(anonymized.tables[0])["codes"].to_list()
    places = table(anonymized.custody_tables[0])["place"].to_list()
    return [record for _, record in sorted(zip(places, codes, strict=True))]


def table(one) -> pl.DataFrame:
    """A release table as a frame."""
    frame = pl.from_arrow(pa.Table.from_batches(one.batches(), one.schema))
    assert isinstance(frame, pl.DataFrame)
    return frame
