"""The attacker of generalization under constraints: re-checks a release from its files alone
(docs/methods/constraints.md).

Every set of up to m labels (or the image of every listed privacy constraint, which stays in custody) is
held by 0 or at least k records: the records that hold a first label give the supports of all larger sets with it.
With the source at hand, the generalized rows of the source are compared with the published ones, whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, check_numbers, of_count
from leeward.verify.classes import class_checks, demographics_of, place_records, read_classes, together
from leeward.verify.constraints.classed import (
    MOST_WRITTEN,
    Lists,
    Published,
    against_source_in_classes,
    class_codes,
    entries_of,
    no_other_codes,
    split,
)
from leeward.verify.flat import Ints, Longs, pairs_of_lists, values_of_groups
from leeward.verify.kernels import count_pairs, number_sets, write_keys
from leeward.verify.manifest import Share
from leeward.verify.order import order_check

PAIRS_A_ENTRY = 16
"""Pairs of labels are counted in a table of all pairs where it has at most so many cells for each entry of records."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a release; the later ones are left out when the files cannot be laid out."""
    k, names = share.guarantee("k"), demographics_of(share)
    codes, records = share.table("codes.parquet"), share.table("records.parquet")
    lists = (codes["members"], records["codes"])
    nulls = sum(each.null_count() + entries_of(each).null_count() for each in lists)
    if nulls:
        return [Check("layout", False, f"Lists of codes hold {nulls:,} nulls.")]
    records = with_numbers(records, codes["code"])
    checks = [check_numbers(records["record"], share.manifest["records"], "record_numbers")]
    classes = read_classes(share) if names else None
    if classes is None:
        parts = [(rows_of(records), codes)]
    else:
        checks += class_checks(classes, share)
        placed, of_record = place_records(records, classes)
        checks += [placed, class_codes(codes, classes)]
        if not all(c.passed for c in checks):
            return checks
        parts = [(rows_of(own), listed) for own, listed in split(records, codes, classes, of_record)]
    checks += together([structure(*part) for part in parts]) if classes else structure(*parts[0])
    if not all(c.passed for c in checks):
        return checks
    ordered = [[labels_in_order(*part)] for part in parts]
    checks += together(ordered) if classes else ordered[0]
    published = [lay_out(*part) for part in parts]
    custody = share.folder.parent / "custody" / "data"
    if share.manifest["guarantee"].get("m") is None:
        checks.append(check_private_sets(published, k, custody / "privacy.parquet"))
    else:
        checks += any_sets(published, k, share.guarantee("m"))
    if (custody / "policy.parquet").is_file() and "policy" in share.manifest["parameters"]:
        checks.append(check_utility_constraints(published, custody / "policy.parquet"))
    if source is not None and classes is not None:
        numbers = [np.flatnonzero(of_record == c) for c in range(len(classes.numbers))]
        checks += against_source_in_classes(published, numbers, classes, codes, share, source)
    elif source is not None:
        checks += against_source(published[0], codes, source)
        if share.manifest["parameters"].get("algorithm") != "mapping":
            checks.append(no_other_codes(codes, source.numbered.held))
    return checks


def with_numbers(records: pl.DataFrame, listed: pl.Series) -> pl.DataFrame:
    """The same records, their labels kept as numbers in the order of the labels' texts: of the `listed` ones, or of all
    that records hold where one of these is not listed."""
    column = pl.col("codes")
    numbered = records.with_columns(column.cast(pl.List(pl.Enum(listed.unique().sort())), strict=False))
    if entries_of(numbered["codes"]).null_count():
        texts = entries_of(records["codes"]).unique().sort()
        numbered = records.with_columns(column.cast(pl.List(pl.Enum(texts))))
    return numbered


