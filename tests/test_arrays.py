"""Offsets, distinct values, counted nouns, bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.analysis.kernels import popcount
from leeward.arrays import count_noun, distinct_of, first_lists, number_lists, offsets_of


def test_offsets_of_packed_lists() -> None:
    found = offsets_of([2, 0, 3])
    assert found.tolist() == [0, 2, 2, 5] and found.dtype == np.int64
    assert offsets_of([]).tolist() == [0] and offsets_of(np.zeros(0, np.int32)).dtype == np.int64


def test_small_lengths_are_added_in_64_bits() -> None:
    assert offsets_of(np.full(3, 2**31 - 1, np.int32)).tolist() == [0, 2**31 - 1, 2**32 - 2, 3 * 2**31 - 3]
    assert offsets_of(np.full(3, 200, np.uint8)).tolist() == [0, 200, 400, 600]


@pytest.mark.parametrize(("n", "text"), [(0, "0 codes"), (1, "1 code"), (1200, "1,200 codes")])
def test_counted_nouns(n: int, text: str) -> None:
    assert count_noun("code", n) == text
    assert count_noun("entry", 2, "entries") == "2 entries" and count_noun("entry", 1, "entries") == "1 entry"


@given(st.integers(0, 2**64 - 1))
def test_popcount_is_the_number_of_bits_set(word: int) -> None:
    assert popcount(np.uint64(word)) == word.bit_count()


@given(st.lists(st.integers(-(2**40), 2**40) | st.integers(0, 3)))
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    given_values = np.array(values, np.int64)
    found = distinct_of(given_values)
    assert found.dtype == np.int64
    assert found.tolist() == np.unique(given_values).tolist()


@given(st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=12))
def test_lists_have_one_number_where_they_are_equal(lists: list[list[int]]) -> None:
    values = np.array([value for each in lists for value in each], np.int32)
    found = number_lists(offsets_of([len(each) for each in lists]), values).tolist()
    assert all((found[i] == found[j]) == (a == b) for i, a in enumerate(lists) for j, b in enumerate(lists))
    assert all((number == 0) == (each == []) for number, each in zip(found, lists, strict=True))
    different = [each for i, each in enumerate(lists) if each not in lists[:i]]
    first, number = first_lists(offsets_of([len(each) for each in lists]), values)
    assert [lists[i] for i in first] == different
    assert [different[i] for i in number] == lists
