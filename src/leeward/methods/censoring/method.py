"""The way from a sample and its population to a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.errors import BadInput, VerificationFailed
from leeward.methods.censoring.inputs import (
    PopulationLike,
    cap_notices,
    caps_of,
    notices_of,
    require_contained,
    require_each_once,
    require_enough,
)
from leeward.methods.censoring.parameters import MOST_MENTIONS, Censoring
from leeward.methods.censoring.release import Outcome, release_of, take
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    import polars as pl

    from leeward.analysis.containment import Multisets, Population
    from leeward.engine import Engine


def protect(
    parameters: Censoring,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: PopulationLike | None = None,
) -> Anonymized:
    """Censor the sample `cohort` until every record is contained in at least k records of `population`. Raises BadInput
    for no population, a sample record that no population record contains, a patient who occurs twice in the population,
    or an unknown payload column; GuaranteeUnreachable for k above the population's size."""
    if population is None:
        raise BadInput(
            "censoring needs the population that the sample comes from; give it with `population`."
        )
    sample = cohort.code_counts()
    payload = cohort.payload(parameters.payload, sample.patients, ("record", "codes"))
    if parameters.scope == "groups":
        from leeward.methods.censoring.groups import censor_by_groups

        outcome = censor_by_groups(parameters, cohort, sample, population)
    elif parameters.demographics:
        from leeward.methods.censoring.classed import censor_in_classes

        outcome = censor_in_classes(parameters, cohort, sample, population, engine)
    else:
        outcome = _censor(parameters, cohort, sample, population, engine)
    randomness = randomness or Randomness.of(None)
    places = outcome.places
    order = randomness.stream("censoring", "records").permutation(len(places))
    return release_of(
        parameters,
        take(sample, places),
        outcome,
        order,
        None if payload is None else payload[places],
        (
            *notices_of(cohort, population),
            *cap_notices(parameters, sample, outcome.start_caps),
            *outcome.notices,
        ),
        randomness.seeded,
    )


def _censor(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    population: PopulationLike,
    engine: Engine | None,
) -> Outcome:
    from leeward.methods.censoring.gccens import censor_records

    everyone, originals = _population_of(parameters, cohort, sample, population, engine)
    require_contained(cohort.name, sample, everyone.counts(originals, limit=1))
    outcome = censor_records(everyone, originals, caps_of(parameters, sample), parameters.k, parameters.scope)
    if not everyone.asks_at_once and (everyone.counts(outcome.kept, limit=parameters.k) < parameters.k).any():
        raise VerificationFailed(
            "a censored record is contained in fewer than k people; nothing was written."
        )
    return replace(outcome, places=np.arange(len(sample)), people=everyone.n)


def _population_of(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    population: PopulationLike,
    engine: Engine | None,
) -> tuple[Population, Multisets]:
    from leeward.analysis.containment import Index, Multisets
    from leeward.engine import make

    engine = make(engine)
    originals = Multisets(sample.offsets, sample.values, sample.counts)
    most = sample.most()
    if most.max() > MOST_MENTIONS:
        raise BadInput(f"{cohort.name}: a record holds more than {MOST_MENTIONS:,} mentions of one code.")
    source: str | Path | pl.DataFrame
    if isinstance(population, Cohort):
        require_each_once(population)
        if engine.name == "local":
            require_enough(parameters, len(population.code_counts()))
            return Index.of(population.code_counts(), sample.codes, most, engine.threads), originals
        events = population.require_events()
        source = events.select([name for name in ("patient", "code", "visit") if name in events.columns])
    else:
        source = population
    from leeward.methods.censoring.streamed import Streamed

    everyone = Streamed(engine, source, sample.codes, most, originals)
    require_enough(parameters, everyone.n)
    return everyone, originals
