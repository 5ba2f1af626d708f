"""Hierarchies of dates: months below quarters, years, decades and a stated span of years.

A month is a number, 12 · year + month − 1, where an age is a year. Labels: `2011-03`, `2011-Q1`, `2011`, `2010-2019`.
"""

from __future__ import annotations

import re

from leeward.errors import BadInput
from leeward.vocabulary.age import AgeTree
from leeward.vocabulary.hierarchy import Hierarchy

MOST_YEARS = 200
KINDS = ("month", "quarter", "year", "decade", "all years")


def of_years(named: str) -> AgeTree:
    """The months of the years of `2000-2019`, a decade cut to them; BadInput for another text and above 200 years."""
    found = re.fullmatch(r"([1-9]\d{3})-([1-9]\d{3})", named)
    first, last = map(int, found.groups()) if found else (0, -1)
    if not 0 <= last - first < MOST_YEARS:
        raise BadInput(
            f"`time`: {named!r} is neither age nor the first and the last year of the dates, such as 2000-2019 (at "
            f"most {MOST_YEARS} years)."
        )
    parents: dict[str, str | None] = {}
    levels: dict[str, int] = {}
    for year in range(first, last + 1):
        decade = max(first, year // 10 * 10), min(last, year // 10 * 10 + 9)
        for month in range(1, 13):
            path = {
                _span(first, last): 4,
                _span(*decade): 3,
                str(year): 2,
                f"{year}-Q{(month + 2) // 3}": 1,
                f"{year}-{month:02}": 0,
            }
            parents |= dict(zip(path, (None, *path), strict=False))
            levels |= path
    levels[_span(first, last)] = 4
    hierarchy = Hierarchy.from_pairs(parents.items(), f"dates {first}–{last}", levels, KINDS)
    return AgeTree(hierarchy, 12 * first, hierarchy.leaves.copy(), dated=True)


def _span(first: int, last: int) -> str:
    return f"{first}-{last}" if first < last else str(first)
