"""The guarantee of each level, counted in the released files (docs/methods/visits.md#levels)."""

from __future__ import annotations

import numpy as np

from leeward.errors import BadInput
from leeward.verify.checks import Check, of_count
from leeward.verify.manifest import Share
from leeward.verify.visits.counting import code_check, joint, pairs_of, visit_check
from leeward.verify.visits.reading import VisitLists, read_visits
from leeward.verify.visits.shown import contained_check

LEVELS = ("code", "containment", "visit")


def level_checks(share: Share, wanted: VisitLists, population: VisitLists, k: int, level: str) -> list[Check]:
    """The guarantee: what `wanted` shows is shared by k records of `population` (itself, or the master)."""
    if level == "visit":
        return [visit_check(wanted, population, k)]
    if level == "code":
        return [code_check(wanted, population, k)]
    return containment_checks(share, population, k)


def containment_checks(share: Share, population: VisitLists, k: int) -> list[Check]:
    """What each record shows of each of its source visits, as the custodian keeps these, is part of k records."""
    file = share.folder.parent / "custody" / "data" / "visit_sets.parquet"
    if not file.is_file():
        raise BadInput(
            "level `containment` speaks of visit sets that the merged release does not show: verify the whole release "
            "folder, with custody/data/visit_sets.parquet."
        )
    sets, population = joint(read_visits(file), population)
    strange = len(np.setdiff1d(pairs_of(population), pairs_of(sets), assume_unique=True))
    several = len(population) - len(np.unique(population.record))
    return [
        of_count(
            "one_set_a_record",
            int(several),
            "Visits are merged: one set a record.",
            "rows show visits of a record apart.",
        ),
        of_count(
            "unions_of_visit_sets",
            strange,
            "Every code of a record is in one of its visit sets.",
            "codes are in a record and in none of its visit sets.",
        ),
        contained_check("contained_sets", sets, population, k),
    ]
