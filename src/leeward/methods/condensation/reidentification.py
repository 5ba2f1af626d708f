"""Candidates of patients in a condensed table: those of their group; its outcome times are another matter."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

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
    file = None if release.custody is None else release.custody / "data" / "released_rows.parquet"
    if file is None or not file.is_file():
        return None
    sizes = pl.read_parquet(file)["group"].value_counts()["count"].to_numpy()
    return Known(WITHIN, np.repeat(sizes, sizes).astype(np.float64), before=_before(release, cohort))


def _before(release: Release, cohort: Cohort) -> Int64s | None:
    """The patients of the source who agree in all columns but the times; None where custody does not say which."""
    file = None if release.custody is None else release.custody / "measures.json"
    if file is None or not file.is_file():
        return None
    times = json.loads(file.read_text(encoding="utf-8")).get("method", {}).get("times")
    return None if times is None else alike(cohort.table().frame.drop(times))
