"""The published way to (k, k^m), plain: clusters of at least k records by the loss of demographics, then Apriori inside
each (Poulis et al. 2013; Terrovitis, Mamoulis, Kalnis 2008 for codes). A baseline for studies.

Codes and values are labels of hierarchies, each a mapping of a label to its parent ("" above the root).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

Tree = Mapping[str, str]
Vector = tuple[str, ...]


def path(tree: Tree, label: str) -> list[str]:
    """The label and what is above it."""
    found = [label]
    while tree[found[-1]]:
        found.append(tree[found[-1]])
    return found


def clusters(
    vectors: Sequence[Vector], losses: Mapping[tuple[Vector, Vector], float], k: int
) -> list[list[int]]:
    """Greedy clusters of k: the first record left with those whose vectors cost least beside its own.

    `losses` : what two vectors lose when they get their least common one. Fewer than k records that are left join the
    cluster of the first vector that costs them least.
    """
    left: dict[Vector, list[int]] = {}
    for record, vector in enumerate(vectors):
        left.setdefault(vector, []).append(record)
    found: list[list[int]] = []
    seeds: list[Vector] = []
    while sum(map(len, left.values())) >= k:
        seed = min(vector for vector in left if left[vector])
        near = sorted((v for v in left if left[v]), key=lambda v: (losses[seed, v], v))
        cluster: list[int] = []
        for vector in near:
            while left[vector] and len(cluster) < k:
                cluster.append(left[vector].pop(0))
        found.append(cluster)
        seeds.append(seed)
    for vector, records in left.items():
        if records:
            nearest = min(range(len(seeds)), key=lambda i: (losses[seeds[i], vector], i))
            found[nearest] += records
    return found


def apriori(records: Sequence[frozenset[str]], tree: Tree, k: int, m: int) -> dict[str, str]:
    """The label of each code: raised until every set of up to m labels that occurs in a record does so in k of them.

    Sets are looked at by size; of a rare one the label with the least support is raised to its parent, with everything
    below that parent.
    """
    codes = sorted(set().union(*records)) if records else []
    label = {code: code for code in codes}
    while True:
        shown = [frozenset(label[code] for code in record) for record in records]
        rare = _rare(shown, k, m)
        if rare is None:
            return label
        support = Counter(each for record in shown for each in record)
        raised = min(
            (each for each in rare if tree[each]), key=lambda each: (support[each], each), default=None
        )
        if raised is None:
            return dict.fromkeys(codes, "")  # fewer than k records have any code: nothing is shown
        above = tree[raised]
        label = {code: above if above in path(tree, now) else now for code, now in label.items()}


def _rare(shown: Sequence[frozenset[str]], k: int, m: int) -> tuple[str, ...] | None:
    """The first set of up to m labels that fewer than k records have."""
    for size in range(1, m + 1):
        support = Counter(each for record in shown for each in combinations(sorted(record), size))
        rare = sorted(each for each, count in support.items() if count < k)
        if rare:
            return rare[0]
    return None


def expected(
    records: Sequence[frozenset[str]],
    label: Mapping[str, str],
    wanted: frozenset[str],
    leaves: Mapping[str, int],
) -> float:
    """Records of a cluster expected to have all of `wanted`; each of a label's `leaves` is as likely as the others."""
    if any(not label.get(code) for code in wanted):
        return 0.0
    labels = {label[code] for code in wanted}
    having = sum(labels <= {label[code] for code in record} for record in records)
    share = 1.0
    for code in wanted:
        share /= max(1, leaves[label[code]])
    return having * share
