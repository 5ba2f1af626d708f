"""Candidates of patients in generalized records: the records with the labels of some of their codes."""

from __future__ import annotations

import numpy as np

from leeward.analysis.demographics.joint import fitting_classes, select_released_records
from leeward.analysis.generalized import candidates_in, read_parts
from leeward.analysis.reidentification import Known, draw_known_codes
from leeward.arrays import count_noun
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact
from leeward.release import Release

LISTED = 2
"""Codes that are looked up of a patient where listed sets are protected."""


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """The records of the classes that fit with the labels of m codes of each patient drawn; codes that are suppressed
    there say nothing."""
    m = int(release.guarantee.get("m") or LISTED)
    sets = select_released_records(release, cohort, cohort.code_sets())
    number, fitting = fitting_classes(release, cohort, sets.patients)
    parts = read_parts(release)
    chosen, drawn = draw_known_codes(sets, m, "known codes")
    candidates = np.zeros(len(chosen))
    for each in np.unique(number[chosen]):
        mine = np.flatnonzero(number[chosen] == each)
        queries = [[sets.codes[code] for code in drawn[i]] for i in mine]
        candidates[mine] = candidates_in(parts, fitting[each], queries)
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    return Known(f"{exact(names)}{count_noun('code', m)} of a patient", candidates, whole=False)
