"""Which attack there is for which pair of releases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from leeward.cohort.cohort import Cohort
from leeward.composition.bound import Bound, bound_of
from leeward.composition.disassociations import TOLD, Cells, count_told, fewest_of, rare_sets
from leeward.composition.generalized import Rows, RowsAndLeaves
from leeward.composition.known import Coding, Known, bits_of
from leeward.composition.leaves import Leaves
from leeward.methods.disassociation.measures.estimates import estimates, read_once
from leeward.release import Release

PATIENTS: Final = 1_000
"""Patients whose known codes are tried."""

SAME: Final = (
    "knows up to {m} codes of a patient who is in both; counts the records of each cluster of the one that can be "
    "records of a cluster of the other"
)
GROWN: Final = (
    "knows up to {m} codes that a patient of both had at the earlier release; counts the records of each cluster of it "
    "that can have grown into records of a cluster of the later one"
)
DIFFERENCE: Final = (
    "knows up to {m} codes of a patient who is in one of them alone; takes the fewest records of the other with these "
    "codes from the most records of this one"
)
ROWS: Final = (
    "knows up to {m} codes of a patient who is in both; counts the generalized records that can be records of a "
    "cluster"
)


@dataclass(frozen=True)
class Held:
    """A release as its custodian holds it: the whole folder, and the source, where that is still there."""

    release: Release
    source: Cohort | None


def measure(earlier: Held, later: Held) -> Bound | None:
    """The strongest attack on two releases of overlapping patients; None where none was tried, which is never the same
    as safe.

    Parameters
    ----------
    earlier, later : the releases with their sources
    """
    return min(attacks(earlier, later), key=lambda each: (each.fewest, -each.below), default=None)


def attacks(earlier: Held, later: Held, *, patients: int = PATIENTS) -> list[Bound]:
    """What each attack on the pair came to, with the codes of at most so many patients; nothing where there is none."""
    one, two, before, after = earlier.release, later.release, earlier.source, later.source
    methods = {one.method, two.method}
    k = min(int(each.guarantee.get("k") or 0) for each in (one, two))
    if k < 2:
        return []
    if methods == {"visits"}:
        from leeward.composition.visits import attack_visits

        return attack_visits(one, two, before, after, k)
    if before is None or after is None:
        return []
    if methods == {"condensation"}:
        from leeward.composition.tables import attack_difference

        return attack_difference(one, two, before, after, k)
    if methods <= {"trajectories", "k-anonymity"}:
        from leeward.composition.tables import attack_groups, groups_of

        groups = groups_of(one, before), groups_of(two, after)
        return attack_groups(groups[0], groups[1], k) if groups[0] and groups[1] else []
    if methods <= {"disassociation", "constraints"} and "disassociation" in methods:
        return _attack_codes(one, two, before, after, k, patients)
    return []


def _attack_codes(
    one: Release, two: Release, source: Cohort, later: Cohort, k: int, patients: int
) -> list[Bound]:
    if not _shows_every_code(one) or not _shows_every_code(two):
        return []
    m = min(int(each.parameters.get("m") or 2) for each in (one, two))
    coding = Coding.of(source, later)
    before, after = Known.of(source, coding), Known.of(later, coding)
    common = before.of_patient.keys() & after.of_patient.keys()
    same = all(before.of_patient[each] == after.of_patient[each] for each in common)
    grown = all(not before.of_patient[each] & ~after.of_patient[each] for each in common)
    if not common or not grown:
        return []
    known = before.among(common)
    rare = rare_sets(known, patients, m, k)
    if one.method != two.method:
        return [_attack_rows(one, two, coding, rare, k, m)] if same else []
    leaves = Leaves(one, coding), Leaves(two, coding)
    if same and len(common) == len(before.of_patient) == len(after.of_patient):
        leaves[0].tighten(leaves[1])
        leaves[1].tighten(leaves[0])
    cells = Cells(*leaves, grown=not same)
    counts = fewest_of(rare, k, lambda each: cells.candidates(each, k))
    told = count_told(cells, known, m, min(patients, TOLD))
    found = [bound_of((SAME if same else GROWN).format(m=m), k, counts, certain=told)]
    sides = [(two, one, after, before), (one, two, before, after)]
    for here, there, mine, others in sides if same else sides[:1]:
        alone, missing = mine.among(mine.of_patient.keys() - common), len(others.of_patient) - len(common)
        if alone.of_patient:
            rare = rare_sets(alone, patients, m, k)
            asked = {each for sets in rare.values() for each in sets}
            most = most_alone(here, there, coding, asked, missing)
            capped = {each: min(count, len(alone.of_patient)) for each, count in most.items()}
            counts = fewest_of(rare, k, capped.__getitem__)
            found.append(bound_of(DIFFERENCE.format(m=m), k, counts))
    return found


def _shows_every_code(release: Release) -> bool:
    """Whether a code that the release does not show of a record is missing there, or is shown nowhere: codes that were
    taken out of some records would exclude the wrong ones."""
    given = release.parameters
    taken_out = ("diversity", "sensitive_columns", "repeats")
    return not (
        release.demographics or given.get("attacker") == "algorithm" or any(map(given.get, taken_out))
    )


def _attack_rows(
    one: Release, two: Release, coding: Coding, rare: dict[str, list[int]], k: int, m: int
) -> Bound:
    rows, leaves = (one, two) if one.method == "constraints" else (two, one)
    both = RowsAndLeaves(Rows(rows, coding), Leaves(leaves, coding))
    return bound_of(ROWS.format(m=m), k, fewest_of(rare, k, lambda each: both.candidates(each, k)))


def most_alone(
    here: Release, there: Release, coding: Coding, asked: Iterable[int], missing: int
) -> dict[int, int]:
    """Of each set of codes, the most records of a disassociation of whom `there`, with `missing` patients who are not
    here, has none."""
    sets = list(asked)
    queries = [[coding.code[bit] for bit in bits_of(each)] for each in sets]
    high, low = estimates(read_once(here), queries).high, estimates(read_once(there), queries).low
    return dict(zip(sets, (high - np.maximum(0, low - missing)).tolist(), strict=True))
