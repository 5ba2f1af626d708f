"""Candidates of patients in a k-anonymous table: the rows of their group; and an attack by somebody who knows all
quasi-identifiers of a patient (docs/methods/k-anonymity.md)."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.reidentification import Known, Tried, alike
from leeward.cohort.cohort import Cohort
from leeward.randomness import Randomness
from leeward.release import Release

ROWS = 1_000
"""Source rows that are drawn."""


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    names = list(release.parameters["quasi_identifiers"])
    rows = release.table("table.parquet").select(names).collect()
    return Known(
        "the quasi-identifiers of a patient",
        alike(rows).astype(np.float64),
        before=alike(cohort.table().frame.select(names)),
    )


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Take the released rows that are nearest in the quasi-identifiers (ranks of numbers, equality of levels), and all
    that agree with them."""
    names, k = list(release.parameters["quasi_identifiers"]), int(release.guarantee["k"])
    classes = release.table("table.parquet").collect().group_by(names, maintain_order=True).len()
    known = cohort.table().frame.select(names)
    drawn = Randomness.of(0).stream("attack").permutation(known.height)[:ROWS]
    known = known[np.sort(drawn)]
    gaps = np.zeros((known.height, classes.height))
    for name in names:
        if known[name].dtype.is_numeric() and classes[name].dtype.is_numeric():
            ordered = np.sort(known[name].drop_nulls().to_numpy().astype(np.float64))
            middle = ordered[len(ordered) // 2] if len(ordered) else 0.0
            own, theirs = (
                np.searchsorted(ordered, each[name].cast(pl.Float64).fill_null(middle).to_numpy())
                for each in (known, classes)
            )
            gaps += np.abs(own[:, None] - theirs[None, :]) / max(len(ordered), 1)
        else:
            levels, their_levels = (
                each[name].cast(pl.String).fill_null("").to_numpy() for each in (known, classes)
            )
            gaps += levels[:, None] != their_levels[None, :]
    sizes = classes["len"].to_numpy()[gaps.argmin(axis=1)]
    return [
        Tried(
            "knows all quasi-identifiers of a patient, and takes the nearest rows",
            f"fewer than {k} rows agree",
            known.height,
            int((sizes < k).sum()),
        )
    ]