@dataclass(frozen=True)
class Rows:
    """Records as flat arrays: record i is called number[i] and has lengths[i] of the `labels`, places in `texts`."""

    number: Longs
    lengths: Longs
    texts: list[str]
    labels: Ints

    @cached_property
    def falls(self) -> int:
        """How many entries are no later label than the entry before them in their record."""
        falls = self.labels[1:] <= self.labels[:-1]
        begins = np.cumsum(self.lengths)
        falls[begins[(begins > 0) & (begins < len(self.labels))] - 1] = False
        return int(np.count_nonzero(falls))

    @property
    def doubled(self) -> int:
        """How many records hold a label twice."""
        if not self.falls:
            return 0
        owner = np.repeat(np.arange(len(self.number)), self.lengths)
        distinct, _ = values_of_groups(owner, self.labels, len(self.number))
        return int(np.count_nonzero(np.diff(distinct) != self.lengths))


def rows_of(records: pl.DataFrame) -> Rows:
    """The records of `with_numbers`."""
    entries = entries_of(records["codes"])
    kind = entries.dtype
    assert isinstance(kind, pl.Enum)
    labels = entries.to_physical().cast(pl.Int32).to_numpy()
    lengths = records["codes"].list.len().to_numpy().astype(np.int64)
    return Rows(records["record"].to_numpy(), lengths, kind.categories.to_list(), labels)


def structure(rows: Rows, codes: pl.DataFrame) -> list[Check]:
    """Labels and members fit together."""
    kept, gone = codes.filter(~pl.col("suppressed")), codes.filter(pl.col("suppressed"))
    members = entries_of(kept["members"])
    named = pl.concat([members, gone["code"]])
    twice = named.len() - named.n_unique() + codes.height - codes["code"].n_unique()
    memberless = int((kept["members"].list.len() == 0).sum()) + int((gone["members"].list.len() > 0).sum())
    spelt = kept.select(
        pl.when(pl.col("members").list.len() == 1)
        .then(pl.col("members").list.first())
        .when(pl.col("members").list.len() <= MOST_WRITTEN)
        .then("(" + pl.col("members").list.sort().list.join(",") + ")")
        .otherwise(
            pl.format(
                "({},…,{}: {} codes)",
                pl.col("members").list.min(),
                pl.col("members").list.max(),
                pl.col("members").list.len(),
            )
        )
    ).to_series()
    misspelt = int((spelt != kept["code"]).sum())
    used, listed = np.bincount(rows.labels, minlength=len(rows.texts)), set(kept["code"])
    unknown = sum(int(n) for n, text in zip(used, rows.texts, strict=True) if text not in listed)
    return [
        of_count(
            "labels_are_disjoint",
            twice + memberless,
            f"{kept.height:,} labels and {gone.height:,} suppressed codes; every code is in one of them.",
            "codes are in two places, or labels have no members.",
        ),
        of_count(
            "labels_say_their_members",
            misspelt,
            "Every label reads as its members.",
            "labels do not read as their members.",
        ),
        of_count(
            "labels_are_listed",
            unknown,
            "Records hold listed labels only.",
            "entries of records are no listed label.",
        ),
        of_count(
            "records_are_sets", rows.doubled, "No record holds a label twice.", "records hold a label twice."
        ),
    ]


def labels_in_order(rows: Rows, codes: pl.DataFrame) -> Check:
    """Labels ascend by their texts, in the list (suppressed codes after them) and in every record; so do the codes of a
    label."""
    parts = [codes.filter(pl.col("suppressed") == gone)["code"] for gone in (False, True)]
    wrong = sum(not part.equals(part.sort()) for part in parts) + (not codes["suppressed"].is_sorted())
    wrong += rows.falls + int((codes["members"] != codes["members"].list.sort()).sum())
    return of_count(
        "labels_in_order",
        wrong,
        "Labels are listed in order, in codes.parquet and in every record, and so are their codes.",
        "lists of labels or codes stand in another order than that of their texts.",
    )


def lay_out(rows: Rows, codes: pl.DataFrame) -> Published:
    """The records in the order of their numbers; no record holds a label twice."""
    kept = codes.filter(~pl.col("suppressed"))
    labels, members = kept["code"].to_list(), kept["members"].to_list()
    place = {label: i for i, label in enumerate(labels)}
    label = np.array([place.get(text, -1) for text in rows.texts], np.int32)[rows.labels]
    row, width = np.repeat(np.argsort(np.argsort(rows.number)), rows.lengths), max(len(labels), 1)
    if (rows.number[1:] < rows.number[:-1]).any() or rows.falls or labels != sorted(labels):
        row, label = np.divmod(np.sort(row * width + label), width)
    offsets = np.searchsorted(row, np.arange(len(rows.number) + 1))
    number = {code: i for i, group in enumerate(members) for code in group}
    number.update(dict.fromkeys(codes.filter(pl.col("suppressed"))["code"].to_list(), -1))
    return Published(Lists(offsets, label.astype(np.int32), len(labels)), labels, members, number)


