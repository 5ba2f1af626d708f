"""Different records, in order of first appearance."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leeward.analysis.containment import Multisets
from leeward.arrays import offsets_of


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=20))
def test_equal_records_have_one_number(records: list[list[int]]) -> None:
    counted = [sorted(Counter(codes).items()) for codes in records]
    entries = np.array([entry for each in counted for entry in each], np.int32).reshape(-1, 2)
    found = Multisets(offsets_of([len(each) for each in counted]), *np.ascontiguousarray(entries.T))
    distinct, numbers = found.distinct()
    first = list(dict.fromkeys(map(tuple, counted)))
    assert numbers.tolist() == [first.index(tuple(each)) for each in counted]
    shown = [
        tuple(zip(*(part.tolist() for part in distinct.record(r)), strict=True)) for r in range(len(distinct))
    ]
    assert shown == first
