"""Attack on generalized codes: somebody knows up to m codes of a patient (docs/methods/constraints.md)."""

from __future__ import annotations

from itertools import chain, combinations, islice

import numpy as np

from leeward.analysis.demographics.joint import fitting_classes, select_released_records
from leeward.analysis.generalized import candidates_in, read_parts
from leeward.analysis.reidentification import Tried
from leeward.cohort.cohort import Cohort
from leeward.randomness import Randomness
from leeward.release import Release

PATIENTS, SETS = 200, 50
"""Patients that are drawn, and sets of codes of each that are looked up."""


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Look sets of m codes of patients up, each as the labels that `codes.parquet` gives its codes; suppressed codes
    tell nothing. Where listed sets are protected, those are looked up, patient or not."""
    m, k = release.guarantee.get("m"), int(release.guarantee["k"])
    if not m:
        return []
    parts = read_parts(release)
    sets = select_released_records(release, cohort, cohort.code_sets())
    number, fits = fitting_classes(release, cohort, sets.patients)
    drawn = Randomness.of(0).stream("attack").permutation(len(sets))[:PATIENTS]
    counts: list[int] = []
    for vector in np.unique(number[drawn]):
        known: list[tuple[str, ...]] = []
        for patient in drawn[number[drawn] == vector].tolist():
            own = sets.record(patient)
            sizes = range(min(int(m), len(own)), 0, -1)
            known += islice(chain.from_iterable(combinations(own, size) for size in sizes), SETS)
        counts += candidates_in(parts, fits[vector], known).tolist()
    words = "one code" if m == 1 else f"up to {m} codes"
    demographics = " and the exact demographics" if release.parameters.get("demographics") else ""
    return [
        Tried(
            f"knows {words}{demographics} of a patient, and reads which labels stand for them",
            f"fewer than {k} records have these labels",
            len(counts),
            sum(count < k for count in counts),
        )
    ]
