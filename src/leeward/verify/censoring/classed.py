"""A k-map over demographics and counts: who could be a record's owner fits its labels and holds all of it
(docs/methods/whole-patient.md#verifier); and scope `groups`, carried out again by plain code of the verifier, from
docs/methods/censoring.md#groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.verify.censoring.holders import Postings, Shown
from leeward.verify.checks import Check, Source, failing, of_count
from leeward.verify.classes import Placed, code_of_class, exact_values, place_in_classes, together
from leeward.verify.flat import Longs, Numbered, count_keys, distinct, places_of
from leeward.verify.manifest import Share


@dataclass(frozen=True)
class People(Placed):
    """The classes of a release, the class of each record in the order of the rows, and the exact values of everybody in
    the population, with their identifiers."""

    people: pl.Series
    values: list[tuple[str, ...]]

    def fitting(self, number: int) -> pl.Series:
        """The people of the population whose exact values fit a class."""
        fits = {each: bool(self.classes.fit(each)[number]) for each in set(self.values)}
        return self.people.filter(pl.Series([fits[each] for each in self.values], dtype=pl.Boolean))


def place_in_population(table: pa.Table, share: Share, source: Source) -> tuple[list[Check], People | None]:
    """The checks of the classes, whose sizes are those in the population; None where they are not as they must be."""
    assert source.population_events is not None  # asked for before
    checks, placed = place_in_classes(share, pl.DataFrame(pl.from_arrow(table.drop(["codes"]))))
    # `class_sizes` is about the records of a class; a k-map needs k people of the population.
    checks = [each for each in checks if each.name != "class_sizes"]
    people = source.population_events["patient"].unique().sort()
    values = exact_values(placed.classes, replace(source, patients=source.population_patients), people)
    if values is None:
        detail = "The population does not have the demographic columns of the release."
        return [*checks, Check("class_people", False, detail)], None
    found = People(placed.classes, placed.of_record, people, values)
    k = share.guarantee("k")
    sizes = [len(found.fitting(number)) for number in range(len(placed.classes.labels))]
    checks.append(
        of_count(
            "class_people",
            sum(size < k for size in sizes),
            f"At least {k} people of the population could have the labels of each of {len(sizes):,} classes.",
            f"classes have labels that fewer than {k} people of the population could have.",
            {"classes": len(sizes), "smallest": min(sizes, default=None)},
        )
    )
    return checks, None if failing(checks) else found


def k_map_of_classes(shown: Shown, placed: People, events: pl.DataFrame, k: int) -> Check:
    """At least k people of the population fit each record's labels and hold all of it."""
    parts = []
    for number in range(len(placed.classes.labels)):
        rows = np.flatnonzero(placed.of_record == number)
        fitting = events.filter(pl.col("patient").is_in(placed.fitting(number).implode()))
        counts = Postings.of(Numbered(fitting)).holders(shown.select(rows), len(rows), k)
        few = int((counts < k).sum())
        parts.append(
            [
                of_count(
                    "k_map",
                    few,
                    f"each record is contained in at least {k} people who fit its labels.",
                    f"of {len(rows):,} records are contained in fewer than {k} people who fit their labels.",
                    {"records": len(rows)},
                )
            ]
        )
    return together(parts)[0]


