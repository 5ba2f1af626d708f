"""Counts from generalized records: a label `(a,b,c)` means some non-empty subset of its members
(docs/methods/constraints.md#estimating-counts).

Two readings. `subset`: every non-empty subset is equally likely, so t given members of a label of n are all
there with probability 2^(n-t)/(2^n - 1), and none of them with (2^(n-t) - 1)/(2^n - 1). `share`: the label
stands for one member, any of them alike and independently for each code asked for: n^-t, and (1 - 1/n)^t;
of all members one is there for certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from leeward.analysis.demographics.released import Concerned
from leeward.analysis.itemsets import supports_of
from leeward.arrays import Bools, Float64s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput
from leeward.release import Release

READINGS = ("subset", "share")
"""How a generalized code is read; `subset` is the one published with figures unless said otherwise."""


@dataclass(frozen=True)
class Generalized:
    """A generalized release.

    records : the labels of every record; `records.codes` are the labels.
    members : the codes of each label.
    label_of : label (index) of each released code.
    suppressed : codes that were taken out.
    """

    records: CodeSets
    members: tuple[tuple[str, ...], ...]
    label_of: dict[str, int]
    suppressed: frozenset[str]

    @cached_property
    def places(self) -> dict[str, int]:
        """Label (index) of everything that can be asked: each released code, and each label as it is written."""
        return {**{label: i for i, label in enumerate(self.records.codes)}, **self.label_of}

    def labels_meant(self, codes: Sequence[str]) -> Counter[int]:
        """How many of the released codes among these each label has."""
        return Counter(self.label_of[code] for code in set(codes) if code in self.label_of)

    def keeps(self, query: Sequence[str]) -> bool:
        """Whether every code or label of a query is released, a code by itself or inside a label."""
        return all(code in self.places for code in query)


@dataclass(frozen=True)
class Counts:
    """Bounds and expectation of each query: int64, float64, int64, and whether it can be answered at all."""

    low: Int64s
    expected: Float64s
    high: Int64s
    answerable: Bools


def read(release: Release | str | Path) -> Generalized:
    """Open a release of the method `constraints` without classes (those: `read_parts`). BadInput for any other."""
    parts = read_parts(release)
    if len(parts) > 1:
        raise BadInput("the release has classes of demographics, each with labels of its own.")
    return parts[0]


def read_parts(release: Release | str | Path) -> tuple[Generalized, ...]:
    """A release of the method `constraints`, class by class in the order of `classes.parquet`; one without demographics
    is one part. Raises BadInput for another method's."""
    opened = release if isinstance(release, Release) else Release.open(release)
    if opened.method != "constraints":
        raise BadInput(f"{opened.share}: made by `{opened.method}`; generalized counts need `constraints`.")
    codes = opened.table("codes.parquet").sort("code").collect()
    records = opened.table("records.parquet").collect()
    names = [str(name) for name in opened.parameters.get("demographics") or ()]
    if not names:
        return (_part(records["codes"], codes),)
    classes = opened.table("classes.parquet").collect()
    return tuple(
        _part(
            records.join(row, on=names, how="semi")["codes"], codes.filter(pl.col("class") == row["class"][0])
        )
        for row in classes.iter_slices(1)
    )


def _part(records: pl.Series, rows: pl.DataFrame) -> Generalized:
    kept = rows.filter(~pl.col("suppressed"))
    labels = tuple(kept["code"].to_list())
    members = tuple(tuple(group) for group in kept["members"].to_list())
    suppressed = frozenset(rows.filter(pl.col("suppressed"))["code"].to_list())
    return of_labels(_sets(records, labels), members, suppressed)


def of_labels(
    records: CodeSets, members: tuple[tuple[str, ...], ...], suppressed: frozenset[str]
) -> Generalized:
    """The same from records in memory; `members[i]` are the codes of `records.codes[i]`."""
    label_of = {code: i for i, group in enumerate(members) for code in group}
    return Generalized(records, members, label_of, suppressed)


def _sets(records: pl.Series, labels: tuple[str, ...]) -> CodeSets:
    lengths = records.list.len().to_numpy().astype(np.int64)
    flat = records.to_arrow().flatten().dictionary_encode()
    number = {label: i for i, label in enumerate(labels)}
    lookup = np.array([number[label] for label in flat.dictionary.to_pylist()] or [0], np.int32)
    values = lookup[flat.indices.to_numpy(zero_copy_only=False)]
    order = np.lexsort((values, np.repeat(np.arange(len(lengths)), lengths)))
    offsets = offsets_of(lengths)
    return CodeSets(offsets, values[order].astype(np.int32), labels, pl.Series(np.arange(len(lengths))))


