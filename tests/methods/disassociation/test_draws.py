"""Code sets drawn by a kernel against the same draws by NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leeward.methods.disassociation.measures.risk import draw_sets


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


@given(
    st.lists(st.lists(st.integers(-1, 400), unique=True, max_size=40), min_size=1, max_size=12),
    st.integers(1, 7),
    st.integers(0, 2**31),
)
def test_sets_are_those_that_numpy_draws(codes: list[list[int]], m: int, seed: int) -> None:
    offsets = np.cumsum([0, *map(len, codes)])
    values = np.array([code for record in codes for code in record], np.int32)
    records = np.arange(300) % len(codes)
    ours, stream = generator(seed), generator(seed)
    ends, drawn = draw_sets(ours, records, offsets, values, m)
    found = [part.tolist() for part in np.split(drawn, ends[:-1])]
    expected = []
    for record in records:
        held = np.array([code for code in codes[record] if code >= 0], np.int32)
        size = int(stream.integers(1, m + 1))
        expected.append(sorted(stream.permutation(held)[:size].tolist()))
    assert found == expected
    assert ours.integers(0, 2**40) == stream.integers(0, 2**40)
