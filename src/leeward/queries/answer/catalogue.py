"""The catalogue of frequent itemsets as one private release, paid once.

Level by level, as Apriori, but no exact support decides anything:

1. The candidates of the first level are the terms of the public vocabulary, those of a later one are made from the
   noisy results of the level before (with values of public domains), so which candidates there are tells nothing.
2. A patient is counted in at most `contributions` candidates of a level, drawn at random among those that the patient
   has, so a patient more or less changes the counts of a level by at most that many in sum.
3. Two-sided geometric noise of scale contributions/ε_level, drawn before the data are read, is added to all of them.
4. What reaches the public threshold of its level is listed, and alone goes on to the next level.

Levels compose by the sum of their ε. The bound makes counts too low where patients have many of a level's candidates;
that is stated with the release.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from leeward.errors import BadInput
from leeward.queries.index.counts import Index
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import to_epsilon
from leeward.queries.privacy.mechanism import Noise
from leeward.randomness import Randomness

PATIENTS_AT_ONCE = 50_000
"""Patients whose candidates are held in memory together."""

Members = tuple[int, ...]
"""Ascending indices into the items; terms come before values."""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Parameters of a catalogue; all of them are public."""

    epsilon: int
    """Micro-ε of the whole release, for each patient."""
    max_size: int = 2
    """Most items of an itemset, values included; also the number of levels that share ε."""
    contributions: int = 10
    """Itemsets of a size that a patient is counted in at most."""
    threshold: int | None = None
    """Noisy counts below it are not listed. None: for each level the least count that noise alone reaches with a
    probability of at most `spurious`, whatever the candidate."""
    spurious: float = 0.05
    qids: tuple[str, ...] = ()
    """Quasi-identifiers whose values take part; their domains must be public."""
    max_candidates: int = 100_000
    """Most candidates of a level; beyond it those go on whose parts have the largest noisy counts."""

    def __post_init__(self) -> None:
        if self.max_size < 1 or self.contributions < 1 or self.max_candidates < 1:
            raise BadInput("`max_size`, `contributions` and `max_candidates` must be at least 1.")
        if self.epsilon < self.max_size:
            raise BadInput("`epsilon` is too small to be shared by the levels.")
        if self.threshold is not None and self.threshold < 1:
            raise BadInput(f"`threshold` must be at least 1; got {self.threshold}.")
        if not 0 < self.spurious < 1:
            raise BadInput(f"`spurious` must lie between 0 and 1; got {self.spurious}.")

    def levels(self) -> tuple[int, ...]:
        """Micro-ε of each level; together exactly `epsilon`."""
        each, rest = divmod(self.epsilon, self.max_size)
        return (each + rest, *[each] * (self.max_size - 1))

    def question(self, index: Index) -> dict[str, Any]:
        """Key of the release in the ledger; holds no data."""
        return asdict(self) | {
            "release": "itemsets",
            "qids": sorted(index.meta.qid(name).name for name in self.qids),
            "rows": index.meta.max_rows_per_patient,
            "vocabulary": index.meta.vocabulary,
            "domains": domains_of(index, self.qids),
        }

    def threshold_of(self, noise: Noise, candidates: int) -> int:
        """The threshold of a level with this noise and so many candidates."""
        return self.threshold or least_count(noise, candidates, self.spurious)


@dataclass(frozen=True)
class Items:
    """Public items of which itemsets are made; `names`: canonical names of terms, then values."""

    names: tuple[tuple[str, str], ...]
    terms: int
    """Number of terms among the items."""
    texts: tuple[str, ...]
    """Each item as the release writes it: a term by its label, a value as `sex=f`."""

    def texts_of(self, members: Members) -> list[str]:
        """An itemset as the release writes it: terms, then values, each by its text."""
        return [text for _, text in sorted((m >= self.terms, self.texts[m]) for m in members)]


def domains_of(index: Index, qids: Sequence[str]) -> dict[str, list[str]]:
    """The public values of each quasi-identifier, by name; a range of numbers or months value by value."""
    names = sorted({index.meta.qid(name).name for name in qids})
    return {name: list(index.domain(name) or ()) for name in names}


def items_of(index: Index, qids: Sequence[str]) -> Items:
    """The items of an index's public vocabulary and domains; BadInput where the vocabulary or a domain is not
    public."""
    if not index.meta.vocabulary_public:
        raise BadInput(
            "This index has no public list of terms, and one made of the data would tell. Build it with a public "
            "vocabulary (`leeward index … --terms icd9|icd10|lexicon|FILE`) to release a catalogue."
        )
    terms = tuple(sorted(set(map(index.terms.resolve, index.terms.sample()))))
    values = []
    for name, domain in domains_of(index, qids).items():
        if not domain:
            raise BadInput(
                f"The values of {name!r} are not public. Declare them when building the index: --domains {name}=…"
            )
        values += [(name, value) for value in domain]
    labels = list(map(index.terms.label_of, terms))
    often = Counter(labels)
    texts = [name if often[label] > 1 else label for name, label in zip(terms, labels, strict=True)]
    return Items(
        (*(("", name) for name in terms), *values),
        len(terms),
        (*texts, *map("=".join, values)),
    )


