"""The objective of the fitted partitioning, plainly, and its optimum by trying every partition."""

from __future__ import annotations

from collections.abc import Iterator

Rows = list[frozenset[int]]


def objective(rows: Rows, clusters: list[list[int]], k: int, weight: float, ignored: frozenset[int]) -> float:
    """Σ over clusters: w Σ s + (1 - w) (Σ s²)/N, over the codes that k records or more hold."""
    total = 0.0
    for cluster in clusters:
        for code in {c for r in cluster for c in rows[r]} - ignored:
            s = sum(1 for r in cluster if code in rows[r])
            if s >= k:
                total += weight * s + (1 - weight) * s * s / len(cluster)
    return total


def partitions(records: list[int], k: int) -> Iterator[list[list[int]]]:
    """Every way to group `records` into clusters of at least k."""
    for found in _groupings(records):
        if all(len(cluster) >= k for cluster in found):
            yield found


def _groupings(records: list[int]) -> Iterator[list[list[int]]]:
    if not records:
        yield []
        return
    first, rest = records[0], records[1:]
    for found in _groupings(rest):
        yield [[first], *found]
        for i, cluster in enumerate(found):
            yield [*found[:i], [first, *cluster], *found[i + 1 :]]


def best(rows: Rows, k: int, weight: float) -> float:
    """The largest objective of all partitions."""
    return max(
        objective(rows, each, k, weight, frozenset()) for each in partitions(list(range(len(rows))), k)
    )
