"""The thesis's chapter IV as it is written: slow, plain, to be read beside the paper (Tamersoy 2011;
docs/methods/trajectories.md).

A trajectory is a tuple of (code, age) pairs. Numbers are exact fractions, or floats when asked (to time it).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations, product

MATCH, LEFT, UP = "↘", "←", "↑"


class Tree:
    """A domain generalization hierarchy (Definition 2), from its (node, parent) pairs."""

    def __init__(self, pairs):
        self.parent = {node: parent or None for node, parent in pairs}
        self.root = next(node for node, parent in self.parent.items() if parent is None)
        inner = {parent for parent in self.parent.values() if parent}
        self.leaves = [node for node in self.parent if node not in inner]
        self.below = dict.fromkeys(self.parent, 0)  # a leaf has no leaf below it: Δ(leaf) = 0
        self.covers = {node: set() for node in self.parent}
        for leaf in self.leaves:
            for node in self.path(leaf):
                self.covers[node].add(leaf)
                if node != leaf:
                    self.below[node] += 1
        self.lca = cache(self._lca)
        self.loss = cache(self._loss)

    def path(self, node):
        """The node and everything above it."""
        found = []
        while node is not None:
            found.append(node)
            node = self.parent[node]
        return found

    def _lca(self, a, b):
        above = set(self.path(b))
        return next(node for node in self.path(a) if node in above)

    def _loss(self, low, high, number=Fraction):
        """LM (Definition 4)."""
        return number(self.below[high] - self.below[low]) / len(self.leaves)


def full_binary(low, high):
    """The full binary tree over the ages low…high (a power of two of them)."""
    pairs = [(f"{low}-{high}", None)]
    width = high - low + 1
    while width > 1:
        half = width // 2
        for start in range(low, high + 1, half):
            parent = low + (start - low) // width * width
            label = str(start) if half == 1 else f"{start}-{start + half - 1}"
            pairs.append((label, f"{parent}-{parent + width - 1}"))
        width = half
    return Tree(pairs)


@dataclass
class Aligned:
    """What an alignment returns, with the pair of each side that every result pair came from."""

    pairs: tuple
    ilm: object
    alm: object
    sources: list
    matrices: tuple = field(default=(), repr=False)

    @property
    def cost(self):
        return self.ilm + self.alm


def a_gs(X, Y, icd, age, w_icd=Fraction(1, 2), w_age=Fraction(1, 2), start=(0, 0), times=1, number=Fraction):
    """Algorithm 3. `times` multiplies the losses of X's side (1 in the thesis; `size` joins with |cluster|)."""
    m, n = len(X), len(Y)
    i = [[0] * (n + 1) for _ in range(m + 1)]
    a = [[0] * (n + 1) for _ in range(m + 1)]
    r = [[""] * (n + 1) for _ in range(m + 1)]
    i[0][0], a[0][0] = start
    for h in range(1, m + 1):
        i[h][0] = i[h - 1][0] + times * icd.loss(X[h - 1][0], icd.root, number) * w_icd
        a[h][0] = a[h - 1][0] + times * age.loss(X[h - 1][1], age.root, number) * w_age
        r[h][0] = UP
    for j in range(1, n + 1):
        i[0][j] = i[0][j - 1] + icd.loss(Y[j - 1][0], icd.root, number) * w_icd
        a[0][j] = a[0][j - 1] + age.loss(Y[j - 1][1], age.root, number) * w_age
        r[0][j] = LEFT
    for h in range(1, m + 1):
        for j in range(1, n + 1):
            (xc, xa), (yc, ya) = X[h - 1], Y[j - 1]
            lc, la = icd.lca(xc, yc), age.lca(xa, ya)
            c = {
                MATCH: i[h - 1][j - 1]
                + (times * icd.loss(xc, lc, number) + icd.loss(yc, lc, number)) * w_icd,
                LEFT: i[h][j - 1] + icd.loss(yc, icd.root, number) * w_icd,
                UP: i[h - 1][j] + times * icd.loss(xc, icd.root, number) * w_icd,
            }
            g = {
                MATCH: a[h - 1][j - 1]
                + (times * age.loss(xa, la, number) + age.loss(ya, la, number)) * w_age,
                LEFT: a[h][j - 1] + age.loss(ya, age.root, number) * w_age,
                UP: a[h - 1][j] + times * age.loss(xa, age.root, number) * w_age,
            }
            w = min((MATCH, LEFT, UP), key=lambda u: c[u] + g[u])  # ties: match, then left, then up
            i[h][j], a[h][j], r[h][j] = c[w], g[w], w
    pairs, sources = [], []
    h, j = m, n
    while h or j:
        step = r[h][j]
        if step == MATCH:
            (xc, xa), (yc, ya) = X[h - 1], Y[j - 1]
            pairs.append((icd.lca(xc, yc), age.lca(xa, ya)))
            sources.append((h - 1, j - 1))
        h -= step in (MATCH, UP)
        j -= step in (MATCH, LEFT)
    return Aligned(tuple(pairs[::-1]), i[m][n], a[m][n], sources[::-1], (i, a, r))


