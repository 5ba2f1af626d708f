"""Scope `groups`, with and without demographics: every record as what its group of the population shares
(docs/methods/censoring.md#groups, docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from leeward.analysis.containment import Multisets
from leeward.analysis.containment.index import number_records
from leeward.analysis.demographics.classes import group_vectors, in_order
from leeward.analysis.demographics.k_map import FIRST_ROW, Both, columns_of_both
from leeward.analysis.demographics.search import Found, Setting, search_full
from leeward.arrays import AnyArray, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring import groups, release
from leeward.methods.censoring.classed import take
from leeward.methods.censoring.inputs import (
    ROWS_SHOWN,
    PopulationLike,
    cap_notices,
    caps_of,
    notices_of,
    require_each_once,
    require_enough,
)
from leeward.methods.censoring.parameters import Censoring
from leeward.methods.censoring.run import Outcome, notice_emptied
from leeward.methods.whole_patient import add_classes, record_labels
from leeward.methods.whole_patient import notices_of as notices_of_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, ReleaseTable

if TYPE_CHECKING:
    import polars as pl

SEARCHED = 20_000
"""People of the population that the search for levels looks at."""


def protect_by_groups(
    parameters: Censoring,
    cohort: Cohort,
    sample: CodeCounts,
    payload: pl.DataFrame | None,
    population: PopulationLike,
    randomness: Randomness | None,
) -> Anonymized:
    """Every record as what its group of the population shares; groups lie inside classes of demographics, where there
    are.

    Raises
    ------
    BadInput
        The population is not in memory, or a record of the sample is nobody's in it.
    GuaranteeUnreachable
        Fewer than k people, or nobody left by `small: drop`.
    """
    if not isinstance(population, Cohort):
        raise BadInput(
            "`scope: groups` needs the population in memory: give a cohort, or use `scope: global`."
        )
    require_each_once(population)
    lens = population.code_counts()
    require_enough(parameters, len(lens))
    caps = caps_of(parameters, lens)
    people = Multisets(lens.offsets, lens.values, lens.counts)
    own = number_records(sample, lens.codes)
    both = _columns(parameters, cohort, sample, population, lens)
    person, alike = _persons(cohort.name, sample, lens, people, own, both)
    found: Found | None = None
    parts: Sequence[AnyArray] = [np.arange(len(people))]
    if both is not None:
        found = _find_classes(parameters, both, people, caps, alike)
        parts = found.classes.members
    shown, sizes = _publish(people, caps, parameters.k, parts)
    inside, released = None, np.arange(len(sample))
    if found is not None and both is not None:
        everyone = found.classes
        # `small` and `taken` stay those of the population, whose classes these are
        classes = in_order(
            both.sample, everyone.vectors, everyone.of_record[person], everyone.small, everyone.taken
        )
        released = classes.released
        if not len(released):
            raise GuaranteeUnreachable(
                "`small: drop` would leave nobody of the sample; choose `small: merge`."
            )
    originals = Multisets(sample.offsets, sample.values, sample.counts).take(released)
    kept = _over(sample, lens, shown.take(person[released]))
    ends = dict(zip(lens.codes, caps.tolist(), strict=True))
    start = np.array([ends.get(code, 0) for code in sample.codes], np.int64)
    facts: dict[str, Any] = {
        "groups": len(sizes),
        "smallest_group": int(sizes.min()),
        "mean_group": float(sizes.mean()),
        "capped_mentions": int(originals.capped(start).sizes().sum()),
    }
    outcome = Outcome(kept, start, start, facts, notice_emptied(originals, kept))
    notices = [*notices_of(cohort, population), *cap_notices(parameters, sample, start), *outcome.notices]
    randomness = randomness or Randomness.of(None)
    order = randomness.stream("censoring", "records").permutation(len(released))
    if found is not None:
        inside = release.InClasses(classes, [start] * len(classes))
    made = release.release_of(
        parameters,
        take(sample, released) if found is not None else sample,
        outcome,
        order,
        payload if found is None or payload is None else payload[released],
        len(lens),
        notices,
        randomness.seeded,
        inside,
    )
    if found is None:
        return made
    bare, _ = _publish(people, caps, parameters.k, [np.arange(len(people))])
    total = max(1, int(originals.sizes().sum()))
    everyone = found.classes
    place = pa.array(np.arange(len(people)))
    said = pa.table({"place": place, **record_labels(everyone, np.arange(len(people)))})
    facts = {
        "smallest_class_in_population": int(everyone.sizes.min()),
        "lost": 1 - int(kept.sizes().sum()) / total,
        "lost_without_demographics": 1 - int(bare.take(person[released]).sizes().sum()) / total,
    }
    made = replace(
        made,
        # the labels that everybody would be published with, by place in ascending order of identifiers
        custody_tables=(*made.custody_tables, ReleaseTable.of(release.PEOPLE, said)),
        custody={**made.custody, **facts},
    )
    notices_of_population = (f"Population: {each}" for each in notices_of_classes(everyone, parameters.small))
    return add_classes(made, replace(found, classes=classes), tuple(notices_of_population))


def _columns(
    parameters: Censoring, cohort: Cohort, sample: CodeCounts, population: Cohort, lens: CodeCounts
) -> Both | None:
    if not parameters.demographics:
        return None
    return columns_of_both(
        (cohort.patients, sample.patients, cohort.name),
        (population.patients, lens.patients, population.name),
        parameters.demographics,
        parameters.hierarchies or {},
        dict(parameters.keep or {}),
    )


def _persons(
    name: str, sample: CodeCounts, lens: CodeCounts, people: Multisets, own: Multisets, both: Both | None
) -> tuple[Int64s, Int64s]:
    """Somebody of the population with each record of the sample (and its exact demographics), int64[records]; and the
    number of everybody's demographics and record, in their order, equal where both are, int64[people].

    Raises BadInput where nobody has them.
    """
    n = len(people)
    together, number = Multisets.together([people, own]).distinct()
    records = number
    if both is not None:
        # numbered in the order of the records, so that nothing depends on the identifiers
        rank = np.empty(len(together), np.int64)
        rank[sorted(range(len(together)), key=lambda r: _ascending(together, r))] = np.arange(len(together))
        exact = group_vectors(np.concatenate([both.everyone.vectors({}), both.sample.vectors({})]))[1]
        number = np.unique(exact * len(together) + rank[number], return_inverse=True)[1].reshape(-1)
    someone = np.full(int(number.max()) + 1, -1, np.int64)
    someone[number[:n][::-1]] = np.arange(n)[::-1]
    person = someone[number[n:]]
    known = set(lens.codes)
    outside = np.array([code not in known for code in sample.codes])
    owners = np.repeat(np.arange(len(sample)), np.diff(sample.offsets))
    strange = np.bincount(owners[outside[sample.values]], minlength=len(sample)) > 0
    lost = np.flatnonzero((person < 0) | strange)
    turned = lost[np.isin(records[n:][lost], records[:n]) & ~strange[lost]]
    rows = ", ".join(map(str, np.sort(sample.rows[turned if len(turned) else lost])[:ROWS_SHOWN].tolist()))
    if len(turned):
        raise BadInput(
            f"{name}: {len(turned):,} record{'s' if len(turned) > 1 else ''} of the sample "
            f"{'have' if len(turned) > 1 else 'has'} the codes of somebody of the population, but not the demographics "
            f"of anybody with these codes (beginning in rows {rows}). {FIRST_ROW}"
        )
    if len(lost):
        raise BadInput(
            f"{name}: {len(lost):,} records of the sample are nobody's record in the population (beginning in "
            f"rows {rows}). `scope: groups` publishes what a person's group shares, so the sample must hold whole "
            "records of the population: check codes, spelling and visit column, or use `scope: global`."
        )
    return person, number[:n]


def _ascending(records: Multisets, r: int) -> tuple[tuple[int, int], ...]:
    codes, counts = records.record(r)
    return tuple(zip(codes.tolist(), counts.tolist(), strict=True))


def _find_classes(parameters: Censoring, both: Both, people: Multisets, caps: Int64s, alike: Int64s) -> Found:
    """The classes of the population, and what the search for their levels measured: on the population alone."""

    def count_losses(parts: Sequence[AnyArray]) -> list[int]:
        shown = (groups.publish(people.take(part), caps, parameters.k)[0] for part in parts)
        return [
            int(people.take(part).sizes().sum() - each.sizes().sum())
            for part, each in zip(parts, shown, strict=True)
        ]

    setting = Setting(
        both.everyone,
        dict(parameters.keep or {}),
        parameters.k,
        parameters.small,
        Randomness.of(0),
        people.sizes(),
        count_losses,
        SEARCHED,
        alike=alike,
    )
    return search_full(setting)


def _publish(people: Multisets, caps: Int64s, k: int, parts: Sequence[AnyArray]) -> tuple[Multisets, Int64s]:
    """What everybody would be published as when each part of the population is one of its own (nothing, outside of
    all parts), and the sizes of all groups."""
    shown = [groups.publish(people.take(part), caps, k) for part in parts]
    place = np.full(len(people), -1, np.int64)
    order = np.concatenate(parts)
    place[order] = np.arange(len(order))
    together = Multisets.together([each for each, _ in shown])
    nothing = Multisets(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    sizes = np.concatenate([np.bincount(group) for _, group in shown])
    return Multisets.together([together, nothing]).take(np.where(place < 0, len(order), place)), sizes


def _over(sample: CodeCounts, lens: CodeCounts, records: Multisets) -> Multisets:
    """Records over the population's codes, over the sample's."""
    back = np.searchsorted(np.array(sample.codes), np.array(lens.codes)).astype(np.int32)
    return Multisets(records.offsets, back[records.values], records.counts)
