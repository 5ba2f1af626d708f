"""Candidate records of a set of codes, exactly: by trying every way to put a cluster's subrecords together."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

Subrecords = list[frozenset[int]]


class Cluster(NamedTuple):
    """A cluster without shared chunks: its record chunks (one subrecord a record, empty ones too) and item codes."""

    records: int
    chunks: list[Subrecords]
    items: frozenset[int]


def candidates(clusters: list[Cluster], wanted: frozenset[int], item_most: int) -> int:
    """The most records that hold `wanted` in one data set of non-empty records which gives the clusters.

    An item code is on 1 to `item_most` records of its cluster.
    """
    return sum(_in_cluster(cluster, wanted, min(item_most, cluster.records)) for cluster in clusters)


def _in_cluster(cluster: Cluster, wanted: frozenset[int], item_most: int) -> int:
    shown = {code for chunk in cluster.chunks for subrecord in chunk for code in subrecord}
    if not wanted <= shown | cluster.items:
        return 0
    return max(
        _with_items(records, wanted & shown, wanted & cluster.items, cluster.items, item_most)
        for records in _arrangements(cluster)
    )


def _arrangements(cluster: Cluster) -> list[Subrecords]:
    """Every combination of subrecords to records (their order does not matter)."""
    found = {tuple([frozenset[int]()] * cluster.records)}
    for chunk in cluster.chunks:
        orders = set(permutations(chunk))
        found = {
            tuple(sorted((a | b for a, b in zip(records, order, strict=True)), key=sorted))
            for records in found
            for order in orders
        }
    return [list(records) for records in found]


def _with_items(
    records: Subrecords,
    from_chunks: frozenset[int],
    from_items: frozenset[int],
    items: frozenset[int],
    item_most: int,
) -> int:
    """The most records that hold both parts, every empty record getting an item code; -1 where none is possible."""
    fitting = [record for record in records if from_chunks <= record]
    empty = sum(1 for record in records if not record)
    if not from_items:
        return len(fitting) if empty <= len(items) * item_most else -1
    for count in range(min(len(fitting), item_most), -1, -1):
        filled = min(count, sum(1 for record in fitting if not record))
        spare = (len(items) - len(from_items)) * item_most + len(from_items) * (item_most - count)
        if empty - filled <= spare:
            return count
    return -1