def any_sets(parts: Sequence[Published], k: int, m: int) -> list[Check]:
    """k^m in every class: every set of one label, of two labels, of 3 … m labels."""
    found = [rare_sets(part.holds, k, m) for part in parts]
    violations, counted = (
        [sum(sizes) for sizes in zip_longest(*(each[i] for each in found), fillvalue=0)] for i in (0, 1)
    )
    checks = [
        of_count(
            f"sets_of_{size}",
            bad,
            f"All {occurring:,} sets of {size} labels that occur are held by at least k = {k} records.",
            f"sets of {size} labels are held by fewer than k = {k} records.",
            {"size": size, "occurring": occurring},
        )
        for size, (bad, occurring) in enumerate(zip(violations, counted, strict=True), 1)
    ]
    return checks or [Check("sets_of_1", True, "No record holds any label.")]


def rare_sets(holds: Lists, k: int, m: int) -> tuple[list[int], list[int]]:
    """For each size 1 … m: how many sets occur in fewer than k records, and how many occur.

    A set beyond a violating one is not looked at: the release is refuted already. Sizes that no record reaches
    are left out.
    """
    violations: list[int] = []
    occurring: list[int] = []

    def note(size: int, supports: Longs) -> None:
        while len(violations) < size:
            violations.append(0)
            occurring.append(0)
        violations[size - 1] += int((supports < k).sum())
        occurring[size - 1] += len(supports)

    def descend(rows: Lists, size: int) -> None:
        """`rows`: the later labels of the records that hold the `size` - 1 labels chosen."""
        if size == 1:
            supports = np.bincount(rows.labels)
            note(1, supports[supports > 0])
        if size == m:
            return
        pairs, both = count_sets_of_two(rows)
        if not len(pairs):
            return
        note(size + 1, both)
        if size + 1 == m:
            return
        first, later = np.divmod(pairs, rows.width)
        bounds = np.searchsorted(first, np.arange(rows.width + 1))
        for label in np.flatnonzero(np.diff(bounds) > 1).tolist():
            descend(rows.select(rows.holders(label), later[bounds[label] : bounds[label + 1]]), size + 1)

    descend(holds, 1)
    return violations, occurring


def count_sets_of_two(rows: Lists) -> tuple[Longs, Longs]:
    """The keys of all sets of two labels that occur (as of `pairs_of_lists`), and how many records hold each."""
    if rows.width * rows.width > PAIRS_A_ENTRY * len(rows.labels):
        return pairs_of_lists(rows.labels, rows.offsets, rows.width)
    counts = np.zeros((rows.width, rows.width), np.int32)
    count_pairs(rows.offsets, rows.labels, counts)
    keys = np.flatnonzero(counts)
    return keys.astype(np.int64), counts.ravel()[keys].astype(np.int64)


def check_private_sets(parts: Sequence[Published], k: int, file: Path) -> Check:
    """The image of every privacy constraint that the custodian listed, with all its parts."""
    name = "listed_sets"
    if not file.is_file():
        return Check(name, False, "The privacy constraints stay in custody: verify the whole release folder.")
    rows = pl.read_parquet(file)
    bad = looked = 0
    for part in parts:
        images = {tuple(part.image(group)) for (_,), group in _groups(rows)}
        looked += len(images)
        everyone = np.arange(len(part.holds.offsets) - 1)
        for image in images:
            if image:
                violations, _ = rare_sets(part.holds.select(everyone, np.array(image)), k, len(image))
                bad += any(violations)
    return of_count(
        name,
        bad,
        f"All {looked:,} images of privacy constraints, and their parts, are held by 0 or at least {k}.",
        f"images of privacy constraints have a part that fewer than {k} records hold.",
    )


