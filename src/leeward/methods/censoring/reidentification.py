"""Candidates of people of the population for records of a censored sample; and an attack by somebody who has every
record of the population (docs/methods/censoring.md)."""

from __future__ import annotations

import numpy as np

from leeward.analysis.reidentification import Known, Tried
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact
from leeward.methods.censoring.measures.records import pair_records
from leeward.randomness import Randomness
from leeward.release import Release

RECORDS = 2_000
"""Released records that are drawn."""


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known | None:
    """The people who contain each record and fit its demographics; None without the population."""
    if population is None:
        return None
    both = pair_records(release, cohort, population)
    names = release.demographics
    words = f"{exact(names)}all codes of a person, not who is in the sample"
    return Known(words, both.counts(both.released).astype(np.float64))


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Count the people of the population who have all of a released record's codes at least as often."""
    if population is None or release.custody is None:
        return []
    both, k = pair_records(release, cohort, population), int(release.guarantee["k"])
    drawn = Randomness.of(0).stream("attack").permutation(len(both.released))[:RECORDS]
    asked = np.sort(drawn)
    owners = both.counts(both.released)[asked]
    beside = " and the demographics" if both.inside is not None else ""
    return [
        Tried(
            f"has every record{beside} of the population, does not know who is in the sample, and looks for the people "
            "whose a record can be",
            f"fewer than {k} people have all of its codes at least as often",
            len(asked),
            int((owners < k).sum()),
        )
    ]
