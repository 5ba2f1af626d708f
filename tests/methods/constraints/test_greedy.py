"""CBA and UGACLIP: docs/methods/constraints.md#worked-examples, and equality with the plain oracle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import constraints as oracle

from leeward.analysis.policies import Constraints
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.constraints import greedy
from leeward.methods.constraints.clusters import GONE, Clusters
from leeward.methods.constraints.greedy import AllSets, Listed, Privacy
from leeward.methods.constraints.weighted import count_records

SIX = ["abc", "ab", "ac", "bd", "cd", "abd"]
SIX_UTILITY = ["ab", "cd"]

RUNNING = [
    "296.00 296.01 296.02 834.0 944.01",
    "296.00 296.01 296.02 692.71 695.10 944.01 401.0",
    "296.00 296.02 692.71 695.10 834.0",
    "296.00 296.01 692.71 401.0",
    "296.00 296.01 296.02 692.71 695.10",
    "296.03 295.04 404.00 480.1",
    "294.10 296.03 834.0 944.01",
    "294.10 295.04 296.03 480.1",
    "294.10 295.04 404.00",
    "294.10 295.04 296.03 834.0 944.01",
]
U1 = ["294.10", "295.04", "296.00", "296.01", "296.02", "296.03"]
RUNNING_UTILITY = [U1, ["692.71", "695.10"], ["401.0", "404.00"], ["480.1"], ["834.0", "944.01"]]


def sets_of(records: Sequence[Sequence[str]]) -> CodeSets:
    codes = tuple(sorted({code for record in records for code in record}))
    values = [sorted({codes.index(code) for code in record}) for record in records]
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    flat = np.array([v for record in values for v in record], np.int32)
    return CodeSets(offsets, flat, codes, pl.Series(range(len(records))))


def utility_of(groups: Sequence[Sequence[str]], codes: Sequence[str]) -> Constraints:
    of_code = np.full(len(codes), -1, np.int32)
    for number, group in enumerate(groups):
        for code in group:
            if code in codes:
                of_code[codes.index(code)] = number
    return Constraints(tuple(f"u{i + 1}" for i in range(len(groups))), of_code)


def solve(
    records: Sequence[Sequence[str]],
    groups: Sequence[Sequence[str]],
    algorithm: str,
    k: int,
    m: int | None = None,
    listed: Sequence[Sequence[str]] | None = None,
) -> set[frozenset[str]]:
    sets = sets_of(records)
    clusters = Clusters(count_records(sets), utility_of(groups, sets.codes), k)
    privacy: Privacy
    if listed is None:
        privacy = AllSets(m or 1)
    else:
        privacy = Listed([tuple(sorted(sets.codes.index(c) for c in p)) for p in listed])
    greedy.run(clusters, privacy, algorithm)
    return {
        frozenset(sets.codes[i] for i in np.flatnonzero(clusters.of_code == c))
        for c in np.unique(clusters.of_code)
        if c != GONE
    }


def clusters_of(*groups: str) -> set[frozenset[str]]:
    return {frozenset(group) for group in groups}


def support(records: Sequence[Sequence[str]], *clusters: frozenset[str]) -> int:
    return sum(all(set(record) & cluster for cluster in clusters) for record in records)


def pairs_of(records: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    return list(combinations(sorted({c for r in records for c in r}), 2))


def test_losses_of_the_six_record_example() -> None:
    sets = sets_of(SIX)
    clusters = Clusters(count_records(sets), utility_of(SIX_UTILITY, sets.codes), 3)
    unit = (2**4 - 1) * 6
    assert [clusters.loss(c) / unit for c in range(4)] == pytest.approx([2 / 45, 2 / 45, 1 / 30, 1 / 30])
    clusters.merge(0, 1)
    clusters.merge(3, 2)
    assert [clusters.loss(c) / unit for c in (0, 2)] == pytest.approx([1 / 6, 1 / 6])


@pytest.mark.parametrize("listed", [pairs_of(SIX), None])
def test_cba_merges_ab_then_cd(listed: list[tuple[str, str]] | None) -> None:
    assert solve(SIX, SIX_UTILITY, "cba", 3, 2, listed) == clusters_of("ab", "cd")


@pytest.mark.parametrize("listed", [pairs_of(SIX), None])
def test_ugaclip_merges_only_cd(listed: list[tuple[str, str]] | None) -> None:
    assert solve(SIX, SIX_UTILITY, "ugaclip", 3, 2, listed) == clusters_of("a", "b", "cd")


def running() -> list[list[str]]:
    return [record.split() for record in RUNNING]


@pytest.mark.parametrize("algorithm", ["cba", "ugaclip", "coat"])
@pytest.mark.parametrize("listed", [pairs_of(running()), None])
def test_the_running_example_loses_five_codes(algorithm: str, listed: list[tuple[str, str]] | None) -> None:
    records = running()
    released = solve(records, RUNNING_UTILITY, algorithm, 3, 2, listed)
    assert len({c for r in records for c in r}) - len(frozenset().union(*released)) == 5
    for a, b in combinations(released, 2):
        assert support(records, a, b) == 0 or support(records, a, b) >= 3
    assert all(support(records, c) >= 3 for c in released)


@pytest.mark.parametrize("listed", [pairs_of(running()), None])
def test_cba_generalizes_u1_fully_in_the_running_example(listed: list[tuple[str, str]] | None) -> None:
    records = running()
    released = solve(records, RUNNING_UTILITY, "cba", 3, 2, listed)
    assert frozenset(U1) in released
    assert sorted(support(records, c) for c in released) == [5, 10]
    assert len(released) == 2


@pytest.mark.parametrize("listed", [pairs_of(running()), None])
def test_ugaclip_keeps_two_codes_intact_in_the_running_example(listed: list[tuple[str, str]] | None) -> None:
    records = running()
    released = solve(records, RUNNING_UTILITY, "ugaclip", 3, 2, listed)
    assert {
        frozenset(["296.00"]),
        frozenset(["296.02"]),
        frozenset(["294.10", "295.04", "296.01", "296.03"]),
    } <= released
    assert len(released) == 4
    supports = [support(records, c) for c in sorted(released, key=min)]
    assert sorted(supports) == [4, 5, 5, 9]


CODES = "abcdefgh"
datasets = st.lists(st.sets(st.sampled_from(CODES), min_size=1, max_size=5), min_size=2, max_size=25)
partitions = st.lists(st.integers(-1, 3), min_size=len(CODES), max_size=len(CODES))


@settings(max_examples=150, deadline=None)
@given(datasets, partitions, st.integers(2, 4), st.integers(1, 4), st.sampled_from(["cba", "ugaclip"]))
def test_fast_equals_oracle_for_all_sets_of_m_codes(
    records: list[set[str]], groups: list[int], k: int, m: int, algorithm: str
) -> None:
    codes = sorted(set().union(*records))
    utility = {c: g for c, g in zip(CODES, groups, strict=True) if g >= 0}
    named = [[c for c in CODES if utility.get(c) == g] for g in range(4)]
    rows = [frozenset(r) for r in records]
    expected = getattr(oracle, algorithm)(rows, oracle.subsets(codes, m), utility, k)
    assert solve([sorted(r) for r in records], named, algorithm, k, m) == expected


@settings(max_examples=100, deadline=None)
@given(
    datasets, partitions, st.integers(2, 4), st.sampled_from(["cba", "ugaclip"]),
    st.lists(st.sets(st.sampled_from(CODES), min_size=1, max_size=4), min_size=1, max_size=8),
)  # fmt: skip
def test_fast_equals_oracle_for_listed_constraints(
    records: list[set[str]], groups: list[int], k: int, algorithm: str, listed: list[set[str]]
) -> None:
    codes = set().union(*records)
    utility = {c: g for c, g in zip(CODES, groups, strict=True) if g >= 0}
    named = [[c for c in CODES if utility.get(c) == g] for g in range(4)]
    wanted = [p & codes for p in listed if p & codes]
    rows = [frozenset(r) for r in records]
    expected = getattr(oracle, algorithm)(rows, [frozenset(p) for p in wanted], utility, k)
    assert (
        solve([sorted(r) for r in records], named, algorithm, k, None, [sorted(p) for p in wanted])
        == expected
    )
