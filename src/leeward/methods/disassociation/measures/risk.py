"""Risk after release: candidates of what an attacker may know, counted from the files (Loukides et al. 2014, Fig. 12).

Candidates are upper bounds of estimates (docs/methods/disassociation.md#estimating-counts) in the classes of
demographics that a patient's exact values fit. For an attacker who knows the algorithm a code of an item chunk has at
most k - 1 records of its cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leeward.analysis.demographics.joint import fitting_classes
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.arrays import AnyArray, Bools, Int32s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.measures.estimates import estimates_of_numbers
from leeward.methods.disassociation.measures.published import ITEM, Array, Published, part
from leeward.methods.disassociation.rules import MARK
from leeward.randomness import Randomness
from leeward.release import Release

SETS_DRAWN, SETS_COUNTED = 20_000, 1_000
"""Code sets drawn from records, and those with the rarest codes, whose candidates are counted."""


@dataclass(frozen=True)
class Knowledge:
    """What attackers may know of the patients of the source, in terms of a release.

    sets : their codes. translate : the release's number of each of the source's codes; -1 for one that it does not
    show, or that attackers are assumed not to know. number : int64[patients], of each one's exact demographics.
    fitting : bool[numbers, classes], the classes with these. classes : their numbers in the release; None without
    demographics.
    """

    published: Published
    sets: CodeSets
    translate: Int32s
    number: Int64s
    fitting: Bools
    classes: Int64s | None

    @property
    def codes(self) -> Int32s:
        """The numbers of all patients' codes in the release, one patient after the other."""
        return self.translate[self.sets.values]

    def by_classes(self, numbers: AnyArray) -> Iterator[tuple[Int64s, Bools]]:
        """Places in `numbers` of exact demographics that fit the same classes, and these classes."""
        fitting, alike = self.same_classes
        order = np.argsort(alike[numbers], kind="stable")
        bounds = np.searchsorted(alike[numbers], np.arange(len(fitting) + 1), sorter=order)
        for fits, (low, high) in zip(fitting, itertools.pairwise(bounds), strict=True):
            if low < high:
                yield order[low:high], fits

    @cached_property
    def same_classes(self) -> tuple[Bools, Int64s]:
        """The distinct rows of `fitting`, and which of them each number of exact demographics has."""
        fitting, alike = np.unique(self.fitting, axis=0, return_inverse=True)
        return fitting, alike.reshape(-1)

    def candidates(self, numbers: AnyArray, queries: list[Array]) -> tuple[Int64s, Int64s]:
        """The candidates of patients with these exact demographics and codes: int64[queries], for the attacker of the
        guarantee and for one who knows the algorithm too."""
        plain, capped = np.zeros((2, len(queries)), np.int64)
        for places, fits in self.by_classes(numbers):
            here = self.published if self.classes is None else part(self.published, self.classes[fits])
            mine = [queries[i] for i in places]
            plain[places] = estimates_of_numbers(here, mine, "one").high
            capped[places] = estimates_of_numbers(here, mine, "one", item_most=here.k - 1).high
        return plain, capped

    def sums(self, numbers: AnyArray, codes: AnyArray, weights: AnyArray) -> Int64s:
        """The sum of the weights of each code's entries in the classes that exact demographics fit: int64[codes]."""
        p, width = self.published, max(1, len(self.published.codes))
        key = np.repeat(np.arange(len(p.codes)), np.diff(p.at))
        if self.classes is not None and p.of_class is not None:
            order = np.argsort(self.classes)
            key += width * order[np.searchsorted(self.classes, p.of_class[p.entry_node], sorter=order)]
        keys, entry = np.unique(key, return_inverse=True)
        total = np.bincount(entry.reshape(-1), weights).astype(np.int64)
        found = np.zeros(len(codes), np.int64)
        for places, fits in self.by_classes(numbers):
            wanted = np.add.outer(width * np.flatnonzero(fits), codes[places])
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            found[places] = (total[at] * (keys[at] == wanted)).sum(axis=0)
        return found


def knowledge_of(release: Release, published: Published, cohort: Cohort, sets: CodeSets) -> Knowledge:
    """What attackers may know of the patients of `sets`: all codes but the sensitive ones, and, where the release has
    demographics, their exact values."""
    sensitive = set(release.parameters.get("sensitive") or ())
    base = (code.rsplit(MARK, 1)[0] if release.parameters["repeats"] else code for code in sets.codes)
    of_codes = knowledge_of_codes(published, sets, [code not in sensitive for code in base])
    if not release.parameters.get("demographics"):
        return of_codes
    number, fitting = fitting_classes(release, cohort, sets.patients)
    return replace(of_codes, number=number, fitting=fitting, classes=ReleasedClasses.read(release).number)


def knowledge_of_codes(
    published: Published, sets: CodeSets, known: Sequence[bool] | None = None
) -> Knowledge:
    """The same of codes alone; `known`: whether attackers may know each code."""
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)
    if known is not None:
        translate[~np.array(known, np.bool_)] = -1
    nobody = np.zeros(len(sets), np.int64)
    return Knowledge(published, sets, translate, nobody, np.ones((1, 1), np.bool_), None)


