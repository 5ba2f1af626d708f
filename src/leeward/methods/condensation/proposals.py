"""Relations that always hold in a source, proposed to the custodian (docs/methods/condensation.md#proposed-relations).

Proposals stay with the custodian: only what the custodian confirms as `relations` is kept, written down and verified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import polars as pl

from leeward.cohort.lenses.table import Column, Floats, Table, encode
from leeward.methods.condensation.relations import Relation, broken, relation_of

GUARD = 30
"""Exceptions that chance alone would make, at least, where none is found: fewer say nothing."""
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


def propose(table: Table) -> list[Relation]:
    """Relations without any exception among the table's rows, for the first 60 columns."""
    columns = table.columns[:MOST_COLUMNS]
    values = {each.name: table.encode(each.name) for each in columns}
    equal = [
        (one.name, two.name)
        for one, two in combinations(columns, 2)
        if (one.kind, one.levels) == (two.kind, two.levels) and _equal(values[one.name], values[two.name])
    ]
    texts = [f"{_quote(a)} = {_quote(b)}" for a, b in equal]
    left = [each for each in columns if each.name not in {b for _, b in equal}]
    texts += [*_of_numbers(left, columns, values), *_of_levels(left, values)]
    return [relation_of(each) for each in texts]


def _of_numbers(left: list[Column], columns: Sequence[Column], values: dict[str, Floats]) -> list[str]:
    """Zeros together; bounds, and the levels in which they are reached."""
    names = [each.name for each in left if each.kind in ("number", "whole")]
    pairs = [(a, b) for a, b in combinations(names, 2) if _zeros(values[a], values[b])]
    found = [f"{_quote(a)} = 0 <=> {_quote(b)} = 0" for a, b in pairs]
    few = ((each, _few(values[each.name], MOST_PARTS)) for each in columns)
    parts = {each: levels for each, levels in few if levels is not None and len(levels) > 1}
    for a, b in permutations(names, 2):
        if _is_bounded(values[a], values[b]):
            found += [f"{_quote(a)} <= {_quote(b)}", *_equal_in_levels(parts, values, a, b)]
    return found


def _of_levels(left: list[Column], values: dict[str, Floats]) -> list[str]:
    few = [each for each in left if 1 < len(each.levels) <= MOST_LEVELS]
    pairs = ((one.name, two.name) for one in few for two in left if one is not two)
    return [f"{_quote(a)} -> {_quote(b)}" for a, b in pairs if _determines(values[a], values[b])]


def list_unconfirmed(table: Table, made: pl.DataFrame, confirmed: tuple[Relation, ...]) -> list[Proposal]:
    """Proposals that are not confirmed, with the released rows that break each."""
    known = {each.text for each in confirmed}
    by_name = {each.name: each for each in table.columns}
    found = []
    for relation in propose(table):
        if relation.text in known:
            continue
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


def _equal(a: Floats, b: Floats) -> bool:
    return (
        len(a) >= GUARD
        and all(np.array_equal(a[rows], b[rows], equal_nan=True) for rows in (slice(FIRST), slice(None)))
        and _few(a, 1) is None
    )


def _zeros(a: Floats, b: Floats) -> bool:
    for rows in (slice(FIRST), slice(None)):
        one, other = _complete_rows(a[rows], b[rows])
        zero = one == 0
        if ((other == 0) != zero).any():
            return False
    if not GUARD <= zero.sum() <= len(zero) - GUARD:
        return False
    # 0 and 1 in both: a level that is written twice, or two sides of one; others are caught as equal columns.
    return _few(one, 2) is None or _few(other, 2) is None


def _is_bounded(a: Floats, b: Floats) -> bool:
    if (a[:FIRST] > b[:FIRST]).any() or (a > b).any():
        return False
    low, high = _complete_rows(a, b)
    if _few(low, 2) is not None and _few(high, 2) is None:  # a flag below a count: a habit, no rule
        return False
    gap = high - low
    spread = float(high.std()) if len(gap) else 0.0
    if spread == 0 or (gap <= CLIFF * spread).sum() < GUARD:
        return False
    above = np.searchsorted(np.sort(high), np.sort(low), "left")
    return int(above.sum()) >= GUARD * len(gap)


def _equal_in_levels(parts: dict[Column, Floats], values: dict[str, Floats], a: str, b: str) -> list[str]:
    """Levels, of columns with 2 to 10 `parts`, in which a bounded column always equals its bound, where elsewhere it
    does not."""
    found: list[str] = []
    same = values[a] == values[b]
    if int((~same).sum()) < GUARD:
        return found
    for column, few in parts.items():
        if column.name in (a, b):
            continue
        code = values[column.name]
        for value in few.tolist():
            if not same[:FIRST][code[:FIRST] == value].all():
                continue
            inside = code == value
            if inside.sum() >= GUARD and same[inside].all():
                written = column.levels[int(value)] if column.levels else f"{value:g}"
                found.append(f"{_quote(column.name)} = {_quote(str(written))} => {_quote(a)} = {_quote(b)}")
    return found


def _determines(a: Floats, b: Floats) -> bool:
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
    return bool(len(counts) > 1 and len(level) - counts.max() >= GUARD and np.median(rows_of[there]) >= 5)
