"""Risk after release: candidates of what an attacker may know, counted from the files (Loukides et al. 2014, Fig. 12).

Candidates are upper bounds of estimates (docs/methods/disassociation.md#estimating-counts) in the classes of
demographics that a patient's exact values fit. Who knows that codes are counted from t records on knows that a code of
an item chunk has at most t - 1 records of its cluster, and who knows Refine, at most t - 1 of all clusters that were
joined and count it nowhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from leeward.analysis.demographics.joint import fitting_classes
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.itemsets import owners_of
from leeward.arrays import AnyArray, Bools, Int32s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
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

    `sets`: their codes. `translate`: the release's number of each of the source's codes; -1 for one that it does not
    show, or that attackers are assumed not to know. `number`: int64[patients], of each one's exact demographics.
    `fitting`: bool[numbers, classes], the classes with these. `classes`: their numbers in the release; None without
    demographics.
    """

    published: Published
    sets: CodeSets
    translate: Int32s
    number: Int64s
    fitting: Bools
    classes: Int64s | None

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
        """The distinct rows of `fitting`, and the row of each number of exact demographics."""
        fitting, alike = np.unique(self.fitting, axis=0, return_inverse=True)
        return fitting, alike.reshape(-1)

    def candidates(self, numbers: AnyArray, queries: list[Array]) -> tuple[Int64s, Int64s]:
        """The candidates of patients with these exact demographics and codes: int64[queries], for the attacker of the
        guarantee and for one who knows the algorithm too."""
        plain, capped = np.zeros((2, len(queries)), np.int64)
        for places, fits in self.by_classes(numbers):
            here = self.published if self.classes is None else part(self.published, self.classes[fits])
            mine = [queries[i] for i in places]
            known = attrgetter("most_listed") if here.counted_from > here.k else None
            plain[places] = estimates_of_numbers(here, mine, "one", most=known).high
            capped[places] = estimates_of_numbers(here, mine, "one", most=attrgetter("most_joined")).high
        return plain, capped

    def sums(self, numbers: AnyArray, codes: AnyArray, weigh: Callable[[Published], AnyArray]) -> Int64s:
        """The sum of the weights of each code's entries in the classes that exact demographics fit: int64[codes]."""
        width = max(1, len(self.published.codes))
        parts = [_added(self._keys(p), weigh(p)) for p in self.published.pieces()]
        keys, total = _added(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        found = np.zeros(len(codes), np.int64)
        for places, fits in self.by_classes(numbers):
            wanted = np.add.outer(width * np.flatnonzero(fits), codes[places])
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            found[places] = (total[at] * (keys[at] == wanted)).sum(axis=0)
        return found

    def _keys(self, p: Published) -> Int64s:
        """The number of each entry's class among those of the release × codes + its code."""
        key = owners_of(p.at)
        if self.classes is not None and p.of_class is not None:
            order = np.argsort(self.classes)
            place = order[np.searchsorted(self.classes, p.of_class[p.entry_node], sorter=order)]
            key = key + max(1, len(p.codes)) * place
        return key


def _added(keys: AnyArray, weights: AnyArray) -> tuple[Int64s, Int64s]:
    """The distinct keys, ascending, and the sum of the weights of each."""
    found, entry = np.unique(keys, return_inverse=True)
    return found, np.bincount(entry.reshape(-1), weights).astype(np.int64)


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
    """Knowledge of codes alone; `known`: whether attackers may know each code."""
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)
    if known is not None:
        translate[~np.array(known, np.bool_)] = -1
    nobody = np.zeros(len(sets), np.int64)
    return Knowledge(published, sets, translate, nobody, np.ones((1, 1), np.bool_), None)


@dataclass(frozen=True)
class SingleCodes:
    """Pieces of knowledge: one code, with exact demographics. `keys`: of the pieces, ascending (`singles_of`).
    `candidates`: of each, for an attacker who knows the algorithm."""

    attacker: Knowledge
    keys: Int64s
    candidates: Int64s

    def patients_below(self, k: int) -> int:
        """Number of patients with a piece that has fewer than k candidates."""
        rare = self.keys[self.candidates < k]
        return sum(len(np.unique(patient[np.isin(key, rare)])) for patient, key in singles_of(self.attacker))


def single_codes(attacker: Knowledge) -> SingleCodes:
    """All pieces; candidates are a code's counts plus the most records of each cluster whose item chunk lists it."""
    width = max(1, len(attacker.published.codes))
    keys = np.unique(np.concatenate([np.unique(key) for _, key in singles_of(attacker)]))
    return SingleCodes(attacker, keys, attacker.sums(keys // width, keys % width, most_behind))


def most_behind(p: Published) -> AnyArray:
    """The most records behind each entry, for who knows the algorithm."""
    listed = np.minimum(p.records[p.entry_node], p.most_joined)
    return np.where(p.kind[p.entry_chunk] == ITEM, listed, p.entry_counts())


def singles_of(attacker: Knowledge) -> Iterator[tuple[Int64s, Int64s]]:
    """Patients and their single codes, in blocks of patients: the patient of each code, and the number of the exact
    demographics × codes of the release + the code's number there."""
    width = max(1, len(attacker.published.codes))
    for first, sets in attacker.sets.blocks():
        code = attacker.translate[sets.values]
        patient = first + owners_of(sets.offsets)[code >= 0]
        yield patient, attacker.number[patient] * width + code[code >= 0]


def draw_sets(attacker: Knowledge, stream: np.random.Generator) -> list[tuple[int, ...]]:
    """Distinct pieces of knowledge of patients drawn: the number of the exact demographics, and 1 … m of the codes (as
    many as there are), ascending."""
    records = stream.integers(0, len(attacker.sets), SETS_DRAWN)
    sizes = stream.integers(1, attacker.published.m + 1, SETS_DRAWN)
    part = attacker.sets.take(records)
    owner, codes = owners_of(part.offsets), attacker.translate[part.values]
    owner, codes = owner[codes >= 0], codes[codes >= 0]
    shuffled = np.lexsort((stream.random(len(codes)), owner))
    place = np.arange(len(owner)) - np.searchsorted(owner, owner)  # inside the record
    kept = shuffled[place < sizes[owner]]
    kept = kept[np.lexsort((codes[kept], owner[kept]))]
    ends = np.cumsum(np.bincount(owner[kept], minlength=SETS_DRAWN)).tolist()
    known = zip(attacker.number[records].tolist(), [0, *ends[:-1]], ends, strict=True)
    listed = codes[kept].tolist()
    return list(dict.fromkeys((number, *listed[low:high]) for number, low, high in known if low < high))


def risk_after(attacker: Knowledge, *, seed: int) -> dict[str, int]:
    """The smallest number of candidate records over sets of up to m codes that occur in the source, and how many sets
    have fewer than k; for an attacker who knows the algorithm too
    (docs/methods/disassociation.md#the-attacker-who-knows-the-algorithm).

    Sets are drawn from random records, and of them those whose rarest code is in fewest chunks are counted. Sets that
    the release shows nowhere, because a code was suppressed, have none, and are not counted as below k.
    """
    published = attacker.published
    distinct = draw_sets(attacker, Randomness.of(seed).stream("risk after"))
    number = np.array([each[0] for each in distinct], np.int64)
    sizes = np.array([len(each) - 1 for each in distinct], np.int64)
    known_codes = np.array([code for each in distinct for code in each[1:]], np.int64)
    chunks = attacker.sums(np.repeat(number, sizes), known_codes, lambda p: np.ones(len(p.entry_chunk)))
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
