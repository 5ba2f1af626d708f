"""How many can be placed, against SciPy's maximum flow and an example worked by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from leeward.verify.classes import largest_flow

PLACES = st.integers(0, 6)
ASKED = PLACES.flatmap(
    lambda n: st.tuples(
        st.lists(
            st.tuples(st.integers(0, 5), st.sets(st.integers(0, max(n - 1, 0)) if n else st.nothing())),
            max_size=7,
        ),
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
    )
)


def plain(counts: np.ndarray, fits: list[np.ndarray], room: np.ndarray) -> int:
    kinds, n = len(counts), len(room)
    matrix = np.zeros((kinds + n + 2, kinds + n + 2), np.int32)
    for kind, places in enumerate(fits):
        matrix[kind, kinds + places] = counts[kind]
    matrix[kinds + n, :kinds] = counts
    matrix[kinds : kinds + n, kinds + n + 1] = room
    return int(maximum_flow(csr_array(matrix), kinds + n, kinds + n + 1).flow_value)


def test_who_was_placed_first_moves_for_another() -> None:
    """Two of the first kind fit either place, two of the second the first place alone: all four, and a fifth not."""
    fits = [np.array([0, 1]), np.array([0])]
    assert largest_flow(np.array([2, 2]), fits, np.array([2, 2])) == 4
    assert largest_flow(np.array([2, 3]), fits, np.array([2, 2])) == 4
    assert largest_flow(np.array([2, 3]), [fits[1], fits[1]], np.array([2, 9])) == 2
    assert largest_flow(np.empty(0, np.int64), [], np.empty(0, np.int64)) == 0


@settings(max_examples=300, deadline=None)
@given(ASKED)
def test_as_many_as_scipys_maximum_flow(asked: tuple[list[tuple[int, set[int]]], list[int]]) -> None:
    kinds, room = asked
    counts = np.array([count for count, _ in kinds], np.int64)
    fits = [np.array(sorted(places), np.int64) for _, places in kinds]
    places = np.array(room, np.int64)
    assert largest_flow(counts, fits, places) == plain(counts, fits, places)


def test_a_chain_in_which_everybody_has_to_move() -> None:
    """Kind i fits places i and i + 1, the last kind the last place alone; then a further kind fits the first only."""
    n = 300
    fits = [np.array([i, i + 1]) for i in range(n - 1)] + [np.array([n - 1]), np.array([0])]
    assert largest_flow(np.ones(n + 1, np.int64), fits, np.ones(n, np.int64)) == n
