"""Two disassociations of overlapping patients, and a disassociation beside generalized records.

A leaf of one and a leaf of the other have at most so many records of the same patients as each of them can show, given
what the other says of its records (TIME: cells). The sum of a leaf's cells, and of all leaves, bounds the patients with
the known codes in any two data sets that fit both releases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from leeward.composition.known import Known
from leeward.composition.leaves import ANYTHING, Leaves

TOLD = 300
"""Patients of whom it is looked up what sets of their codes tell for certain."""


@dataclass(frozen=True)
class Cells:
    """Two releases of patients who are in both. `grown`: the later one has further codes of them; else the same."""

    one: Leaves
    two: Leaves
    grown: bool = False

    def cell(self, p: int, q: int, known: int) -> int:
        """The most patients of leaf p of the one and leaf q of the other who have these codes."""
        one, two = self.one, self.two
        # A code that a release shows nowhere was taken out of it, and excludes nothing.
        allowed = two.leaves[q].seen | ~two.shown
        needed = known if self.grown else known | (two.leaves[q].must & one.shown)
        here = one.most(p, needed, allowed)
        if not here:
            return 0
        allowed = ANYTHING if self.grown else one.leaves[p].seen | ~one.shown
        return min(here, two.most(q, known | (one.leaves[p].must & two.shown), allowed))

    def candidates(self, known: int, k: int) -> int:
        """The most patients with these codes; k for k or more."""
        rows: Counter[int] = Counter()
        columns: Counter[int] = Counter()
        caps = {q: self.two.most(q, known) for q in self.two.places(known)}
        for p in self.one.places(known):
            cap = self.one.most(p, known)
            for q, most in caps.items():
                if rows[p] >= cap and columns[q] >= most:
                    continue
                found = self.cell(p, q, known)
                rows[p], columns[q] = min(cap, rows[p] + found), min(most, columns[q] + found)
            if min(self.one.capped(+rows, known), self.two.capped(+columns, known)) >= k:
                return k
        return min(self.one.capped(+rows, known), self.two.capped(+columns, known))

    def find_told(self, known: int) -> int:
        """Further codes that whoever has these codes has for certain: by both releases, and by neither alone."""
        alone = certain(self.one, known) | certain(self.two, known)
        common = None
        for p in self.one.places(known):
            for q in self.two.places(known):
                here = self.one.leaves[p].must | self.two.leaves[q].must
                if common is not None and not common & ~here:
                    continue
                if self.cell(p, q, known):
                    common = here if common is None else common & here
                if common is not None and not common & ~(alone | known):
                    return 0
        return (common or 0) & ~(alone | known)


def certain(leaves: Leaves, known: int) -> int:
    """The codes that every record has that may have these codes."""
    found = ANYTHING
    for node in leaves.places(known):
        found &= leaves.leaves[node].must
        if not found & ~known:
            break
    return max(found, 0) & ~known


def rare_sets(known: Known, patients: int, m: int, k: int) -> dict[str, list[int]]:
    """The sets of up to m codes of some patients that fewer than k of all have: no bound of any other is below k."""
    support: dict[int, int] = {}
    found = {}
    for name, sets in known.sampled(patients, m).items():
        for each in sets:
            if each not in support:
                support[each] = known.support(each)
        found[name] = [each for each in sets if support[each] < k]
    return found


def fewest_of(rare: dict[str, list[int]], k: int, candidates: Callable[[int], int]) -> Iterator[int]:
    """The fewest candidates of each patient. A set that cannot be in both tells of no one."""
    known: dict[int, int] = {}
    for sets in rare.values():
        fewest = k
        for each in sets:
            if each not in known:
                known[each] = candidates(each)
            fewest = min(fewest, known[each] or k)
        yield fewest


def count_told(cells: Cells, known: Known, m: int, patients: int = TOLD) -> int:
    """Of so many patients, those of whom a set of their codes tells a further one."""
    found: dict[int, bool] = {}
    total = 0
    for sets in known.sampled(patients, m).values():
        for each in sets:
            if each not in found:
                found[each] = bool(cells.find_told(each))
        total += any(found[each] for each in sets)
    return total