def baseline(
    X, Y, icd, age, w_icd=Fraction(1, 2), w_age=Fraction(1, 2), start=(0, 0), times=1, number=Fraction
):
    """Algorithm 2, with A-GS's weights so that costs compare."""
    i, a = start
    pairs, sources = [], []
    short = min(len(X), len(Y))
    for j in range(short):
        (xc, xa), (yc, ya) = X[j], Y[j]
        p = (icd.lca(xc, yc), age.lca(xa, ya))
        pairs.append(p)
        sources.append((j, j))
        i += (times * icd.loss(xc, p[0], number) + icd.loss(yc, p[0], number)) * w_icd
        a += (times * age.loss(xa, p[1], number) + age.loss(ya, p[1], number)) * w_age
    for Z, weight in ((X, times), (Y, 1)):
        for code, years in Z[short:]:
            i += weight * icd.loss(code, icd.root, number) * w_icd
            a += weight * age.loss(years, age.root, number) * w_age
    return Aligned(tuple(pairs), i, a, sources)


def rank_key(T):
    """The tie-break: smallest tuple of (code, age) pairs, ages as numbers."""
    return tuple((code, int(years)) for code, years in T)


def exact_reciprocal(n):
    return Fraction(1, n)


def mdav(
    records,
    k,
    icd,
    age,
    w_icd=Fraction(1, 2),
    w_age=Fraction(1, 2),
    joining="thesis",
    align=a_gs,
    number=Fraction,
    reciprocal=exact_reciprocal,
    on_round=None,
):
    """MDAV by the conventions of docs/methods/trajectories.md#clustering: a list of (member numbers, published
    trajectory)."""
    weights = {"w_icd": w_icd, "w_age": w_age, "number": number}
    left = list(range(len(records)))
    keys = [rank_key(T) for T in records]
    clusters = []
    while left:
        counts = Counter(records[r] for r in left)
        mode = min(counts, key=lambda T: (-counts[T], rank_key(T)))
        seed = min(left, key=lambda r: (-align(mode, records[r], icd, age, **weights).cost, keys[r], r))
        target = k if len(left) >= 2 * k else len(left)
        members, rep = [seed], records[seed]
        left.remove(seed)
        while len(members) < target:

            def cost(r, rep=rep, members=members):
                if joining == "thesis":
                    return align(rep, records[r], icd, age, **weights).cost
                if joining == "size":
                    return align(rep, records[r], icd, age, times=len(members), **weights).cost
                saved = saving(
                    align(rep, records[r], icd, age, **weights).pairs, icd, age, w_icd, w_age, number
                )
                return -saved * (
                    reciprocal(len(records[r])) + sum(reciprocal(len(records[x])) for x in members)
                )

            nearest = min(left, key=lambda r: (cost(r), keys[r], r))
            rep = align(rep, records[nearest], icd, age, **weights).pairs
            members.append(nearest)
            left.remove(nearest)
        clusters.append((members, rep))
        if on_round is not None:
            on_round(members)
    return clusters


def saving(pairs, icd, age, w_icd=Fraction(1, 2), w_age=Fraction(1, 2), number=Fraction):
    """Σ s over the pairs of a published trajectory (docs/methods/trajectories.md#loss)."""
    codes, years = len(icd.leaves), len(age.leaves)
    return sum(
        1 - w_icd * number(icd.below[c]) / codes - w_age * number(age.below[v]) / years for c, v in pairs
    )


