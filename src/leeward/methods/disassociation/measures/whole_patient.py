"""What a disassociated release with demographics keeps of questions about both, and what the joint attacker finds
(docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

import numpy as np

from leeward.analysis.demographics.figures import WholePatient
from leeward.analysis.demographics.joint import whole_patient as joint_figures
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.arrays import AnyArray
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.measures.estimates import estimates_in
from leeward.methods.disassociation.measures.published import Published
from leeward.release import Release


def whole_patient(release: Release, published: Published, cohort: Cohort, sets: CodeSets) -> WholePatient:
    """Errors of questions of demographics and codes beside the baseline, loss per column, risk before and after."""
    numbers = ReleasedClasses.read(release).number
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        found = estimates_in(published, concerned, numbers, [translate[query] for query in queries])
        return found.low, found.expected, found.high

    def counting(concerned: Concerned, queries: list[AnyArray]) -> AnyArray:
        known = [np.sort(translate[query]) for query in queries]
        return estimates_in(published, concerned, numbers, known, "one").high

    return joint_figures(release, cohort, sets, int(release.guarantee["m"]), estimating, counting)
