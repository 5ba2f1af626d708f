"""The pruned, batched, threaded clustering gives the clusters of the plain one, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import trajectories as oracle

from leeward.methods.trajectories import clustering, hierarchies
from leeward.methods.trajectories.records import Records
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
JOININGS = ["normalised", "thesis"]
WEIGHTS = [(0.5, 0.5), (0.1, 0.9), (0.75, 0.25), (1.0, 0.0)]


def flat(records):
    lengths = [len(T) for T in records]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = CODES.nodes_of([code for T in records for code, _ in T])
    years = AGES.hierarchy.nodes_of([v for T in records for _, v in T])
    return Records(offsets, codes, years)


def released(p, clusters):
    """Members, and published pairs by their labels."""
    return [
        (
            group.members.tolist(),
            tuple(
                (CODES.labels[c], AGES.hierarchy.labels[v])
                for c, v in zip(group.codes, group.ages, strict=True)
            ),
        )
        for group in clustering.groups_of(p, clusters)
    ]


def fast(records, k, weights=(0.5, 0.5), joining="normalised", threads=1):
    p = clustering.make_problem(flat(records), hierarchies.make_space(CODES, AGES, weights), k)
    return released(p, clustering.mdav(p, k, joining == "normalised", threads))


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
    joining=st.sampled_from(JOININGS),
    weights=st.sampled_from(WEIGHTS),
    threads=st.integers(1, 3),
)
def test_pruned_clusters_are_the_oracles(records, k, joining, weights, threads):
    k = min(k, len(records))
    assert fast(records, k, weights, joining, threads) == slow(records, k, weights, joining)


@pytest.mark.parametrize("joining", JOININGS)
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


def test_64_bit_losses_give_the_same_clusters():
    """A hierarchy with very many leaves needs 64-bit sums; its clusters are still the oracle's."""
    extra = [(f"x{i:06d}", "Any") for i in range(200_000)]
    codes = Hierarchy.from_pairs([*CODE_PAIRS, *extra], "large")
    rng = np.random.Generator(np.random.Philox(5))
    records = sampled(rng, 60)
    known = flat(records)
    nodes = codes.nodes_of([code for T in records for code, _ in T])
    where = hierarchies.make_space(codes, AGES, (0.333, 0.667))
    p = clustering.make_problem(Records(known.offsets, nodes, known.ages), where, 3)
    assert p.codes.gain.dtype == np.int64
    found = [group.members.tolist() for group in clustering.groups_of(p, clustering.mdav(p, 3))]
    large = oracle.Tree(CODE_PAIRS)
    large.leaves = large.leaves + [None] * 200_000
    large.below["Any"] += 200_000
    w = Fraction(333, 1000)
    assert found == [
        members for members, _ in oracle.mdav(records, 3, large, AGE_TREE, w, 1 - w, "normalised")
    ]


def test_forbidden_generalizations_never_happen():
    rng = np.random.Generator(np.random.Philox(6))
    records = sampled(rng, 200)
    constraint = np.array([0, 0, 1, 2, 2, 2, -1])
    shown = hierarchies.publishable_codes(CODES, constraint_of=constraint)
    narrow = hierarchies.narrow_ages(AGES, 4)
    where = hierarchies.make_space(CODES, AGES, (0.5, 0.5), shown, narrow)
    p = clustering.make_problem(flat(records), where, 3)
    clusters = clustering.mdav(p, 3)
    published = {CODES.labels[c] for x in clusters for c in x.codes}
    assert published <= set("abcdefg") | {"S1", "S2", "S3"}
    widths = {AGES.hierarchy.leaf_count[v] for x in clusters for v in x.ages}
    assert max(widths) == 4


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "benchmarks"))


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("normalised", [True, False])
def test_pruned_clusters_are_the_exhaustive_ones(normalised):
    import trajectories_exhaustive

    rng = np.random.Generator(np.random.Philox(7))
    records = sampled(rng, 700, longest=15)
    p = clustering.make_problem(flat(records), hierarchies.make_space(CODES, AGES), 5)
    plain = trajectories_exhaustive.mdav(p, 5, normalised)
    pruned = clustering.mdav(p, 5, normalised, threads=2)
    for a, b in zip(plain, pruned, strict=True):
        assert np.array_equal(a.members, b.members)
        assert np.array_equal(a.codes, b.codes) and np.array_equal(a.ages, b.ages)


@pytest.mark.usefixtures("benchmarks")
def test_baseline_is_the_oracles():
    import trajectories_exhaustive

    @settings(max_examples=30)
    @given(records=st.lists(TRAJECTORY, min_size=3, max_size=12), k=st.integers(2, 3))
    def compare(records, k):
        p = clustering.make_problem(flat(records), hierarchies.make_space(CODES, AGES), k)
        found = released(p, trajectories_exhaustive.mdav(p, k, baseline=True))
        assert found == oracle.mdav(records, k, CODE_TREE, AGE_TREE, align=oracle.baseline)

    compare()
