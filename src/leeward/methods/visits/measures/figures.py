"""The figures of anonymized visits, as `measures.json` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class Counts(Figures):
    """A count (DC or CC): original, released, of codes released as they were, and had rare codes been suppressed.

    Also as shares of the original cohort's (`local`) and, for an extract, of the population's.
    """

    original: int
    released: int
    ungeneralized: int
    suppression_only: int
    released_local: float
    ungeneralized_local: float
    suppression_only_local: float
    original_population: float | None = None
    released_population: float | None = None
    ungeneralized_population: float | None = None
    suppression_only_population: float | None = None

    @classmethod
    def with_shares(cls, counts: dict[str, int], population: int | None) -> Counts:
        """The four counts with their shares."""
        local = {
            f"{name}_local": count / max(1, counts["original"])
            for name, count in counts.items()
            if name != "original"
        }
        wide = (
            {f"{name}_population": count / population for name, count in counts.items()} if population else {}
        )
        return cls(**counts, **local, **wide)  # type: ignore[arg-type]  # counts are the four whole numbers


@dataclass(frozen=True)
class Retention(Figures):
    """Diagnosis count: distinct (patient, code) pairs. Code count: codes that are still represented. Records:
    `released`, and those `with_codes`."""

    dc: Counts
    cc: Counts
    records: Mapping[str, int]


@dataclass(frozen=True)
class FewHolders(Figures):
    """Visits, their distinct sets, and visits (and people with one) whose set fewer than k people, or one, have."""

    visits: int
    sets: int
    few: int
    few_share: float
    alone: int
    alone_share: float
    people_few_share: float
    people_alone_share: float


@dataclass(frozen=True)
class Risk(Figures):
    """Visits whose set points at few people, before and after."""

    k: int
    before: FewHolders
    after: FewHolders


@dataclass(frozen=True)
class Significant(Figures):
    """Significant associations: originally, kept, lost, and in the release only."""

    original: int
    kept: int
    lost: int
    false: int


@dataclass(frozen=True, kw_only=True)
class Compared(Significant):
    """Of one predictor, by one rule for many tests."""

    predictor: str
    rule: str


@dataclass(frozen=True)
class OnePhecode(Figures):
    """One phecode against one predictor; `effect` is a log odds ratio."""

    predictor: str
    phecode: str
    p_original: float | None
    effect: float | None
    cases: int | None
    p_anonymized: float | None
    category: str
    phenotype: str


@dataclass(frozen=True)
class Phewas(Figures):
    """A phenome-wide study of the original data and of the release.

    phecodes : how many were tested in each. regressions : in each, how many came to which of
    `analysis.phewas.associations.OUTCOMES`. totals : over all predictors, by rule.
    """

    test: str
    min_codes: int
    min_cases: int
    phecodes: Mapping[str, int]
    regressions: Mapping[str, Mapping[str, int]]
    comparison: tuple[Compared, ...]
    totals: Mapping[str, Significant]
    tests: tuple[OnePhecode, ...]


@dataclass(frozen=True)
class Pairs(Figures):
    """What became of (visit, code) pairs: released as they were, in a merged code, as a node above."""

    original: int
    exact: int
    merged: int
    above: int


@dataclass(frozen=True)
class SharedBy(Figures):
    """How many share the visit sets of a cohort drawn from a master.

    population_smallest : fewest holders in the master of a set of the cohort. visits : of the cohort. few, alone :
    visits whose set fewer than k members of the cohort hold, and only one. smallest : fewest holders inside the cohort.
    members : records of the cohort. members_alone, members_alone_population : those whose visits, all together, no
    other record of the cohort (of the master) has. few_in_class, alone_in_class : members whose released demographics
    fewer than k members have, and nobody else; smallest_class, population_smallest_class : fewest members of such a
    class, fewest records of one in the master (with demographics alone).
    """

    k: int
    population: int
    population_smallest: int
    visits: int
    few: int
    alone: int
    smallest: int
    members: int
    members_alone: int
    members_alone_population: int
    few_in_class: int | None = None
    alone_in_class: int | None = None
    smallest_class: int | None = None
    population_smallest_class: int | None = None

    @property
    def few_share(self) -> float:
        """Of the cohort's visits."""
        return self.few / max(1, self.visits)

    @property
    def alone_share(self) -> float:
        """Of the cohort's visits."""
        return self.alone / max(1, self.visits)

    def to_json(self) -> dict[str, Any]:
        """With the shares."""
        return super().to_json() | {"few_share": self.few_share, "alone_share": self.alone_share}


@dataclass(frozen=True)
class Run(Figures):
    """What the method reported of its run."""

    visits: int | None = None
    emptied_visits: int | None = None
    pairs: Pairs | None = None
    shared_by: SharedBy | None = None
