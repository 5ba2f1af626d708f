"""The fitted partitioning: the objective never falls, clusters stay large enough, near the optimum on tiny inputs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.disassociation.shapes import data_sets, flat, items_left, rules_of, sets_of
from tests.oracles import disassociation as oracle
from tests.oracles import fit as plain

from leeward.arrays import Int32s, Int64s
from leeward.methods.disassociation import fit as kernels
from leeward.methods.disassociation import fit_moves as moves
from leeward.methods.disassociation import refine
from leeward.methods.disassociation.fit import LARGEST, cut_blocks, fit_partition
from leeward.methods.disassociation.horpart import Clustered, Partition, pool_in_place, split_records
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.rules import Rules, Workers

Drawn = tuple[oracle.Records, int, oracle.Parameters]


def clusters_of(partition: Partition) -> list[list[int]]:
    return [partition.order[a:b].tolist() for a, b in itertools.pairwise(partition.leaf_offsets)]


def start_of(rows: oracle.Records, n_codes: int, p: oracle.Parameters) -> tuple[list[list[int]], float]:
    """The start, of half as large clusters where the first one is not pure, and the weight that its purity asks for."""

    def split(most: int) -> list[list[int]]:
        rules = rules_of(p, n_codes, fit=True)._replace(max_cluster=most)
        return clusters_of(pool_in_place(split_records(*flat(rows), rules, Workers(1)), p.k))

    start = split(p.max_cluster)
    occurrences = sum(len(row - p.sensitive) for row in rows)
    pure = plain.objective(rows, start, p.k, 0.0, p.sensitive) / max(occurrences, 1)
    if pure < 0.4 and p.max_cluster > 2 * p.k:
        start = split(max(2 * p.k, p.max_cluster // 2))
    return start, kernels.aim_of(pure, p.k, 2 * p.max_cluster).weight


@given(data_sets(most=60))
def test_the_objective_never_falls_and_clusters_keep_k_records(drawn: Drawn) -> None:
    rows, n_codes, p = drawn
    rules = rules_of(p, n_codes, fit=True)
    start, weight = start_of(rows, n_codes, p)
    after = clusters_of(fit_partition(*flat(rows), rules, Workers(1)))
    assert sorted(r for cluster in after for r in cluster) == list(range(len(rows)))
    assert min(map(len, after)) >= p.k
    assert max(map(len, after)) <= max(LARGEST * p.k, 2 * p.max_cluster, *map(len, start))
    before = plain.objective(rows, start, p.k, weight, p.sensitive)
    assert plain.objective(rows, after, p.k, weight, p.sensitive) >= before - 1e-6


@pytest.mark.parametrize(("codes", "most"), [(4, [20]), (2000, [20, 10])])
def test_long_records_of_many_codes_are_split_further(
    codes: int, most: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.Generator(np.random.Philox(8))
    rows = [frozenset(draw.integers(0, codes, 10).tolist()) for _ in range(100)]
    asked: list[int] = []

    def noted(offsets: Int64s, values: Int32s, rules: Rules, workers: Workers) -> Partition:
        asked.append(rules.max_cluster)
        return split_records(offsets, values, rules, workers)

    monkeypatch.setattr(kernels, "split_records", noted)
    fit_partition(*flat(rows), rules_of(oracle.Parameters(2, 2, 20), codes, fit=True), Workers(1))
    assert asked == most


@pytest.mark.parametrize(("codes", "weight"), [(4, 0.4), (2000, 0.1)])
def test_classes_take_the_weight_of_all_records(codes: int, weight: float) -> None:
    draw = np.random.Generator(np.random.Philox(8))
    rows = [frozenset(draw.integers(0, codes, 10).tolist()) for _ in range(100)]
    sets, rules = sets_of(rows, codes), rules_of(oracle.Parameters(25, 2, 250), codes, fit=True)
    assert kernels.with_weight(sets, rules, Workers(1)).weight == weight


def test_a_weight_of_the_rules_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[float] = []
    monkeypatch.setattr(
        kernels, "fit_block", lambda *given: taken.append(given[3].weight) or given[5].fill(0)
    )
    rules = rules_of(oracle.Parameters(2, 2, 20), 4, fit=True)._replace(weight=0.25)
    fit_partition(*flat([frozenset({i % 4}) for i in range(40)]), rules, Workers(1))
    assert taken == [0.25]


@given(data_sets(most=60), st.sampled_from([0.0, 0.1, 0.3, 1.0]))
def test_sums_kept_while_records_move_are_those_counted_anew(drawn: Drawn, weight: float) -> None:
    rows, n_codes, p = drawn
    rules = rules_of(p, n_codes)
    start = pool_in_place(split_records(*flat(rows), rules, Workers(1)), p.k)
    leaves = len(start.leaf_offsets) - 1
    near = flat([rows[r] for r in start.order])
    b = kernels.block_of(Clustered(*near, start.leaf_offsets), 0, leaves, p.k, rules.sensitive)
    aim = kernels.Aim(p.k, 2 * p.max_cluster, weight, 3)
    kernels.improve(b, leaves, aim)
    clusters = kernels.split(b, leaves, aim)
    kernels.improve(b, clusters, aim)
    support = np.zeros_like(b.support)
    for record, home in enumerate(b.home):
        np.add.at(support, (home, b.code[b.at[record] : b.at[record + 1]]), 1)
    assert (b.support == support).all()
    kept = np.where(support >= p.k, support.astype(np.int64), 0)
    sizes = np.bincount(b.home, minlength=len(support))
    assert (b.sums == np.stack([sizes, kept.sum(axis=1), (kept**2).sum(axis=1)], axis=1)).all()


@pytest.mark.parametrize("pairs", [1, 40])
def test_codes_counted_a_few_at_once_split_clusters_alike(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.Generator(np.random.Philox(7))
    rows = [frozenset(draw.zipf(1.4, 5).clip(max=15).tolist()) for _ in range(120)]
    whole, parts = (
        kernels.block_of(Clustered(*flat(rows), np.array([0, 60, 120])), 0, 2, 3, np.zeros(16, np.bool_))
        for _ in range(2)
    )
    aim = kernels.Aim(3, 60, 0.3, 3)
    clusters = kernels.split(whole, 2, aim)
    monkeypatch.setattr(kernels, "TOGETHER", pairs)
    plain = getattr(kernels.split, "py_func", kernels.split)  # the same where kernels are interpreted
    assert plain(parts, 2, aim) == clusters > 4
    assert (parts.home == whole.home).all()


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.sampled_from([2, 3, 5]))
def test_clusters_that_are_passed_over_are_not_the_best(seed: int, weight: float, k: int) -> None:
    """Also with codes that share a bit, after moves, for a cluster that is full and one that is empty."""
    random = np.random.default_rng(seed)
    chance = 1 / (1 + np.arange(150))
    rows = [
        set(random.choice(150, random.integers(2, 12), replace=False, p=chance / chance.sum()).tolist())
        for _ in range(60)
    ]
    leaves = 60 // 5
    bounds = np.arange(0, 61, 5)
    b = kernels.block_of(Clustered(*flat(rows), bounds), 0, leaves, k, np.zeros(150, np.bool_))
    aim = kernels.Aim(k, 9, weight, 3)
    top = moves.hosts_of(b, leaves, aim)

    def move(p: int, there: int) -> None:
        moves.count_in(b, p, b.home[p], k, -1)
        moves.note(b, p, b.home[p], aim, top)
        moves.count_in(b, p, there, k, 1)
        moves.note(b, p, there, aim, top)
        b.home[p] = there

    for p in range(5):
        move(p, 1)
    for p, there in zip(random.integers(5, 60, 20), random.integers(2, leaves, 20), strict=True):
        if b.home[p] != there:
            move(p, there)
    for p in range(60):
        best, gain = _best_host(b, p, top.at, top.host, aim)
        assert moves.best_host(b, p, 1, aim, top, 0.0) == (best, gain)
        if best >= 0:
            assert moves.best_host(b, p, 1, aim, top, gain / 2) == (best, gain)


def _best_host(b: moves.Block, p: int, hosts_at: Int64s, hosts: Int32s, aim: moves.Aim) -> tuple[int, float]:
    """Every host that a search looks at is evaluated: the first that adds most, and how much."""
    best, most = -1, 0.0
    held = b.code[b.at[p] : b.at[p + 1]]
    for c in held:
        mine = hosts[hosts_at[c] : hosts_at[c + 1]]
        n = max(len(mine), 1)
        step, start = (n // moves.TRIES, ((p + 1) * 2654435761 + 40503) % n) if n > moves.TRIES else (1, 0)
        for i in range(min(len(mine), moves.TRIES)):
            there = int(mine[(start + i * step) % n])
            if there == b.home[p] or not 0 < b.sums[there, 0] < aim.cap:
                continue
            with_p = b.support[there].astype(np.int64)
            before = _value(with_p, b.sums[there, 0], aim)
            with_p[held] += 1
            gain = _value(with_p, b.sums[there, 0] + 1, aim) - before
            if gain > most:
                best, most = there, gain
    return best, most


def _value(support: Int64s, size: int, aim: moves.Aim) -> float:
    kept = support[support >= aim.k]
    return float(aim.weight * kept.sum() + (1 - aim.weight) * (kept**2).sum() / size)


def _searched(clusters: list[list[set[int]]], weight: float) -> tuple[moves.Block, Any]:
    """Clusters as a block for k = 2, and what `dissolve` and `relocate` take beside it."""
    rows = [frozenset(row) for cluster in clusters for row in cluster]
    bounds = np.concatenate([[0], np.cumsum([len(cluster) for cluster in clusters])])
    b = kernels.block_of(Clustered(*flat(rows), bounds), 0, len(clusters), 2, np.zeros(9, np.bool_))
    aim = kernels.Aim(2, 9, weight, 3)
    return b, (aim, moves.hosts_of(b, len(clusters), aim))


def test_a_cluster_worth_more_than_its_records_add_elsewhere_is_not_tried_again_until_it_is_split() -> None:
    strangers = [[{0}, {1}], [{0}, {0}], [{1}, {1}]]
    b, how = _searched(strangers, 0.0)
    b.kept[:] = True
    assert moves.dissolve(b, 3, 0, *how) == 0
    b.kept[0] = False
    assert moves.dissolve(b, 3, 0, *how) == 2
    # The first is worth 4, its records add 1 and 2 to the second; the second is worth 2, its records add 1/3 and 2/3.
    b, how = _searched([[{0, 1}, {0, 1}], [{0}, {0}]], 0.0)
    assert moves.dissolve(b, 2, 0, *how) == 0
    assert b.kept.all()
    b, how = _searched([[{0}, {0}], [{0}, {0}]], 0.0)  # worth 2, and they add 2
    assert moves.dissolve(b, 2, 0, *how) == 0
    assert not b.kept.any()
    b, how = _searched([[{0}, {0}, {1}, {1}]], 0.0)
    b.kept[0] = True
    assert kernels.split(b, 1, how[0]) == 2
    assert not b.kept.any()


def test_a_record_that_its_cluster_would_miss_much_stays() -> None:
    host: list[set[int]] = [{0}, {1}]  # one record more makes both codes countable: it gains 8 / 3
    at_home, how = _searched([[{0, 1}, {0, 1}, {0, 1}], host], 0.0)  # its cluster would lose 2
    assert moves.relocate(at_home, 0, *how) == 0
    stray, how = _searched([[{0, 1}, {0}, {0}, {2}, {2}, {2}], host], 0.0)  # .4
    assert moves.relocate(stray, 0, *how) > 0
    assert stray.home[0] == 1


def test_near_the_optimum_on_tiny_inputs() -> None:
    """Ten neighbours each of made-up records; all partitions into clusters of two and more are tried."""
    draw = np.random.Generator(np.random.Philox(3))
    found, optimum = [], []
    for _ in range(12):
        rows = [frozenset(draw.zipf(1.6, 4).clip(max=12).tolist()) for _ in range(9)]
        p = oracle.Parameters(2, 2, 4)
        _, weight = start_of(rows, 13, p)
        after = clusters_of(fit_partition(*flat(rows), rules_of(p, 13, fit=True), Workers(1)))
        found.append(plain.objective(rows, after, 2, weight, frozenset()))
        optimum.append(plain.best(rows, 2, weight))
    assert sum(found) >= 0.95 * sum(optimum)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from leeward.methods.disassociation import fit

    monkeypatch.setattr(fit, "block_records", lambda k, codes: 500)
    draw = np.random.Generator(np.random.Philox(5))
    rows = [frozenset(draw.zipf(1.5, draw.integers(1, 6)).clip(max=40).tolist()) for _ in range(3000)]
    rules = rules_of(oracle.Parameters(3, 2, 12), 41, fit=True)
    one = fit_partition(*flat(rows), rules, Workers(1))
    other = fit_partition(*flat(rows), rules, Workers(threads))
    assert clusters_of(one) == clusters_of(other)
    assert len(cut_blocks(one.leaf_offsets, 500)) > 3


def test_more_records_alike_than_a_support_can_count_are_left_as_they_are() -> None:
    rows = [frozenset({0})] * 70_000 + [frozenset({1, 2})] * 10
    partition = fit_partition(*flat(rows), rules_of(oracle.Parameters(5, 2, 50), 3, fit=True), Workers(1))
    assert sorted(map(len, clusters_of(partition))) == [10, 70_000]


def test_other_orders_of_clusters_leave_fewer_codes_in_item_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.Generator(np.random.Philox(6))
    rows = [frozenset((draw.zipf(1.3, 4) % 200).tolist()) for _ in range(1500)]
    rules = rules_of(oracle.Parameters(5, 2, 25), 200, fit=True)
    more = disassociate(sets_of(rows, 200), rules, Workers(1))
    other = disassociate(sets_of(rows, 200), rules, Workers(3))
    monkeypatch.setattr(refine, "IDLE_PASSES", 0)
    once = disassociate(sets_of(rows, 200), rules, Workers(1))
    assert (more.order == once.order).all()  # the same clusters
    assert (items_left(more) <= items_left(once)).all()
    assert items_left(more).sum() < items_left(once).sum()
    assert (more.parent == other.parent).all()


@given(st.lists(st.sets(st.integers(0, 6), max_size=5), max_size=12), st.permutations(range(7)))
def test_a_sketch_is_the_three_smallest_ranks(chunks: list[set[int]], ranks: list[int]) -> None:
    offsets, codes = flat([frozenset(each) for each in chunks])
    at = np.stack([offsets[:-1], offsets[1:]], axis=1)
    order = refine.sort_by_sketch(
        refine.Entries(at, codes), np.array(ranks, np.int32), lambda n, work: [work(0, n)]
    )
    sketches = [([*sorted(ranks[c] for c in each), 9, 9, 9])[:3] for each in chunks]
    assert order.tolist() == sorted(range(len(chunks)), key=lambda i: (sketches[i], i))