def _groups(rows: pl.DataFrame) -> Iterable[tuple[tuple[Any, ...], list[str]]]:
    for key, group in rows.group_by("constraint", maintain_order=True):
        yield key, group["code"].to_list()


def check_utility_constraints(parts: Sequence[Published], file: Path) -> Check:
    """No generalized code crosses a utility constraint."""
    rows = pl.read_parquet(file)
    constraint = dict(zip(rows["code"].to_list(), rows["constraint"].to_list(), strict=True))
    crossing = 0
    for group in (group for part in parts for group in part.members):
        found = {constraint.get(code) for code in group}
        crossing += len(group) > 1 and (len(found) > 1 or None in found)
    return of_count(
        "inside_utility_constraints",
        crossing,
        "Every generalized code is inside one utility constraint.",
        "generalized codes cross utility constraints.",
    )


def against_source(published: Published, codes: pl.DataFrame, source: Source) -> list[Check]:
    """Every source code is a member or suppressed, and the published rows are the source's, generalized."""
    numbered = source.numbered
    places = [published.number.get(code) for code in numbered.codes]
    unaccounted = sum(
        place is None and people > 0 for place, people in zip(places, numbered.people.tolist(), strict=True)
    )
    label = np.array([-1 if place is None else place for place in places], np.int32)
    people = len(numbered.patients)
    row = rows_alike(numbered.sets, label, (published.holds.offsets, published.holds.labels))
    kinds = int(row.max(initial=0)) + 1
    difference = np.bincount(row[:people], minlength=kinds) - np.bincount(row[people:], minlength=kinds)
    lost, invented = int(difference.clip(0).sum()), int((-difference).clip(0).sum())
    return [
        of_count(
            "every_code_accounted_for", unaccounted, "Every source code is released or listed as suppressed.",
            "source codes are neither released nor suppressed.",
        ),
        of_count(
            "rows_generalize_source_rows", invented, "Every published row is a generalized source row.",
            "published rows are no generalization of a source row.",
        ),
        of_count("no_row_lost", lost, "Every source row is published.", "source rows are not published."),
        order_of_unique(row[:people], row[people:], source),
    ]  # fmt: skip


def rows_alike(mine: tuple[Longs, Ints], label: Ints, theirs: tuple[Any, Any]) -> Ints:
    """A number for each person's and then each record's set of labels, 0 for the empty one; equal sets, equal numbers.

    mine : offsets and codes of each person, whose labels `label` has (-1: none). theirs : offsets and labels of each
    record.
    """
    people, records = len(mine[0]) - 1, len(theirs[0]) - 1
    same = np.arange(1 + int(max(label.max(initial=0), theirs[1].max(initial=0))), dtype=np.int32)
    keys, place = np.empty(people + records, np.int64), np.empty(people + records, np.int64)
    pool = np.empty(people + records + len(mine[1]) + len(theirs[1]), np.int32)
    bits, used = len(same).bit_length(), 0
    for (offsets, values), image, begin in ((mine, label, 0), (theirs, same, people)):
        lists = slice(begin, begin + len(offsets) - 1)
        used = write_keys(
            offsets.astype(np.int64), values, image, bits, keys[lists], place[lists], pool, used
        )
    numbers: Ints = number_sets(keys, place, pool)
    return numbers


def order_of_unique(mine: Ints, theirs: Ints, source: Source) -> Check:
    """The order of the records that only one patient can have, against identifiers and the source's rows.

    mine, theirs : the number of each patient's and each record's set of labels.
    """
    kinds = int(max(mine.max(initial=0), theirs.max(initial=0))) + 1
    alone = (np.bincount(mine, minlength=kinds) == 1) & (np.bincount(theirs, minlength=kinds) == 1)
    alone[0] = False
    patient = np.zeros(kinds, np.int64)
    patient[mine] = np.arange(len(mine))
    known = patient[theirs[alone[theirs]]]
    first = source.numbered.first[known]
    return order_check(
        "order_of_records", {"patient": pl.Series(known), "source row": pl.Series(first)}, "records"
    )
