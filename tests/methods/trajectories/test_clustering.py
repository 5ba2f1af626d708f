"""The pruned, batched, threaded clustering gives the clusters of the plain one, one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import trajectories as oracle

from leeward.methods.trajectories import brute, clustering, problem, space
from leeward.vocabulary import age as ages
from leeward.vocabulary.hierarchy import Hierarchy

CODE_PAIRS = [
    ("Any", None),
    *[("C1", "Any"), ("C2", "Any"), ("S1", "C1"), ("S2", "C1"), ("S3", "C2")],
    *[("a", "S1"), ("b", "S1"), ("c", "S2"), ("d", "S3"), ("e", "S3"), ("f", "S3"), ("g", "C2")],
]
CODES = Hierarchy.from_pairs(CODE_PAIRS, "codes")
AGES = ages.binary(0, 31)
CODE_TREE = oracle.Tree(CODE_PAIRS)
AGE_TREE = oracle.Tree([(node, parent or None) for node, parent in AGES.hierarchy.to_pairs()])
WEIGHTS = [(0.5, 0.5), (0.1, 0.9), (0.75, 0.25), (1.0, 0.0)]


def flat(records):
    lengths = [len(T) for T in records]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = CODES.nodes_of([code for T in records for code, _ in T])
    years = AGES.hierarchy.nodes_of([v for T in records for _, v in T])
    return offsets, codes, years


def fast(records, k, weights=(0.5, 0.5), joining="normalised", threads=1):
    p = problem.make(*flat(records), space.make(CODES, AGES, weights), k)
    clusters = clustering.mdav(p, k, joining, threads)
    members = clustering.record_members(p, clusters)
    return [
        (
            m.tolist(),
            tuple((CODES.labels[c], AGES.hierarchy.labels[v]) for c, v in zip(x.codes, x.ages, strict=True)),
        )
        for m, x in zip(members, clusters, strict=True)
    ]


def slow(records, k, weights=(0.5, 0.5), joining="normalised"):
    w_icd = Fraction(weights[0]).limit_denominator(1000)
    return oracle.mdav(records, k, CODE_TREE, AGE_TREE, w_icd, 1 - w_icd, joining)


PAIRS = st.tuples(st.sampled_from(CODE_TREE.leaves), st.sampled_from(AGE_TREE.leaves))
TRAJECTORY = st.lists(PAIRS, min_size=1, max_size=5).map(
    lambda pairs: tuple(sorted(pairs, key=lambda p: (int(p[1]), p[0])))
)


def sampled(rng, n, longest=8, codes="abcdefg", oldest=31):
    found = []
    for _ in range(n):
        start = int(rng.integers(0, oldest))
        pairs = [
            (
                codes[min(int(rng.exponential(2)), len(codes) - 1)],
                str(min(oldest, start + int(rng.integers(0, 5)))),
            )
            for _ in range(1 + min(int(rng.exponential(3)), longest - 1))
        ]
        found.append(tuple(sorted(pairs, key=lambda p: (int(p[1]), p[0]))))
    return found


@settings(max_examples=60, deadline=None)
@given(
    records=st.lists(TRAJECTORY, min_size=2, max_size=14),
    k=st.integers(2, 5),
    joining=st.sampled_from(list(clustering.JOININGS)),
    weights=st.sampled_from(WEIGHTS),
    threads=st.integers(1, 3),
)
def test_pruned_clusters_are_the_oracles(records, k, joining, weights, threads):
    k = min(k, len(records))
    assert fast(records, k, weights, joining, threads) == slow(records, k, weights, joining)


@pytest.mark.parametrize("joining", list(clustering.JOININGS))
@pytest.mark.parametrize("seed", [1, 2])
def test_pruned_clusters_are_the_oracles_on_larger_sets(joining, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    records = sampled(rng, 45)
    for k in (2, 4):
        assert fast(records, k, joining=joining, threads=2) == slow(records, k, joining=joining)


def test_threads_change_nothing():
    rng = np.random.Generator(np.random.Philox(3))
    records = sampled(rng, 1500, longest=20)
    one = fast(records, 5)
    assert all(fast(records, 5, threads=threads) == one for threads in (2, 4))


def test_pruning_leaves_out_most_alignments():
    rng = np.random.Generator(np.random.Philox(4))
    records = sampled(rng, 4000, longest=20)
    p = problem.make(*flat(records), space.make(CODES, AGES), 5)
    work = clustering.Work()
    clustering.mdav(p, 5, work=work)
    every_pair = 4000 * 4000 / 2 * 4 / 5
    assert 0 < work.alignments < 0.15 * every_pair


def test_64_bit_losses_give_the_same_clusters():
    """A hierarchy with very many leaves needs 64-bit sums; its clusters are still the oracle's."""
    extra = [(f"x{i:06d}", "Any") for i in range(200_000)]
    codes = Hierarchy.from_pairs([*CODE_PAIRS, *extra], "large")
    rng = np.random.Generator(np.random.Philox(5))
    records = sampled(rng, 60)
    offsets, _, years = flat(records)
    nodes = codes.nodes_of([code for T in records for code, _ in T])
    p = problem.make(offsets, nodes, years, space.make(codes, AGES, (0.333, 0.667)), 3)
    assert p.codes.gain.dtype == np.int64
    found = [m.tolist() for m in clustering.record_members(p, clustering.mdav(p, 3, "size"))]
    large = oracle.Tree(CODE_PAIRS)
    large.leaves = large.leaves + [None] * 200_000
    large.below["Any"] += 200_000
    w = Fraction(333, 1000)
    assert found == [members for members, _ in oracle.mdav(records, 3, large, AGE_TREE, w, 1 - w, "size")]


