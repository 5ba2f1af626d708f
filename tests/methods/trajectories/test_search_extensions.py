"""The local search with large clusters, diverse groups, and hierarchies too large for one table of gains."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.trajectories.test_partitions_and_search import (
    SPACE,
    everybody_once,
    generalizes,
    records_of,
    same,
)

from leeward.engine import make
from leeward.methods.trajectories import clustering, diversity, improvement, losses, problem, run, searching
from leeward.methods.trajectories.records import Group, Records


def valued(n, seed, values=3):
    """Records with a sensitive value each, one of them more frequent than the others."""
    records = records_of(n, seed)
    rng = np.random.Generator(np.random.Philox(seed + 1))
    shares = np.array([0.45, *[0.55 / (values - 1)] * (values - 1)])
    group = rng.choice(values, n, p=shares).astype(np.int32)
    return Records(records.offsets, records.codes, records.ages, group)


def problem_of(records, k):
    return problem.make(records.offsets, records.codes, records.ages, SPACE, k, records.group)


def groups_of(p, clusters):
    members = clustering.record_members(p, clusters)
    return [Group(m, c.codes, c.ages) for m, c in zip(members, clusters, strict=True)]


def loss(groups, records):
    return losses.of(groups, records.lengths(), SPACE).total


def one_sided(groups, records, ell):
    """Groups in which one value makes up more than 1 in ℓ, counted plainly."""
    return [
        g for g in groups if max(Counter(records.group[g.members].tolist()).values()) * ell > len(g.members)
    ]


@settings(max_examples=20)
@given(n=st.integers(40, 120), k=st.integers(2, 4), times=st.integers(2, 4), seed=st.integers(0, 10_000))
def test_large_clusters_are_split(n, k, times, seed):
    records = records_of(n, seed)
    p = problem_of(records, times * k)
    large = clustering.mdav(p, times * k)
    done = improvement.Progress()
    groups = groups_of(p, improvement.improve(p, large, k, rounds=1, seconds=60, progress=done))
    assert done.splits >= len(large)
    assert everybody_once(groups, n) and all(k <= len(g.members) < 2 * k for g in groups)
    assert loss(groups, records) <= loss(groups_of(p, large), records) + 1e-12
    assert all(generalizes(g, records, int(r)) for g in groups for r in g.members)


def test_splitting_alone_gains():
    records = records_of(300, 1)
    p = problem_of(records, 12)
    large = clustering.mdav(p, 12)
    clock = searching.Clock(float("inf"))
    parts = improvement.split(p, large, 4, 0, clock, improvement.Progress())
    assert loss(groups_of(p, parts), records) < 0.9 * loss(groups_of(p, large), records)
    unchanged = improvement.split(p, large, 7, 0, clock, improvement.Progress())
    assert same(unchanged, large)  # 12 … 13 records: no two groups of 7


@settings(max_examples=20)
@given(n=st.integers(60, 140), k=st.integers(4, 6), ell=st.integers(2, 2), seed=st.integers(0, 10_000))
def test_large_diverse_clusters_are_split_into_diverse_ones(n, k, ell, seed):
    records = valued(n, seed)
    p = problem_of(records, 4 * k)
    large = clustering.mdav(p, 4 * k, most=4 * k // ell)
    before = groups_of(p, large)
    parts = improvement.split(p, large, k, ell, searching.Clock(float("inf")), improvement.Progress())
    groups = groups_of(p, parts)
    assert everybody_once(groups, n)
    assert min(len(g.members) for g in groups) >= min(k, *(len(g.members) for g in before))
    # Those that were one-sided are left as they were.
    assert len(one_sided(groups, records, ell)) == len(one_sided(before, records, ell))
    assert loss(groups, records) <= loss(before, records) + 1e-12


@settings(max_examples=20)
@given(
    n=st.integers(40, 160),
    k=st.integers(3, 6),
    ell=st.integers(2, 3),
    values=st.integers(4, 6),
    seed=st.integers(0, 10_000),
    parts=st.sampled_from([1, 1, 3]),
)
def test_the_search_keeps_groups_diverse_and_only_gains(n, k, ell, values, seed, parts):
    records = valued(n, seed, values)
    ell = min(ell, n // int(np.bincount(records.group).max()))
    if ell < 2:
        ell, records = (
            2,
            Records(records.offsets, records.codes, records.ages, np.arange(n, dtype=np.int32) % 4),
        )
    found = []
    for improve in (False, True):
        wanted = run.Settings(k, "normalised", max(1, k // ell), improve, 2, 60.0, diversity=ell)
        part = (np.arange(n) * parts // n).astype(np.int32)
        groups = run.in_parts(records, part, SPACE, wanted, make("local", threads=1))
        found.append(diversity.diversify(groups, records, SPACE, ell, k))
        assert everybody_once(found[-1], n) and min(len(g.members) for g in found[-1]) >= k
        assert not one_sided(found[-1], records, ell)
        assert all(generalizes(g, records, int(r)) for g in found[-1] for r in g.members)
    if parts == 1:
        assert loss(found[1], records) <= loss(found[0], records) + 1e-12


def test_the_search_of_diverse_groups_keeps_much_more_on_any_number_of_threads():
    records = valued(600, 3, 4)
    p = problem_of(records, 5)
    start = clustering.mdav(p, 5, most=2)
    found = [
        improvement.improve(p, start, 5, rounds=3, seconds=120, threads=threads, diversity=2)
        for threads in (1, 2)
    ]
    assert same(*found)
    groups, before = groups_of(p, found[0]), groups_of(p, start)
    assert loss(groups, records) < 0.97 * loss(before, records)
    assert len(one_sided(groups, records, 2)) == len(one_sided(before, records, 2))


@pytest.mark.parametrize("cells", [10, 60, 200])
def test_realigning_in_slices_gives_the_same(monkeypatch, cells):
    records = records_of(300, 6)
    p = problem_of(records, 4)
    start = clustering.mdav(p, 4)
    whole = improvement.realign(p, start, 4)
    monkeypatch.setattr(searching, "TABLE_CELLS", cells)
    assert len(searching.slices_of(p, start)) > 1
    assert same(improvement.realign(p, start, 4), whole)


def test_searching_in_slices_keeps_the_guarantee_and_gains(monkeypatch):
    records = records_of(400, 7)
    p = problem_of(records, 4)
    start = clustering.mdav(p, 4)
    monkeypatch.setattr(searching, "TABLE_CELLS", 250)
    assert len(searching.slices_of(p, start)) > 1
    told = []
    after = improvement.improve(p, start, 4, rounds=2, seconds=60, tell=lambda *each: told.append(each))
    groups = groups_of(p, after)
    assert everybody_once(groups, 400) and all(4 <= len(g.members) < 8 for g in groups)
    assert loss(groups, records) < loss(groups_of(p, start), records)
    assert told[0][2] == pytest.approx(loss(groups_of(p, start), records))
    assert all(generalizes(g, records, int(r)) for g in groups for r in g.members)
