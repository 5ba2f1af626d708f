"""The way from a cohort to a release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.arrays import Int32s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.engine import Engine, make
from leeward.errors import BadInput, GuaranteeUnreachable, VerificationFailed
from leeward.methods.visits.bins import Merging, merge
from leeward.methods.visits.classed import in_classes, losses, occurrences_of, take
from leeward.methods.visits.climbing import climbing
from leeward.methods.visits.containment import enforce_containment
from leeward.methods.visits.enforce import enforce_visits
from leeward.methods.visits.groups import groups_of
from leeward.methods.visits.kernels.counting import GONE
from leeward.methods.visits.known_codes import enforce_known_codes
from leeward.methods.visits.outcome import Outcome
from leeward.methods.visits.parameters import Visits
from leeward.methods.visits.relational import code_frequencies, holders_of, relabel, visit_arrays
from leeward.methods.visits.release import release_of
from leeward.methods.visits.sets import VisitSets, violations
from leeward.methods.whole_patient import release_in_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes


def protect(
    parameters: Visits,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: Cohort | None = None,
) -> Anonymized:
    """Anonymize all patients of `cohort`; extracts of the release are drawn by `leeward cohort`.

    Raises
    ------
    BadInput
        A population (it is the cohort itself here), no visits, an unknown payload column, a policy that does not
        fit the codes.
    GuaranteeUnreachable
        Fewer than k patients.
    """
    if population is not None:
        raise BadInput(
            "visits: the population is what is anonymized: give it as the source, and draw the cohort from the "
            "release with `leeward cohort`."
        )
    merged_early = parameters.merge_visits and parameters.level not in ("codes", "containment")
    lens = cohort.visits(merged=merged_early)
    if parameters.k > len(lens):
        raise GuaranteeUnreachable(
            f"`k` is {parameters.k:,} and the cohort has {len(lens):,} patients: nobody can be hidden among so many. "
            "Choose a smaller k or give more patients."
        )
    payload = cohort.payload(parameters.payload, lens.patients, ("record",))
    engine, randomness = make(engine), randomness or Randomness.of(None)
    groups = groups_of(parameters.policy, cohort, lens)  # type: ignore[arg-type]  # `checked` parsed it
    order = randomness.stream("visits", "known codes").permutation(len(lens))

    def trial(part: Lens, apart: Int64s) -> Outcome:
        return enforce(parameters, cohort.vocabulary, make(None), part, apart, np.arange(len(part)))

    lost = losses(lens, groups, trial)

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        own, apart, numbers = lens, groups, order
        if classes is not None:
            own, apart = in_classes(take(lens, kept), classes.of_record, groups)
            numbers = np.searchsorted(kept, order[np.isin(order, kept)])
        outcome = replace(
            enforce(parameters, cohort.vocabulary, engine, own, apart, numbers), classes=classes
        )
        if parameters.level == "visit" and violations(outcome.enforced, len(outcome.labels), parameters.k):
            # Belt and braces before anything is written; the verifier checks the files by itself.
            raise VerificationFailed("a visit's set is held by fewer than k patients; nothing was written.")
        carried = None if payload is None else payload[kept]
        made = release_of(parameters, outcome, carried, cohort.vocabulary, randomness)
        if classes is None:
            return made
        cost = {
            "lost": float(np.mean(outcome.kept_as() == GONE)),
            "lost_without_demographics": sum(lost([np.arange(len(lens))])) / max(1, len(lens.values)),
        }
        return replace(made, custody={**made.custody, **cost})

    return release_in_classes(parameters, cohort, lens.patients, occurrences_of(lens), lost, run, randomness)


def enforce(
    parameters: Visits,
    vocabulary: str | None,
    engine: Engine,
    lens: Lens,
    groups: Int64s,
    order: Int64s,
) -> Outcome:
    """Merge and enforce. groups : int64[codes], which may merge. order : of the patients, for level `codes`."""
    classed = bool(parameters.demographics)
    entries = engine.frame(lens.table())
    merging = _merge_codes(parameters, lens, groups, engine, entries)
    labels, of_code, up = _labels(parameters, merging, lens, vocabulary, classed)
    mapped = _map_visits(parameters, engine, entries, lens, of_code, len(labels))
    enforced, steps = _enforce(parameters, mapped, len(labels), up, engine.threads, order)
    return Outcome(lens, merging, labels, of_code, up, mapped, enforced, steps)


def _merge_codes(parameters: Visits, lens: Lens, groups: Int64s, engine: Engine, entries: Any) -> Merging:
    frequencies = code_frequencies(engine, entries, len(lens.codes))
    rare = holders_of(engine, entries, np.flatnonzero(frequencies < parameters.k).tolist())
    return merge(
        lens.codes, frequencies.tolist(), rare, groups.tolist(), parameters.k, rescue=parameters.rescue
    )


def _labels(
    parameters: Visits, merging: Merging, lens: Lens, vocabulary: str | None, classed: bool
) -> tuple[tuple[str, ...], Int32s, Int32s | None]:
    """All labels, the label of each code (-1: suppressed), and where labels climb."""
    labels, up = merging.labels, None
    label_of: tuple[str | None, ...] = merging.label_of
    if parameters.enforce == "generalize":
        nodes = climbing(labels, lens.codes, parameters.climb_to, vocabulary, classed=classed)
        labels, up = nodes.labels, nodes.up
        label_of = tuple(own or above for own, above in zip(label_of, nodes.of_code, strict=True))
    number = {label: place for place, label in enumerate(labels)}
    of_code = np.array([-1 if label is None else number[label] for label in label_of], np.int32)
    return labels, of_code, up


def _map_visits(
    parameters: Visits, engine: Engine, entries: Any, lens: Lens, of_code: Int32s, labels: int
) -> VisitSets:
    if (of_code == np.arange(len(of_code))).all():  # every code stays itself
        return VisitSets(lens.patient_offsets, lens.offsets, lens.values)
    arrays = visit_arrays(relabel(engine, entries, of_code), lens.n_visits, max(labels, 1))
    return VisitSets(lens.patient_offsets, *arrays)


def _enforce(
    parameters: Visits, mapped: VisitSets, labels: int, up: Int32s | None, threads: int, order: Int64s
) -> tuple[VisitSets, int]:
    if parameters.level == "code":
        return mapped, 0
    if parameters.level == "codes":
        return enforce_known_codes(
            mapped,
            labels,
            parameters.k,
            parameters.m,
            merged=parameters.merge_visits,
            order=order,
        )
    if parameters.level == "containment":
        return enforce_containment(mapped, labels, parameters.k, threads)
    return enforce_visits(mapped, labels, parameters.k, relative=parameters.key == "relative", up=up)