def test_forbidden_generalizations_never_happen():
    rng = np.random.Generator(np.random.Philox(6))
    records = sampled(rng, 200)
    constraint = np.array([0, 0, 1, 2, 2, 2, -1])
    shown = space.publishable_codes(CODES, constraint_of=constraint)
    narrow = space.narrow_ages(AGES, 4)
    p = problem.make(*flat(records), space.make(CODES, AGES, (0.5, 0.5), shown, narrow), 3)
    clusters = clustering.mdav(p, 3)
    published = {CODES.labels[c] for x in clusters for c in x.codes}
    assert published <= set("abcdefg") | {"S1", "S2", "S3"}
    widths = {AGES.hierarchy.leaf_count[v] for x in clusters for v in x.ages}
    assert max(widths) == 4


@pytest.mark.parametrize("joining", list(clustering.JOININGS))
def test_pruned_clusters_are_the_exhaustive_ones(joining):
    rng = np.random.Generator(np.random.Philox(7))
    records = sampled(rng, 700, longest=15)
    p = problem.make(*flat(records), space.make(CODES, AGES), 5)
    plain, pruned = brute.mdav(p, 5, joining), clustering.mdav(p, 5, joining, threads=2)
    for a, b in zip(plain, pruned, strict=True):
        assert np.array_equal(a.members, b.members)
        assert np.array_equal(a.codes, b.codes) and np.array_equal(a.ages, b.ages)


@settings(max_examples=30)
@given(records=st.lists(TRAJECTORY, min_size=3, max_size=12), k=st.integers(2, 3))
def test_baseline_is_the_oracles(records, k):
    p = problem.make(*flat(records), space.make(CODES, AGES), k)
    clusters = brute.mdav(p, k, "thesis", "baseline")
    members = clustering.record_members(p, clusters)
    found = [
        (
            m.tolist(),
            tuple((CODES.labels[c], AGES.hierarchy.labels[v]) for c, v in zip(x.codes, x.ages, strict=True)),
        )
        for m, x in zip(members, clusters, strict=True)
    ]
    assert found == oracle.mdav(records, k, CODE_TREE, AGE_TREE, align=oracle.baseline)
