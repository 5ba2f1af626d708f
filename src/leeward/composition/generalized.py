"""Generalized records, each a patient's whole record, beside the leaves of a disassociation of the same patients."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import and_, or_

from leeward.composition.known import Coding, bits_of
from leeward.composition.leaves import Leaves
from leeward.release import Release


class Rows:
    """The distinct records of a generalized release: masks of labels, and how many patients have each.

    label : of each code that is shown, the bit of its label
    """

    def __init__(self, release: Release, coding: Coding) -> None:
        codes = release.table("codes.parquet").collect()
        self.label: dict[int, int] = {}
        bits: dict[str, int] = {}
        for code, members, suppressed in codes.select("code", "members", "suppressed").rows():
            if not suppressed:
                bits[code] = 1 << len(bits)
                self.label |= dict.fromkeys(bits_of(coding.mask(members or [code])), bits[code])
        records = release.table("records.parquet").select("codes").collect()["codes"].to_list()
        counted = Counter(reduce(or_, (bits[each] for each in codes), 0) for codes in records)
        self.kinds, self.copies = list(counted), list(counted.values())
        self.with_label: dict[int, set[int]] = {bit: set() for bit in bits.values()}
        for number, kind in enumerate(self.kinds):
            for bit in bits_of(kind):
                self.with_label[bit].add(number)
        self.everyone = set(range(len(self.kinds)))

    def labels(self, codes: int) -> int:
        """The labels of those of the codes that are shown."""
        return reduce(or_, (self.label.get(bit, 0) for bit in bits_of(codes)), 0)

    def fitting(self, needed: int, allowed: int) -> set[int]:
        """The records with these labels and no other than allowed ones."""
        having = reduce(and_, (self.with_label[bit] for bit in bits_of(needed)), self.everyone)
        return {each for each in having if not self.kinds[each] & ~allowed}


class RowsAndLeaves:
    """Both releases of the same codes of patients who are in both."""

    def __init__(self, rows: Rows, leaves: Leaves) -> None:
        self.rows, self.leaves = rows, leaves
        # A code that the leaves show nowhere was taken out of them, and excludes no label.
        hidden = sum(bit for bit in rows.label if not bit & leaves.shown)
        self.allowed = {q: rows.labels(leaf.seen | hidden) for q, leaf in leaves.leaves.items()}
        self.must = {q: rows.labels(leaf.must) for q, leaf in leaves.leaves.items()}

    def candidates(self, known: int, k: int) -> int:
        """The most patients with these codes; k for k or more."""
        needed, fitting = self.rows.labels(known), set[int]()
        of_leaf: dict[int, int] = {}
        for q in self.leaves.places(known):
            here = self.rows.fitting(needed | self.must[q], self.allowed[q])
            fitting |= here
            of_leaf[q] = min(self.leaves.most(q, known), self.count(here))
            found = min(self.leaves.capped(of_leaf, known), self.count(fitting))
            if found >= k:
                return k
        return min(self.leaves.capped(of_leaf, known), self.count(fitting))

    def count(self, kinds: set[int]) -> int:
        return sum(self.rows.copies[each] for each in kinds)
