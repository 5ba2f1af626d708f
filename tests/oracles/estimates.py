"""COUNT(S) from a published disassociation: low, expected, high, node by node
(docs/methods/disassociation.md#estimating-counts)."""

from __future__ import annotations

import math

from tests.oracles.disassociation_checks import Joint, Leaf, Tree, domain, support

Triple = tuple[int, float, int]
Fitted = tuple[float, bool | float]
Prior = str | dict[str, str] | dict[str, float] | dict[str, Fitted]
"""One prior for all codes, or each code's own: by name (`grades`), or how many of a record it is found in by chance
(`occupancy`); of fitted releases also whether some chunk counts it (`fitted_occupancy`), in classes its least share of
the records (`classed_occupancy`)."""


def of_code(code: str, prior: Prior) -> str | float | Fitted:
    return prior if isinstance(prior, str) else prior[code]


def item_count(size: int, k: int, prior: str | float | Fitted) -> float:
    """Expected number of a cluster's records that hold one code of its item chunk."""
    top = max(1, min(k - 1, size))
    if prior == "one":
        return 1.0
    if isinstance(prior, tuple) and not isinstance(prior[1], bool):
        above = max(0.0, _mean(_scattered(prior[0] * size, top)) - 1)
        return min(1 + 0.3 * math.sqrt(k) * (prior[1] * size * above) ** 0.4, top)
    if isinstance(prior, tuple):
        surplus = 0.24 * max(0.0, math.log(k / 4)) * (1.0 if prior[1] else 0.2)
        return min(_mean(_scattered(prior[0] * size, top)) + surplus, top)
    if isinstance(prior, float):
        gathered = [n ** -(1.8 + 6 / k) for n in range(1, top + 1)]
        return (2 * _mean(gathered) + _mean(_scattered(prior * size, top))) / 3
    power = {"uniform": 0.0, "cubic": -3.0, "quintic": -5.0}[prior]
    weights = [n**power for n in range(1, top + 1)]
    return sum(n * w for n, w in enumerate(weights, 1)) / sum(weights)


def _scattered(expected: float, top: int) -> list[float]:
    return [expected**n / math.factorial(n) for n in range(1, top + 1)]


def _mean(weights: list[float]) -> float:
    return sum(n * w for n, w in enumerate(weights, 1)) / sum(weights)


def grades(forest: list[Tree]) -> dict[str, str]:
    """`graded`: the prior of each code, by whether some record or shared chunk of the release counts it."""
    seen = counted_codes(forest)
    return {c: "cubic" if c in seen else "quintic" for c in seen | listed(forest)}


def fitted_occupancy(forest: list[Tree]) -> dict[str, Fitted]:
    """`occupancy` of a fitted release: each code's rate a record, and whether some chunk counts it."""
    seen = counted_codes(forest)
    return {code: (rate, code in seen) for code, rate in occupancy(forest).items()}


def classed_occupancy(forest: list[Tree]) -> dict[str, Fitted]:
    """`occupancy` of a fitted release in classes, or of some of them: each code's rate a record, and its least share of
    the records: what chunks count, and one record for each item chunk that lists it."""
    total = sum(tree.size for tree in forest)

    def least(tree: Tree, code: str) -> int:
        chunks = tree.chunks if isinstance(tree, Leaf) else tree.shared
        own = sum(code in subrecord for chunk in chunks for subrecord in chunk)
        if isinstance(tree, Leaf):
            return own + (code in tree.items)
        return own + sum(least(child, code) for child in tree.children)

    return {
        code: (rate, sum(least(tree, code) for tree in forest) / total)
        for code, rate in occupancy(forest).items()
    }


def counted_codes(forest: list[Tree]) -> set[str]:
    """Codes of record and shared chunks."""

    def counted(tree: Tree) -> set[str]:
        if isinstance(tree, Leaf):
            return {c for chunk in tree.chunks for c in domain(chunk)}
        own = {c for chunk in tree.shared for c in domain(chunk)}
        return own.union(*(counted(child) for child in tree.children))

    return set().union(*(counted(tree) for tree in forest))


