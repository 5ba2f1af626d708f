"""The way from a sample and its population to a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.counts import CodeCounts
from leeward.errors import BadInput, GuaranteeUnreachable, VerificationFailed
from leeward.methods import demographics_tables as whole
from leeward.methods.censoring import guarantee as wording
from leeward.methods.censoring.parameters import MOST_MENTIONS, Censoring
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.analysis.containment import Multisets, Population
    from leeward.engine import Engine

ROWS_SHOWN = 20

PopulationLike = Cohort | str | Path
"""A cohort, or the path of a Parquet population (`patient`, `code`, where known `visit`) to be streamed."""


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
        return _protect_by_groups(parameters, cohort, sample, payload, population, randomness)
    if parameters.demographics:
        return _protect_in_classes(parameters, cohort, sample, payload, population, engine, randomness)
    everyone, originals = _population_of(parameters, cohort, sample, population, engine)
    _require_contained(cohort.name, sample, everyone.counts(originals, limit=1))
    caps = _caps_of(parameters, sample)
    outcome = censored(everyone, originals, caps, parameters.k, parameters.scope)
    if not everyone.asks_at_once and (everyone.counts(outcome.kept, limit=parameters.k) < parameters.k).any():
        raise VerificationFailed(
            "a censored record is contained in fewer than k people; nothing was written."
        )
    notices = [*_notices(cohort, population), *_cap_notices(parameters, sample, caps), *outcome.notices]
    randomness = randomness or Randomness.of(None)
    order = randomness.stream("censoring", "records").permutation(len(sample))
    return wording.release_of(
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
    _require_each_once(population)
    everyone = population.code_counts()
    _require_enough(parameters, len(everyone))
    caps = _caps_of(parameters, sample)
    parts = classed.parts_of(parameters, sample, everyone, caps, make(engine).threads)
    found = classed.find_classes(parameters, cohort, sample, population, everyone, parts)
    classes = found.classes
    assert isinstance(classes, SampleClasses)  # for the types: made so by the search
    kept = np.flatnonzero(classes.of_record >= 0)
    _require_contained(
        cohort.name, classed.take(sample, kept), parts.counts(parts.originals, classes, 1)[kept]
    )
    outcome, final = classed.censor_classes(parts, classes)
    without = classed.lost_without(parts, len(everyone))
    gone = int(parts.originals.take(kept).sizes().sum() - outcome.kept.sizes().sum())
    randomness = randomness or Randomness.of(None)
    order = randomness.stream("censoring", "records").permutation(len(kept))
    notices = [*_notices(cohort, population), *_cap_notices(parameters, sample, caps), *outcome.notices]
    made = wording.release_of(
        parameters,
        classed.take(sample, kept),
        outcome,
        order,
        None if payload is None else payload[kept],
        len(everyone),
        notices,
        randomness.seeded,
        wording.InClasses(classes, kept, final),
    )
    facts = {
        **whole.facts_of(found),
        "smallest_class_in_population": min(map(len, classes.people)),
        "lost": gone / max(1, int(parts.originals.take(kept).sizes().sum())),
        "lost_without_demographics": without,
    }
    return replace(
        made,
        custody_tables=made.custody_tables + whole.custody_tables_of(classes),
        custody={**made.custody, **facts},
        notices=made.notices + whole.notices_of(classes, parameters.small),
    )


def _protect_by_groups(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    payload: pl.DataFrame | None,
    population: PopulationLike,
    randomness: Randomness | None,
) -> Anonymized:
    """Every record as what its group of the population shares (docs/methods/censoring.md#groups)."""
    from leeward.analysis.containment import Multisets
    from leeward.analysis.containment.index import numbered
    from leeward.methods.censoring import groups
    from leeward.methods.censoring.run import Outcome, emptied

    if not isinstance(population, Cohort):
        raise BadInput(
            "`scope: groups` needs the population in memory: give a cohort, or use `scope: global`."
        )
    _require_each_once(population)
    lens = population.code_counts()
    _require_enough(parameters, len(lens))
    known = set(lens.codes)
    caps = np.minimum(lens.most(), MOST_MENTIONS if parameters.cap is None else parameters.cap)
    if parameters.caps is not None:
        given = [parameters.caps.get(code, parameters.cap or 0) for code in lens.codes]
        caps = np.minimum(lens.most(), np.array(given, np.int64))
    people = Multisets(lens.offsets, lens.values, lens.counts)
    shown, group = groups.publish(people, caps, parameters.k)
    originals = Multisets(sample.offsets, sample.values, sample.counts)
    own = numbered(sample, lens.codes)
    together, number = Multisets.together([people, own]).distinct()
    someone = np.full(len(together), -1, np.int64)
    someone[number[: len(people)][::-1]] = np.arange(len(people))[::-1]
    person = someone[number[len(people) :]]
    outside = np.array([code not in known for code in sample.codes])
    strange = np.bincount(originals.owners()[outside[sample.values]], minlength=len(sample)) > 0
    lost = np.flatnonzero((person < 0) | strange)
    if len(lost):
        rows = ", ".join(map(str, np.sort(sample.rows[lost])[:ROWS_SHOWN].tolist()))
        raise BadInput(
            f"{cohort.name}: {len(lost):,} records of the sample are nobody's record in the population (beginning in "
            f"rows {rows}). `scope: groups` publishes what a person's group shares, so the sample must hold whole "
            "records of the population: check codes, spelling and visit column, or use `scope: global`."
        )
    back = np.searchsorted(np.array(sample.codes), np.array(lens.codes)).astype(np.int32)
    kept = shown.take(person)
    kept = Multisets(kept.offsets, back[kept.values], kept.counts)
    ends = dict(zip(lens.codes, caps.tolist(), strict=True))
    start = np.array([ends.get(code, 0) for code in sample.codes], np.int64)
    sizes = np.bincount(group)
    facts = {
        "groups": len(sizes),
        "smallest_group": int(sizes.min()),
        "mean_group": float(sizes.mean()),
        "capped_mentions": int(originals.capped(start).sizes().sum()),
    }
    outcome = Outcome(kept, start, start, facts, emptied(originals, kept))
    notices = [*_notices(cohort, population), *_cap_notices(parameters, sample, start), *outcome.notices]
    randomness = randomness or Randomness.of(None)
    order = randomness.stream("censoring", "records").permutation(len(sample))
    return wording.release_of(
        parameters, sample, outcome, order, payload, len(lens), notices, randomness.seeded
    )


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
        _require_each_once(population)
        _require_enough(parameters, population.require_events()["patient"].n_unique())
        return Index.of(population.code_counts(), sample.codes, most, engine.threads), originals
    from leeward.methods.censoring.streamed import Streamed

    if isinstance(population, Cohort):
        _require_each_once(population)
        columns = [
            name for name in ("patient", "code", "visit") if name in population.require_events().columns
        ]
        everyone = Streamed(
            engine, population.require_events().select(columns), sample.codes, most, originals
        )
    else:
        everyone = Streamed(engine, population, sample.codes, most, originals)
    _require_enough(parameters, everyone.n)
    return everyone, originals


def _require_enough(parameters: Censoring, people: int) -> None:
    if parameters.k > people:
        raise GuaranteeUnreachable(
            f"`k` is {parameters.k:,} and the population has {people:,} people: no record can be hidden among so many. "
            "Choose a smaller k or give the whole population."
        )


def _caps_of(parameters: Censoring, sample: CodeCounts) -> Int64s:
    """The cap of each code of the sample, never above its highest count there."""
    most = sample.most()
    if parameters.caps is None:
        return np.minimum(most, MOST_MENTIONS if parameters.cap is None else parameters.cap)
    given = [parameters.caps.get(code, parameters.cap or 0) for code in sample.codes]
    return np.minimum(most, np.array(given, np.int64))


def _cap_notices(parameters: Censoring, sample: CodeCounts, caps: Int64s) -> list[str]:
    if parameters.caps is None or parameters.cap is not None:
        return []
    without = sum(code not in parameters.caps for code in sample.codes)
    if not without:
        return []
    mentions = int(sample.counts[caps[sample.values] == 0].sum())
    return [
        (
            f"{without:,} code{'s' if without > 1 else ''} of the sample without a cap: cap 0, "
            "all mentions censored "
            f"({mentions:,} mentions of codes with cap 0). Name them in `caps`, or give `cap` for the rest."
        )
    ]


def _require_contained(name: str, sample: CodeCounts, owners: Int64s) -> None:
    """Every original must be contained in a population record, or the claim of 1/k counts no true owner
    (docs/methods/censoring.md#guarantee). owners : int64[records], people who contain the original, counted up to 1."""
    lost = np.flatnonzero(owners < 1)
    if not len(lost):
        return
    rows = np.sort(sample.rows[lost])[:ROWS_SHOWN].tolist()
    shown = ", ".join(map(str, rows)) + (", …" if len(lost) > len(rows) else "")
    raise BadInput(
        f"{name}: {len(lost):,} record{'s' if len(lost) > 1 else ''} of the sample that no record of the population "
        f"contains (beginning in rows {shown}). The sample must come from the population: check that both have the "
        "same codes, spelling and visit column, and that the population is complete."
    )


def _require_each_once(population: Cohort) -> None:
    """No patient may be twice in the population: two records of one person would hide nobody
    (docs/methods/censoring.md#guarantee)."""
    population.require_one_row_each()
    events = population.require_events()
    if events["patient"].dtype != pl.String:
        return
    people = events.group_by("patient").agg(
        pl.col("row").min() if "row" in events.columns else pl.lit(0).alias("row")
    )
    alike = pl.col("patient").str.strip_chars().str.to_lowercase().is_duplicated()
    twice = people.filter(alike)
    if twice.height:
        rows = ", ".join(map(str, twice["row"].sort().head(ROWS_SHOWN).to_list()))
        raise BadInput(
            f"{population.name}: {twice.height:,} patients differ from another only in blanks or upper and lower case "
            f"(beginning in rows {rows}); one person must have one identifier, or k counts the same person twice."
        )


def _notices(cohort: Cohort, population: PopulationLike) -> list[str]:
    found = []
    if isinstance(population, Cohort):
        visits = ["visit" in source.require_events().columns for source in (cohort, population)]
        if visits[0] != visits[1]:
            having, lacking = ("sample", "population") if visits[0] else ("population", "sample")
            found.append(
                f"The {having} has a visit column and the {lacking} has none: mentions are counted unlike."
            )
    return found