def check_reading(reading: str) -> str:
    if reading not in READINGS:
        raise BadInput(f"`reading`: {reading!r} is not known; choose from {', '.join(READINGS)}.")
    return reading


def all_there(n: int, t: int, reading: str) -> float:
    """Probability that t given members of a label of n members are all there."""
    if reading == "share":
        return float(n) ** -t
    return 2.0**-t / (1.0 - 2.0**-n)


def none_there(n: int, t: int, reading: str) -> float:
    """Probability that none of t given members of a label of n members is there."""
    if t >= n:
        return 0.0
    if reading == "share":
        return (1.0 - 1.0 / n) ** t
    return (2.0**-t - 2.0**-n) / (1.0 - 2.0**-n)


def counts(release: Generalized, queries: Sequence[Sequence[str]], reading: str = "subset") -> Counts:
    """COUNT(S) of every query: records that hold the labels of S, times the probability that they mean S. A label in S
    as it is written, `(a,b,c)`, asks for any of its codes, so that the records that hold it are counted as they are.

    Bounds: a record counts for certain where the labels of S have one member each, and never without the
    labels. A query on a suppressed code can not be answered and gives 0, 0, n.
    """
    check_reading(reading)
    n = len(queries)
    answerable = np.array([release.keeps(query) for query in queries], np.bool_)
    images: list[list[int]] = []
    shares, exact = np.zeros(n), np.zeros(n, np.bool_)
    for i in np.flatnonzero(answerable).tolist():
        images.append(sorted({release.places[code] for code in queries[i]}))
        asked = [(len(release.members[label]), t) for label, t in release.labels_meant(queries[i]).items()]
        shares[i] = np.prod([all_there(size, t, reading) for size, t in asked])
        exact[i] = all(size == 1 for size, _ in asked)
    held = np.zeros(n, np.int64)
    if images:
        held[answerable] = supports_of(release.records, images)
    high = np.where(answerable, held, len(release.records))
    return Counts(np.where(exact, held, 0), held * shares, high, answerable)


def counts_in(
    parts: Sequence[Generalized],
    queries: Sequence[Sequence[str]],
    reading: str = "subset",
    concerned: Concerned | None = None,
) -> Counts:
    """`counts` over all classes, or the part of them that is concerned: a class's expectation counts by its share, its
    least number only where that is 1, its greatest wherever a patient can be meant. Whoever has all codes of a query in
    a class where one of them is suppressed is counted 0, 0 and all its records; a query can be answered if some class
    releases all its codes."""
    n = len(queries)
    low, high = np.zeros(n, np.int64), np.zeros(n, np.int64)
    expected, answerable = np.zeros(n), np.zeros(n, np.bool_)
    for number, part in enumerate(parts):
        share = 1.0 if concerned is None else float(concerned.share[number])
        if concerned is not None and not concerned.possible[number]:
            continue
        found = counts(part, queries, reading)
        low += found.low if share == 1 else 0
        expected += share * found.expected
        high += found.high
        answerable |= found.answerable
    return Counts(low, expected, high, answerable)


def candidates_in(parts: Sequence[Generalized], possible: Bools, queries: Sequence[Sequence[str]]) -> Int64s:
    """int64[queries]: the records of the possible classes that have the labels of all codes that their class releases;
    suppressed codes tell nothing."""
    found = np.zeros(len(queries), np.int64)
    for part in (part for part, may in zip(parts, possible, strict=True) if may):
        images = [
            np.unique([part.label_of[code] for code in query if code in part.label_of]).astype(np.int32)
            for query in queries
        ]
        known = np.array([len(image) > 0 for image in images], np.bool_)
        found += np.where(known, 0, len(part.records))
        found[known] += supports_of(part.records, [image for image in images if len(image)])
    return found


def matching(release: Generalized, constraint: Sequence[str], reading: str = "subset") -> float:
    """Expected number of records with at least one code of `constraint` (for MRE)."""
    check_reading(reading)
    none = np.ones(len(release.members))
    for label, t in release.labels_meant(constraint).items():
        none[label] = none_there(len(release.members[label]), t, reading)
    sets = release.records
    entries = np.flatnonzero((none < 1.0)[sets.values])
    if not len(entries):
        return 0.0
    owner = np.searchsorted(sets.offsets, entries, side="right")
    first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    absent = np.multiply.reduceat(none[sets.values[entries]], first)
    return float((1.0 - absent).sum())
