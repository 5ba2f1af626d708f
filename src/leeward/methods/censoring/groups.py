"""Scope `groups`: the population is partitioned by a public rule, and a record is released as what its group shares
(docs/methods/censoring.md#groups, docs/methods/whole-patient.md#methods).

The rule looks at the population, the caps and k, never at the sample, and treats people with equal records alike. So
at least k people would be published exactly as each released record is, also for somebody who knows the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from leeward.analysis.containment import Multisets
from leeward.analysis.containment.index import levels_of, number_records
from leeward.analysis.demographics.classes import Classes, group_vectors, in_order
from leeward.analysis.demographics.k_map import FIRST_ROW, Both
from leeward.analysis.demographics.search import Found, Setting, search_full
from leeward.arrays import AnyArray, Int64s, offsets_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.compiled import njit
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring.gccens import notice_emptied
from leeward.methods.censoring.inputs import (
    ROWS_SHOWN,
    PopulationLike,
    caps_of,
    columns_of,
    require_each_once,
    require_enough,
)
from leeward.methods.censoring.parameters import Censoring
from leeward.methods.censoring.release import PEOPLE, Outcome
from leeward.methods.whole_patient import notices_of, record_labels
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

SEARCHED = 20_000
"""People of the population that the search for levels looks at."""


def censor_by_groups(
    parameters: Censoring, cohort: Cohort, sample: CodeCounts, population: PopulationLike
) -> Outcome:
    """Every record as what its group of the population shares; groups lie inside classes of demographics, where there
    are. Raises BadInput: the population is not in memory, or a record of the sample is nobody's in it;
    GuaranteeUnreachable: fewer than k people, or nobody left by `small: drop`."""
    if not isinstance(population, Cohort):
        raise BadInput(
            "`scope: groups` needs the population in memory: give a cohort, or use `scope: global`."
        )
    require_each_once(population)
    lens = population.code_counts()
    require_enough(parameters, len(lens))
    k, caps = parameters.k, caps_of(parameters, lens)
    people = Multisets(lens.offsets, lens.values, lens.counts)
    whole: Sequence[AnyArray] = [np.arange(len(people))]
    own = number_records(sample, lens.codes)
    both = columns_of(parameters, cohort, sample, population, lens) if parameters.demographics else None
    person, alike = _persons(cohort.name, sample, lens, people, own, both)
    found = None if both is None else _find_classes(parameters, both, people, caps, alike)
    shown, sizes = _publish(people, caps, k, whole if found is None else found.classes.members)
    places = np.arange(len(sample))
    if found is not None and both is not None:
        everyone = found.classes
        # `small` and `taken` stay those of the population, whose classes these are
        classes = in_order(
            both.sample, everyone.vectors, everyone.of_record[person], everyone.small, everyone.taken
        )
        places = classes.released
        if not len(places):
            raise GuaranteeUnreachable(
                "`small: drop` would leave nobody of the sample; choose `small: merge`."
            )
    originals = Multisets(sample.offsets, sample.values, sample.counts).take(places)
    kept = _over(sample, lens, shown.take(person[places]))
    ends = dict(zip(lens.codes, caps.tolist(), strict=True))
    start = np.array([ends.get(code, 0) for code in sample.codes], np.int64)
    facts = {
        "groups": len(sizes),
        "smallest_group": int(sizes.min()),
        "mean_group": float(sizes.mean()),
        "capped_mentions": int(originals.cap(start).sizes().sum()),
    }
    told = notice_emptied(originals, kept)
    outcome = Outcome(kept, start, start, facts, told, places=places, people=len(lens))
    if found is None:
        return outcome
    bare, _ = _publish(people, caps, k, whole)
    before = max(1, int(originals.sizes().sum()))
    after = [int(each.sizes().sum()) for each in (kept, bare.take(person[places]))]
    lost = {"lost": 1 - after[0] / before, "lost_without_demographics": 1 - after[1] / before}
    return _add_classes(outcome, parameters.small, found, classes, lost)


def _add_classes(
    outcome: Outcome, small: str, found: Found, classes: Classes, lost: dict[str, float]
) -> Outcome:
    everyone = found.classes
    # the labels that everybody would be published with, by place in ascending order of identifiers
    place = np.arange(len(everyone.of_record))
    labels = pa.table({"place": place, **record_labels(everyone, place)})
    smallest = {"smallest_class_in_population": int(everyone.sizes.min())}
    return replace(
        outcome,
        facts={**outcome.facts, **smallest, **lost},
        found=replace(found, classes=classes),
        class_caps=[outcome.caps] * len(classes),
        class_notices=tuple(f"Population: {each}" for each in notices_of(everyone, small)),
        tables=(ReleaseTable.of(PEOPLE, labels),),
    )


def _persons(
    name: str, sample: CodeCounts, lens: CodeCounts, people: Multisets, own: Multisets, both: Both | None
) -> tuple[Int64s, Int64s]:
    """Somebody of the population with each record of the sample (and its exact demographics), int64[records]; and the
    number of everybody's demographics and record, in their order, equal where both are, int64[people]. Raises BadInput
    where nobody has them."""
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
        shown = (publish(people.take(part), caps, parameters.k)[0] for part in parts)
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
    shown = [publish(people.take(part), caps, k) for part in parts]
    place = np.full(len(people), -1, np.int64)
    order = np.concatenate(parts)
    place[order] = np.arange(len(order))
    together = Multisets.together([each for each, _ in shown])
    nothing = Multisets(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    sizes = np.concatenate([np.bincount(group) for _, group in shown])
    return Multisets.together([together, nothing]).take(np.where(place < 0, len(order), place)), sizes


def _over(sample: CodeCounts, lens: CodeCounts, records: Multisets) -> Multisets:
    back = np.searchsorted(np.array(sample.codes), np.array(lens.codes)).astype(np.int32)
    return Multisets(records.offsets, back[records.values], records.counts)


def publish(people: Multisets, caps: Int64s, k: int) -> tuple[Multisets, Int64s]:
    """What each person would be published as, and the group of each, int64[n]; k must not exceed their number."""
    capped = people.cap(caps)
    distinct, number = capped.distinct()
    starts = offsets_of(caps)
    owner, item = levels_of(distinct, starts)  # by record, and in it by item
    by_item = np.argsort(item.astype(np.min_scalar_type(int(starts[-1]))), kind="stable")  # 16 bits: by radix
    group = split(
        offsets_of(np.bincount(owner, minlength=len(distinct))),
        item,
        offsets_of(np.bincount(item, minlength=int(starts[-1]))),
        owner[by_item],
        np.bincount(number, minlength=len(distinct)).astype(np.int64),
        k,
    )
    shown = common_part(distinct, group)
    return shown.take(group[number]), group[number]


def common_part(records: Multisets, group: Int64s) -> Multisets:
    """What all records of each group have in common."""
    owner = group[records.owners()]
    code, count = records.values.astype(np.int64), records.counts
    order = np.lexsort((code, owner))
    owner, code, count = owner[order], code[order], count[order]
    first = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(code) != 0)]) if len(owner) else owner
    held = np.diff(np.r_[first, len(owner)])
    sizes = np.bincount(group)
    everywhere = held == sizes[owner[first]]
    least = np.minimum.reduceat(count, first) if len(first) else count
    kept = first[everywhere]
    return Multisets(
        offsets_of(np.bincount(owner[kept], minlength=len(sizes))),
        code[kept].astype(np.int32),
        least[everywhere].astype(np.int32),
    )


@njit
def split(offsets: Any, items: Any, starts: Any, holders: Any, weight: Any, k: int) -> Any:
    """The group of each distinct record, int64[n]; every group has weight ≥ k (docs/methods/censoring.md#groups).

    Record r has items[offsets[r]:offsets[r + 1]] and stands for weight[r] people; item i is held by
    holders[starts[i]:starts[i + 1]]. A node's records have its depth in `depth`; counts[d] are the people of the node
    at depth d who have each item. Each node has lists of holders of its own: those of the root are as long as the
    population, and there are as many nodes as groups.
    """
    n, n_items = len(weight), len(starts) - 1
    depth = np.zeros(n, np.int64)
    group = np.full(n, -1, np.int64)
    counts = np.zeros((8, n_items), np.int64)
    people = np.zeros(8, np.int64)
    lists, node_starts, node_holders = [np.arange(n)], [starts], [holders]
    for r in range(n):
        people[0] += weight[r]
        for e in range(offsets[r], offsets[r + 1]):
            counts[0, items[e]] += weight[r]
    made = np.int64(0)
    d = 0
    while True:
        best = -1
        if people[d] >= k:
            for i in range(n_items):
                if k <= counts[d, i] < people[d] and (best < 0 or counts[d, i] > counts[d, best]):
                    best = i
        if best >= 0:
            if d + 1 == len(people):
                more = np.zeros((2 * len(people), n_items), np.int64)
                more[: len(people)] = counts
                counts = more
                larger = np.zeros(len(counts), np.int64)
                larger[: len(people)] = people
                people = larger
            counts[d + 1] = 0
            people[d + 1] = 0
            those = node_holders[d][node_starts[d][best] : node_starts[d][best + 1]]
            those = those[depth[those] == d]
            place = np.zeros(n_items + 1, np.int64)
            for one in those:
                depth[one] = d + 1
                people[d + 1] += weight[one]
                for e in range(offsets[one], offsets[one + 1]):
                    counts[d + 1, items[e]] += weight[one]
                    place[items[e] + 1] += 1
            counts[d] -= counts[d + 1]
            people[d] -= people[d + 1]
            place = np.cumsum(place)
            lists.append(those)
            node_starts.append(place.copy())
            node_holders.append(np.empty(place[-1], holders.dtype))
            for one in those:
                for e in range(offsets[one], offsets[one + 1]):
                    node_holders[d + 1][place[items[e]]] = one
                    place[items[e]] += 1
            d += 1
            continue
        if people[d] >= k:
            for one in lists[d]:
                if depth[one] == d:
                    depth[one] = -1
                    group[one] = made
            made += 1
        elif d > 0:  # too few to be a group: back to the node above
            for one in lists[d]:
                if depth[one] == d:
                    depth[one] = d - 1
            counts[d - 1] += counts[d]
            people[d - 1] += people[d]
        else:  # at the root they join the last group
            for r in range(n):
                if depth[r] == 0:
                    group[r] = made - 1
        if d == 0:
            break
        for each in (lists, node_starts, node_holders):
            each.pop()
        d -= 1
    return group
