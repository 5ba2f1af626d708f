"""Candidates of patients in released trajectories: the records that look alike."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.reidentification import Known
from leeward.cohort.cohort import Cohort
from leeward.methods.demographics_words import exact
from leeward.release import Release


def known(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """The records with each record's whole trajectory and released demographics."""
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    pairs = release.table("trajectories.parquet").collect().sort("record", "position")
    text = pl.concat_str(pl.col("code").cast(pl.String), pl.col("age").cast(pl.String), separator="@")
    whole = pairs.group_by("record").agg(text.str.join("|").alias("whole trajectory"))
    records = release.table("records.parquet").select("record", *names).collect()
    rows = records.join(whole, on="record", how="left").select(alike=pl.struct("whole trajectory", *names))
    sizes = rows["alike"].value_counts()["count"].to_numpy()
    return Known(f"{exact(names)}all codes and ages of a patient", np.repeat(sizes, sizes).astype(np.float64))
