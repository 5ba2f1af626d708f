"""What released visits with demographics keep of questions about both (docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leeward.analysis.demographics.figures import WholePatient
from leeward.analysis.demographics.joint import released_records
from leeward.analysis.demographics.joint import whole_patient as joint_figures
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.arrays import AnyArray, Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.methods.visits.bins import SEPARATOR
from leeward.methods.visits.visit_lists import VisitLists, read_visit_lists
from leeward.release import Release


def apart(visits: VisitLists, class_of: Int64s) -> VisitLists:
    """The visits, the labels of each class as labels of their own, so that counts are counts inside a class.

    class_of : int64[records], from 0.
    """
    width = max(1, len(visits.labels))
    keys = np.repeat(class_of[visits.record], visits.sizes()) * width + visits.values
    used, values = np.unique(keys, return_inverse=True)
    labels = tuple(f"{key // width:06d} {visits.labels[key % width]}" for key in used.tolist())
    return replace(visits, values=values.reshape(-1).astype(np.int32), labels=labels)


def whole_patient(release: Release, cohort: Cohort) -> WholePatient:
    """Errors of questions of demographics and codes beside the baseline, loss per column, risk before.

    A patient of the release counts with a code whose label is a merged one by 1 / its members.
    """
    sets = released_records(release, cohort, cohort.code_sets())
    classes = ReleasedClasses.read(release)
    class_of = classes.of_records(release)
    holders = holders_of(read_visit_lists(release.path("visits.parquet")), sets.codes)

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        share = concerned.share[class_of]
        low, expected = np.zeros((2, len(queries)))
        for i, query in enumerate(queries):
            records, weight = holders[int(query[0])]
            for code in query[1:]:
                others, theirs = holders[int(code)]
                records, mine, yours = np.intersect1d(records, others, True, True)
                weight = weight[mine] * theirs[yours]
            expected[i] = float((weight * share[records]).sum())
            low[i] = int(((weight == 1) & (share[records] == 1)).sum())
        return low, expected, np.full(len(queries), int(concerned.possible[class_of].sum()))

    return joint_figures(release, cohort, sets, 0, estimating, lambda concerned, queries: np.zeros(0))


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
    return [joined(each) for each in found]


def joined(parts: Sequence[tuple[Int64s, float]]) -> tuple[Int64s, Float64s]:
    """Records of several labels, each once, with the greatest share."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    records = np.concatenate([each for each, _ in parts])
    share = np.concatenate([np.full(len(each), part) for each, part in parts])
    order = np.lexsort((-share, records))
    distinct, first = np.unique(records[order], return_index=True)
    return distinct, share[order][first]
