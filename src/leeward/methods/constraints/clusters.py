"""The current clusters of codes: merging, suppressing, supports, and the exact loss that ranks merges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leeward.analysis.itemsets import postings
from leeward.analysis.policies import NONE, Constraints
from leeward.arrays import Bools, Int32s, Int64s
from leeward.methods.constraints import kernels
from leeward.methods.constraints.weighted import WeightedSets
from leeward.vocabulary.hierarchy import Hierarchy

GONE = -1
"""`Clusters.of_code` of a suppressed code."""


class Clusters:
    """A partition of the codes, changed by merges and suppressions; a cluster is named by its smallest code.
    `hierarchy` gives the semantic weights w(g) = leaves under the lowest common ancestor / all leaves; without one
    every weight is 1 (docs/methods/constraints.md#loss)."""

    def __init__(
        self, sets: WeightedSets, utility: Constraints, k: int, hierarchy: Hierarchy | None = None
    ) -> None:
        n_codes = len(sets.codes)
        self.k = k
        self.of_code: Int32s = np.arange(n_codes, dtype=np.int32)
        self.size = np.ones(n_codes, np.int64)
        self.pair = kernels.pair_supports(sets.values, sets.offsets, sets.weight, n_codes)
        self._utility = utility.of_code
        self._mates = utility.members()
        self._records = kernels.Records(
            sets.values.copy(),
            sets.offsets[:-1].copy(),
            np.diff(sets.offsets).astype(np.int32),
            sets.weight,
            *postings(sets.offsets, sets.values, n_codes),
            tail=np.arange(n_codes, dtype=np.int32),
            after=np.full(n_codes, -1, np.int32),
            pair=self.pair,
        )
        self._hierarchy = hierarchy
        self._node = None if hierarchy is None else hierarchy.nodes_of(sets.codes)
        self._best = np.zeros(n_codes, np.int64)
        self._partner = np.full(n_codes, -1, np.int32)
        for code in range(n_codes):
            kernels.refresh_row(code, k, self.pair, self._best, self._partner)

    def __len__(self) -> int:
        return len(self.of_code)

    def support(self, cluster: int) -> int:
        return int(self.pair[cluster, cluster])

    def image(self, codes: Sequence[int] | Int32s) -> tuple[int, ...]:
        """The current clusters of `codes`, ascending, without suppressed codes."""
        return tuple(sorted({int(c) for c in self.of_code[np.asarray(codes)] if c != GONE}))

    def image_support(self, image: Sequence[int]) -> int:
        if len(image) == 1:
            return self.support(image[0])
        if len(image) == 2:
            return int(self.pair[image[0], image[1]])
        by_rarity = np.array(sorted(image, key=self.support), np.int32)
        return int(kernels.support_of(by_rarity, self._records))

    def violates(self, image: Sequence[int]) -> bool:
        """Whether some non-empty subset of `image` has a support above 0 and below k."""
        if any(0 < self.support(c) < self.k for c in image):
            return True
        part = self.pair[np.ix_(image, image)]
        if ((part > 0) & (part < self.k)).any():
            return True
        allowed = np.zeros(len(self), np.bool_)
        allowed[list(image)] = True
        return any(self.largest_violation(d, 0, allowed) is not None for d in range(3, len(image) + 1))

    def smallest_violation(self, m: int) -> tuple[int, tuple[int, ...]] | None:
        """(support, clusters) of the violating cluster or pair (m > 1) of largest support; None if there is none."""
        supports = self.pair.diagonal()
        alone = np.where(supports < self.k, supports, 0)
        i, pair = int(alone.argmax()), int(self._best.argmax())
        if m > 1 and self._best[pair] > alone[i]:
            return int(self._best[pair]), (pair, int(self._partner[pair]))
        return (int(alone[i]), (i,)) if alone[i] > 0 else None

    def largest_violation(
        self, d: int, floor: int, allowed: Bools | None = None
    ) -> tuple[int, tuple[int, ...]] | None:
        """(support, clusters) of the violating set of d ≥ 3 clusters with the largest support above `floor`."""
        inside = np.ones(len(self), np.bool_) if allowed is None else allowed
        support, found = kernels.find_violating(d, self.k, floor, False, inside, self._records)
        return (int(support), tuple(found[0].tolist())) if support > 0 else None

    def violating_sets(self, d: int) -> Int32s:
        """int32[n, d]: the violating sets of exactly d clusters; for d ≥ 3 only those whose prefixes do not violate."""
        if d == 1:
            supports = self.pair.diagonal()
            return np.flatnonzero((supports > 0) & (supports < self.k)).astype(np.int32)[:, None]
        if d == 2:
            violating = np.triu((self.pair > 0) & (self.pair < self.k), 1)
            return np.argwhere(violating).astype(np.int32)
        _, found = kernels.find_violating(
            d, self.k, self.k, True, np.ones(len(self), np.bool_), self._records
        )
        return np.asarray(found, np.int32)

    def longest(self) -> int:
        return int(self._records.length.max(initial=0))

    def partners(self, cluster: int) -> Int32s:
        """The other clusters of the utility constraint of `cluster`, ascending."""
        constraint = self._utility[cluster]
        if constraint == NONE:
            return np.empty(0, np.int32)
        mates = self._mates[constraint]
        return mates[mates != cluster]

    def merge(self, a: int, b: int) -> None:
        """Merge two clusters under the smaller name."""
        g, h = min(a, b), max(a, b)
        kernels.merge(g, h, self._records)
        self.of_code[self.of_code == h] = g
        self.size[g] += self.size[h]
        if self._node is not None and self._hierarchy is not None:
            self._node[g] = self._hierarchy.lca(int(self._node[g]), int(self._node[h]))
        self._forget(h)
        kernels.refresh_rows(g, h, self.k, self.pair, self._best, self._partner)

    def suppress(self, cluster: int) -> None:
        kernels.suppress(cluster, self._records)
        self.of_code[self.of_code == cluster] = GONE
        self._forget(cluster)
        kernels.refresh_rows(-1, cluster, self.k, self.pair, self._best, self._partner)

    def loss(self, cluster: int) -> int:
        """UL(g) times (2^M - 1) · |D| · leaves, as an exact Python integer."""
        weight = 1
        if self._node is not None and self._hierarchy is not None:
            weight = int(self._hierarchy.leaf_count[self._node[cluster]])
        return ((1 << int(self.size[cluster])) - 1) * weight * self.support(cluster)

    def union_losses(self, cluster: int, others: Int32s) -> list[tuple[int, int]]:
        """(exact loss of `cluster` ∪ other, other) for those `others` whose loss or increase can be the least. An
        increase UL(g ∪ h) - UL(g) - UL(h) is between a quarter of the union's leading term and all of it, so a union
        with more than four times the least leading term cannot win; few long integers are computed."""
        supports = self.pair[cluster, cluster] + self.pair[others, others] - self.pair[cluster, others]
        sizes = self.size[cluster] + self.size[others]
        weights = self._union_weights(cluster, others)
        leading = sizes + np.log2(supports) + np.log2(weights)
        near = np.flatnonzero(leading <= leading.min() + 2.001)
        return [
            (((1 << int(sizes[i])) - 1) * int(weights[i]) * int(supports[i]), int(others[i])) for i in near
        ]

    def _union_weights(self, cluster: int, others: Int32s) -> Int64s:
        if self._node is None or self._hierarchy is None:
            return np.ones(len(others), np.int64)
        above = self._hierarchy.lca(np.full(len(others), self._node[cluster], np.int32), self._node[others])
        return self._hierarchy.leaf_count[above].astype(np.int64)

    def _forget(self, cluster: int) -> None:
        constraint = self._utility[cluster]
        if constraint != NONE:
            mates = self._mates[constraint]
            self._mates[constraint] = mates[mates != cluster]
