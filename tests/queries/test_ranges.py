"""Ranges of values from cumulated bitmaps, against their union."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from leeward.queries.index.counts import Ranges

ROWS = 64


@settings(deadline=None)
@given(
    held=st.lists(st.one_of(st.none(), st.integers(0, 29)), min_size=ROWS, max_size=ROWS),
    many=st.integers(0, 30),
    found=st.sets(st.integers(0, ROWS - 1)),
    ends=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    memory=st.integers(0, 400),
)
def test_a_range_is_the_union_of_its_values(
    held: list[int | None], many: int, found: set[int], ends: tuple[int, int], memory: int
) -> None:
    values = [{row for row, value in enumerate(held) if value == v} for v in range(many)]
    bitmaps = {f"{i:02d}": BitMap(rows) for i, rows in enumerate(values)}
    before = {name: bitmap.copy() for name, bitmap in bitmaps.items()}
    ranges = Ranges(sorted(bitmaps), bitmaps.__getitem__, ROWS, memory)
    first, end = min(*ends, len(values)), min(max(ends), len(values))
    wanted = found & set().union(*values[first:end])
    asked = BitMap(found)
    for _ in range(2):  # the second time from what the first one kept
        assert set(ranges.within(asked, first, end)) == wanted
    assert bitmaps == before and set(asked) == found, "nothing that is shared was changed"