@dataclass(frozen=True)
class SingleCodes:
    """What is known where one code is known, beside exact demographics.

    candidates : of each such piece, for an attacker who knows the algorithm. patient, piece : who has which.
    """

    candidates: Int64s
    patient: Int64s
    piece: Int64s

    def patients_below(self, k: int) -> int:
        """The patients of whom a piece with fewer than k candidates is true."""
        return len(np.unique(self.patient[self.candidates[self.piece] < k]))


def single_codes(attacker: Knowledge) -> SingleCodes:
    """All pieces: a code has its counts, and up to k - 1 records of a cluster whose item chunk lists it."""
    published, codes = attacker.published, attacker.codes
    most = published.entry_counts()
    items = np.flatnonzero(published.kind[published.entry_chunk] == ITEM)
    most[items] = np.minimum(published.records[published.entry_node[items]], published.k - 1)
    patient = np.repeat(np.arange(len(attacker.sets)), attacker.sets.lengths())[codes >= 0]
    width = max(1, len(published.codes))
    keys, piece = np.unique(attacker.number[patient] * width + codes[codes >= 0], return_inverse=True)
    return SingleCodes(attacker.sums(keys // width, keys % width, most), patient, piece.reshape(-1))


def risk_after(attacker: Knowledge, *, seed: int) -> dict[str, int]:
    """The smallest number of candidate records over sets of up to m codes that occur in the source, and how many sets
    have fewer than k; for an attacker who knows the algorithm too
    (docs/methods/disassociation.md#the-attacker-who-knows-the-algorithm).

    Sets are drawn from random records, and of them those whose rarest code is in fewest chunks are looked at. Sets that
    the release shows nowhere, because a code was suppressed, have none, and are not counted as below k.
    """
    published = attacker.published
    stream = Randomness.of(seed).stream("risk after")
    records = stream.integers(0, len(attacker.sets), SETS_DRAWN)
    ends, drawn = draw_sets(stream, records, attacker.sets.offsets, attacker.codes, published.m)
    codes, bounds = drawn.tolist(), [0, *ends.tolist()]
    numbers = attacker.number[records].tolist()
    distinct = list(
        dict.fromkeys(
            (number, *codes[low:high])
            for number, (low, high) in zip(numbers, itertools.pairwise(bounds), strict=True)
            if low < high
        )
    )
    number = np.array([each[0] for each in distinct], np.int64)
    sizes = np.array([len(each) - 1 for each in distinct], np.int64)
    known_codes = np.array([code for each in distinct for code in each[1:]], np.int64)
    chunks = attacker.sums(np.repeat(number, sizes), known_codes, np.ones(len(published.entry_chunk)))
    rarity = np.minimum.reduceat(chunks, np.cumsum(sizes) - sizes) if len(sizes) else chunks
    rarest = np.argsort(rarity, kind="stable")[:SETS_COUNTED]
    queries: list[Array] = [np.array(distinct[i][1:], np.int32) for i in rarest]
    high, known = attacker.candidates(number[rarest], queries)
    shown = high > 0
    high, known = high[shown], known[shown]
    return {
        "sets": len(queries),
        "largest_set": published.m,
        "smallest_candidates": int(high.min()) if len(high) else 0,
        "below_k": int((high < published.k).sum()),
        "smallest_candidates_algorithm_known": int(known.min()) if len(known) else 0,
        "below_k_algorithm_known": int((known < published.k).sum()),
    }


WORD = 1 << 32
"""A number drawn below it is the generator's next word of 32 bits."""


@njit
def shuffle(stream: Any, values: AnyArray) -> None:
    """As NumPy's `stream.shuffle(values)`, draw by draw: Numba's own takes six seconds to compile."""
    for i in range(len(values) - 1, 0, -1):
        mask = i
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> shift
        j = stream.integers(0, WORD) & mask
        while j > i:
            j = stream.integers(0, WORD) & mask
        values[i], values[j] = values[j], values[i]


@njit
def draw_sets(stream: Any, records: AnyArray, offsets: AnyArray, values: AnyArray, m: int) -> Any:
    """Of each of `records` 1 … m of its codes (record r has values[offsets[r]:offsets[r + 1]], -1 for none), as many as
    there are, ascending: int64[records] where each set ends, and all their codes, int32.

    `stream`, a NumPy generator, draws each size and then a permutation of the record's codes.
    """
    ends = np.empty(len(records), np.int64)
    drawn = np.empty(len(records) * m, np.int32)
    held = np.empty(np.diff(offsets).max(), np.int32)
    at = 0
    for i in range(len(records)):
        n = 0
        for v in range(offsets[records[i]], offsets[records[i] + 1]):
            if values[v] >= 0:
                held[n] = values[v]
                n += 1
        size = stream.integers(1, m + 1)
        shuffle(stream, held[:n])
        first = at
        for code in held[: min(n, size)]:
            place = at
            while place > first and drawn[place - 1] > code:
                drawn[place] = drawn[place - 1]
                place -= 1
            drawn[place] = code
            at += 1
        ends[i] = at
    return ends, drawn[:at]
