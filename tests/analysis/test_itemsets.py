"""Frequent itemsets and supports equal their plain versions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.itemsets import apriori, support

from leeward.analysis.itemsets import frequent_itemsets, mine, minimum_count, postings, supports_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput

RECORDS = st.lists(st.frozensets(st.integers(0, 7), max_size=6), min_size=1, max_size=90)


def code_sets(records: list[frozenset[int]], codes: int = 8) -> CodeSets:
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in records])]).astype(np.int64)
    values = np.array([c for r in records for c in sorted(r)], np.int32)
    return CodeSets(offsets, values, tuple("abcdefgh"[:codes]), pl.Series(range(len(records))))


@given(records=RECORDS, least=st.integers(1, 30), max_size=st.one_of(st.none(), st.integers(1, 4)))
def test_frequent_itemsets_equal_apriori(
    records: list[frozenset[int]], least: int, max_size: int | None
) -> None:
    found = frequent_itemsets(code_sets(records), least, max_size)
    assert dict(found) == apriori(records, least, max_size)
    assert len(dict(found)) == len(found)
    assert found == sorted(found, key=lambda each: (-each[1], each[0]))


@given(records=RECORDS)
def test_postings_equal_a_scan(records: list[frozenset[int]]) -> None:
    sets = code_sets(records)
    starts, holders = postings(sets.offsets, sets.values, 8)
    found = [part.tolist() for part in np.split(holders, starts[1:-1])]
    assert found == [[r for r, held in enumerate(records) if code in held] for code in range(8)]
    assert sets.supports().tolist() == [len(each) for each in found]


@given(records=RECORDS, queries=st.lists(st.lists(st.integers(0, 7), max_size=4), max_size=12))
def test_supports_equal_a_scan(records: list[frozenset[int]], queries: list[list[int]]) -> None:
    found = supports_of(code_sets(records), queries)
    assert found.tolist() == [support(records, frozenset(q)) for q in queries]


def test_supports_of_a_rare_and_a_common_code_by_bisection() -> None:
    records = [frozenset({0, 1} if r % 97 == 0 else {1} if r % 2 else {2}) for r in range(2000)]
    assert supports_of(code_sets(records), [[0, 1], [0, 2], [1, 0, 0]]).tolist() == [21, 0, 21]


@pytest.mark.parametrize(
    ("records", "share", "count"),
    [
        (71_517, 0.0125, 894),
        (1_000, 0.001, 1),
        (10, 0.3, 3),
        (3, 1.0, 3),
        (100, 0.07, 7),
        (1_000_000, 0.00625, 6250),
    ],
)
def test_a_share_asks_for_the_least_count_that_reaches_it(records: int, share: float, count: int) -> None:
    assert minimum_count(records, share) == count


@pytest.mark.parametrize("wrong", [0, -3, 0.0, 1.5, -0.1, True])
def test_a_support_out_of_range_is_refused(wrong: float) -> None:
    with pytest.raises(BadInput, match="min_support"):
        minimum_count(100, wrong)


def test_too_many_itemsets_are_refused() -> None:
    with pytest.raises(BadInput, match="raise `min_support`"):
        mine(code_sets([frozenset(range(8))] * 3), 2, limit=100)


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(BadInput, match="no record holds"):
        supports_of(code_sets([frozenset({1})]), [[9]])
