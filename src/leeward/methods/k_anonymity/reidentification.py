"""Candidates of patients in a k-anonymous table: the rows of their group."""

from __future__ import annotations

import numpy as np

from leeward.analysis.reidentification import Known, alike
from leeward.cohort.cohort import Cohort
from leeward.release import Release


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """The rows that share each row's quasi-identifiers."""
    names = list(release.parameters["quasi_identifiers"])
    rows = release.table("table.parquet").select(names).collect()
    return Known(
        "the quasi-identifiers of a patient",
        alike(rows).astype(np.float64),
        before=alike(cohort.table().frame.select(names)),
    )
