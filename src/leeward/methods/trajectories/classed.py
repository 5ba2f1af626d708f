"""Trajectories inside classes of demographics: no group crosses a class (docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.arrays import AnyArray, Int32s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.methods.trajectories import run
from leeward.methods.trajectories.records import Group, Records
from leeward.methods.trajectories.space import Space

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.analysis.demographics.search import Lost

SEARCHED = 4_000
"""Records that the search for levels looks at: the work of clustering grows with the square of them."""


def lost_in(records: Records, space: Space, settings: run.Settings, threads: int) -> Lost:
    """The pairs lost in each of some classes, clustered without a local search: a published pair counts by its mean
    loss of code and age, by their weights; one that is not published counts 1."""
    plain = replace(settings, improve=False)

    def losses(parts: Sequence[AnyArray]) -> list[int]:
        found = []
        for members in parts:
            part = records.take(members.astype(np.int64))
            groups = run.clustered(part, space, plain, threads)
            kept = sum(len(group.members) * _savings(group, space) for group in groups)
            found.append(round(int(part.offsets[-1]) - kept / space.unit))
        return found

    return losses


def _savings(group: Group, space: Space) -> int:
    """What the published pairs of a group save, each 0 to `space.unit`."""
    return int(space.code.gain[group.codes].sum() + space.age.gain[group.ages].sum())


def of_patients(cohort: Cohort, patients: pl.Series) -> Cohort:
    """The cohort of some of its patients."""
    inside = patients.implode()
    people = None if cohort.patients is None else cohort.patients.filter(pl.col("patient").is_in(inside))
    return replace(
        cohort, events=cohort.require_events().filter(pl.col("patient").is_in(inside)), patients=people
    )


def parts_of(members: Sequence[Int64s], records: Records, space: Space, largest: int) -> Int32s:
    """The part of each record: its class, or a part of it where that has more than `largest` records (0: no limit)."""
    part = np.empty(len(records), np.int32)
    made = 0
    for inside in members:
        halved = 0 < largest < len(inside)
        own = (
            run.describe_parts(records.take(inside), space, largest)
            if halved
            else np.zeros(len(inside), np.int32)
        )
        part[inside] = made + own
        made += int(own.max()) + 1
    return part


def by_class(groups: Sequence[Group], classes: Classes) -> list[list[Group]]:
    """The groups of each class."""
    found: list[list[Group]] = [[] for _ in range(len(classes))]
    for group in groups:
        found[int(classes.of_record[group.members[0]])].append(group)
    return found
