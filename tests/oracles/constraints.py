"""Generalization under constraints, written plainly: CBA, UGACLIP and Apriori k^m.

To be read beside docs/methods/constraints.md#algorithms.

Records are sets of codes (strings). A *cluster* is a frozenset of codes; suppressed codes are in no cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product

Cluster = frozenset[str]
Records = Sequence[frozenset[str]]


def subsets(codes: Iterable[str], m: int) -> list[frozenset[str]]:
    """All code sets of size 1..m: the privacy constraints of k^m-anonymity."""
    ordered = sorted(codes)
    return [frozenset(c) for size in range(1, m + 1) for c in combinations(ordered, size)]


@dataclass
class State:
    """The clusters of the moment, over fixed records."""

    records: Records
    clusters: set[Cluster]
    weight: Callable[[Cluster], Fraction] = lambda cluster: Fraction(1)
    n_codes: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_codes = len(set().union(*self.records))

    def image(self, p: frozenset[str]) -> list[Cluster]:
        """The clusters that the codes of `p` became (suppressed ones vanish), by smallest code."""
        return sorted((c for c in self.clusters if c & p), key=min)

    def support(self, image: Iterable[Cluster]) -> int:
        """Records that hold a code of every cluster."""
        image = list(image)
        return sum(all(record & cluster for cluster in image) for record in self.records)

    def satisfied(self, p: frozenset[str], k: int) -> bool:
        """Every non-empty subset of the image of `p` has support 0 or at least k."""
        image = self.image(p)
        return all(
            not 0 < self.support(part) < k
            for size in range(1, len(image) + 1)
            for part in combinations(image, size)
        )

    def loss(self, cluster: Cluster) -> Fraction:
        """UL(g) = (2^|g| - 1)/(2^M - 1) · w(g) · σ(g)/|D|."""
        share = Fraction(2 ** len(cluster) - 1, 2**self.n_codes - 1)
        return share * self.weight(cluster) * Fraction(self.support([cluster]), len(self.records))

    def next_unsatisfied(self, constraints: Sequence[frozenset[str]], k: int) -> frozenset[str] | None:
        """The unsatisfied constraint of largest image support; ties: fewer clusters, then their smallest
        codes.
        """
        open_ = [p for p in constraints if not self.satisfied(p, k)]
        if not open_:
            return None

        def key(p: frozenset[str]) -> tuple[int, int, list[str]]:
            image = self.image(p)
            return (-self.support(image), len(image), [min(c) for c in image])

        return min(open_, key=key)

    def partners(self, cluster: Cluster, utility: Mapping[str, int]) -> list[Cluster]:
        """The other clusters of the constraint that `cluster` lies in."""
        u = utility.get(min(cluster))
        return [c for c in self.clusters if c != cluster and u is not None and utility.get(min(c)) == u]

    def merge(self, a: Cluster, b: Cluster) -> None:
        self.clusters -= {a, b}
        self.clusters.add(a | b)

    def suppress(self, cluster: Cluster) -> None:
        self.clusters.discard(cluster)

    def least_supported(self, p: frozenset[str]) -> Cluster:
        return min(self.image(p), key=lambda c: (self.support([c]), min(c)))


def cba(
    records: Records,
    constraints: Sequence[frozenset[str]],
    utility: Mapping[str, int],
    k: int,
    weight: Callable[[Cluster], Fraction] = lambda cluster: Fraction(1),
) -> set[Cluster]:
    """Clustering-Based Anonymizer: the cheapest merge that touches the constraint, else a suppression."""
    state = State(records, {frozenset([c]) for c in set().union(*records)}, weight)
    while (p := state.next_unsatisfied(constraints, k)) is not None:
        merges = [(g, h) for g in state.image(p) for h in state.partners(g, utility)]
        if merges:
            a, b = min(
                merges,
                key=lambda gh: (
                    state.loss(gh[0] | gh[1]) - state.loss(gh[0]) - state.loss(gh[1]),
                    sorted([min(gh[0]), min(gh[1])]),
                ),
            )
            state.merge(a, b)
        else:
            state.suppress(state.least_supported(p))
    return state.clusters


def ugaclip(
    records: Records,
    constraints: Sequence[frozenset[str]],
    utility: Mapping[str, int],
    k: int,
    weight: Callable[[Cluster], Fraction] = lambda cluster: Fraction(1),
) -> set[Cluster]:
    """UGACLIP (and COAT): generalize the least supported cluster of the constraint; stay until it is
    satisfied.
    """
    state = State(records, {frozenset([c]) for c in set().union(*records)}, weight)
    while (p := state.next_unsatisfied(constraints, k)) is not None:
        p = frozenset(min(cluster) for cluster in state.image(p))
        while not state.satisfied(p, k):
            least = state.least_supported(p)
            partners = state.partners(least, utility)
            if partners:
                best = min(partners, key=lambda h: (state.loss(least | h), sorted([min(least), min(h)])))
                state.merge(least, best)
            else:
                state.suppress(least)
    return state.clusters


# -- Apriori k^m
# --------------------------------------------------------------------------------------------------


@dataclass
class Tree:
    """A hierarchy from (node → parent); the root's parent is None."""

    parent: Mapping[str, str | None]

    def ancestors_or_self(self, node: str) -> list[str]:
        found = [node]
        while (up := self.parent[found[-1]]) is not None:
            found.append(up)
        return found

    def leaves(self, node: str) -> set[str]:
        inner = set(self.parent.values())
        return {x for x in self.parent if x not in inner and node in self.ancestors_or_self(x)}


def apriori(records: Records, tree: Tree, k: int, m: int) -> dict[str, str]:
    """Full-subtree global recoding; returns the released node of each code."""
    every = set().union(*records)
    cut = {code: code for code in every}
    occurrences = {code: sum(code in record for record in records) for code in every}
    root = next(node for node, up in tree.parent.items() if up is None)
    below = {node: tree.leaves(node) for node in tree.parent}
    inner = set(tree.parent.values())

    def loss(node: str) -> Fraction:
        return Fraction(len(below[node]), len(below[root])) if node in inner else Fraction(0)

    def image(nodes: Iterable[str], mapping: Mapping[str, str]) -> frozenset[str]:
        """The nodes of the mapping's cut that stand for these nodes."""
        return frozenset(mapping[min(below[node] & every)] for node in nodes)

    def support(nodes: Iterable[str]) -> int:
        nodes = list(nodes)
        return sum(all(record & below[node] for node in nodes) for record in records)

    def raised(nodes: Iterable[str]) -> dict[str, str]:
        mapping = dict(cut)
        for node in sorted(nodes, key=lambda n: len(tree.ancestors_or_self(n)), reverse=True):
            mapping.update(dict.fromkeys(below[node] & every, node))
        return mapping

    changed = True
    while changed:
        changed = False
        for size in range(1, m + 1):
            while True:
                labels = sorted(set(cut.values()))
                violating = [c for c in combinations(labels, size) if 0 < support(c) < k]
                if not violating:
                    break
                changed = True
                for itemset in violating:
                    now = image(itemset, cut)
                    if support(now) >= k:
                        continue
                    candidates = []
                    for choice in product(*(tree.ancestors_or_self(node) for node in sorted(now))):
                        mapping = raised(choice)
                        after = image(now, mapping)
                        if support(after) >= k:
                            added = sum(
                                (occurrences[c] * (loss(mapping[c]) - loss(cut[c])) for c in every),
                                Fraction(0),
                            )
                            candidates.append((added, sorted(after)))
                    _, nodes = min(candidates)
                    cut = raised(nodes)
    return cut
