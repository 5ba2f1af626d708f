"""Candidates of patients in a k-anonymous table: the rows of their group."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.reidentification import Known
from leeward.cohort.cohort import Cohort
from leeward.release import Release


def known(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """The rows that share each row's quasi-identifiers."""
    names = list(release.parameters["quasi_identifiers"])
    rows = release.table("table.parquet").select(alike=pl.struct(names)).collect()
    sizes = rows["alike"].value_counts()["count"].to_numpy()
    return Known("the quasi-identifiers of a patient", np.repeat(sizes, sizes).astype(np.float64))
