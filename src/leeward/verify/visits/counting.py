"""Count the records that share what a visit shows: a code, or its whole set."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from leeward.verify.checks import Check, of_count
from leeward.verify.flat import Longs, distinct, offsets_of
from leeward.verify.visits.kernels import number_lists
from leeward.verify.visits.reading import VisitLists


def number_sets(*parts: VisitLists) -> list[Longs]:
    """The number of each visit's set; equal sets have equal numbers, in all parts (labels of one numbering)."""
    bounds = offsets_of(np.array([len(part) for part in parts]))
    shifts = offsets_of(np.array([len(part.values) for part in parts]))
    offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    room = 1 << max(4, int(2 * bounds[-1]).bit_length())
    numbers, _ = number_lists(
        np.concatenate([*offsets, shifts[-1:]]),
        np.concatenate([part.values for part in parts]),
        np.full(room, -1, np.int32),
    )
    return [numbers[low:high] for low, high in pairwise(bounds)]


def people_with(visits: VisitLists, things: Longs, n: int, *, of_visits: bool) -> Longs:
    """Records with each of `n` things, which are numbered for each visit, or for each entry of the visits."""
    record = visits.record if of_visits else np.repeat(visits.record, visits.sizes())
    return np.bincount(distinct(record * n + things) % max(1, n), minlength=n)


def joint(*parts: VisitLists) -> list[VisitLists]:
    """The same visits with one numbering of labels."""
    labels = tuple(sorted(set().union(*(part.labels for part in parts))))
    return [part.relabelled(labels) for part in parts]


def visit_check(wanted: VisitLists, population: VisitLists, k: int) -> Check:
    """G3: every visit's set is held exactly by k records."""
    if wanted is population:
        (theirs,) = number_sets(population)
        mine = theirs
    else:
        mine, theirs = number_sets(*joint(wanted, population))
    n = int(max(mine.max(initial=-1), theirs.max(initial=-1))) + 1
    held = people_with(population, theirs, n, of_visits=True)
    shown = np.bincount(mine, minlength=n) > 0
    return check_shared("visit_sets", held[shown], k, population, "visit sets", "have exactly")


def code_check(wanted: VisitLists, population: VisitLists, k: int) -> Check:
    """G1: every code occurs in k records."""
    wanted, population = joint(wanted, population)
    n = len(population.labels)
    held = people_with(population, population.values.astype(np.int64), n, of_visits=False)
    shown = np.bincount(wanted.values, minlength=n) > 0
    return check_shared("codes", held[shown], k, population, "codes", "have")


def check_shared(name: str, holders: Longs, k: int, population: VisitLists, what: str, verb: str) -> Check:
    smallest = int(holders.min()) if len(holders) else None
    figures: dict[str, Any] = {"k": k, "distinct": len(holders), "smallest": smallest}
    records = len(distinct(population.record))
    return of_count(
        name,
        int((holders < k).sum()),
        f"Each of {len(holders):,} distinct {what} is shared: at least {k} of {records:,} records {verb} it.",
        f"of {len(holders):,} distinct {what} are shared by fewer than {k} records.",
        figures,
    )


def pairs_of(visits: VisitLists) -> Longs:
    """Distinct (record, label) pairs as ascending keys."""
    return distinct(np.repeat(visits.record, visits.sizes()) * max(1, len(visits.labels)) + visits.values)
