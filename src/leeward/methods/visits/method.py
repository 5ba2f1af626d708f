"""Protect a population's visits: from the cohort to the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leeward.arrays import AnyArray, Int32s, Int64s, distinct_of, offsets_of, positions_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.engine import Engine, make
from leeward.errors import BadInput, GuaranteeUnreachable, VerificationFailed
from leeward.methods.visits.bins import Merging, climb, groups_of, merge
from leeward.methods.visits.containment import enforce_containment
from leeward.methods.visits.enforce import enforce_visits
from leeward.methods.visits.known_codes import enforce_known_codes
from leeward.methods.visits.parameters import Visits
from leeward.methods.visits.release import GONE, Outcome, release_of
from leeward.methods.visits.sets import VisitSets, unions, violations
from leeward.methods.visits.visit_lists import codes_apart
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
    """Anonymize all patients of `cohort`; `leeward cohort` draws extracts of the release. Raises BadInput for a
    population (the cohort is the population here), no visits, an unknown payload column, or a policy that does not fit
    the codes; GuaranteeUnreachable for fewer than k patients."""
    if population is not None:
        raise BadInput(
            "visits: the population is what is anonymized: give it as the source, and draw the cohort from the "
            "release with `leeward cohort`."
        )
    lens = _read(parameters, cohort)
    payload = cohort.payload(parameters.payload, lens.patients, ("record",))
    engine, randomness = make(engine), randomness or Randomness.of(None)
    groups = groups_of(parameters.policy, cohort, lens)  # type: ignore[arg-type]  # `checked` parsed it
    order = randomness.stream("visits", "known codes").permutation(len(lens))

    def count_lost(parts: Sequence[AnyArray]) -> list[int]:
        """Number of pairs of visit and code left without a label in each of `parts`, sets of patients, as classes."""
        chosen = _take(lens, np.concatenate(parts))
        number = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        part, apart = _in_classes(chosen, number, groups)
        outcome = enforce(parameters, cohort.vocabulary, make(None), part, apart, np.arange(len(part)))
        of_pair = number[chosen.patient_of_visit()[chosen.visit_of_value()]]
        gone: list[int] = np.bincount(of_pair[outcome.fate_of_pairs() == GONE], minlength=len(parts)).tolist()
        return gone

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        own, apart, numbers = lens, groups, order
        if classes is not None:
            own, apart = _in_classes(_take(lens, kept), classes.of_record, groups)
            numbers = np.searchsorted(kept, order[np.isin(order, kept)])
        outcome = replace(
            enforce(parameters, cohort.vocabulary, engine, own, apart, numbers), classes=classes
        )
        if parameters.level == "visit" and violations(outcome.enforced, len(outcome.labels), parameters.k):
            raise VerificationFailed("a visit's set is held by fewer than k patients; nothing was written.")
        carried = None if payload is None else payload[kept]
        made = release_of(parameters, outcome, carried, cohort.vocabulary, randomness)
        if classes is None:
            return made
        cost = {
            "lost": float(np.mean(outcome.fate_of_pairs() == GONE)),
            "lost_without_demographics": sum(count_lost([np.arange(len(lens))])) / max(1, len(lens.values)),
        }
        return replace(made, custody={**made.custody, **cost})

    occurrences = np.diff(lens.offsets[lens.patient_offsets])
    return release_in_classes(parameters, cohort, lens.patients, occurrences, count_lost, run, randomness)


def _read(parameters: Visits, cohort: Cohort) -> Lens:
    """The visits, or where records are whole patients from the beginning one visit each."""
    lens = cohort.visits(merged=parameters.merge_visits and parameters.level not in ("codes", "containment"))
    if parameters.k > len(lens):
        raise GuaranteeUnreachable(
            f"`k` is {parameters.k:,} and the cohort has {len(lens):,} patients: nobody can be hidden among so many. "
            "Choose a smaller k or give more patients."
        )
    return lens


def _in_classes(lens: Lens, class_of: AnyArray, groups: Int64s) -> tuple[Lens, Int64s]:
    """The lens with separate codes for each class, and the groups of these codes: a code has another number in each
    class, so that counting, merging and enforcement happen inside each class (docs/methods/whole-patient.md#methods).

    `class_of`: int[patients], from 0. `groups`: int64[codes of the lens], which may merge; they do so inside a class.
    """
    n = max(1, len(lens.codes))
    of_value = class_of[lens.patient_of_visit()[lens.visit_of_value()]]
    values, codes, used = codes_apart(of_value, lens.values, lens.codes)
    apart = (used // n) * (int(groups.max(initial=0)) + 1) + groups[used % n]
    return replace(lens, values=values, codes=codes), apart


def _take(lens: Lens, patients: AnyArray) -> Lens:
    starts = offsets_of(np.diff(lens.patient_offsets)[patients])
    chosen = positions_of(lens.patient_offsets, patients)
    bounds = offsets_of(np.diff(lens.offsets)[chosen])
    values, people = lens.values[positions_of(lens.offsets, chosen)], lens.patients.gather(patients)
    return Lens(starts, bounds, values, lens.codes, people, lens.rows[chosen])


def enforce(
    parameters: Visits,
    vocabulary: str | None,
    engine: Engine,
    lens: Lens,
    groups: Int64s,
    order: Int64s,
) -> Outcome:
    """Merge and enforce. groups : int64[codes], which may merge. order : of the patients, for level `codes`."""
    merging = _merge_codes(parameters, lens, groups)
    labels, of_code, up = _labels(parameters, merging, lens, vocabulary)
    mapped = map_visits(lens, of_code, len(labels))
    enforced, steps = enforce_level(parameters, mapped, len(labels), up, engine.threads, order)
    return Outcome(lens, merging, labels, of_code, up, mapped, enforced, steps)


def _merge_codes(parameters: Visits, lens: Lens, groups: Int64s) -> Merging:
    everyone = unions(VisitSets(lens.patient_offsets, lens.offsets, lens.values), len(lens.codes))
    frequencies = np.bincount(everyone.values, minlength=len(lens.codes))
    rare = frequencies < parameters.k
    entries = np.flatnonzero(rare[everyone.values])
    patients = np.searchsorted(everyone.offsets, entries, side="right") - 1
    holders: dict[int, set[int]] = {code: set() for code in np.flatnonzero(rare).tolist()}
    for code, patient in zip(everyone.values[entries].tolist(), patients.tolist(), strict=True):
        holders[code].add(patient)
    return merge(
        lens.codes, frequencies.tolist(), holders, groups.tolist(), parameters.k, rescue=parameters.rescue
    )


def _labels(
    parameters: Visits, merging: Merging, lens: Lens, vocabulary: str | None
) -> tuple[tuple[str, ...], Int32s, Int32s | None]:
    """All labels, the label of each code (-1: suppressed), and the node to which each label climbs."""
    labels, up = merging.labels, None
    label_of: tuple[str | None, ...] = merging.label_of
    if parameters.enforce == "generalize":
        nodes = climb(labels, lens.codes, vocabulary)
        labels, up = nodes.labels, nodes.up
        label_of = tuple(own or above for own, above in zip(label_of, nodes.of_code, strict=True))
    number = {label: place for place, label in enumerate(labels)}
    of_code = np.array([-1 if label is None else number[label] for label in label_of], np.int32)
    return labels, of_code, up


def map_visits(lens: Lens, of_code: Int32s, labels: int) -> VisitSets:
    if (of_code == np.arange(len(of_code))).all():  # every code stays itself
        return VisitSets(lens.patient_offsets, lens.offsets, lens.values)
    label, width = of_code[lens.values], np.int64(max(labels, 1))
    # Two codes of a visit may have become one.
    keys = distinct_of((lens.visit_of_value() * width + label)[label >= 0])
    offsets = offsets_of(np.bincount(keys // width, minlength=lens.n_visits))
    return VisitSets(lens.patient_offsets, offsets, (keys % width).astype(np.int32))


def enforce_level(
    parameters: Visits, mapped: VisitSets, labels: int, up: Int32s | None, threads: int, order: Int64s
) -> tuple[VisitSets, int]:
    k = parameters.k
    if parameters.level == "code":
        return mapped, 0
    if parameters.level == "codes":
        merged = parameters.merge_visits
        return enforce_known_codes(mapped, labels, k, parameters.m, merged=merged, order=order)
    if parameters.level == "containment":
        return enforce_containment(mapped, labels, k, threads)
    return enforce_visits(mapped, labels, k, relative=parameters.key == "relative", up=up)
