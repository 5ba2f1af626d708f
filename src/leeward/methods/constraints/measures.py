"""Measures of generalization under constraints: ARE, MRE, codes lost, and the risk before release
(docs/methods/constraints.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.joint import WholePatient, records_in_release, whole_patient
from leeward.analysis.demographics.released import Concerned
from leeward.analysis.figures import Measures, figures_of
from leeward.analysis.generalized import (
    Generalized,
    candidates_in,
    check_reading,
    counts_in,
    matching,
    read_parts,
)
from leeward.analysis.itemsets import supports_of
from leeward.analysis.risk import SEED, risk_before
from leeward.analysis.workloads import (
    NO_POLICY,
    average_relative_error,
    constraints_of,
    matching_errors,
    matching_records,
    policy_of,
    workloads_of,
)
from leeward.arrays import AnyArray
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.release import Release

RANDOM_CHAINS = 1_000
"""Number of records from which W2 draws."""

LARGEST_SHOWN = 30

Released = Sequence[Generalized]
"""The parts of a release, one per class; a single one without demographics."""

DEFAULTS = (
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random"}},
    "mre",
    "codes",
    "risk",
    "demographics",
)


def measure(release: Release, cohort: Cohort, wanted: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The figures of generalized records, for the custodian only. BadInput for an unknown measure or option."""
    released, sets = read_parts(release), records_in_release(release, cohort, cohort.code_sets())
    measures: Measures = {
        "are": partial(are, released, sets),
        "mre": partial(mre, released, sets, policy_of(release)),
        "codes": lambda: codes(released, sets_of_classes(release, sets)),
        "risk": partial(risk_before, sets, int(release.guarantee["k"]), seed=SEED),
        "demographics": partial(demographics, release, released, cohort, sets),
    }
    return figures_of(release, measures, wanted)


def are(
    released: Released,
    sets: CodeSets,
    *,
    workload: str = "frequent",
    min_support: int | float = 0.0125,
    max_size: int | None = None,
    reading: str = "subset",
    queries: int | None = None,
) -> dict[str, Any]:
    """Average relative error of COUNT queries, over all queries (suppressed codes estimated 0) and, under `kept`, over
    those on released codes only, as the paper reports it. Workloads as for disassociation."""
    check_reading(reading)
    return {
        "reading": reading,
        "workloads": workloads_of(
            sets,
            lambda drawn: _errors(released, sets, drawn, reading),
            workload=workload,
            min_support=min_support,
            max_size=max_size,
            queries=queries,
            chains=RANDOM_CHAINS,
        ),
    }


def _errors(released: Released, sets: CodeSets, queries: list[AnyArray], reading: str) -> dict[str, Any]:
    true = supports_of(sets, queries)
    found = counts_in(released, [[sets.codes[c] for c in query] for query in queries], reading)
    kept = found.answerable
    return {
        **average_relative_error(true, found.expected, found.low, found.high),
        "kept": average_relative_error(true[kept], found.expected[kept]),
    }


def mre(
    released: Released, sets: CodeSets, policy: pl.DataFrame | None, *, reading: str = "subset"
) -> dict[str, Any]:
    """(true - estimate) / true of the number of records with a code of each utility constraint."""
    check_reading(reading)
    if policy is None:
        return {**NO_POLICY, "reading": reading}
    names, members = constraints_of(policy)
    true = matching_records(sets, members)
    estimated = [
        sum(matching(part, each, reading) for part in released) if count else 0.0
        for each, count in zip(members, true, strict=True)
    ]
    return {**matching_errors(names, members, true, estimated), "reading": reading}


def codes(released: Released, sets: Sequence[CodeSets] | None) -> dict[str, Any] | None:
    """Numbers of intact, generalized and suppressed codes and occurrences. With classes of demographics (`sets`: the
    records of each, None if unknown) a code is counted in every class that has it."""
    if sets is None:
        return None
    fates, occurrences = np.zeros(3, np.int64), np.zeros(3, np.int64)
    largest: list[tuple[int, Generalized, tuple[str, ...]]] = []
    for part, own in zip(released, sets, strict=True):
        supports = own.supports()
        size = np.array([_size(part, code) for code in own.codes])
        for place, mask in enumerate((size == 1, size > 1, size == 0)):
            fates[place] += int((mask & (supports > 0)).sum())
            occurrences[place] += int(supports[mask].sum())
        largest += [(len(group), part, group) for group in part.members]
    largest.sort(key=lambda each: (-each[0], each[2]))
    names = ("total", "intact", "generalized", "suppressed")
    return {
        "codes": dict(zip(names, (int(fates.sum()), *fates.tolist()), strict=True)),
        "occurrences": dict(zip(names, (int(occurrences.sum()), *occurrences.tolist()), strict=True)),
        "labels": sum(len(part.members) for part in released),
        "largest_labels": [
            {"members": size, "records": int(supports_of(part.records, [[part.label_of[group[0]]]])[0])}
            for size, part, group in largest[:LARGEST_SHOWN]
            if size > 1
        ],
    }


def sets_of_classes(release: Release, sets: CodeSets) -> list[CodeSets] | None:
    """The records of each class, from the custodian's file (None without it); all records if there are no
    demographics."""
    if not release.demographics:
        return [sets]
    known = release.custody_table("class_of_patient")
    if known is None:
        return None
    people = sets.patients.alias("patient").to_frame()
    rows = people.join(
        known.cast({"patient": people["patient"].dtype}), on="patient", how="left", maintain_order="left"
    )
    of_record = rows["class"].to_numpy()
    classes = range(int(known["class"].to_numpy().max()) + 1)
    return [sets.take(np.flatnonzero(of_record == number)) for number in classes]


def demographics(release: Release, released: Released, cohort: Cohort, sets: CodeSets) -> WholePatient:
    """Errors of queries on demographics and codes, and the risk from attackers who know both."""

    def name_codes(queries: list[AnyArray]) -> list[list[str]]:
        return [[sets.codes[code] for code in query] for query in queries]

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        found = counts_in(released, name_codes(queries), concerned=concerned)
        return found.low, found.expected, found.high

    def counting(concerned: Concerned, queries: list[AnyArray]) -> AnyArray:
        return candidates_in(released, concerned.possible, name_codes(queries))

    m = int(release.guarantee.get("m", 0))
    return whole_patient(release, cohort, sets, m, estimating, counting)


def _size(released: Generalized, code: str) -> int:
    label = released.label_of.get(code)
    return 0 if label is None else len(released.members[label])
