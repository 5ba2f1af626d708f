"""Some patients of a cohort as a cohort of their own."""

from __future__ import annotations

import polars as pl

from leeward.cohort.cohort import Cohort


def restrict(cohort: Cohort, patients: pl.Series) -> Cohort:
    """The cohort of some of its patients; codes that none of them has are gone."""
    chosen = patients.implode()
    events = cohort.require_events().filter(pl.col("patient").is_in(chosen))
    codes = events["code"].unique().cast(pl.String).sort()
    events = events.with_columns(pl.col("code").cast(pl.Enum(codes)))
    attributes = None if cohort.patients is None else cohort.patients.filter(pl.col("patient").is_in(chosen))
    return Cohort(
        events=events,
        patients=attributes,
        name=cohort.name,
        vocabulary=cohort.vocabulary,
        names=cohort.names,
    )
