"""Relations that always hold in a source (docs/methods/condensation.md#relations-that-are-found)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np
import polars as pl

from leeward.cohort.lenses.table import Column, Floats, Table, encode
from leeward.methods.condensation.relations import NUMBER, Relation, broken, comparable, relation_of

Values = dict[str, Floats]
Pairs = list[tuple[str, str]]

GUARD = 30
"""Exceptions that chance alone would make, at least, where none is found: fewer say nothing. With a larger k: k."""
COPIED = 5
"""Rows, at least, in which equal columns do not have their most frequent value. With a larger k: k."""
CLIFF = 0.05
"""A bound is one where at least `GUARD` rows lie this near to it, in standard deviations of the bounding column."""
MOST_LEVELS = 50
MOST_COLUMNS = 60
MOST_PARTS = 10
"""Levels of a column in which another may equal its bound, at most."""
FIRST = 4096
"""Rows that are looked at first: most pairs of columns have an exception among them, which settles the pair."""


@dataclass(frozen=True)
class Proposal:
    """A relation without exception in the source, and how many released rows break it."""

    relation: Relation
    broken: int


def propose(table: Table, k: int = 1) -> list[Relation]:
    """Relations without exception in the table's first 60 columns, each supported by at least k rows."""
    columns, guard = table.columns[:MOST_COLUMNS], max(GUARD, k)
    values = {each.name: table.encode(each.name) for each in columns}
    equal = [
        (one.name, two.name)
        for one, two in combinations(columns, 2)
        if comparable(one, two) and _equal(values[one.name], values[two.name], max(COPIED, k))
    ]
    copies = {b for _, b in equal}
    left = [each for each in columns if each.name not in copies]
    zeros, (bounds, determined) = _of_zeros(left, values, guard), _of_pairs(left, values, guard)
    parts = {each: found for each in columns if (found := _few(values[each.name], MOST_PARTS)) is not None}
    texts = [
        *_write("{} = {}", equal),
        *_write("{} = 0 <=> {} = 0", zeros),
        *_write("{} <= {}", bounds),
        *_equal_in_levels(parts, values, bounds, guard),
        *_write("{} -> {}", determined),
        *_of_ranges(left, parts, values, {*zeros, *bounds, *determined}, guard),
    ]
    return list(map(relation_of, texts))


def _write(form: str, pairs: Pairs) -> list[str]:
    return [form.format(_quote(a), _quote(b)) for a, b in pairs]


def _of_zeros(left: list[Column], values: Values, guard: int) -> Pairs:
    names = [each.name for each in left if each.kind in ("number", "whole")]
    return [(a, b) for a, b in combinations(names, 2) if _zeros(values[a], values[b], guard)]


def _of_pairs(left: list[Column], values: Values, guard: int) -> tuple[Pairs, Pairs]:
    """Bounds of numbers and of dates; levels that determine a column."""
    bounds, determined = [], []
    for one, two in permutations(left, 2):
        pair, both = (one.name, two.name), (values[one.name], values[two.name])
        if not one.levels and comparable(one, two) and _is_bounded(*both, guard):
            bounds.append(pair)
        if 1 < len(one.levels) <= MOST_LEVELS and _determines(*both, guard):
            determined.append(pair)
    return bounds, determined


def _of_ranges(
    left: list[Column], parts: dict[Column, Floats], values: Values, known: set[tuple[str, str]], guard: int
) -> list[str]:
    """Ranges of numbers in levels, but of two columns between which a relation is `known`."""
    found = []
    for column, number in permutations(left, 2):
        pair = (column.name, number.name)
        if column in parts and number.kind in ("number", "whole") and not {pair, pair[::-1]} & known:
            found += _ranges(column, parts[column], number.name, values, guard)
    return found


def list_unconfirmed(table: Table, made: pl.DataFrame, kept: Collection[Relation], k: int) -> list[Proposal]:
    """What is found and not kept, with the released rows that break each."""
    return list_proposals(table, made, [each for each in propose(table, k) if each not in kept])


def list_proposals(table: Table, made: pl.DataFrame, relations: Sequence[Relation]) -> list[Proposal]:
    """The relations, with the released rows that break each."""
    by_name = {each.name: each for each in table.columns}
    found = []
    for relation in relations:
        values = {
            name: encode(made[name].cast(table.frame[name].dtype), by_name[name], "release")
            for name in relation.columns()
        }
        if relation.kind == "determines":
            before = {name: table.encode(name) for name in relation.columns()}
            count = _new_pairs(before, values, relation)
        else:
            count = int(broken(relation, values, by_name).sum())
        found.append(Proposal(relation, count))
    return found


def _new_pairs(before: dict[str, Floats], after: dict[str, Floats], relation: Relation) -> int:
    """Released rows whose pair of values the source, in which each level of a has one value of b, does not have."""
    level, value = _complete_rows(before[relation.a], before[relation.b])
    made_level, made_value = _complete_rows(after[relation.a], after[relation.b])
    of_level = np.full(int(max(level.max(initial=0), made_level.max(initial=0))) + 1, np.nan)
    of_level[level.astype(np.int64)] = value
    return int((of_level[made_level.astype(np.int64)] != made_value).sum())


