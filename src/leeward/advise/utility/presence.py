"""Probabilities that each released record has a code, summed to estimate counts.

Every method's release is read as its README says (docs/methods/*.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.analysis.generalized import none_there
from leeward.arrays import Float64s, Int64s

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

CERTAIN = -700.0
"""The logarithm of a probability of next to nothing."""

Groups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Counter:
    """Expected numbers of records: with any code of each group, or with all codes of each query."""

    any_of: Callable[[Groups], Float64s]
    all_of: Callable[[Groups], Float64s]


@dataclass(frozen=True)
class Entries:
    """Records as entries: `owner` and `label` of each, and how many patients an owner counts for.

    none : the probability that a label of n members means none of t of them.
    """

    owner: Int64s
    label: Int64s
    members: tuple[tuple[str, ...], ...]
    weights: Float64s
    none: Callable[[int, int], float]

    def probability(self, codes: Sequence[str]) -> Float64s:
        """Of each owner, that it has one of the codes."""
        wanted = set(codes)
        absent = np.ones(len(self.members))
        for number, group in enumerate(self.members):
            t = len(wanted.intersection(group)) if len(group) > 1 else int(group[0] in wanted)
            if t:
                absent[number] = self.none(len(group), t)
        touched = np.flatnonzero(absent < 1)
        at = np.flatnonzero(np.isin(self.label, touched)) if len(touched) else np.zeros(0, np.int64)
        logs = np.where(absent > 0, np.log(np.maximum(absent, 1e-300)), CERTAIN)
        total = np.bincount(self.owner[at], weights=logs[self.label[at]], minlength=len(self.weights))
        return np.asarray(1.0 - np.exp(np.maximum(total, CERTAIN)))

    def counter(self) -> Counter:
        """Sums over owners; codes of a query are taken as independent inside a record."""
        one = functools.cache(lambda code: self.probability([code]))

        def any_of(groups: Groups) -> Float64s:
            return np.array([float(self.weights @ self.probability(group)) for group in groups])

        def all_of(queries: Groups) -> Float64s:
            return np.array(
                [float(math.prod(map(one, query), start=self.weights).sum()) for query in queries]
            )

        return Counter(any_of, all_of)


def counter_of(release: Release, cohort: Cohort) -> Counter | None:
    make = COUNTERS.get(release.method)
    return None if make is None else make(release, cohort)


def _of_chunks(release: Release, cohort: Cohort) -> Counter:
    from leeward.methods.disassociation.measures import MRE_PRIOR
    from leeward.methods.disassociation.measures.estimates import estimates, matching
    from leeward.methods.disassociation.measures.published import read

    published = read(release)
    return Counter(
        lambda groups: np.asarray(matching(published, groups, MRE_PRIOR), np.float64),
        lambda queries: np.asarray(estimates(published, queries).expected, np.float64),
    )


def _of_labels(release: Release, cohort: Cohort) -> Counter:
    from leeward.analysis.generalized import counts, matching, read

    labels = read(release)
    return Counter(
        lambda groups: np.array([matching(labels, group) for group in groups]),
        lambda queries: counts(labels, queries).expected,
    )


def _of_visits(release: Release, cohort: Cohort) -> Counter:
    from leeward.methods.visits.visit_lists import SEPARATOR, lists_of

    lists = lists_of(release)
    offsets, values = lists.unite(release.records)
    members = tuple(tuple(label.split(SEPARATOR)) for label in lists.labels)
    return Entries(
        np.repeat(np.arange(release.records), np.diff(offsets)),
        values.astype(np.int64),
        members,
        np.ones(release.records),
        lambda n, t: none_there(n, t, "subset"),
    ).counter()


def _of_lists(release: Release, cohort: Cohort) -> Counter:
    records = release.table("records.parquet").select("record", code="codes").collect()
    return _of_shown(release, records.explode("code", empty_as_null=True).drop_nulls())


def _of_events(release: Release, cohort: Cohort) -> Counter:
    events = release.table("events.parquet").select("record", code=pl.col("code").cast(pl.String))
    return _of_shown(release, events.collect())


def _of_shown(release: Release, rows: pl.DataFrame) -> Counter:
    """Of `record` and `code`: a code that is shown was recorded."""
    rows = rows.unique(maintain_order=True)
    codes = rows["code"].unique().sort().to_list()
    label = rows["code"].replace_strict(codes, list(range(len(codes))), return_dtype=pl.Int64).to_numpy()
    members = tuple((code,) for code in codes)
    weights = np.ones(release.records)
    return Entries(rows["record"].to_numpy(), label, members, weights, lambda n, t: 0.0).counter()


def _of_trajectories(release: Release, cohort: Cohort) -> Counter:
    from leeward.methods.trajectories.measures import pair_records

    both = pair_records(release, cohort)
    leaves = both.codes.leaf_labels()
    nodes, label = np.unique(both.code_nodes, return_inverse=True)
    members = tuple(
        tuple(leaves[int(both.codes.first_leaf[node]) : int(both.codes.last_leaf[node]) + 1])
        for node in nodes
    )
    owner = np.repeat(np.arange(len(both.offsets) - 1), np.diff(both.offsets))
    weights = np.bincount(both.kind, minlength=len(both.offsets) - 1).astype(np.float64)
    return Entries(owner, label.astype(np.int64), members, weights, lambda n, t: 1 - t / n).counter()


COUNTERS: dict[str, Callable[[Release, Cohort], Counter]] = {
    "disassociation": _of_chunks,
    "constraints": _of_labels,
    "visits": _of_visits,
    "censoring": _of_lists,
    "trajectories": _of_trajectories,
    "linked": _of_events,
}
