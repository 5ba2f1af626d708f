"""Apriori k^m-anonymity: full-subtree global recoding over a hierarchy (Terrovitis et al. 2008;
docs/methods/constraints.md#apriori).

A released label is a node of the hierarchy; if one code is generalized to a node, so are all codes under
it. Sets of 1, 2, … m labels are counted in turn; a set with a support above 0 and below k is raised to the
cheapest ancestors with a support of at least k. Violating sets are taken in lexicographic order of their
labels, skipped if an earlier raise has repaired them, and searched again until none is left: raising can
turn a support of 0 into one below k.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.itemsets import postings
from leeward.analysis.policies import Constraints
from leeward.arrays import Int32s
from leeward.methods.constraints import kernels
from leeward.methods.constraints.clusters import Clusters
from leeward.methods.constraints.weighted import WeightedSets
from leeward.vocabulary.hierarchy import Hierarchy

Cut = tuple[int, ...]
"""Nodes of the hierarchy, none an ancestor of another one."""


@dataclass(frozen=True)
class Recoding:
    """The released node of each code (int32[C]) and what it costs. `ncp` is the occurrence-weighted share of the leaves
    under the released nodes, 0 for untouched codes."""

    node_of_code: Int32s
    ncp: Fraction
    raises: int


def recode(sets: WeightedSets, hierarchy: Hierarchy, k: int, m: int) -> Recoding:
    """Raise codes along `hierarchy` (its leaves are exactly the codes) until no set of ≤ m labels violates k."""
    cut = _Recoder(sets, hierarchy, k)
    raises, before = 0, -1
    while raises != before:
        before = raises
        for size in range(1, m + 1):
            raises += cut.mend(size)
    return Recoding(cut.node, cut.ncp(), raises)


class _Recoder:
    def __init__(self, sets: WeightedSets, hierarchy: Hierarchy, k: int) -> None:
        self.k = k
        self.hierarchy = hierarchy
        self.clusters = Clusters(sets, Constraints.none(len(sets.codes)), k)
        self.node = hierarchy.nodes_of(sets.codes)
        self._rank = np.argsort(np.argsort(np.array(hierarchy.labels, object)))
        leaf_of_code = hierarchy.first_leaf[self.node]
        self._code_of_leaf = np.argsort(leaf_of_code).astype(np.int32)
        self._leaves = leaf_of_code[sets.values].astype(np.int32)
        self._offsets = sets.offsets
        self._weight = sets.weight
        self._at, self._postings = postings(sets.offsets, self._leaves, len(sets.codes))
        self._occurrences = self.clusters.pair.diagonal()[self._code_of_leaf].astype(object)
        self._spread = np.where(hierarchy.is_leaf(np.arange(len(hierarchy))), 0, hierarchy.leaf_count)
        self._occurrences_before = _cumulate(self._occurrences)
        self._cost_before = self._costs()

    def mend(self, size: int) -> int:
        """Raise labels until no set of `size` labels violates k; returns the number of raises."""
        raises = 0
        while len(violating := self.clusters.violating_sets(size)):
            ordered = self._in_label_order(violating)
            raises += self._mend_pairs(ordered) if size == 2 else self._mend_each(ordered)
        return raises

    def ncp(self) -> Fraction:
        """Occurrence-weighted leaves(label)/all leaves."""
        total = int(self._occurrences_before[-1])
        return Fraction(int(self._cost_before[-1]), total * self.hierarchy.n_leaves)

    def _in_label_order(self, violating: Int32s) -> Int32s:
        """Sort the clusters of each set by label, and the sets lexicographically."""
        ranks = self._rank[self.node[violating]]
        inside = np.argsort(ranks, axis=1)
        ranks = np.take_along_axis(ranks, inside, axis=1)
        return np.take_along_axis(violating, inside, axis=1)[np.lexsort(ranks.T[::-1])]

    def _mend_pairs(self, pairs: Int32s) -> int:
        raises = at = 0
        while True:
            at = kernels.next_violating_pair(pairs, at, self.k, self.clusters.of_code, self.clusters.pair)
            if at == len(pairs):
                return raises
            self._raise(self.clusters.image(pairs[at]))
            raises += 1

    def _mend_each(self, violating: Int32s) -> int:
        raises = 0
        for codes in violating:
            image = self.clusters.image(codes)
            untouched = image == tuple(sorted(codes.tolist()))  # then its support has not changed
            if not raises or untouched or self.clusters.image_support(image) < self.k:
                self._raise(image)
                raises += 1
        return raises

    def _raise(self, image: tuple[int, ...]) -> None:
        """Replace the labels of `image` by the cheapest ancestors that together have support ≥ k."""
        for node in self._cheapest([int(self.node[c]) for c in image]):
            below = slice(int(self.hierarchy.first_leaf[node]), int(self.hierarchy.last_leaf[node]) + 1)
            codes = self._code_of_leaf[below]
            self.node[codes] = node
            first, *others = np.unique(self.clusters.of_code[codes]).tolist()
            for other in others:
                self.clusters.merge(first, other)
        self._cost_before = self._costs()

    def _cheapest(self, nodes: list[int]) -> Cut:
        candidates = {
            self._topmost(choice)
            for choice in product(*((node, *self.hierarchy.ancestors(node)) for node in nodes))
        }
        ranked = sorted(
            (self._cost_of(cut), sorted(self.hierarchy.labels[n] for n in cut), cut) for cut in candidates
        )
        return next(cut for _, _, cut in ranked if self._support(cut) >= self.k)

    def _topmost(self, nodes: tuple[int, ...]) -> Cut:
        kept: list[int] = []
        for node in sorted(set(nodes)):  # ancestors come first in depth-first numbering
            if not kept or not self.hierarchy.is_ancestor(kept[-1], node):
                kept.append(node)
        return tuple(kept)

    def _cost_of(self, cut: Cut) -> int:
        """Increase of NCP × occurrences × leaves when `cut` replaces the current labels below it."""
        added = 0
        for node in cut:
            low, high = int(self.hierarchy.first_leaf[node]), int(self.hierarchy.last_leaf[node]) + 1
            occurrences = self._occurrences_before[high] - self._occurrences_before[low]
            added += int(
                occurrences * int(self._spread[node]) - (self._cost_before[high] - self._cost_before[low])
            )
        return added

    def _support(self, cut: Cut) -> int:
        by_rarity = sorted(
            cut,
            key=lambda n: self._at[self.hierarchy.last_leaf[n] + 1] - self._at[self.hierarchy.first_leaf[n]],
        )
        first = self.hierarchy.first_leaf[by_rarity].astype(np.int64)
        last = self.hierarchy.last_leaf[by_rarity].astype(np.int64)
        return int(
            kernels.support_of_intervals(
                first, last, self._leaves, self._offsets, self._weight, self._at, self._postings
            )
        )

    def _costs(self) -> NDArray[np.object_]:
        spread = self._spread[self.node[self._code_of_leaf]].astype(object)
        return _cumulate(self._occurrences * spread)


def _cumulate(values: NDArray[np.object_]) -> NDArray[np.object_]:
    return np.concatenate((np.zeros(1, object), np.cumsum(values, dtype=object)))