def losses(records, clusters, icd, age, align=a_gs, **weights):
    """ILM(D) and ALM(D) of Definition 8, unweighted, recomputed from each member's own pairs: the members are
    aligned again in joining order and every original pair keeps its way to a published pair, or vanishes (1)."""
    ilm = alm = Fraction(0)
    for members, published in clusters:
        rep = records[members[0]]
        ways = [list(range(len(rep)))]
        for r in members[1:]:
            step = align(rep, records[r], icd, age, **weights)
            from_rep = {x: place for place, (x, _) in enumerate(step.sources)}
            from_new = {y: place for place, (_, y) in enumerate(step.sources)}
            ways = [[None if p is None else from_rep.get(p) for p in way] for way in ways]
            ways.append([from_new.get(y) for y in range(len(records[r]))])
            rep = step.pairs
        assert rep == published
        for r, way in zip(members, ways, strict=True):
            own = Fraction(0), Fraction(0)
            for (code, years), place in zip(records[r], way, strict=True):
                lost = (
                    (1, 1)
                    if place is None
                    else (icd.loss(code, rep[place][0]), age.loss(years, rep[place][1]))
                )
                own = own[0] + lost[0], own[1] + lost[1]
            ilm += own[0] / len(records[r])
            alm += own[1] / len(records[r])
    return ilm / len(records), alm / len(records)


def cheapest_matching(X, Y, icd, age, w_icd=Fraction(1, 2), w_age=Fraction(1, 2)):
    """The least cost over every order-preserving matching of X and Y, by trying them all."""

    def drop(T, kept):
        return sum(
            icd.loss(c, icd.root) * w_icd + age.loss(v, age.root) * w_age
            for place, (c, v) in enumerate(T)
            if place not in kept
        )

    best = None
    for size in range(min(len(X), len(Y)) + 1):
        for xs, ys in product(combinations(range(len(X)), size), combinations(range(len(Y)), size)):
            cost = drop(X, set(xs)) + drop(Y, set(ys))
            for x, y in zip(xs, ys, strict=True):
                lc, la = icd.lca(X[x][0], Y[y][0]), age.lca(X[x][1], Y[y][1])
                cost += (icd.loss(X[x][0], lc) + icd.loss(Y[y][0], lc)) * w_icd
                cost += (age.loss(X[x][1], la) + age.loss(Y[y][1], la)) * w_age
            best = cost if best is None else min(best, cost)
    return best


def iloss(records, published, tree, place):
    """ILoss of codes (`place` 0) or ages (1): (values below - 1) / values of the domain, the mean over each record's
    own values, a suppressed one being any, and over the records."""
    total = Fraction(0)
    for T, shown in zip(records, published, strict=True):
        values = [pair[place] for pair in shown] + [tree.root] * (len(T) - len(shown))
        total += sum(Fraction(len(tree.covers[v]) - 1, len(tree.leaves)) for v in values) / len(T)
    return total / len(records)


def probability(query, T, icd, age, years=1):
    """P(the trajectory behind T holds every pair of `query`), pairs read uniformly and independently. A pair of the
    query asks for its code at any age of the block of `years` years that has its age."""
    total = Fraction(0)
    for size in range(len(query) + 1):
        for S in combinations(sorted(query), size):
            term = Fraction((-1) ** size)
            for c, v in T:
                covered = sum(
                    int(own) // years == int(asked) // years
                    for code, asked in S
                    if code in icd.covers[c]
                    for own in age.covers[v]
                )
                term *= 1 - Fraction(covered, len(icd.covers[c]) * len(age.covers[v]))
            total += term
    return total


def workload(records, threshold, years=1):
    """All sets of pairs that at least `threshold` of the trajectories hold, with their true counts; a pair has the
    first age of its block."""
    found = Counter()
    for T in records:
        distinct = sorted({(code, str(int(v) // years * years)) for code, v in T})
        for size in range(1, len(distinct) + 1):
            found.update(combinations(distinct, size))
    return {Q: count for Q, count in found.items() if count >= threshold}


def average_relative_error(records, published, icd, age, threshold, years=1):
    """AvgRE over the workload."""
    queries = workload(records, threshold, years)
    errors = []
    for Q, true in queries.items():
        estimate = sum(probability(Q, T, icd, age, years) for T in published)
        errors.append(abs(true - estimate) / true)
    return sum(errors, Fraction(0)) / len(errors), len(errors)
