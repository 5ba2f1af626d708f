"""Parts and engines keep the guarantee; Spark gives what this machine gives."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.trajectories.test_clustering import AGES, CODES, flat, sampled
from tests.spark_fixture import spark_engine

from leeward.engine import make
from leeward.methods.trajectories import clustering, diversity, hierarchies, parts
from leeward.methods.trajectories.records import losses_of

if TYPE_CHECKING:
    from leeward.engine.spark import SparkEngine

__all__ = ["spark_engine"]

SPACE = hierarchies.make_space(CODES, AGES)


def records_of(n, seed):
    return flat(sampled(np.random.Generator(np.random.Philox(seed)), n, longest=12))


def everybody_once(groups, n):
    return np.array_equal(np.sort(np.concatenate([g.members for g in groups])), np.arange(n))


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


def parts_of(records, largest):
    return parts.parts_of([np.arange(len(records))], records, SPACE, largest)


@pytest.mark.parametrize("largest", [60, 200, 450])
def test_parts_cover_everybody_in_groups_of_k(largest):
    records = records_of(900, 3)
    part = parts_of(records, largest)
    assert np.bincount(part).max() <= largest
    groups = parts.cluster_parts(records, part, SPACE, parts.Settings(4), make("local", threads=2))
    assert everybody_once(groups, 900) and min(len(g.members) for g in groups) >= 4


def test_similar_records_share_a_part():
    records = records_of(900, 4)
    whole = losses_of(parts.cluster(records, SPACE, parts.Settings(4), 2), records.lengths(), SPACE).total
    engine, settings_ = make("local", threads=2), parts.Settings(4)
    by_axis = parts.cluster_parts(records, parts_of(records, 250), SPACE, settings_, engine)
    by_chance = parts.cluster_parts(records, (np.arange(900) % 4).astype(np.int32), SPACE, settings_, engine)
    near, far = (losses_of(g, records.lengths(), SPACE).total for g in (by_axis, by_chance))
    assert near < far
    assert near < 1.2 * whole


def test_spark_equals_local(spark_engine: SparkEngine) -> None:
    records = records_of(400, 5)
    part = parts_of(records, 150)
    found = [
        parts.cluster_parts(records, part, SPACE, parts.Settings(4), engine)
        for engine in (make("local", threads=2), spark_engine)
    ]
    for local, spark in zip(*found, strict=True):
        assert np.array_equal(local.members, spark.members)
        assert np.array_equal(local.codes, spark.codes) and np.array_equal(local.ages, spark.ages)


def test_realigned_clusters_hold_the_same_records_and_keep_more():
    records = records_of(600, 6)
    p = clustering.make_problem(records, SPACE, 4)
    before = clustering.mdav(p, 4)
    after = clustering.realign(p, before, 4)
    assert all(np.array_equal(a.members, b.members) for a, b in zip(before, after, strict=True))
    groups = clustering.groups_of(p, after)
    kept = [[g.saving(SPACE) for g in each] for each in (clustering.groups_of(p, before), groups)]
    assert all(b >= a for a, b in zip(*kept, strict=True)) and sum(kept[1]) > sum(kept[0])
    assert all(generalizes(group, records, int(r)) for group in groups for r in group.members)


@settings(max_examples=20)
@given(
    n=st.integers(40, 160),
    k=st.integers(3, 6),
    ell=st.integers(2, 3),
    values=st.integers(4, 6),
    seed=st.integers(0, 10_000),
    several=st.sampled_from([1, 1, 3]),
)
def test_merged_groups_are_diverse(n, k, ell, values, seed, several):
    records = records_of(n, seed)
    shares = np.array([0.45, *[0.55 / (values - 1)] * (values - 1)])
    group = np.random.Generator(np.random.Philox(seed + 1)).choice(values, n, p=shares).astype(np.int32)
    ell = min(ell, n // int(np.bincount(group).max()))
    if ell < 2:
        ell, group = 2, np.arange(n, dtype=np.int32) % 4
    records = dataclasses.replace(records, group=group)
    part = (np.arange(n) * several // n).astype(np.int32)
    wanted = parts.Settings(k, most=max(1, k // ell))
    groups = parts.cluster_parts(records, part, SPACE, wanted, make("local", threads=1))
    found = diversity.diversify(groups, records, SPACE, ell, k)
    assert everybody_once(found, n) and min(len(g.members) for g in found) >= k
    assert all(np.bincount(group[g.members]).max() * ell <= len(g.members) for g in found)
    assert all(generalizes(g, records, int(r)) for g in found for r in g.members)


@settings(max_examples=60)
@given(
    tuples=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4), max_size=30
    )
)
def test_order_of_tuples_is_that_of_python(tuples):
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in tuples])]).astype(np.int64)
    codes, years = (np.array([pair[i] for t in tuples for pair in t] or [0], np.int64) for i in (0, 1))
    order, starts = clustering._in_order(offsets, codes, years)
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
    part = parts_of(records, largest)
    sizes = np.bincount(part)
    assert len(part) == n and sizes.max() <= largest and sizes.min() >= 1
    assert sizes.min() * 2 + 1 >= min(largest, sizes.max())
    assert np.array_equal(part, parts_of(records, largest))
