"""A k-map over demographics and counts: every record is contained in k people of the population who could have its
labels of demographics (docs/methods/whole-patient.md#methods).

Records are censored class by class, each class beside the people of the population who fit its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.analysis.containment import Index, Multisets
from leeward.analysis.containment.index import number_records
from leeward.analysis.demographics.columns import Level
from leeward.analysis.demographics.k_map import Both, SampleClasses, classes_in_population
from leeward.analysis.demographics.search import Found, Setting, search_full
from leeward.arrays import AnyArray, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.engine import make
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring.gccens import censor_records, notice_emptied
from leeward.methods.censoring.inputs import (
    PopulationLike,
    caps_of,
    columns_of,
    require_contained,
    require_each_once,
    require_enough,
)
from leeward.methods.censoring.release import Outcome, take
from leeward.methods.whole_patient import notices_of
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.engine import Engine
    from leeward.methods.censoring.parameters import Censoring


@dataclass(frozen=True)
class Parts:
    """The sample's records, the population's over the sample's codes, and the caps (int64[codes]) before censoring.
    Every class is censored with these."""

    originals: Multisets
    everyone: Multisets
    caps: Int64s
    most: Int64s
    k: int
    scope: str
    threads: int = 1

    def index(self, people: Int64s) -> Index:
        return Index(self.everyone.take(people), self.most, self.threads)

    def censor(self, records: AnyArray, people: Int64s) -> Outcome:
        return censor_records(
            self.index(people), self.originals.take(np.asarray(records)), self.caps, self.k, self.scope
        )

    def counts(self, records: Multisets, classes: SampleClasses, limit: int | None = None) -> Int64s:
        """int64[records]: the people who fit each record's class and contain it; records in the sample's order."""
        found = np.zeros(len(records), np.int64)
        for number, people in enumerate(classes.people):
            own = np.flatnonzero(classes.of_record == number)
            found[own] = self.index(people).counts(records.take(own), limit=limit)
        return found


@dataclass
class KMapSetting(Setting):
    """A search over classes that hold k people of the population; what is lost are mentions."""

    both: Both = field(kw_only=True)
    parts: Parts = field(kw_only=True)

    def form(self, levels: Mapping[str, Level], records: Int64s | None) -> SampleClasses | None:
        levels = {**levels, **self.keep}
        try:
            return classes_in_population(self.both, levels, self.k, self.small, frozenset(self.keep), records)
        except GuaranteeUnreachable:
            return None

    def count_lost(self, classes: Any, records: Int64s | None) -> int:
        lost = 0
        for number, people in enumerate(classes.people):
            own = np.flatnonzero(classes.of_record == number)
            own = own if records is None else records[own]
            kept = self.parts.censor(own, people).kept
            lost += int(self.parts.originals.take(own).sizes().sum() - kept.sizes().sum())
        return lost


def censor_in_classes(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    population: PopulationLike,
    engine: Engine | None,
) -> Outcome:
    """A k-map over demographics and counts."""
    if not isinstance(population, Cohort):
        raise BadInput("`demographics` need the population in memory: give a file or a cohort.")
    require_each_once(population)
    everyone = population.code_counts()
    require_enough(parameters, len(everyone))
    caps = caps_of(parameters, sample)
    parts = Parts(
        Multisets(sample.offsets, sample.values, sample.counts),
        number_records(everyone, sample.codes),
        caps,
        sample.most(),
        parameters.k,
        parameters.scope,
        make(engine).threads,
    )
    found = find_classes(parameters, cohort, sample, population, everyone, parts)
    classes = found.classes
    assert isinstance(classes, SampleClasses)  # for the types: made so by the search
    kept = classes.released
    require_contained(cohort.name, take(sample, kept), parts.counts(parts.originals, classes, 1)[kept])
    outcome = censor_classes(parts, classes)
    everybody = parts.censor(np.arange(len(sample)), np.arange(len(everyone))).kept
    facts = {
        "smallest_class_in_population": min(map(len, classes.people)),
        "lost": share_lost(parts.originals.take(kept), outcome.kept),
        "lost_without_demographics": share_lost(parts.originals, everybody),
    }
    return replace(
        outcome,
        facts={**outcome.facts, **facts},
        people=len(everyone),
        found=found,
        class_notices=notices_of(classes, parameters.small),
    )


def find_classes(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    population: Cohort,
    everyone: CodeCounts,
    parts: Parts,
) -> Found:
    """The classes of the sample's patients (`SampleClasses`), and what the search for their levels measured."""
    both = columns_of(parameters, cohort, sample, population, everyone)
    setting = KMapSetting(
        both.sample,
        dict(parameters.keep or {}),
        parameters.k,
        parameters.small,
        Randomness.of(0),
        parts.originals.sizes(),
        lambda records: [],
        both=both,
        parts=parts,
    )
    return search_full(setting)


def censor_classes(parts: Parts, classes: SampleClasses) -> Outcome:
    outcomes, members = [], []
    for number, people in enumerate(classes.people):
        members.append(np.flatnonzero(classes.of_record == number))
        outcomes.append(parts.censor(members[-1], people))
    back = np.argsort(np.concatenate(members), kind="stable")
    kept = Multisets.together([each.kept for each in outcomes]).take(back)
    exact = [each.exact for each in outcomes if each.exact is not None]
    return Outcome(
        kept,
        parts.caps,
        parts.caps,
        {name: sum(int(each.facts[name]) for each in outcomes) for name in outcomes[0].facts},
        notice_emptied(parts.originals.take(classes.released), kept),
        np.concatenate(exact)[back] if exact else None,
        classes.released,
        class_caps=[each.caps for each in outcomes],
    )


def share_lost(before: Multisets, after: Multisets) -> float:
    mentions = int(before.sizes().sum())
    return (mentions - int(after.sizes().sum())) / max(1, mentions)
