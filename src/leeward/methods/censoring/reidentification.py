"""Candidates of people of the population for records of a censored sample."""

from __future__ import annotations

import numpy as np

from leeward.analysis.reidentification import Known
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact
from leeward.methods.censoring.measures.records import pair_records
from leeward.release import Release


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known | None:
    """The people who contain each record and fit its demographics; None without the population."""
    if population is None:
        return None
    both = pair_records(release, cohort, population)
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    words = f"{exact(names)}all codes of a person, not who is in the sample"
    return Known(words, both.counts(both.released).astype(np.float64))
