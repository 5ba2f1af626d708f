"""The attacker of generalization under constraints: re-checks a release from its files alone
(docs/methods/constraints.md).

Every set of up to m labels (or the image of every listed privacy constraint, which stays in custody) is
held by 0 or at least k records: the records that hold a first label give the supports of all larger sets with it.
With the source at hand, the generalized rows of the source are compared with the published ones, whatever their order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, check_numbers, failing, of_count
from leeward.verify.classes import demographics_of, place_in_classes, together
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
from leeward.verify.flat import Longs, offsets_of, pairs_of_lists, run_sums
from leeward.verify.kernels import count_pairs, number_lists, sum_images
from leeward.verify.manifest import Share, draw_words
from leeward.verify.order import order_check, read_first_rows

PAIRS_A_ENTRY = 16
"""Pairs of labels are counted in a table of all pairs where it has at most so many cells for each entry of records."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a release; the later ones are left out when the files cannot be laid out."""
    codes, records = share.table("codes.parquet"), share.table("records.parquet")
    lists = (codes["members"], records["codes"])
    nulls = sum(each.null_count() + entries_of(each).null_count() for each in lists)
    if nulls:
        return [Check("layout", False, f"Lists of codes hold {nulls:,} nulls.")]
    records, placed = with_numbers(records, codes["code"]), None
    checks = [check_numbers(records["record"], share.manifest["records"], "record_numbers")]
    if demographics_of(share):
        found, placed = place_in_classes(share, records)
        checks += [*found, class_codes(codes, placed.classes)]
        if failing(checks):
            return checks
    parts = [(records, codes)] if placed is None else split(records, codes, placed)
    merge = together if placed is not None else itertools.chain.from_iterable
    laid = [(rows_of(own), listed) for own, listed in parts]
    checks += merge([structure(*part) for part in laid])
    if failing(checks):
        return checks
    checks += merge([[labels_in_order(*part)] for part in laid])
    published = [lay_out(*part) for part in laid]
    checks += sets_of_labels(share, published)
    if source is None:
        return checks
    if placed is None:
        return checks + against_source(published[0], codes, share, source)
    return checks + against_source_in_classes(published, placed, codes, share, source)


def sets_of_labels(share: Share, published: list[Published]) -> list[Check]:
    """The guarantee, of any sets or of the listed ones, and utility constraints where custody keeps them."""
    k, policy = share.guarantee("k"), share.kept("policy.parquet")
    if share.manifest["guarantee"].get("m") is None:
        checks = [check_private_sets(published, k, share.kept("privacy.parquet"))]
    else:
        checks = any_sets(published, k, share.guarantee("m"))
    if policy is not None and "policy" in share.manifest["parameters"]:
        checks.append(check_utility_constraints(published, policy))
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


class Rows(NamedTuple):
    """Records: record i is called number[i] and has the labels `held`, places in `texts`."""

    number: Longs
    held: Lists
    texts: list[str]


def rows_of(records: pl.DataFrame) -> Rows:
    entries = entries_of(records["codes"])
    kind = entries.dtype
    assert isinstance(kind, pl.Enum)
    texts = kind.categories.to_list()
    labels = entries.to_physical().cast(pl.Int32).to_numpy()
    offsets = offsets_of(records["codes"].list.len().to_numpy())
    return Rows(records["record"].to_numpy(), Lists(offsets, labels, len(texts)), texts)


def structure(rows: Rows, codes: pl.DataFrame) -> list[Check]:
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
    used, listed = np.bincount(rows.held.labels, minlength=len(rows.texts)), set(kept["code"])
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
            "Records hold only listed labels.",
            "entries of records are not listed labels.",
        ),
        of_count(
            "records_are_sets",
            rows.held.doubled,
            "No record holds a label twice.",
            "records hold a label twice.",
        ),
    ]


def labels_in_order(rows: Rows, codes: pl.DataFrame) -> Check:
    """Labels ascend by text in the list (suppressed codes after them) and in each record; so do a label's codes."""
    parts = [codes.filter(pl.col("suppressed") == gone)["code"] for gone in (False, True)]
    wrong = sum(not part.equals(part.sort()) for part in parts) + (not codes["suppressed"].is_sorted())
    wrong += rows.held.falls + int((codes["members"] != codes["members"].list.sort()).sum())
    return of_count(
        "labels_in_order",
        wrong,
        "Labels are listed in order, in codes.parquet and in every record, and so are their codes.",
        "lists of labels or codes are not in the order of their texts.",
    )


