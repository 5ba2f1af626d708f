"""Candidate records of patients in a generalized release, and an attack with up to m known codes of a patient
(docs/methods/constraints.md)."""

from __future__ import annotations

from itertools import chain, combinations, islice

import numpy as np

from leeward.analysis.demographics.joint import fitting_classes, records_in_release
from leeward.analysis.generalized import candidates_in, read_parts
from leeward.analysis.reidentification import Known, Tried, draw_known_codes
from leeward.arrays import count_noun
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact
from leeward.randomness import Randomness
from leeward.release import Release

PATIENTS, SETS = 200, 50
"""Patients drawn, and code sets looked up for each."""

LISTED = 2
"""Codes looked up per patient where listed sets are protected."""


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """Count the records of the fitting classes with the labels of m codes of each patient drawn; codes suppressed
    there are ignored."""
    m = int(release.guarantee.get("m") or LISTED)
    sets = records_in_release(release, cohort, cohort.code_sets())
    number, fitting = fitting_classes(release, cohort, sets.patients)
    parts = read_parts(release)
    chosen, drawn = draw_known_codes(sets, m, "known codes")
    candidates = np.zeros(len(chosen))
    for each in np.unique(number[chosen]):
        mine = np.flatnonzero(number[chosen] == each)
        queries = [[sets.codes[code] for code in drawn[i]] for i in mine]
        candidates[mine] = candidates_in(parts, fitting[each], queries)
    names = release.demographics
    return Known(f"{exact(names)}{count_noun('code', m)} of a patient", candidates, whole=False)


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Look up sets of up to m codes of patients by their labels in `codes.parquet`; suppressed codes are ignored. No
    attack is run where listed sets are protected."""
    m, k = release.guarantee.get("m"), int(release.guarantee["k"])
    if not m:
        return []
    parts = read_parts(release)
    sets = records_in_release(release, cohort, cohort.code_sets())
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
    demographics = " and the exact demographics" if release.demographics else ""
    return [
        Tried(
            f"knows {words}{demographics} of a patient, and reads which labels stand for them",
            f"fewer than {k} records have these labels",
            len(counts),
            sum(count < k for count in counts),
        )
    ]
