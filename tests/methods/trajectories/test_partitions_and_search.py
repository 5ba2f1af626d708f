"""Parts, engines and the local search keep the guarantee; Spark gives what this machine gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.trajectories.test_clustering import AGES, CODES, flat, sampled
from tests.spark_fixture import spark_engine

from leeward.engine import make
from leeward.methods.trajectories import clustering, improvement, losses, problem, run, space
from leeward.methods.trajectories.kernels import regroup as _regroup
from leeward.methods.trajectories.records import Group, Records

if TYPE_CHECKING:
    from leeward.engine.spark import SparkEngine

__all__ = ["spark_engine"]

SPACE = space.make(CODES, AGES)


def records_of(n, seed):
    return Records(*flat(sampled(np.random.Generator(np.random.Philox(seed)), n, longest=12)))


def everybody_once(groups, n):
    return np.array_equal(np.sort(np.concatenate([g.members for g in groups])), np.arange(n))


@settings(max_examples=25)
@given(
    n=st.integers(20, 90),
    k=st.integers(2, 4),
    seed=st.integers(0, 10_000),
    joining=st.sampled_from(["thesis", "size"]),
)
def test_local_search_only_lowers_the_loss_and_keeps_k(n, k, seed, joining):
    records = records_of(n, seed)
    p = problem.make(records.offsets, records.codes, records.ages, SPACE, k)
    before = clustering.mdav(p, k, joining)
    after = improvement.improve(p, before, k, rounds=2, seconds=60)
    members = clustering.record_members(p, after)
    groups = [Group(m, c.codes, c.ages) for m, c in zip(members, after, strict=True)]
    assert everybody_once(groups, n)
    assert all(k <= len(g.members) < 2 * k for g in groups)
    start = clustering.record_members(p, before)
    first = [Group(m, c.codes, c.ages) for m, c in zip(start, before, strict=True)]
    assert (
        losses.of(groups, records.lengths(), SPACE).total
        <= losses.of(first, records.lengths(), SPACE).total + 1e-12
    )
    for group in groups:
        assert all(generalizes(group, records, int(r)) for r in group.members)


def generalizes(group, records, r):
    span = slice(int(records.offsets[r]), int(records.offsets[r + 1]))
    own = list(zip(records.codes[span], records.ages[span], strict=True))
    place = 0
    for code, age in zip(group.codes, group.ages, strict=True):
        while place < len(own) and not (
            CODES.is_ancestor(code, own[place][0]) and AGES.hierarchy.is_ancestor(age, own[place][1])
        ):
            place += 1
        if place == len(own):
            return False
        place += 1
    return True


def test_local_search_keeps_much_more():
    records = records_of(1200, 1)
    p = problem.make(records.offsets, records.codes, records.ages, SPACE, 5)

    def total(clusters):
        members = clustering.record_members(p, clusters)
        groups = [Group(m, c.codes, c.ages) for m, c in zip(members, clusters, strict=True)]
        return losses.of(groups, records.lengths(), SPACE).total

    start = clustering.mdav(p, 5)
    assert total(improvement.improve(p, start, 5, rounds=3, seconds=60)) < 0.95 * total(start)


def test_the_clock_stops_the_search():
    records = records_of(200, 2)
    p = problem.make(records.offsets, records.codes, records.ages, SPACE, 5)
    done = improvement.Progress()
    improvement.improve(p, clustering.mdav(p, 5), 5, rounds=5, seconds=1e-9, progress=done)
    assert done.stopped_by_clock and done.rounds == 0


def same(clusters, others):
    return len(clusters) == len(others) and all(
        np.array_equal(a.members, b.members)
        and np.array_equal(a.codes, b.codes)
        and np.array_equal(a.ages, b.ages)
        for a, b in zip(clusters, others, strict=True)
    )


@pytest.mark.parametrize(("n", "k"), [(1200, 5), (500, 2), (400, 7)])
def test_any_number_of_threads_finds_the_same(n, k):
    records = records_of(n, 9)
    p = problem.make(records.offsets, records.codes, records.ages, SPACE, k)
    start = clustering.mdav(p, k)
    found, done = [], []
    for threads in (1, 2, 5):
        done.append(improvement.Progress())
        found.append(
            improvement.improve(p, start, k, rounds=3, seconds=120, threads=threads, progress=done[-1])
        )
    assert same(found[0], found[1]) and same(found[0], found[2])
    assert done[0] == done[1] == done[2] and done[0].swaps > 0 and done[0].regrouped > 0


@settings(max_examples=100)
@given(
    tasks=st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3, unique=True), min_size=1, max_size=60)
)
def test_levels_keep_the_order_of_tasks_that_share_a_cluster(tasks):
    level = _regroup.levels(np.array(tasks, np.int32), 10)
    for i, own in enumerate(tasks):
        for j in range(i):
            assert level[j] < level[i] or not set(own) & set(tasks[j])


def test_who_watches_hears_rounds_seconds_and_the_loss():
    records = records_of(300, 2)
    p = problem.make(records.offsets, records.codes, records.ages, SPACE, 4)
    start, told = clustering.mdav(p, 4), []
    improvement.improve(p, start, 4, rounds=2, seconds=60, tell=lambda *each: told.append(each))
    members = clustering.record_members(p, start)
    groups = [Group(m, c.codes, c.ages) for m, c in zip(members, start, strict=True)]
    done, left, loss = told[0]
    assert done == 0 and 0 < left <= 60
    assert loss == pytest.approx(losses.of(groups, records.lengths(), SPACE).total)


@pytest.mark.parametrize("largest", [60, 200, 450])
def test_parts_cover_everybody_in_groups_of_k(largest):
    records = records_of(900, 3)
    part = run.describe_parts(records, SPACE, largest)
    assert np.bincount(part).max() <= largest
    groups = run.in_parts(records, part, SPACE, run.Settings(4, "normalised"), make("local", threads=2))
    assert everybody_once(groups, 900) and min(len(g.members) for g in groups) >= 4


def test_similar_records_share_a_part():
    records = records_of(900, 4)
    whole = losses.of(
        run.clustered(records, SPACE, run.Settings(4, "normalised"), 2), records.lengths(), SPACE
    ).total
    engine, settings_ = make("local", threads=2), run.Settings(4, "normalised")
    by_axis = run.in_parts(records, run.describe_parts(records, SPACE, 250), SPACE, settings_, engine)
    by_chance = run.in_parts(records, (np.arange(900) % 4).astype(np.int32), SPACE, settings_, engine)
    near, far = (losses.of(g, records.lengths(), SPACE).total for g in (by_axis, by_chance))
    assert near < far
    assert near < 1.2 * whole


def test_spark_equals_local(spark_engine: SparkEngine) -> None:
    records = records_of(400, 5)
    part = run.describe_parts(records, SPACE, 150)
    found = [
        run.in_parts(records, part, SPACE, run.Settings(4, "normalised"), engine)
        for engine in (make("local", threads=2), spark_engine)
    ]
    for local, spark in zip(*found, strict=True):
        assert np.array_equal(local.members, spark.members)
        assert np.array_equal(local.codes, spark.codes) and np.array_equal(local.ages, spark.ages)


def test_realigned_clusters_hold_the_same_records_and_keep_more():
    records = records_of(600, 6)
    p = problem.make(records.offsets, records.codes, records.ages, SPACE, 4)
    before = clustering.mdav(p, 4)
    after = improvement.realign(p, before, 4)

    def saved(x):
        return int(p.codes.gain[x.codes].sum() + p.ages.gain[x.ages].sum())

    assert all(np.array_equal(a.members, b.members) for a, b in zip(before, after, strict=True))
    assert all(saved(b) >= saved(a) for a, b in zip(before, after, strict=True))
    assert sum(map(saved, after)) > sum(map(saved, before))
    members = clustering.record_members(p, after)
    for record, x in zip(members, after, strict=True):
        group = Group(record, x.codes, x.ages)
        assert all(generalizes(group, records, int(r)) for r in record)


@settings(max_examples=60)
@given(
    tuples=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4), max_size=30
    )
)
def test_order_of_tuples_is_that_of_python(tuples):
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in tuples])]).astype(np.int64)
    codes, years = (np.array([pair[i] for t in tuples for pair in t] or [0], np.int64) for i in (0, 1))
    order, starts = problem._in_order(offsets, codes, years)
    expected = sorted(range(len(tuples)), key=lambda r: (tuples[r], r))
    assert order.tolist() == expected
    new = [i == 0 or tuples[expected[i]] != tuples[expected[i - 1]] for i in range(len(expected))]
    assert starts.tolist() == new


@settings(max_examples=25)
@given(n=st.integers(2, 60), largest=st.integers(1, 20), seed=st.integers(0, 1000), alike=st.booleans())
def test_every_record_has_a_part_no_larger_than_asked(n, largest, seed, alike):
    records = records_of(n, seed)
    if alike:
        records = records.take(np.zeros(n, np.int64))
    part = run.describe_parts(records, SPACE, largest)
    sizes = np.bincount(part)
    assert len(part) == n and sizes.max() <= largest and sizes.min() >= 1
    assert sizes.min() * 2 + 1 >= min(largest, sizes.max())
    assert np.array_equal(part, run.describe_parts(records, SPACE, largest))
