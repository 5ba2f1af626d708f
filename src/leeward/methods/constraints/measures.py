"""What generalization under constraints cost: ARE, MRE, codes lost, and the risk before
(docs/methods/constraints.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.code_figures import Errors, MatchingErrors, RiskBefore, Workload
from leeward.analysis.figures import Figures
from leeward.analysis.generalized import Generalized, check_reading, counts, matching, read
from leeward.analysis.itemsets import supports_of
from leeward.analysis.relative_errors import average_relative_error
from leeward.analysis.risk import risk_before
from leeward.analysis.workloads import (
    WORKLOAD_SEED,
    check_measure,
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
"""Records that W2 draws from."""

LARGEST_SHOWN = 30

DEFAULTS: tuple[dict[str, Any], ...] = (
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random"}},
    {"mre": {}},
    {"codes": {}},
    {"risk": {}},
)
OPTIONS: dict[str, frozenset[str]] = {
    "are": frozenset({"workload", "min_support", "max_size", "reading", "queries"}),
    "mre": frozenset({"reading"}),
    "codes": frozenset(),
    "risk": frozenset({"largest_m"}),
}


@dataclass(frozen=True)
class Are(Figures):
    """Average relative errors, under a reading of generalized codes."""

    reading: str
    workloads: tuple[Workload, ...]


@dataclass(frozen=True, kw_only=True)
class Mre(MatchingErrors):
    """Matching relative errors, under a reading of generalized codes."""

    reading: str


@dataclass(frozen=True)
class Fate(Figures):
    """What became of codes, or of their occurrences."""

    total: int
    intact: int
    generalized: int
    suppressed: int

    def share(self, part: int) -> float:
        """`part` of the total."""
        return part / max(1, self.total)


@dataclass(frozen=True)
class Label(Figures):
    """A generalized label: its codes, and the records that hold it."""

    members: int
    records: int


@dataclass(frozen=True)
class Codes(Figures):
    """What became of the codes, and the largest labels."""

    codes: Fate
    occurrences: Fate
    labels: int
    largest_labels: tuple[Label, ...] = field(default=())


def measure(release: Release, cohort: Cohort, wanted: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The figures asked for (see `OPTIONS`), JSON-able, for the custodian only.

    Several `are` add up to several workloads under `are.workloads`. Raises BadInput for an unknown measure
    or option.
    """
    asked = [(name, options) for each in wanted for name, options in each.items()]
    for name, options in asked:
        check_measure("constraints", OPTIONS, name, options)
    released, sets = read(release), cohort.code_sets()
    found: dict[str, Figures] = {}
    for name, options in asked:
        if name == "are":
            one = are(released, sets, **options)
            before = found.get("are")
            found["are"] = (
                Are(before.reading, before.workloads + one.workloads) if isinstance(before, Are) else one
            )
        elif name == "mre":
            found["mre"] = mre(released, sets, policy_of(release), **options)
        elif name == "codes":
            found["codes"] = codes(released, sets)
        else:
            k = int(release.guarantee["k"])
            found["risk"] = RiskBefore.from_json(risk_before(sets, k, seed=WORKLOAD_SEED, **options))
    return {name: figures.to_json() for name, figures in found.items()}


def are(
    released: Generalized,
    sets: CodeSets,
    *,
    workload: str = "frequent",
    min_support: int | float = 0.0125,
    max_size: int | None = None,
    reading: str = "subset",
    queries: int | None = None,
) -> Are:
    """Average relative error of COUNT queries, over all queries (suppressed codes estimated 0) and, under
    `kept`, over those on released codes only, as the paper reports it. Workloads as for disassociation.
    """
    check_reading(reading)
    return Are(
        reading,
        workloads_of(
            sets,
            lambda drawn: _errors(released, sets, drawn, reading),
            workload=workload,
            min_support=min_support,
            max_size=max_size,
            queries=queries,
            chains=RANDOM_CHAINS,
        ),
    )


def _errors(released: Generalized, sets: CodeSets, queries: list[AnyArray], reading: str) -> dict[str, Any]:
    true = supports_of(sets, queries)
    found = counts(released, [[sets.codes[c] for c in query] for query in queries], reading)
    kept = found.answerable
    return {
        **average_relative_error(true, found.expected, found.low, found.high),
        "kept": Errors(**average_relative_error(true[kept], found.expected[kept])),
    }


def mre(
    released: Generalized, sets: CodeSets, policy: pl.DataFrame | None, *, reading: str = "subset"
) -> Mre:
    """(true - estimate) / true of the number of records with a code of each utility constraint."""
    check_reading(reading)
    if policy is None:
        return Mre(reading=reading)
    names, members = constraints_of(policy)
    true = matching_records(sets, members)
    estimated = [
        matching(released, each, reading) if count else 0.0 for each, count in zip(members, true, strict=True)
    ]
    return Mre(reading=reading, **matching_errors(names, members, true, estimated))


def codes(released: Generalized, sets: CodeSets) -> Codes:
    """What became of the codes: intact, generalized, suppressed; by codes and by their occurrences."""
    supports = sets.supports()
    size = np.array([_size(released, code) for code in sets.codes])
    parts = (size == 1, size > 1, size == 0)
    largest = sorted(released.members, key=lambda group: (-len(group), group))[:LARGEST_SHOWN]
    return Codes(
        codes=Fate(len(sets.codes), *(int(mask.sum()) for mask in parts)),
        occurrences=Fate(int(supports.sum()), *(int(supports[mask].sum()) for mask in parts)),
        labels=len(released.members),
        largest_labels=tuple(
            Label(len(group), _holders(released, group[0])) for group in largest if len(group) > 1
        ),
    )


def _size(released: Generalized, code: str) -> int:
    label = released.label_of.get(code)
    return 0 if label is None else len(released.members[label])


def _holders(released: Generalized, code: str) -> int:
    return int(supports_of(released.records, [[released.label_of[code]]])[0])
