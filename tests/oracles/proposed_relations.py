"""Relations that hold without exception in a table, each pair of columns looked at whole
(docs/methods/condensation.md#proposed-relations)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from leeward.cohort.lenses.table import Column, Floats, Table

CLIFF, MOST_LEVELS = 0.05, 50


def propose(table: Table, guard: int) -> list[str]:
    """The relations' texts; `guard` in place of the method's 30."""
    columns = table.columns
    values = {each.name: table.encode(each.name) for each in columns}
    numbers = [each.name for each in columns if each.kind in ("number", "whole")]
    found: list[str] = []
    equal: set[str] = set()
    for one, two in combinations(columns, 2):
        if (
            one.kind == two.kind
            and one.levels == two.levels
            and _equal(values[one.name], values[two.name], guard)
        ):
            found.append(f"{one.name} = {two.name}")
            equal.add(two.name)
    names = [name for name in numbers if name not in equal]
    for a, b in combinations(names, 2):
        if _zeros(values[a], values[b], guard):
            found.append(f"{a} = 0 <=> {b} = 0")
    for a in names:
        for b in names:
            if a != b and _bounded(values[a], values[b], guard):
                found.append(f"{a} <= {b}")
                found += _equal_in_levels(columns, values, a, b, guard)
    levels = [
        each for each in columns if each.kind in ("levels", "ordered") and 1 < len(each.levels) <= MOST_LEVELS
    ]
    for one in levels:
        for other in columns:
            apart = one.name != other.name and not {one.name, other.name} & equal
            if apart and _determines(values[one.name], values[other.name], guard):
                found.append(f"{one.name} -> {other.name}")
    return found


def _equal(a: Floats, b: Floats, guard: int) -> bool:
    return bool(
        len(a) >= guard and np.array_equal(a, b, equal_nan=True) and len(np.unique(a[~np.isnan(a)])) > 1
    )


def _zeros(a: Floats, b: Floats, guard: int) -> bool:
    both = ~np.isnan(a) & ~np.isnan(b)
    zero = (a == 0)[both]
    if not guard <= zero.sum() <= len(zero) - guard or ((b == 0)[both] != zero).any():
        return False
    # 0 and 1 in both: a level that is written twice, or two sides of one; others are caught as equal columns.
    return len(np.unique(a[both])) > 2 or len(np.unique(b[both])) > 2


def _bounded(a: Floats, b: Floats, guard: int) -> bool:
    both = ~np.isnan(a) & ~np.isnan(b)
    if len(np.unique(a[both])) <= 2 < len(np.unique(b[both])):  # a flag below a count
        return False
    gap = (b - a)[both]
    if not len(gap) or (gap < 0).any():
        return False
    spread = float(b[both].std())
    if spread == 0 or (gap <= CLIFF * spread).sum() < guard:
        return False
    above = np.searchsorted(np.sort(b[both]), a[both], "left") / len(gap)
    return float(above.sum()) >= guard


def _equal_in_levels(
    columns: tuple[Column, ...], values: dict[str, Floats], a: str, b: str, guard: int
) -> list[str]:
    """Levels in which a bounded column always equals its bound, where it elsewhere does not."""
    found = []
    same = values[a] == values[b]
    for column in columns:
        code = values[column.name]
        few = np.unique(code[~np.isnan(code)])
        if column.name in (a, b) or not 1 < len(few) <= 10:
            continue
        for value in few.tolist():
            inside = code == value
            if inside.sum() >= guard and same[inside].all() and (~same[~inside]).sum() >= guard:
                written = column.levels[int(value)] if column.levels else f"{value:g}"
                found.append(f"{column.name} = {written} => {a} = {b}")
    return found


def _determines(a: Floats, b: Floats, guard: int) -> bool:
    """Whether each level (numbers of `a`) has one value of `b`."""
    both = ~np.isnan(a) & ~np.isnan(b)
    if not both.any():
        return False
    level, value = a[both].astype(np.int64), b[both]
    of_level = np.empty(level.max() + 1)
    of_level[level] = value  # one of each level's values
    if (of_level[level] != value).any():
        return False
    _, counts = np.unique(b[both], return_counts=True)
    _, rows = np.unique(a[both], return_counts=True)
    return bool(len(counts) > 1 and both.sum() - counts.max() >= guard and np.median(rows) >= 5)
