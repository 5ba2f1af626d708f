"""The guarantee of each level, counted in the released files (docs/methods/visits.md#levels)."""

from __future__ import annotations

import numpy as np

from leeward.errors import BadInput
from leeward.verify.checks import Check, of_count
from leeward.verify.flat import distinct
from leeward.verify.manifest import Share
from leeward.verify.visits.classed import Placed
from leeward.verify.visits.counting import code_check, joint, pairs_of, visit_check
from leeward.verify.visits.known_codes import check_codes_shown, check_known_codes
from leeward.verify.visits.reading import VisitLists, read_visits
from leeward.verify.visits.shown import check_contained


def level_checks(
    share: Share, wanted: VisitLists, population: VisitLists, k: int, level: str, placed: Placed | None = None
) -> list[Check]:
    """The guarantee: what `wanted` shows is shared by k records of `population` (itself, or the master), of one class
    where there are demographics (`placed`; the labels of the visits are apart by class then)."""
    if level == "visit":
        return [visit_check(wanted, population, k)]
    if level == "code":
        return [code_check(wanted, population, k)]
    if level == "codes":
        return check_levels(share, wanted, population, k, placed)
    return containment_checks(share, population, k, placed)


def check_levels(
    share: Share, wanted: VisitLists, population: VisitLists, k: int, placed: Placed | None
) -> list[Check]:
    """Any m codes that a visit shows are in visits of k records; of merged records, what they show of source visits."""
    m = share.manifest["parameters"].get("m")
    stated = isinstance(m, int) and m >= 2 and share.manifest["guarantee"].get("m") == m
    checks = [
        Check("m", stated, f"m = {m}, in parameters and guarantee." if stated else "no m >= 2 is stated.")
    ]
    if not stated:
        return checks
    if not share.manifest["parameters"].get("merge_visits"):
        return [*checks, check_known_codes("known_codes", wanted, population, k, m)]
    sets, population = custody_sets(share, population, placed)
    return [*checks, unions_of_sets(sets, population), check_codes_shown(sets, population, k, m)]


def containment_checks(share: Share, population: VisitLists, k: int, placed: Placed | None) -> list[Check]:
    """What each record shows of each of its source visits, as the custodian keeps these, is part of k records."""
    sets, population = custody_sets(share, population, placed)
    return [unions_of_sets(sets, population), check_contained("contained_sets", sets, population, k)]


def custody_sets(
    share: Share, population: VisitLists, placed: Placed | None
) -> tuple[VisitLists, VisitLists]:
    """The images of source visits that the custodian keeps, and the released visits, by one numbering of labels."""
    file = share.folder.parent / "custody" / "data" / "visit_sets.parquet"
    if not file.is_file():
        raise BadInput(
            f"level `{share.manifest['parameters']['level']}` is about visit sets that the merged release does not "
            "show: verify the whole release folder, with custody/data/visit_sets.parquet."
        )
    kept = read_visits(file)
    sets, population = joint(kept if placed is None else placed.apart(kept), population)
    return sets, population


def one_set_a_record(visits: VisitLists) -> Check:
    """Merged releases have one set a record."""
    return of_count(
        "one_set_a_record",
        len(visits) - len(distinct(visits.record)),
        "Visits are merged: one set a record.",
        "records have several rows although visits are merged.",
    )


def unions_of_sets(sets: VisitLists, population: VisitLists) -> Check:
    """The sets of merged releases are made of those that the custodian keeps."""
    return of_count(
        "unions_of_visit_sets",
        len(np.setdiff1d(pairs_of(population), pairs_of(sets), assume_unique=True)),
        "Every code of a record is in one of its visit sets.",
        "codes are in a record and in none of its visit sets.",
    )
