"""Which patients and records have the same set of labels, against plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leeward.verify.constraints.check import rows_alike
from leeward.verify.flat import Ints, Longs
from leeward.verify.kernels import number_sets

LABEL = np.array([*range(40), *range(40), -1, -1], np.int32)


def flat(rows: list[list[int]]) -> tuple[Longs, Ints]:
    return np.cumsum([0, *map(len, rows)]), np.array([v for row in rows for v in row], np.int32)


lists = st.lists(
    st.lists(st.integers(0, len(LABEL) - 1), max_size=16) | st.just(list(range(30))), max_size=12
)


@given(lists, lists)
def test_equal_sets_have_equal_numbers(mine: list[list[int]], theirs: list[list[int]]) -> None:
    records = [sorted({v % 40 for v in row}) for row in theirs]
    found = rows_alike(flat(mine), LABEL, flat(records)).tolist()
    sets = [frozenset(LABEL[row].tolist()) - {-1} for row in mine] + [frozenset(row) for row in records]
    assert [number == 0 for number in found] == [not each for each in sets]
    assert len(set(zip(found, sets, strict=True))) == len(set(found)) == len(set(sets))


def test_sets_of_the_same_mixed_key_are_compared() -> None:
    keys = np.array([-5, -5, -5, 7, 7, 0], np.int64)
    pool = np.array([2, 3, 4, 2, 3, 5, 2, 3, 4], np.int32)
    found = number_sets(keys, np.array([0, 3, 6, 0, 0, 0], np.int64), pool).tolist()
    assert found[0] == found[2] != found[1]
    assert found[3] == found[4]
    assert len(set(found)) == 4
    assert found[5] == 0
