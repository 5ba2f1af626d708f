"""Published records of generalized codes, laid out for checks; in classes of demographics each class is a release of
its own, and beside the source the records must be those that the patients can have
(docs/methods/whole-patient.md#verifier). The attacker knows the exact demographics of a patient beside codes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import (
    SAMPLED_PATIENTS,
    Classes,
    Placed,
    class_source,
    draw_known_sets,
    find_patients,
    largest_flow,
)
from leeward.verify.flat import Ints, Longs, count_keys, distinct, falls_of, find, offsets_of, places_of
from leeward.verify.manifest import Share
from leeward.verify.order import order_check

MOST_WRITTEN = 50
"""Labels of more members are written with the first, the last and their number."""


@dataclass(frozen=True)
class Lists:
    """The labels of records, of `width` ones: record i has labels[offsets[i]:offsets[i + 1]]."""

    offsets: Longs
    labels: Ints
    width: int

    @cached_property
    def owner(self) -> Longs:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def falls(self) -> int:
        """How many entries are no later label than the entry before them in their record."""
        return int(falls_of(self.labels, self.offsets).sum())

    @property
    def doubled(self) -> int:
        """How many records hold a label twice."""
        keys = self.owner * max(self.width, 1) + self.labels if self.falls else np.empty(0, np.int64)
        found, times = count_keys(keys)
        return len(distinct(found[times > 1] // max(self.width, 1)))

    @cached_property
    def _by_label(self) -> tuple[Longs, Longs]:
        order = np.argsort(self.labels, kind="stable")
        return offsets_of(np.bincount(self.labels, minlength=self.width)), self.owner[order]

    def holders(self, label: int) -> Longs:
        starts, records = self._by_label
        return records[starts[label] : starts[label + 1]]

    def select(self, records: Longs, chosen: Longs) -> Lists:
        """Some labels (ascending; numbered anew by their places) of some records."""
        lengths = np.diff(self.offsets)[records]
        labels = self.labels[places_of(self.offsets[records], lengths)]
        place = find(chosen, labels.astype(np.int64), -1)
        kept = np.bincount(np.repeat(np.arange(len(records)), lengths)[place >= 0], minlength=len(records))
        return Lists(offsets_of(kept), place[place >= 0].astype(np.int32), len(chosen))


@dataclass(frozen=True)
class Published:
    """A release that could be laid out: `holds` has the labels of each record, as places in `labels`, which have the
    codes `members`; `number` is the label of each code, -1 suppressed."""

    holds: Lists
    labels: list[str]
    members: list[list[str]]
    number: dict[str, int]

    def image(self, codes: Iterable[str]) -> list[int]:
        """The labels of some codes; suppressed and unknown ones vanish."""
        return sorted({self.number[code] for code in codes if self.number.get(code, -1) >= 0})

    def count_holders(self, codes: Iterable[str]) -> int:
        held = np.arange(len(self.holds.offsets) - 1)
        for label in self.image(codes):
            held = np.intersect1d(held, self.holds.holders(label), assume_unique=True)
        return len(held)


def entries_of(lists: pl.Series) -> pl.Series:
    return lists.explode(empty_as_null=False, keep_nulls=False)


def no_other_codes(codes: pl.DataFrame, held: Sequence[str]) -> Check:
    """The mapping names codes of the source only, which `held` lists; one that was made earlier may name others."""
    named = pl.concat([entries_of(codes["members"]), codes.filter(pl.col("suppressed"))["code"]])
    return of_count(
        "no_other_codes",
        int((~named.is_in(list(held))).sum()),
        "Every code of the mapping is one of the source's.",
        "codes of the mapping are not in the source.",
    )


def class_codes(codes: pl.DataFrame, classes: Classes) -> Check:
    """Every class has rows of codes, in the classes' order, and all classes name the same codes: nothing tells in which
    class a suppressed code occurs."""
    wrong = int((~codes["class"].is_in(classes.numbers.tolist())).sum()) + (not codes["class"].is_sorted())
    named = pl.when("suppressed").then(pl.concat_list("code")).otherwise("members").alias("code")
    listed = (
        codes.select("class", named)
        .explode("code", empty_as_null=True)
        .group_by("class")
        .agg(pl.col("code").sort())
    )
    everywhere = listed["code"].unique().len() <= 1
    wrong += (listed.height != len(classes.numbers)) + (not everywhere)
    return of_count(
        "class_codes",
        wrong,
        "Every class has labels of its own, and all name the same codes.",
        "rows of codes belong to no class, or classes do not name the same codes.",
    )


def split(
    records: pl.DataFrame, codes: pl.DataFrame, placed: Placed
) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """The records of each class, numbered anew, and its codes."""
    return [
        (
            records.filter(placed.of_record == c).select(record=pl.int_range(pl.len()), codes="codes"),
            codes.filter(pl.col("class") == number).drop("class"),
        )
        for c, number in enumerate(placed.classes.numbers)
    ]


def against_source_in_classes(
    parts: list[Published],
    placed: Placed,
    codes: pl.DataFrame,
    share: Share,
    source: Source,
) -> list[Check]:
    """Beside the source: the records can be given to the patients one to one, each of a class that fits the patient's
    exact demographics, with the patient's codes generalized as that class does; and sampled patients have k
    candidates."""
    classes = placed.classes
    numbers = [np.flatnonzero(placed.of_record == c) for c in range(len(classes.numbers))]
    events = source.events.select("patient", pl.col("code").cast(pl.String)).drop_nulls()
    patients, values = find_patients(share, classes, source, events["patient"].unique().sort())
    if values is None:
        return [class_source(classes, values, all_released=True)]
    events = events.filter(pl.col("patient").is_in(patients.implode()))
    own = (
        events.join(patients.alias("patient").to_frame().with_row_index("place"), on="patient")
        .group_by("place").agg(pl.col("code").unique().sort()).sort("place")["code"]
    )  # fmt: skip
    known = set(parts[0].number)
    unaccounted = sum(code not in known for code in events["code"].unique())
    kinds: dict[tuple[str, ...], list[int]] = {}
    for place, value in enumerate(values):
        kinds.setdefault(value, []).append(place)
    fits = {value: np.flatnonzero(classes.fit(value)) for value in kinds}
    sets = own.to_list()
    edges, alike, room = edges_of(parts, sets, kinds, fits)
    unplaced = sum(map(len, alike)) - largest_flow(
        np.array([len(people) for people in alike], np.int64),
        edges,
        np.array([len(r) for r in room], np.int64),
    )
    lost = abs(len(values) - sum(map(len, numbers)))
    return [
        class_source(classes, values, all_released=True),
        of_count(
            "every_code_accounted_for", unaccounted, "Every source code is released or listed as suppressed.",
            "source codes are neither released nor suppressed.",
        ),
        no_other_codes(codes, events["code"].unique().to_list()),
        of_count(
            "records_of_patients",
            unplaced + lost,
            f"The records can be assigned to the {len(values):,} patients, each of a class that fits the patient's "
            "exact demographics, with the patient's codes.",
            "patients have no record of a class that fits them with their codes, or there are not as many records as "
            "patients.",
        ),
        order_in_classes(edges, alike, room, numbers, patients, source),
        candidates_of_patients(parts, sets, values, fits, share),
    ]  # fmt: skip


def edges_of(
    parts: list[Published],
    sets: list[list[str]],
    kinds: dict[tuple[str, ...], list[int]],
    fits: dict[tuple[str, ...], Longs],
) -> tuple[list[Longs], list[list[int]], list[list[tuple[int, int]]]]:
    """Which kinds of record patients can have: the places of kinds of record of each group of patients alike, the
    patients of each group, and the records (class, number in it) of each kind."""
    kind_of: dict[tuple[int, tuple[int, ...]], int] = {}
    room: list[list[tuple[int, int]]] = []
    for c, part in enumerate(parts):
        for record, (start, end) in enumerate(itertools.pairwise(part.holds.offsets.tolist())):
            key = (c, tuple(part.holds.labels[start:end].tolist()))
            if key not in kind_of:
                kind_of[key] = len(room)
                room.append([])
            room[kind_of[key]].append((c, record))
    alike: dict[tuple[int, ...], list[int]] = {}
    for value, places in kinds.items():
        for place in places:
            images = [(int(c), tuple(parts[c].image(sets[place]))) for c in fits[value]]
            targets = tuple(kind_of[image] for image in images if image in kind_of)
            alike.setdefault(targets, []).append(place)
    return [np.array(targets, np.int64) for targets in alike], list(alike.values()), room


def order_in_classes(
    edges: list[Longs],
    alike: list[list[int]],
    room: list[list[tuple[int, int]]],
    numbers: list[Longs],
    patients: pl.Series,
    source: Source,
) -> Check:
    """The order of the records that only one patient can have, against identifiers and the source's rows."""
    wanting = np.bincount(
        np.concatenate([np.empty(0, np.int64), *edges]),
        weights=np.repeat([len(people) for people in alike], [len(targets) for targets in edges]),
        minlength=len(room),
    )
    only = [
        (int(numbers[room[t][0][0]][room[t][0][1]]), people[0])
        for targets, people in zip(edges, alike, strict=True)
        for t in targets.tolist()
        if len(people) == 1 and wanting[t] == 1 and len(room[t]) == 1
    ]
    only.sort()
    first = source.events.select("patient").with_row_index("at").unique("patient", keep="first")
    people = patients.gather([place for _, place in only]).alias("patient").to_frame()
    known = people.join(first, on="patient", how="left", maintain_order="left")
    return order_check(
        "order_of_records", {"patient": known["patient"], "source row": known["at"]}, "records"
    )


def candidates_of_patients(
    parts: list[Published],
    sets: list[list[str]],
    values: list[tuple[str, ...]],
    fits: dict[tuple[str, ...], Longs],
    share: Share,
) -> Check:
    """Sampled patients: with the exact demographics and up to m codes known, at least k records of fitting classes have
    the labels of these codes (of each class those that are not suppressed there)."""
    k, m = share.guarantee("k"), share.manifest["guarantee"].get("m") or 0
    generator = np.random.Generator(np.random.Philox(key=len(values)))
    few = looked = 0
    for place in generator.permutation(len(values))[:SAMPLED_PATIENTS].tolist():
        fitting = [parts[c] for c in fits[values[place]].tolist()]
        for codes in draw_known_sets(sets[place], range(m + 1), generator):
            looked += 1
            few += sum(part.count_holders(codes) for part in fitting) < k
    return of_count(
        "candidates_of_patients",
        few,
        f"Each of {looked:,} code sets of sampled patients, with their demographics, has at least {k} candidates.",
        f"of {looked:,} code sets of sampled patients, with their demographics, have fewer than {k} candidates.",
        {"sets": looked},
    )
