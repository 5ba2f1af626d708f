"""Candidates of patients in released trajectories: the records that look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from leeward.analysis.reidentification import Known, alike
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact
from leeward.methods.trajectories.measures import originals
from leeward.release import Release


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """The records with each record's whole trajectory and released demographics."""
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    pairs = release.table("trajectories.parquet").collect().sort("record", "position")
    text = pl.concat_str(pl.col("code").cast(pl.String), pl.col("age").cast(pl.String), separator="@")
    whole = pairs.group_by("record").agg(text.str.join("|").alias("whole trajectory"))
    records = release.table("records.parquet").select("record", *names).collect()
    rows = records.join(whole, on="record", how="left").drop("record")
    return Known(
        f"{exact(names)}all codes and ages of a patient",
        alike(rows).astype(np.float64),
        before=alike(_originals(release, cohort, names)),
    )


def _originals(release: Release, cohort: Cohort, names: Sequence[str]) -> pl.DataFrame:
    """A row for each released patient: all codes and ages in the source, and the exact demographics."""
    lens = originals(release, cohort)
    pairs = pl.DataFrame(
        {
            "record": np.repeat(np.arange(len(lens)), lens.lengths()),
            "pair": lens.codes.astype(np.int64) * (int(lens.ages.max(initial=0)) + 1) + lens.ages,
        }
    )
    whole = pairs.group_by("record").agg(pl.col("pair").cast(pl.String).str.join("|"))
    exact_values = cohort.payload(names, lens.patients)
    if exact_values is not None:
        whole = whole.join(exact_values.with_columns(record=np.arange(len(lens))), on="record", how="left")
    return whole.drop("record")
