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
from leeward.verify.flat import Numbered, distinct
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
        detail = "The population has not the demographic columns of the release."
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


Item = tuple[str, int]
Record = tuple[Item, ...]
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
    items = {r: {(code, n) for code, count in r for n in range(1, count + 1)} for r in weight}
    groups: list[list[Record]] = []
    left = split(list(weight), weight, items, k, groups)
    groups[-1] += left
    shown: dict[Record, Record] = {}
    for group in groups:
        levels = Counter(code for code, _ in set.intersection(*(items[r] for r in group)))
        shown |= dict.fromkeys(group, tuple(sorted(levels.items())))
    return shown


def split(
    node: list[Record],
    weight: Mapping[Record, int],
    items: Mapping[Record, set[Item]],
    k: int,
    groups: list[list[Record]],
) -> list[Record]:
    """Adds the groups of the node's people to `groups`; returns those who are too few to be one."""
    inside, people = set(node), sum(map(weight.__getitem__, node))
    count: Counter[Item] = Counter()
    holders = defaultdict(list)
    for r in node:
        for item in items[r]:
            count[item] += weight[r]
            holders[item].append(r)
    while people >= k:
        fitting = [(-n, item) for item, n in count.items() if k <= n < people]
        if not fitting:
            groups.append(list(inside))
            return []
        those = inside.intersection(holders[min(fitting)[1]])
        gone = those.difference(split(list(those), weight, items, k, groups))
        inside -= gone
        for r in gone:
            people -= weight[r]
            count.subtract(dict.fromkeys(items[r], weight[r]))
    return list(inside)


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
            "Everybody of the population has labels that fit the exact values, and people who are alike the same.",
            "people of the population have labels that do not fit, or others than people who are alike.",
        ),
        of_count(
            "published_alike",
            sum(owners[record] < k for record in released),
            f"At least {k} people of the population would be published exactly as each record.",
            f"records are what fewer than {k} people would be published as.",
            {"fewest": min((owners[record] for record in released), default=0)},
        ),
        of_count(
            "public_rule",
            sum((Counter(released) - expected).values()),
            "Every record is what the public rule publishes for a person of the sample.",
            "records are not what the public rule publishes.",
        ),
    ]
