"""Hierarchies of dates, against plain code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.vocabulary import dates


def way_up(year: int, month: int, first: int, last: int) -> list[str]:
    """The labels from a month to the root."""
    low, high = max(first, year - year % 10), min(last, year - year % 10 + 9)
    found = [f"{year}-{month:02}", f"{year}-Q{1 + (month - 1) // 3}", str(year)]
    for start, end in ((low, high), (first, last)):
        label = f"{start}-{end}" if start < end else str(start)
        if label != found[-1]:
            found.append(label)
    return found


def test_march_2011_is_in_a_quarter_a_year_a_decade_and_all_years() -> None:
    tree = dates.of_years("2005-2024").hierarchy
    assert way_up(2011, 3, 2005, 2024) == ["2011-03", "2011-Q1", "2011", "2010-2019", "2005-2024"]
    assert tree.n_leaves == 240 and tree.losses[tree.index["2011-Q1"]] == 3 / 240
    assert tree.losses[tree.index["2011"]] == 12 / 240 and tree.losses[0] == 1
    names = [tree.level_names[tree.level[tree.index[each]]] for each in way_up(2011, 3, 2005, 2024)]
    assert names == ["month", "quarter", "year", "decade", "all years"]


@settings(max_examples=20)
@given(st.integers(1990, 2012), st.integers(0, 25))
def test_every_month_has_its_way_up(first: int, further: int) -> None:
    last = first + further
    made = dates.of_years(f"{first}-{last}")
    assert made.dated and made.first == 12 * first and made.last == 12 * last + 11
    for number, leaf in enumerate(made.leaf.tolist()):
        above, node = [], leaf
        while node >= 0:
            above.append(made.hierarchy.labels[node])
            node = int(made.hierarchy.parent[node])
        year, month = divmod(made.first + number, 12)
        assert above == way_up(year, month + 1, first, last)
    assert made.hierarchy.level[0] == 4 and made.hierarchy.level_names[4] == "all years"


@pytest.mark.parametrize("named", ["date", "2019", "2019-2000", "2000-2200", "11-12", "2000-01"])
def test_other_texts_are_refused(named: str) -> None:
    with pytest.raises(BadInput, match="neither age nor the first and the last year"):
        dates.of_years(named)
