"""The code sets of patients who are in two sources, as bits of integers: what attackers may know of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from operator import or_

from leeward.cohort.cohort import Cohort
from leeward.randomness import Randomness

SETS = 20_000
"""Known code sets that are looked at, about: patients are drawn until theirs are so many."""


def bits_of(mask: int) -> Iterator[int]:
    """The single bits of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


@dataclass(frozen=True)
class Coding:
    """A bit of its own for each code."""

    bit: Mapping[str, int]

    @staticmethod
    def of(*cohorts: Cohort) -> Coding:
        codes = sorted({code for cohort in cohorts for code in cohort.code_sets().codes})
        return Coding({code: 1 << place for place, code in enumerate(codes)})

    @cached_property
    def code(self) -> dict[int, str]:
        return {bit: code for code, bit in self.bit.items()}

    def mask(self, codes: Iterable[str]) -> int:
        return reduce(or_, (self.bit[code] for code in codes), 0)


@dataclass(frozen=True)
class Known:
    """The codes of some patients, by identifier as text, as masks."""

    of_patient: Mapping[str, int]

    @staticmethod
    def of(cohort: Cohort, coding: Coding) -> Known:
        sets = cohort.code_sets()
        names = sets.patients.cast(str).to_list()
        return Known({name: coding.mask(sets.record(place)) for place, name in enumerate(names)})

    def among(self, patients: Set[str]) -> Known:
        return Known({name: mask for name, mask in self.of_patient.items() if name in patients})

    @cached_property
    def holders(self) -> dict[int, set[int]]:
        """Of each code, the places of the patients who have it."""
        found: dict[int, set[int]] = {}
        for place, mask in enumerate(self.of_patient.values()):
            for bit in bits_of(mask):
                found.setdefault(bit, set()).add(place)
        return found

    def support(self, known: int) -> int:
        """How many of the patients have all of these codes, at least one."""
        return len(set.intersection(*(self.holders.get(bit, set()) for bit in bits_of(known))))

    def sampled(self, patients: int, m: int) -> dict[str, list[int]]:
        """Some patients with their sets of up to m codes: so many, or fewer if their sets are more than SETS. Always
        the same ones, so that a measurement can be repeated."""
        names, total = sorted(self.of_patient), 0
        found: dict[str, list[int]] = {}
        order = Randomness.of(1).stream("composition", "patients").permutation(len(names))
        for place in order[:patients].tolist():
            sets = list(sets_of(self.of_patient[names[place]], m))
            if found and total + len(sets) > SETS:
                break
            found[names[place]], total = sets, total + len(sets)
        return found


def sets_of(mask: int, m: int) -> Iterator[int]:
    """The sets of 1 to m of these codes."""
    bits = list(bits_of(mask))
    for size in range(1, min(m, len(bits)) + 1):
        for chosen in combinations(bits, size):
            yield sum(chosen)
