"""Relations that hold without exception in a table, each pair of columns looked at whole
(docs/methods/condensation.md#relations-that-are-found)."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

from leeward.cohort.lenses.table import Column, Floats, Table

CLIFF, MOST_LEVELS = 0.05, 50


def propose(table: Table, guard: int, copied: int) -> list[str]:
    """The relations' texts; `guard` and `copied` in place of the method's 30 and 5."""
    columns = table.columns
    values = {each.name: table.encode(each.name) for each in columns}
    equal = [
        (one, two)
        for one, two in combinations(columns, 2)
        if alike(one, two) and _equal(values[one.name], values[two.name], guard, copied)
    ]
    left = [each for each in columns if each not in [two for _, two in equal]]
    numbers = [each.name for each in left if each.kind in ("number", "whole")]
    zeros = [(a, b) for a, b in combinations(numbers, 2) if _zeros(values[a], values[b], guard)]
    bounds = [
        (a.name, b.name)
        for a, b in permutations(left, 2)
        if not a.levels and alike(a, b) and _bounded(values[a.name], values[b.name], guard)
    ]
    determined = [
        (a.name, b.name)
        for a, b in permutations(left, 2)
        if 1 < len(a.levels) <= MOST_LEVELS and _determines(values[a.name], values[b.name], guard)
    ]
    found = [f"{a.name} = {b.name}" for a, b in equal]
    found += [f"{a} = 0 <=> {b} = 0" for a, b in zeros]
    found += [f"{a} <= {b}" for a, b in bounds]
    for a, b in bounds:
        found += _equal_in_levels(columns, values, a, b, guard)
    found += [f"{a} -> {b}" for a, b in determined]
    for column in left:
        for name in numbers:
            others = (*zeros, *bounds, *determined)
            if name != column.name and not {(name, column.name), (column.name, name)} & set(others):
                found += _ranges(column, values[column.name], name, values[name], guard)
    return found


def alike(one: Column, two: Column) -> bool:
    numbers = ("number", "whole")
    if one.kind in numbers:
        return two.kind in numbers
    return (one.kind, one.dtype, one.levels) == (two.kind, two.dtype, two.levels)


def _equal(a: Floats, b: Floats, guard: int, copied: int) -> bool:
    if len(a) < guard or not np.array_equal(a, b, equal_nan=True):
        return False
    known = a[~np.isnan(a)].tolist()
    return len(known) - max((known.count(each) for each in set(known)), default=0) >= copied


def _ranges(column: Column, code: Floats, name: str, x: Floats, guard: int) -> list[str]:
    """Where chance alone would have `guard` rows of a level beyond the level's last value, and as many have it."""
    few = np.unique(code[~np.isnan(code)])
    if len(few) > 10 or (not column.levels and min(len(few), len(np.unique(x[~np.isnan(x)]))) <= 2):
        return []  # a flag and a count
    both = ~np.isnan(code) & ~np.isnan(x)
    found = []
    for sign in ("<=", ">="):
        for value in few.tolist():
            inside = x[both & (code == value)]
            if not len(inside):
                continue
            cut = float(inside.max() if sign == "<=" else inside.min())
            beyond = (x[both] > cut if sign == "<=" else x[both] < cut).mean()
            if len(inside) * beyond >= guard - 1e-9 and (inside == cut).sum() >= guard:
                written = column.levels[int(value)] if column.levels else f"{value:g}"
                found.append(f"{column.name} = {written} => {name} {sign} {cut:g}")
    return found


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
    known = ~np.isnan(values[a]) & ~np.isnan(values[b])
    for column in columns:
        code = values[column.name]
        few = np.unique(code[~np.isnan(code)])
        if column.name in (a, b) or not 1 < len(few) <= 10:
            continue
        for value in few.tolist():
            inside = code == value
            if same[inside].all() and inside.sum() * (~same[known]).mean() >= guard - 1e-9:
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
