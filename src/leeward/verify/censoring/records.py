"""Records in numbers, and scope `groups` carried out again by plain code of the verifier, from
docs/methods/censoring.md#groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leeward.verify.checks import Check, of_count
from leeward.verify.flat import Longs, count_keys, distinct, find, offsets_of, places_of
from leeward.verify.kernels import number_lists


@dataclass(frozen=True)
class Records:
    """Record r has the entries offsets[r]:offsets[r + 1] of `code` (a place in a list of codes, ascending) and `count`
    (mentions, at least 1)."""

    offsets: Longs
    code: Longs
    count: Longs

    @staticmethod
    def of(owner: Longs, code: Longs, count: Longs, records: int) -> Records:
        """Of entries in any order: the record of each, its code and its mentions."""
        order = np.lexsort((code, owner))
        return Records(offsets_of(np.bincount(owner, minlength=records)), code[order], count[order])

    @staticmethod
    def together(parts: Sequence[Records]) -> Records:
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        code, count = (
            np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)
            for name in ("code", "count")
        )
        return Records(offsets_of(lengths), code, count)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Longs:
        return np.diff(self.offsets)

    def take(self, rows: Longs) -> Records:
        entries = places_of(self.offsets[rows], self.lengths()[rows])
        return Records(offsets_of(self.lengths()[rows]), self.code[entries], self.count[entries])

    def cap(self, limits: Longs | None) -> Records:
        """Each code at most as often as its limit; None: as it is."""
        if limits is None:
            return self
        count = np.minimum(self.count, limits[self.code])
        kept = count > 0
        return Records(offsets_of(kept.astype(np.int64))[self.offsets], self.code[kept], count[kept])

    def numbers(self) -> Longs:
        """A number of each record, the same for equal ones."""
        entries = self.code * (int(self.count.max(initial=0)) + 1) + self.count
        return np.asarray(number_lists(self.offsets, entries), np.int64)


def limits_of(codes: Sequence[str], parameters: Mapping[str, Any]) -> Longs | None:
    """The caps that the manifest states, of each code; None where it states none."""
    given, rest = parameters.get("caps"), parameters.get("cap")
    if given is None and rest is None:
        return None
    limits = {str(code): int(cap) for code, cap in (given or {}).items()}
    return np.array([limits.get(code, int(rest or 0)) for code in codes], np.int64)


def publish(people: Records, k: int) -> tuple[Records, Longs]:
    """What each group of the people shows, which is what all of it have, and the group of each person."""
    number = people.numbers()
    first, weights = np.unique(number, return_index=True, return_counts=True)[1:]
    records = people.take(first)
    most, held = int(records.count.max(initial=1)), np.repeat(np.arange(len(records)), records.lengths())
    owner = np.repeat(held, records.count)
    item = np.repeat(records.code, records.count) * most + places_of(
        np.zeros_like(records.count), records.count
    )
    groups: list[Longs] = []
    left = split(np.arange(len(records)), owner, item, weights, k, groups)
    groups[-1] = np.append(groups[-1], left)
    group = np.empty(len(records), np.int64)
    for place, members in enumerate(groups):
        group[members] = place
    width = most * (int(records.code.max(initial=0)) + 1)
    keys, having = count_keys(group[owner] * width + item)
    shared = keys[having == np.bincount(group)[keys // width]]
    keys, levels = count_keys(shared // most)  # of a code the levels that all have are the lowest
    shown = Records.of(keys // (width // most), keys % (width // most), levels, len(groups))
    return shown, group[number]


def split(node: Longs, owner: Longs, item: Longs, weights: Longs, k: int, groups: list[Longs]) -> Longs:
    """Adds the groups of the node's records to `groups`; returns the places in the node of those who are too few to be
    one. The record at place `owner` has `item`, numbered by code and then level, and stands for weights[place] people.
    """
    count = np.bincount(item, weights[owner]).astype(np.int64)
    item, count = (np.cumsum(count > 0) - 1)[item], count[count > 0]
    people, left = int(weights.sum()), np.arange(len(node))
    while people >= k:
        fitting = np.append(np.where((count >= k) & (count < people), count, 0), 0)
        best = int(fitting.argmax())  # the first code, then the lower level, of those that most people have
        if not fitting[best]:
            groups.append(node[left])
            return left[:0]
        those = owner[item == best]
        place = np.full(len(node), -1)
        place[those] = np.arange(len(those))
        theirs = place[owner] >= 0
        back = split(node[those], place[owner[theirs]], item[theirs], weights[those], k, groups)
        place[those[back]] = -1
        theirs = place[owner] >= 0
        count -= np.bincount(item[theirs], weights[owner[theirs]], len(count)).astype(np.int64)
        people -= int(weights[place >= 0].sum())
        left, owner, item = left[place[left] < 0], owner[~theirs], item[~theirs]
    return left


@dataclass(frozen=True)
class Known:
    """Demographics in numbers: the label of each released record; the exact values of everybody in the sample and in
    the population, -1 for what nobody of the population has; the label that each of the population would be published
    with, -1 for nobody's; which labels fit which values; and the label of those of the sample whom nobody of the
    population is like, -1 for nobody's. Without demographics there is one label, and it is everybody's."""

    released: Longs
    sample: Longs
    people: Longs
    labels: Longs
    fits: np.ndarray[Any, np.dtype[np.bool_]]
    otherwise: int = -1

    @staticmethod
    def nothing(released: int, sample: int, people: int) -> Known:
        zeros = np.zeros(max(released, sample, people), np.int64)
        everybody = zeros[:people]
        return Known(zeros[:released], zeros[:sample], everybody, everybody, np.ones((1, 1), np.bool_), 0)


def by_groups(
    released: Records, sample: Records, people: Records, known: Known, k: int, limits: Longs | None
) -> list[Check]:
    """Every record is what the public rule publishes for its person, and at least k people are published so. Labels
    must fit, and be the same for people who are alike in exact values and record."""
    n, label = len(people), known.labels
    both = Records.together([people, sample])
    number = both.numbers()
    alike = np.concatenate([known.people, known.sample]) * (int(number.max(initial=0)) + 1) + number
    keys, first, own = np.unique(alike[:n], return_index=True, return_inverse=True)
    mine = label[first]
    wrong = int((label != mine[own.reshape(-1)]).sum())
    asked = np.isin(label, known.released) & (label >= 0)
    wrong += int((~known.fits[known.people[asked], label[asked]]).sum())
    capped = both.cap(limits)
    shows, rules = np.full(n, -1, np.int64), [released]
    made = len(released)
    for each in distinct(label[asked]).tolist():
        rows = np.flatnonzero(label == each)
        inside = capped.take(rows)
        shown, group = publish(inside, k) if len(rows) >= k else (inside, np.arange(len(rows)))
        shows[rows] = made + group
        rules.append(shown)
        made += len(shown)
    nothing = Records(np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    record = Records.together([*rules, nothing]).numbers()
    width = int(record.max()) + 1
    theirs, owners = count_keys((label * width + record[shows])[asked])
    said = known.released * width + record[: len(released)]
    # of the sample: the label of who is alike, and what the rule publishes for it
    person = find(keys, alike[n:], -1)
    own_label = np.where(person >= 0, mine[person], known.otherwise)
    cut = capped.numbers()
    rule = np.unique(label[asked] * (int(cut.max(initial=0)) + 1) + cut[:n][asked], return_index=True)
    place = find(rule[0], own_label * (int(cut.max(initial=0)) + 1) + cut[n:], -1)
    published = np.where(place >= 0, record[shows[asked][rule[1]]][place] if len(rule[0]) else -1, record[-1])
    expected = count_keys((own_label * width + published)[own_label >= 0])
    wanted = count_keys(said)
    at = find(expected[0], wanted[0], len(expected[0]))
    held = np.append(owners, 0)[find(theirs, said, len(theirs))]
    return [
        of_count(
            "population_classes",
            wrong,
            "Everybody in the population has labels that fit; people who are alike have the same labels.",
            "people of the population have labels that do not fit, or that differ from those of people who are alike.",
        ),
        of_count(
            "published_alike",
            int((held < k).sum()),
            f"At least {k} people of the population would be published exactly as each record.",
            f"records match what fewer than {k} people would be published as.",
            {"fewest": int(held.min()) if len(held) else 0},
        ),
        of_count(
            "public_rule",
            int(np.maximum(wanted[1] - np.append(expected[1], 0)[at], 0).sum()),
            "Every record is what the public rule publishes for a person of the sample.",
            "records are not what the public rule publishes.",
        ),
    ]
