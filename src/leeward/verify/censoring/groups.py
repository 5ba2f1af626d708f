"""Scope `groups`, carried out again by the verifier: plain code of its own, from docs/methods/censoring.md#groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leeward.verify.checks import Check, of_count

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
    """What every distinct record of the population is published as."""
    weight = Counter(people)
    items = {r: {(code, n) for code, count in r for n in range(1, count + 1)} for r in weight}
    groups: list[list[Record]] = []

    def split(node: list[Record]) -> list[Record]:
        """Groups of the node's people; returns those who are too few to be one."""
        inside = set(node)
        count: Counter[tuple[str, int]] = Counter()
        holders = defaultdict(list)
        for r in node:
            for item in items[r]:
                count[item] += weight[r]
                holders[item].append(r)
        people = sum(weight[r] for r in node)
        while people >= k:
            fitting = [(-n, item) for item, n in count.items() if k <= n < people]
            if not fitting:
                groups.append(list(inside))
                return []
            chosen = min(fitting)[1]
            those = [r for r in holders[chosen] if r in inside]
            gone = set(those) - set(split(those))
            inside -= gone
            for r in gone:
                people -= weight[r]
                for item in items[r]:
                    count[item] -= weight[r]
        return list(inside)

    left = split(list(weight))
    groups[-1] += left
    shown: dict[Record, Record] = {}
    for group in groups:
        common = set.intersection(*(items[r] for r in group))
        levels: Counter[str] = Counter(code for code, _ in common)
        for r in group:
            shown[r] = tuple(sorted(levels.items()))
    return shown


def by_groups(
    released: Sequence[Record],
    sample: Sequence[Record],
    people: Sequence[Record],
    k: int,
    parameters: Mapping[str, Any],
) -> list[Check]:
    """Every record is what the public rule publishes for its person, and at least k people are published so."""
    whole = [apply_caps(record, parameters) for record in people]
    rule = publish(whole, k)
    owners = Counter(rule[record] for record in whole)
    expected = Counter(rule.get(apply_caps(record, parameters), ()) for record in sample)
    return _checks(Counter(released), owners, expected, k)


def by_groups_in_classes(
    released: Sequence[tuple[Labels, Record]],
    sample: Sequence[tuple[Labels, Record]],
    people: Sequence[tuple[Labels, Record]],
    labels: Sequence[Labels | None],
    fit: Callable[[Labels, Labels], bool],
    k: int,
    parameters: Mapping[str, Any],
) -> list[Check]:
    """The same inside classes: `labels` are those that everybody of `people` (exact values and record) would be
    published with, None for nobody's. They must fit, and be the same for people who are alike."""
    shown = {own for own, _ in released}
    of_person: dict[tuple[Labels, Record], Labels | None] = {}
    unlike = unfit = 0
    classes: dict[Labels, list[Record]] = defaultdict(list)
    for (values, record), own in zip(people, labels, strict=True):
        unlike += of_person.setdefault((values, record), own) != own
        if own is not None and own in shown:
            unfit += not fit(own, values)
            classes[own].append(apply_caps(record, parameters))
    alike: Counter[tuple[Labels, Record]] = Counter()
    rule: dict[tuple[Labels, Record], Record] = {}
    for own, records in classes.items():
        found = publish(records, k) if len(records) >= k else {record: record for record in records}
        rule |= {(own, record): published_as for record, published_as in found.items()}
        alike += Counter((own, found[record]) for record in records)
    expected: Counter[tuple[Labels, Record]] = Counter()
    for values, record in sample:
        own = of_person.get((values, record))
        if own is not None:
            expected[own, rule.get((own, apply_caps(record, parameters)), ())] += 1
    return [
        of_count(
            "population_classes",
            unlike + unfit,
            "Everybody of the population has labels that fit the exact values, and people who are alike the same.",
            "people of the population have labels that do not fit, or others than people who are alike.",
        ),
        *_checks(Counter(released), alike, expected, k),
    ]


def _checks(released: Counter[Any], owners: Counter[Any], expected: Counter[Any], k: int) -> list[Check]:
    """owners : how many people would be published as each record. expected : what the sample is published as."""
    short = sum(count for record, count in released.items() if owners[record] < k)
    return [
        of_count(
            "published_alike",
            short,
            f"At least {k} people of the population would be published exactly as each record.",
            f"records are what fewer than {k} people would be published as.",
            {"fewest": min((owners[record] for record in released), default=0)},
        ),
        of_count(
            "public_rule",
            sum((released - expected).values()),
            "Every record is what the public rule publishes for a person of the sample.",
            "records are not what the public rule publishes.",
        ),
    ]
