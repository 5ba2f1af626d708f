"""Which patients and records have the same set of labels, against plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leeward.verify.flat import Ints, Longs, run_sums
from leeward.verify.kernels import sum_images

LABEL = np.array([*range(40), *range(40), -1, -1], np.int32)


def flat(rows: list[list[int]]) -> tuple[Longs, Ints]:
    return np.cumsum([0, *map(len, rows)]), np.array([v for row in rows for v in row], np.int32)


lists = st.lists(
    st.lists(st.integers(0, len(LABEL) - 1), max_size=16) | st.just(list(range(30))), max_size=12
)


@given(lists, lists)
def test_equal_sets_have_equal_sums(mine: list[list[int]], theirs: list[list[int]]) -> None:
    records = [sorted({v % 40 for v in row}) for row in theirs]
    words = np.random.default_rng(1).integers(1, 1 << 63, 40).astype(np.uint64)
    offsets, values = flat(records)
    found = [*sum_images(*flat(mine), LABEL, words).tolist(), *run_sums(words[values], offsets).tolist()]
    sets = [frozenset(LABEL[row].tolist()) - {-1} for row in mine] + [frozenset(row) for row in records]
    assert [word == 0 for word in found] == [not each for each in sets]
    assert len(set(zip(found, sets, strict=True))) == len(set(found)) == len(set(sets))