def split_by_class(shown: Shown, placed: People) -> Shown:
    """The mentions, the codes of each class apart."""
    width = max(1, len(shown.codes))
    keys = placed.of_record[shown.place] * width + shown.code
    used = distinct(keys)
    codes = [code_of_class(key // width, shown.codes[key % width]) for key in used.tolist()]
    return replace(shown, codes=codes, code=np.searchsorted(used, keys))


Record = tuple[tuple[str, int], ...]
Labels = tuple[str, ...]


def apply_caps(record: Record, parameters: Mapping[str, Any]) -> Record:
    """The record under the caps that the manifest states."""
    given, rest = parameters.get("caps"), parameters.get("cap")
    if given is None and rest is None:
        return record
    limits = {str(code): int(cap) for code, cap in (given or {}).items()}
    found = ((code, min(count, limits.get(code, int(rest or 0)))) for code, count in record)
    return tuple((code, count) for code, count in found if count)


def publish(people: Sequence[Record], k: int) -> dict[Record, Record]:
    """What every distinct record of the population is published as: what all of its group have."""
    weight = Counter(people)
    codes = sorted({code for record in weight for code, _ in record})
    number = {code: place for place, code in enumerate(codes)}
    held = [len(record) for record in weight]
    code = np.array([number[each] for record in weight for each, _ in record], np.int64)
    count = np.array([each for record in weight for _, each in record], np.int64)
    most = int(count.max(initial=1))
    owner = np.repeat(np.repeat(np.arange(len(held)), held), count)
    item = np.repeat(code, count) * most + places_of(np.zeros_like(count), count)
    weights = np.fromiter(weight.values(), np.int64, len(weight))
    groups: list[Longs] = []
    left = split(np.arange(len(held)), owner, item, weights, k, groups)
    groups[-1] = np.append(groups[-1], left)
    group = np.empty(len(held), np.int64)
    for place, members in enumerate(groups):
        group[members] = place
    width = max(1, len(codes) * most)
    keys, having = count_keys(group[owner] * width + item)
    shared = keys[having == np.bincount(group)[keys // width]]
    levels: list[Counter[str]] = [Counter() for _ in groups]
    for place, common in zip((shared // width).tolist(), (shared % width // most).tolist(), strict=True):
        levels[place][codes[common]] += 1
    published = [tuple(sorted(each.items())) for each in levels]
    return {record: published[place] for record, place in zip(weight, group.tolist(), strict=True)}


def split(node: Longs, owner: Longs, item: Longs, weights: Longs, k: int, groups: list[Longs]) -> Longs:
    """Adds the groups of the node's people to `groups`; returns those who are too few to be one. `owner` has `item`:
    what the node's people have, items numbered by code and then level; `weights`: people of each record."""
    item = np.unique(item, return_inverse=True)[1]
    count = np.bincount(item, weights[owner]).astype(np.int64)
    people = int(weights[node].sum())
    while people >= k:
        fitting = np.append(np.where((count >= k) & (count < people), count, 0), 0)
        best = int(fitting.argmax())  # the first code, then the lower level, of those that most people have
        if not fitting[best]:
            groups.append(node)
            return node[:0]
        gone = np.zeros(len(weights), np.bool_)
        those = owner[item == best]
        gone[those] = True
        theirs = gone[owner]
        gone[split(those, owner[theirs], item[theirs], weights, k, groups)] = False
        theirs = gone[owner]
        count -= np.bincount(item[theirs], weights[owner[theirs]], len(count)).astype(np.int64)
        people -= int(weights[gone].sum())
        node, owner, item = node[~gone[node]], owner[~theirs], item[~theirs]
    return node


def by_groups(
    released: Sequence[tuple[Labels, Record]],
    sample: Sequence[tuple[Labels, Record]],
    people: Sequence[tuple[Labels, Record]],
    labels: Sequence[Labels | None],
    fit: Callable[[Labels, Labels], bool],
    k: int,
    parameters: Mapping[str, Any],
) -> list[Check]:
    """Every record is what the public rule publishes for its person, and at least k people are published so. `labels`
    are those that everybody of `people` (exact values and record) would be published with, None for nobody's, ()
    without demographics; they must fit, and be the same for people who are alike."""
    shown = {own for own, _ in released}
    of_person: dict[tuple[Labels, Record], Labels | None] = {}
    wrong = 0
    classes: dict[Labels, list[Record]] = defaultdict(list)
    for (values, record), own in zip(people, labels, strict=True):
        wrong += of_person.setdefault((values, record), own) != own
        if own is not None and own in shown:
            wrong += not fit(own, values)
            classes[own].append(apply_caps(record, parameters))
    owners: Counter[tuple[Labels, Record]] = Counter()
    rule: dict[tuple[Labels, Record], Record] = {}
    for own, records in classes.items():
        found = publish(records, k) if len(records) >= k else {record: record for record in records}
        rule |= {(own, record): published_as for record, published_as in found.items()}
        owners.update((own, found[record]) for record in records)
    expected: Counter[tuple[Labels, Record]] = Counter()
    for values, record in sample:
        own = of_person.get((values, record), None if values else ())
        if own is not None:
            expected[own, rule.get((own, apply_caps(record, parameters)), ())] += 1
    return [
        of_count(
            "population_classes",
            wrong,
            "Everybody in the population has labels that fit; people who are alike have the same labels.",
            "people of the population have labels that do not fit, or that differ from those of people who are alike.",
        ),
        of_count(
            "published_alike",
            sum(owners[record] < k for record in released),
            f"At least {k} people of the population would be published exactly as each record.",
            f"records match what fewer than {k} people would be published as.",
            {"fewest": min((owners[record] for record in released), default=0)},
        ),
        of_count(
            "public_rule",
            sum((Counter(released) - expected).values()),
            "Every record is what the public rule publishes for a person of the sample.",
            "records are not what the public rule publishes.",
        ),
    ]