def occupancy(forest: list[Tree]) -> dict[str, float]:
    """Each code's rate a record, from how many records are in clusters that list it and how many in clusters that
    neither list nor count it."""
    listing: dict[str, list[int]] = {c: [] for c in listed(forest)}
    without = dict.fromkeys(listing, 0)

    def walk(tree: Tree, above: set[str]) -> None:
        if isinstance(tree, Leaf):
            for code in listing:
                if code in tree.items:
                    listing[code].append(tree.size)
                elif code not in above | leaf_codes(tree):
                    without[code] += tree.size
            return
        for child in tree.children:
            walk(child, above.union(*map(domain, tree.shared)))

    for tree in forest:
        walk(tree, set())
    means = {code: sum(sizes) / len(sizes) for code, sizes in listing.items()}
    return {
        code: math.log(1 + sum(sizes) / max(without[code], means[code] / 2)) / means[code]
        for code, sizes in listing.items()
    }


def listed(forest: list[Tree]) -> set[str]:
    """Codes of item chunks."""

    def items(tree: Tree) -> set[str]:
        return set(tree.items) if isinstance(tree, Leaf) else set().union(*(items(c) for c in tree.children))

    return set().union(*(items(tree) for tree in forest))


def at_leaf(leaf: Leaf, codes: frozenset[str], k: int, prior: Prior) -> Triple:
    """The bounds of a set whose codes all lie in the cluster's own chunks."""
    n = leaf.size
    parts: list[Triple] = []
    for chunk in leaf.chunks:
        part = codes & domain(chunk)
        if part:
            s = support(chunk, part)
            parts.append((s, s, s))
    parts += [(1, item_count(n, k, of_code(c, prior)), n) for c in codes & leaf.items]
    low, expected, high = n, float(n), n
    if parts:
        low = max(0, sum(p[0] for p in parts) - (len(parts) - 1) * n)
        high = min(p[2] for p in parts)
    for p in parts:
        expected *= p[1] / n
    return low, expected, high


def below(tree: Tree, codes: frozenset[str], k: int, prior: Prior) -> dict[frozenset[str], Triple]:
    """For each set of codes that a node leaves to the shared chunks above it: the bounds of the rest of
    `codes`.

    In a cluster a code is taken from the lowest chunk that has it."""
    if isinstance(tree, Leaf):
        own = codes & leaf_codes(tree)
        return {codes - own: at_leaf(tree, own, k, prior)}
    sums: dict[frozenset[str], Triple] = {}
    for child in tree.children:
        for left, t in below(child, codes, k, prior).items():
            s = sums.get(left, (0, 0.0, 0))
            sums[left] = (s[0] + t[0], s[1] + t[1], s[2] + t[2])
    combined: dict[frozenset[str], Triple] = {}
    for left, (low, expected, high) in sums.items():
        rest = left
        for chunk in tree.shared:
            part = left & domain(chunk)
            if part:
                s = support(chunk, part)
                among = max(wanting(tree, code) for code in part)
                low, expected, high = max(0, low + s - among), expected * s / among, min(high, s)
                rest -= part
        before = combined.get(rest, (0, 0.0, 0))
        combined[rest] = (before[0] + low, before[1] + expected, before[2] + high)
    return combined


def wanting(tree: Joint, code: str) -> int:
    """Records below whose code is counted by no node further down."""

    def left(child: Tree) -> int:
        if isinstance(child, Leaf):
            return 0 if code in leaf_codes(child) else child.size
        return 0 if any(code in domain(chunk) for chunk in child.shared) else sum(map(left, child.children))

    return sum(map(left, tree.children))


def leaf_codes(leaf: Leaf) -> set[str]:
    return leaf.items.union(*map(domain, leaf.chunks))


def estimate(forest: list[Tree], codes: frozenset[str], k: int, prior: Prior) -> Triple:
    triples = [below(tree, codes, k, prior).get(frozenset(), (0, 0.0, 0)) for tree in forest]
    return sum(t[0] for t in triples), sum(t[1] for t in triples), sum(t[2] for t in triples)


def matching(forest: list[Tree], codes: frozenset[str], k: int, prior: Prior) -> float:
    """Expected number of records with at least one of `codes`: N·(1 − Π(1 − n/N)) over the chunks that a
    record sees."""

    def missing(tree: Tree) -> float:
        if isinstance(tree, Leaf):
            left = float(tree.size)
            for chunk in tree.chunks:
                left *= 1 - sum(bool(row & codes) for row in chunk) / tree.size
            for c in codes & tree.items:
                left *= 1 - item_count(tree.size, k, of_code(c, prior)) / tree.size
            return left
        left = sum(map(missing, tree.children))
        for chunk in tree.shared:
            left *= 1 - sum(bool(row & codes) for row in chunk) / tree.size
        return left

    return sum(tree.size - missing(tree) for tree in forest)
