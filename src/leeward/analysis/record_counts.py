"""Counts from released records whose labels are codes, merged codes or nodes of a hierarchy
(docs/methods/whole-patient.md#estimating-counts).

A label that is a code, or below what is asked, was recorded. One that may be the code counts by the part of its codes
that was asked for, each label by itself. What a record does not show may have been recorded all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.arrays import Float64s, Int64s
from leeward.errors import BadInput
from leeward.release import Release

MOST_KEPT = 50_000_000
"""Chances of records that are kept between queries."""

MEMBERS = "|"
"""Between the codes of a merged label."""


class Counted(NamedTuple):
    """Bounds and expectation of each query: int64, float64, int64."""

    low: Int64s
    expected: Float64s
    high: Int64s


@dataclass(frozen=True)
class Labelled:
    """Released records and their labels.

    record, label : int64[entries], one a label that a record shows; label is a place among `labels`.
    parent : of labels in the released hierarchy of codes; "" above the root.
    """

    records: int
    record: Int64s
    label: Int64s
    labels: tuple[str, ...]
    parent: Mapping[str, str]

    @cached_property
    def _below(self) -> dict[str, set[str]]:
        """The codes below each node of the hierarchy that the release lists."""
        found: dict[str, set[str]] = {}
        inner = set(self.parent.values())
        for label in self.parent:
            if label not in inner:
                for node in self._path(label):
                    found.setdefault(node, set()).update(label.split(MEMBERS))
        return found

    def _path(self, label: str) -> list[str]:
        found = [label]
        while above := self.parent.get(found[-1], ""):
            found.append(above)
        return found

    def codes(self, label: str) -> set[str]:
        """The codes that a label may stand for."""
        return self._below.get(label) or set(label.split(MEMBERS))

    def askable(self) -> set[str]:
        return {code for label in (*self.labels, *self.parent) for code in (label, *label.split(MEMBERS))}

    def chance(self, label: str, asked: str) -> float:
        """The chance that a label means what was asked: 1 at or below it."""
        if asked in self._path(label):
            return 1.0
        mine, wanted = self.codes(label), self.codes(asked)
        if mine <= wanted and label not in self._below:
            return 1.0
        # a node is never certain of what is below it: it also holds codes that the release does not list
        return len(mine & wanted) / (len(mine) + (mine <= wanted))

    def chances(self, asked: str) -> Float64s:
        """float64[records]: the chance that each record has a code, by what it shows."""
        of_label = np.array([self.chance(label, asked) for label in self.labels])
        certain = of_label == 1
        logs = np.log1p(-np.where(certain, 0, of_label))
        missing = np.bincount(self.record, weights=logs[self.label], minlength=self.records)
        found = np.minimum(-np.expm1(missing), 1 - 1e-9)
        found[self.record[certain[self.label]]] = 1.0
        return found


def labels_of(release: Release) -> Labelled:
    """The labels of released visits, trajectories (pair by pair) or censored records, each once a record."""
    if release.method == "trajectories":
        shown = release.table("trajectories.parquet").select("record", codes="code")
    else:
        file = "visits.parquet" if release.method == "visits" else "records.parquet"
        shown = release.table(file).select("record", "codes").explode("codes", empty_as_null=True).unique()
    rows = shown.collect().drop_nulls()
    record = rows["record"].to_numpy().astype(np.int64)
    if record.max(initial=-1) >= release.records:
        raise BadInput(f"{release.share}: more records than release.json states; the release is damaged.")
    labels = rows["codes"].cast(pl.String).unique().sort()
    label = rows["codes"].cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.int64)
    parent: dict[str, str] = {}
    if "code_hierarchy.csv" in release.names():
        tree = release.table("code_hierarchy.csv").select("node", pl.col("parent").fill_null(""))
        parent = dict(tree.collect().iter_rows())
    return Labelled(release.records, record, label, tuple(labels), parent)


def counts_where(
    release: Release, labelled: Labelled, queries: Sequence[Sequence[str]], concerned: Concerned | None
) -> Counted:
    """How many patients have all codes of each query, in the part of the classes that is concerned (None: all)."""
    share, possible = np.ones(labelled.records), np.ones(labelled.records, np.bool_)
    if concerned is not None:
        of_record = ReleasedClasses.read(release).of_records(release)
        share, possible = concerned.share[of_record], concerned.possible[of_record]
    by_code: dict[str, Float64s] = {}
    low, expected = np.zeros(len(queries), np.int64), np.zeros(len(queries))
    for i, query in enumerate(queries):
        chance = np.ones(labelled.records)
        for code in sorted(set(query)):
            if len(by_code) * labelled.records > MOST_KEPT:
                by_code.clear()
            if code not in by_code:
                by_code[code] = labelled.chances(code)
            chance *= by_code[code]
        low[i] = int(((chance == 1) & (share == 1)).sum())
        expected[i] = float((chance * share).sum())
    return Counted(low, expected, np.full(len(queries), int(possible.sum())))
