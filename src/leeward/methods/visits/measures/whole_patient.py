"""What released visits with demographics keep of questions about both (docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leeward.analysis.demographics.joint import WholePatient, figures_of_records, records_in_release
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.arrays import Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.methods.visits.bins import SEPARATOR
from leeward.methods.visits.visit_lists import VisitLists, read_visit_lists
from leeward.release import Release


def whole_patient(release: Release, cohort: Cohort) -> WholePatient:
    """Errors of questions of demographics and codes beside the baseline, loss per column, risk before.

    A patient of the release counts with a code whose label is a merged one by 1 / its members.
    """
    sets = records_in_release(release, cohort, cohort.code_sets())
    holders = holders_of(read_visit_lists(release.path("visits.parquet")), sets.codes)
    return figures_of_records(
        release, cohort, sets, ReleasedClasses.read(release).of_records(release), holders
    )


def holders_of(visits: VisitLists, codes: Sequence[str]) -> list[tuple[Int64s, Float64s]]:
    """For each code the records with a label that names it, ascending, and its share of that label."""
    owner = np.repeat(visits.record, visits.sizes())
    number = {code: i for i, code in enumerate(codes)}
    by_label = np.split(owner[np.argsort(visits.values, kind="stable")],
                        np.cumsum(np.bincount(visits.values, minlength=len(visits.labels)))[:-1])  # fmt: skip
    found: list[list[tuple[Int64s, float]]] = [[] for _ in codes]
    for label, records in zip(visits.labels, by_label, strict=True):
        members = label.split(SEPARATOR)
        for member in members:
            if member in number:
                found[number[member]].append((np.unique(records), 1 / len(members)))
    return [join(each) for each in found]


def join(parts: Sequence[tuple[Int64s, float]]) -> tuple[Int64s, Float64s]:
    """Records of several labels, each once, with the greatest share."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    records = np.concatenate([each for each, _ in parts])
    share = np.concatenate([np.full(len(each), part) for each, part in parts])
    order = np.lexsort((-share, records))
    distinct, first = np.unique(records[order], return_index=True)
    return distinct, share[order][first]
