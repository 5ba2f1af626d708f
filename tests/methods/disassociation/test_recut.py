"""Stranded records go where a code of theirs is kept; clusters stay large enough."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from tests.methods.disassociation.shapes import data_sets, flat, rules_of
from tests.oracles import disassociation as oracle

from leeward.methods.disassociation.horpart import Partition, horizontal_partition
from leeward.methods.disassociation.recut import improve_partition
from leeward.methods.disassociation.rules import Workers

Drawn = tuple[oracle.Records, int, oracle.Parameters]


def leaves_of(partition: Partition) -> list[list[int]]:
    bounds = partition.leaf_offsets
    return [partition.order[a:b].tolist() for a, b in itertools.pairwise(bounds)]


@given(data_sets(most=60))
def test_clusters_keep_k_records_and_every_record_stays(drawn: Drawn) -> None:
    rows, n_codes, p = drawn
    rules, workers = rules_of(p, n_codes, recut=True), Workers(1)
    first = horizontal_partition(*flat(rows), rules, workers)
    after = leaves_of(improve_partition(*flat(rows), first, rules, workers))
    assert sorted(r for leaf in after for r in leaf) == list(range(len(rows)))
    assert min(len(leaf) for leaf in after) >= p.k


def test_recut_sends_a_stranded_record_to_a_cluster_that_keeps_its_code() -> None:
    """Leaf 0 holds code 0 three times and one record with code 1 only; leaf 1 holds code 1 three times."""
    rows = [frozenset({0})] * 3 + [frozenset({1})] + [frozenset({1})] * 3
    p = oracle.Parameters(k=3, m=2, max_cluster=6)
    rules = rules_of(p, 2, recut=True)
    start = Partition(np.arange(7, dtype=np.int32), np.array([0, 4, 7]))
    after = improve_partition(*flat(rows), start, rules, Workers(1))
    assert leaves_of(after) == [[0, 1, 2], [3, 4, 5, 6]]


def test_recut_dissolves_a_cluster_of_k_strangers() -> None:
    rows = [frozenset({0})] * 3 + [frozenset({1})] * 3 + [frozenset({0}), frozenset({1}), frozenset({0, 1})]
    p = oracle.Parameters(k=3, m=2, max_cluster=6)
    start = Partition(np.arange(9, dtype=np.int32), np.array([0, 3, 6, 9]))
    after = leaves_of(improve_partition(*flat(rows), start, rules_of(p, 2, recut=True), Workers(1)))
    assert len(after) == 2
    assert {6} <= set(after[0])
    assert {7} <= set(after[1])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(threads: int) -> None:
    draw = np.random.default_rng(5)
    rows = [
        frozenset(draw.zipf(1.5, size=draw.integers(1, 6)).clip(max=40).tolist())
        | frozenset(draw.integers(0, 3, 1).tolist())
        for _ in range(3000)
    ]
    p = oracle.Parameters(3, 2, 12, {c: c // 5 for c in range(41)})
    rules = rules_of(p, 41, recut=True)

    def run(threads: int) -> list[list[int]]:
        workers = Workers(threads)
        return leaves_of(
            improve_partition(*flat(rows), horizontal_partition(*flat(rows), rules, workers), rules, workers)
        )

    assert run(threads) == run(1)
