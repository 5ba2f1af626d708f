"""Whether k patients have a code, counted until they are k."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leeward.verify.trajectories.source import are_k


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 200), st.integers(1, 6))
def test_k_patients_are_counted_whatever_comes_first(patients: list[int], alike: int, k: int) -> None:
    listed = np.array([9] * alike + patients, np.int64)
    assert are_k(listed, k) == (len(set(listed.tolist())) >= k)