def release_catalogue(index: Index, parameters: Catalogue) -> dict[str, Any]:
    """The catalogue: `itemsets` (lists of texts), `counts` (noisy), `levels`; by size, falling noisy count, then
    text, an order that reveals nothing. Reads data: charge for it before."""
    items = items_of(index, parameters.qids)
    draws = Randomness.of(None)  # which candidates a patient is counted in
    candidates: list[Members] = [(t,) for t in range(items.terms)]
    listed: list[tuple[int, float, list[str]]] = []
    levels: list[dict[str, Any]] = []
    for size, epsilon in enumerate(parameters.levels(), 1):
        noise = Noise("geometric", epsilon, parameters.contributions)
        threshold = parameters.threshold_of(noise, len(candidates))
        drawn = np.array(mechanism.draw(noise, len(candidates)), np.int64)
        counts = drawn + count_within_bound(
            index, items, candidates, parameters.contributions, draws.stream("catalogue", size)
        )
        kept = {each: int(n) for each, n in zip(candidates, counts.tolist(), strict=True) if n >= threshold}
        listed += [(size, -n, items.texts_of(members)) for members, n in kept.items()]
        levels.append(
            {
                "size": size,
                "candidates": len(candidates),
                "epsilon": to_epsilon(epsilon),
                "scale": noise.scale,
                "threshold": threshold,
                "listed": len(kept),
            }
        )
        candidates = next_candidates(kept, items, parameters.max_candidates)
        if not candidates and size < parameters.max_size:
            break  # what the later levels would have cost stays unused
    listed.sort()
    return {
        "itemsets": [texts for _, _, texts in listed],
        "counts": [-n for _, n, _ in listed],
        "levels": levels,
    }


def first_threshold(terms: int, parameters: Catalogue) -> int:
    """Threshold on the noisy count of a single term: public, and known before anything is paid."""
    noise = Noise("geometric", parameters.levels()[0], parameters.contributions)
    return parameters.threshold_of(noise, terms)


def least_count(noise: Noise, candidates: int, spurious: float) -> int:
    """The least t with candidates · P(noise ≥ t) ≤ `spurious`: P(Z ≥ t) = α^t / (1 + α) for whole t ≥ 1."""
    if candidates == 0:
        return 1
    wanted = spurious * (1 + noise.alpha) / candidates
    return max(1, math.ceil(math.log(wanted) / math.log(noise.alpha)))


def next_candidates(kept: dict[Members, int], items: Items, most: int) -> list[Members]:
    """Itemsets one item larger whose parts with a term were all kept; uses noisy results only. A value is joined to
    every kept term first, and two values of one quasi-identifier never meet."""
    found: dict[Members, int] = {}
    group = [name for name, _ in items.names]
    for beginning, whole in groupby(sorted(kept), itemgetter(slice(-1))):
        ends = list(map(itemgetter(-1), whole))
        others = ends if beginning else [*ends, *range(items.terms, len(items.names))]
        for i, one in enumerate(ends):
            for other in others[i + 1 :]:
                if group[one] and group[one] == group[other]:
                    continue
                members = (*beginning, one, other)
                parts = _parts(members, items.terms)
                if kept.keys() >= set(parts):
                    found[members] = min(kept[part] for part in parts)
    return sorted(sorted(found, key=lambda members: (-found[members], members))[:most])


def _parts(members: Members, terms: int) -> list[Members]:
    """Subsets one item smaller that still hold a term."""
    parts = [members[:i] + members[i + 1 :] for i in range(len(members))]
    return [part for part in parts if part[0] < terms]


def count_within_bound(
    index: Index, items: Items, candidates: Sequence[Members], most: int, stream: np.random.Generator
) -> NDArray[np.int64]:
    """Patients per candidate, int64[candidates]; each patient counts in at most `most` of them, drawn uniformly."""
    counts = np.zeros(len(candidates), np.int64)
    whole = {m: index.rows_with(*items.names[m]) for m in sorted({m for c in candidates for m in c})}
    for low, high in index.stretches(PATIENTS_AT_ONCE):
        stretch = BitMap(range(low, high))
        rows = {m: bitmap & stretch for m, bitmap in whole.items()}
        who: list[NDArray[np.int32]] = []
        sizes = np.zeros(len(candidates), np.int64)
        for c, members in enumerate(candidates):
            common = rows[members[0]]
            for m in members[1:]:
                common = common & rows[m]
            if common:
                people = index.patients_of(common)
                people = people[np.r_[True, people[1:] != people[:-1]]]
                sizes[c] = len(people)
                who.append(people)
        if who:
            people = np.concatenate(who)
            candidate = np.repeat(np.arange(len(candidates)), sizes)
            kept = choose_entries(people, most, stream)
            counts += np.bincount(candidate[kept], minlength=len(candidates))
    return counts


def choose_entries(people: NDArray[np.int32], most: int, stream: np.random.Generator) -> NDArray[np.bool_]:
    """Mask of the entries kept when each person keeps at most `most` of them, drawn uniformly."""
    base = people - people.min()
    many = np.bincount(base)
    kept: NDArray[np.bool_] = many[base] <= most
    places = np.flatnonzero(~kept)
    order = places[np.lexsort((stream.random(len(places)), base[places]))]
    sorted_base = base[order]
    starts = np.flatnonzero(np.r_[True, sorted_base[1:] != sorted_base[:-1]]) if len(order) else order
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    kept[order[rank < most]] = True
    return kept
