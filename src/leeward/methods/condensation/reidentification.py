"""Candidates of patients in a condensed table: those of their group; its outcome times are another matter."""

from __future__ import annotations

import numpy as np

from leeward.analysis.reidentification import Known, Scope, alike
from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import in_words
from leeward.release import Release

WITHIN = "everything about a patient but the outcome times"


def scope(release: Release) -> Scope:
    """The guarantee is about all columns but outcome times, which the release may show as they are."""
    exact = [str(name) for name in release.guarantee.get("facts", {}).get("exact", ())]
    if exact:
        return Scope(
            f"if they know {WITHIN} ({in_words(exact)})",
            "if they know one",
            "a patient's exact time is in the release",
        )
    if release.parameters.get("coarsen_time"):
        return Scope(f"if they know {WITHIN}", "if they know one", "a time mostly names the patient's group")
    return Scope(f"if they know {WITHIN}")


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known | None:
    """The patients of each one's group; None without the custodian's file of groups."""
    rows = release.custody_table("released_rows")
    if rows is None:
        return None
    sizes = rows["group"].value_counts()["count"].to_numpy()
    return Known(WITHIN, np.repeat(sizes, sizes).astype(np.float64), before=_before(release, cohort))


def _before(release: Release, cohort: Cohort) -> Int64s | None:
    """The patients of the source who agree in all columns but the times; None where custody does not say which."""
    times = (release.custody_json("measures.json") or {}).get("method", {}).get("times")
    return None if times is None else alike(cohort.table().frame.drop(times))