def _complete_rows(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    known = ~(np.isnan(a) | np.isnan(b))
    return (a, b) if known.all() else (a[known], b[known])


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[^\s'<>=]+", name) else f"'{name}'"


def _few(a: Floats, most: int) -> Floats | None:
    """The distinct values, ascending, without missing ones; None where there are more than `most`."""
    for part in (a[:FIRST], a):
        distinct = np.unique(part[~np.isnan(part)])
        if len(distinct) > most:
            return None
    return distinct


def _equal(a: Floats, b: Floats, least: int) -> bool:
    for rows in (slice(FIRST), slice(None)):
        if not np.array_equal(a[rows], b[rows], equal_nan=True):
            return False
    _, counts = np.unique(a[~np.isnan(a)], return_counts=True)
    return bool(len(a) >= GUARD and counts.sum() - counts.max(initial=0) >= least)


def _zeros(a: Floats, b: Floats, guard: int) -> bool:
    for rows in (slice(FIRST), slice(None)):
        one, other = _complete_rows(a[rows], b[rows])
        zero = one == 0
        if ((other == 0) != zero).any():
            return False
    if not guard <= zero.sum() <= len(zero) - guard:
        return False
    # 0 and 1 in both: a level that is written twice, or two sides of one; others are caught as equal columns.
    return _few(one, 2) is None or _few(other, 2) is None


def _is_bounded(a: Floats, b: Floats, guard: int) -> bool:
    if (a[:FIRST] > b[:FIRST]).any() or (a > b).any():
        return False
    low, high = _complete_rows(a, b)
    if _few(low, 2) is not None and _few(high, 2) is None:  # a flag below a count: a habit, no rule
        return False
    gap = high - low
    spread = float(high.std()) if len(gap) else 0.0
    if spread == 0 or (gap <= CLIFF * spread).sum() < guard:
        return False
    above = np.searchsorted(np.sort(high), np.sort(low), "left")
    return int(above.sum()) >= guard * len(gap)


def _equal_in_levels(parts: dict[Column, Floats], values: Values, bounds: Pairs, guard: int) -> list[str]:
    """Levels, of columns with 1 to 10 `parts`, in which a bounded column always equals its bound, where elsewhere it
    does not."""
    found: list[str] = []
    for (a, b), column in product(bounds, parts):
        if column.name in (a, b):
            continue
        same, code = values[a] == values[b], values[column.name]
        apart = 1 - float(np.mean(same[~(np.isnan(values[a]) | np.isnan(values[b]))]))
        for value in parts[column].tolist():
            if not same[:FIRST][code[:FIRST] == value].all():
                continue
            inside = code == value
            if inside.sum() * apart >= guard and same[inside].all():
                found.append(f"{_level(column, value)} => {_quote(a)} = {_quote(b)}")
    return found


def _level(column: Column, value: float) -> str:
    written = column.levels[int(value)] if column.levels else f"{value:g}"
    return f"{_quote(column.name)} = {_quote(str(written))}"


def _ranges(column: Column, levels: Floats, name: str, values: Values, guard: int) -> list[str]:
    """Ranges of the number `name` in levels of the column, whose ends at least `guard` rows have."""
    code, x = values[column.name], values[name]
    if not column.levels and (len(levels) <= 2 or _few(x, 2) is not None):  # a flag and a count: a habit
        return []
    known = ~(np.isnan(code) | np.isnan(x))
    level, value = np.searchsorted(levels, code[known]), x[known]
    sizes, found = np.bincount(level, minlength=len(levels)), []
    for sign, way in (("<=", 1.0), (">=", -1.0)):
        cuts = np.full(len(levels), -np.inf)
        np.maximum.at(cuts, level, way * value)
        beyond = len(value) - np.searchsorted(np.sort(way * value), cuts, "right")
        # Chance alone would have so many rows of each level beyond its end.
        for place in np.flatnonzero(sizes * beyond >= guard * max(1, len(value))).tolist():
            written = f"{way * cuts[place]:.10g}"
            reached = (level == place) & (value == float(written))  # none where a form has no such number
            if reached.sum() >= guard and re.fullmatch(NUMBER, written):
                found.append(f"{_level(column, levels[place])} => {_quote(name)} {sign} {written}")
    return found


def _determines(a: Floats, b: Floats, guard: int) -> bool:
    for rows in (slice(FIRST), slice(None)):
        known, value = _complete_rows(a[rows], b[rows])
        if not len(known):
            continue
        level = known.astype(np.int64)
        of_level = np.empty(level.max() + 1)
        of_level[level] = value  # one of each level's values
        if (of_level[level] != value).any():
            return False
    if not len(known):
        return False
    rows_of = np.bincount(level)
    there = np.flatnonzero(rows_of)
    _, place = np.unique(of_level[there], return_inverse=True)  # every row's value is its level's
    counts = np.bincount(place, weights=rows_of[there])
    return bool(len(counts) > 1 and len(level) - counts.max() >= guard and np.median(rows_of[there]) >= 5)
