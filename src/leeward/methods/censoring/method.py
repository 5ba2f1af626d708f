"""The way from a sample and its population to a release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.errors import BadInput, VerificationFailed
from leeward.methods.censoring import release
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
from leeward.methods.whole_patient import add_classes
from leeward.methods.whole_patient import notices_of as notices_of_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
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
    """Censor the sample `cohort` until every record is contained in at least k records of `population`.

    Raises
    ------
    BadInput
        No population, a record of the sample that no population record contains, a patient who occurs twice in
        the population, an unknown payload column.
    GuaranteeUnreachable
        k is above the number of people in the population.
    """
    from leeward.methods.censoring.run import censored

    if population is None:
        raise BadInput(
            "censoring needs the population that the sample comes from; give it with `population`."
        )
    sample = cohort.code_counts()
    payload = cohort.payload(parameters.payload, sample.patients, ("record", "codes"))
    if parameters.scope == "groups":
        from leeward.methods.censoring.by_groups import protect_by_groups

        return protect_by_groups(parameters, cohort, sample, payload, population, randomness)
    if parameters.demographics:
        return _protect_in_classes(parameters, cohort, sample, payload, population, engine, randomness)
    everyone, originals = _population_of(parameters, cohort, sample, population, engine)
    require_contained(cohort.name, sample, everyone.counts(originals, limit=1))
    caps = caps_of(parameters, sample)
    outcome = censored(everyone, originals, caps, parameters.k, parameters.scope)
    if not everyone.asks_at_once and (everyone.counts(outcome.kept, limit=parameters.k) < parameters.k).any():
        raise VerificationFailed(
            "a censored record is contained in fewer than k people; nothing was written."
        )
    notices = [*notices_of(cohort, population), *cap_notices(parameters, sample, caps), *outcome.notices]
    randomness = randomness or Randomness.of(None)
    order = randomness.stream("censoring", "records").permutation(len(sample))
    return release.release_of(
        parameters, sample, outcome, order, payload, everyone.n, notices, randomness.seeded
    )


def _protect_in_classes(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    payload: pl.DataFrame | None,
    population: PopulationLike,
    engine: Engine | None,
    randomness: Randomness | None,
) -> Anonymized:
    """A k-map over demographics and counts (docs/methods/whole-patient.md#methods)."""
    from leeward.analysis.demographics.k_map import SampleClasses
    from leeward.engine import make
    from leeward.methods.censoring import classed

    if not isinstance(population, Cohort):
        raise BadInput("`demographics` need the population in memory: give a file or a cohort.")
    require_each_once(population)
    everyone = population.code_counts()
    require_enough(parameters, len(everyone))
    caps = caps_of(parameters, sample)
    parts = classed.parts_of(parameters, sample, everyone, caps, make(engine).threads)
    found = classed.find_classes(parameters, cohort, sample, population, everyone, parts)
    classes = found.classes
    assert isinstance(classes, SampleClasses)  # for the types: made so by the search
    kept = classes.released
    require_contained(
        cohort.name, classed.take(sample, kept), parts.counts(parts.originals, classes, 1)[kept]
    )
    outcome, final = classed.censor_classes(parts, classes)
    without = classed.loss_without_demographics(parts, len(everyone))
    gone = int(parts.originals.take(kept).sizes().sum() - outcome.kept.sizes().sum())
    randomness = randomness or Randomness.of(None)
    order = randomness.stream("censoring", "records").permutation(len(kept))
    notices = [*notices_of(cohort, population), *cap_notices(parameters, sample, caps), *outcome.notices]
    made = release.release_of(
        parameters,
        classed.take(sample, kept),
        outcome,
        order,
        None if payload is None else payload[kept],
        len(everyone),
        notices,
        randomness.seeded,
        release.InClasses(classes, final),
    )
    facts = {
        "smallest_class_in_population": min(map(len, classes.people)),
        "lost": gone / max(1, int(parts.originals.take(kept).sizes().sum())),
        "lost_without_demographics": without,
    }
    made = replace(made, custody={**made.custody, **facts})
    return add_classes(made, found, notices_of_classes(classes, parameters.small))


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
    everyone: Population
    if isinstance(population, Cohort) and engine.name == "local":
        require_each_once(population)
        require_enough(parameters, population.require_events()["patient"].n_unique())
        return Index.of(population.code_counts(), sample.codes, most, engine.threads), originals
    from leeward.methods.censoring.streamed import Streamed

    if isinstance(population, Cohort):
        require_each_once(population)
        columns = [
            name for name in ("patient", "code", "visit") if name in population.require_events().columns
        ]
        everyone = Streamed(
            engine, population.require_events().select(columns), sample.codes, most, originals
        )
    else:
        everyone = Streamed(engine, population, sample.codes, most, originals)
    require_enough(parameters, everyone.n)
    return everyone, originals
