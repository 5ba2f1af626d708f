"""The table: one row a note, quasi-identifiers in columns, health terms as a set (Li & Qin, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl
import pyarrow as pa

from leeward.notes.spans import Span
from leeward.notes.table.quasi_identifiers import Found

QUASI = ("age", "sex", "race", "zip", "place")

ROW = pa.schema(
    [
        ("row", pa.int64()),
        ("patient", pa.string()),
        ("visit_month", pa.int32()),
        ("visit_year", pa.int32()),
        ("age", pa.int32()),
        ("sex", pa.string()),
        ("race", pa.string()),
        ("zip", pa.string()),
        ("place", pa.string()),
        *((f"{name}_source", pa.string()) for name in ("visit", *QUASI)),
        ("terms", pa.list_(pa.string())),
        ("disagrees", pa.list_(pa.string())),
    ]
)
"""A row of the table. `row` numbers the input; what is written numbers the notes anew, in an order that says nothing.

`visit_month` 1 to 12, `visit_year`, `age` in years (90: above 89), `sex` `female` or `male`, `race` as in
`rules.demographics.RACES`, `zip` five digits, `place` a place that a public list knows; each null where nothing was
found, with `_source` `metadata`, `section` (a labelled field of the note) or `text`. `terms`: ids of the lexicon's
concepts that the note asserts of the patient, now; ascending. `disagrees`: columns on which the note's sources, or
the patient's notes among each other, disagree.
"""


def row_of(
    number: int, patient: str, told: dict[str, Found], disagrees: Sequence[str], spans: Sequence[Span]
) -> dict[str, Any]:
    """A row of the table."""
    visit = told.get("visit")
    when = visit.value if visit is not None and isinstance(visit.value, date) else None
    row: dict[str, Any] = {
        "row": number,
        "patient": patient,
        "visit_month": when.month if when else None,
        "visit_year": when.year if when else None,
        "visit_source": visit.source if visit else None,
        "terms": terms_of(spans),
        "disagrees": sorted(disagrees),
    }
    for name in QUASI:
        found = told.get(name)
        row[name] = found.value if found else None
        row[f"{name}_source"] = found.source if found else None
    return row


def terms_of(spans: Sequence[Span]) -> list[str]:
    """The concepts that a note asserts of its patient. Only concepts of a lexicon: never a string of the text."""
    return sorted({s.concept for s in spans if s.kind == "HMI" and s.concept and s.asserted})


def with_disagreements(table: pl.DataFrame) -> pl.DataFrame:
    """The table with what a patient's notes say differently added to `disagrees`.

    Sex and race must be the same in all of a patient's notes; visit year less age must not differ by more than a
    year. ZIP code and place may change.
    """
    by = pl.col("patient")
    born = pl.col("visit_year") - pl.col("age")
    told = (pl.col("age") < 90) & born.is_not_null()
    found = table.with_columns(
        pl.when(pl.col("sex").drop_nulls().n_unique().over(by) > 1).then(pl.lit("sex")).alias("_sex"),
        pl.when(pl.col("race").drop_nulls().n_unique().over(by) > 1).then(pl.lit("race")).alias("_race"),
        pl.when((born.filter(told).max() - born.filter(told).min()).over(by) > 1)
        .then(pl.lit("age"))
        .alias("_age"),
    )
    parts = [pl.col(name).cast(pl.List(pl.String)).fill_null([]) for name in ("disagrees",)]
    extra = pl.concat_list(pl.col("_sex", "_race", "_age")).list.drop_nulls()
    return found.with_columns(
        pl.concat_list(*parts, extra).list.unique().list.sort().alias("disagrees")
    ).drop("_sex", "_race", "_age")