def lay_out(rows: Rows, codes: pl.DataFrame) -> Published:
    """The records in the order of their numbers, the labels of each ascending; no record holds a label twice."""
    kept = codes.filter(~pl.col("suppressed"))
    labels, members = kept["code"].to_list(), kept["members"].to_list()
    place = {label: i for i, label in enumerate(labels)}
    label = np.array([place.get(text, -1) for text in rows.texts], np.int32)[rows.held.labels]
    offsets = rows.held.offsets
    if (rows.number[1:] < rows.number[:-1]).any() or rows.held.falls or labels != sorted(labels):
        row, width = np.argsort(np.argsort(rows.number))[rows.held.owner], max(len(labels), 1)
        row, label = np.divmod(np.sort(row * width + label), width)
        offsets = np.searchsorted(row, np.arange(len(rows.number) + 1))
    number = {code: i for i, group in enumerate(members) for code in group}
    number.update(dict.fromkeys(codes.filter(pl.col("suppressed"))["code"].to_list(), -1))
    return Published(Lists(offsets, label.astype(np.int32), len(labels)), labels, members, number)


def any_sets(parts: Sequence[Published], k: int, m: int) -> list[Check]:
    """k^m in every class: every set of one label, of two labels, of 3 … m labels."""
    found = [rare_sets(part.holds, k, m) for part in parts]
    violations, counted = (
        [sum(sizes) for sizes in itertools.zip_longest(*(each[i] for each in found), fillvalue=0)]
        for i in (0, 1)
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
    """For each size 1 … m: how many sets occur in fewer than k records, and how many occur. A set beyond a violating
    one is not looked at: the release is refuted already. Sizes that no record reaches are left out."""
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


def check_private_sets(parts: Sequence[Published], k: int, file: Path | None) -> Check:
    """The image of every privacy constraint that the custodian listed, with all its parts."""
    if file is None:
        detail = "The privacy constraints stay in custody: verify the whole release folder."
        return Check("listed_sets", False, detail)
    groups = pl.read_parquet(file).group_by("constraint", maintain_order=True).agg("code")["code"].to_list()
    bad = looked = 0
    for part in parts:
        images = {tuple(part.image(group)) for group in groups}
        looked += len(images)
        everyone = np.arange(len(part.holds.offsets) - 1)
        for image in images - {()}:
            violations, _ = rare_sets(part.holds.select(everyone, np.array(image)), k, len(image))
            bad += any(violations)
    return of_count(
        "listed_sets",
        bad,
        f"All {looked:,} images of privacy constraints, and their parts, are held by 0 or at least {k}.",
        f"images of privacy constraints have a part that fewer than {k} records hold.",
    )


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


def against_source(published: Published, codes: pl.DataFrame, share: Share, source: Source) -> list[Check]:
    """Every source code is a member or suppressed, and the published rows are the source's, generalized: sets of labels
    are compared by sums of random words, made one part of the source after the other."""
    holds = published.holds
    mapped = share.manifest["parameters"].get("algorithm") == "mapping"
    words = draw_words(share, max(len(published.labels), 1))
    held: set[str] = set()
    sums, rows = [], []
    for part in source.parts():
        label = np.array([published.number.get(code, -1) for code in part.numbered.codes], np.int32)
        held.update(part.numbered.held)
        sums.append(sum_images(*part.numbered.sets, label, words))
        rows.append(read_first_rows(part)[1])
    mine, theirs = np.concatenate(sums), run_sums(words[holds.labels], holds.offsets)
    unaccounted = len(held - published.number.keys())
    kind = number_lists(np.arange(len(mine) + len(theirs) + 1), np.append(mine, theirs).view(np.int64))
    patients, records = (np.bincount(of, minlength=len(kind)) for of in np.split(kind, [len(mine)]))
    first = np.empty(len(kind), np.int64)
    first[kind[: len(mine)]] = np.arange(len(mine))
    alone = kind[len(mine) :][theirs != 0]
    patient = first[alone[(patients == 1)[alone] & (records == 1)[alone]]]
    known = {"patient": pl.Series(patient), "source row": pl.concat(rows, rechunk=True).gather(patient)}
    more = patients - records
    return [
        of_count(
            "every_code_accounted_for", unaccounted, "Every source code is released or listed as suppressed.",
            "source codes are neither released nor suppressed.",
        ),
        of_count(
            "rows_generalize_source_rows", int((-more).clip(0).sum()),
            "Every published row is a generalized source row.",
            "published rows do not generalize a source row.",
        ),
        of_count(
            "no_row_lost", int(more.clip(0).sum()), "Every source row is published.",
            "source rows are not published.",
        ),
        order_check("order_of_records", known, "records"),
        *([] if mapped else [no_other_codes(codes, sorted(held))]),
    ]  # fmt: skip
