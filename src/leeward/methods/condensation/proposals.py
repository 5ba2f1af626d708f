"""Relations that always hold in a source, proposed to the custodian (docs/methods/condensation.md#proposed-relations).

Proposals stay with the custodian: only what the custodian confirms as `relations` is kept, written down and verified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from leeward.cohort.lenses.table import Column, Floats, Table, encoded
from leeward.methods.condensation.relations import Relation, broken, relation_of

GUARD = 30
"""Exceptions that chance alone would make, at least, where none is found: fewer say nothing."""
CLIFF = 0.05
"""A bound is one where at least `GUARD` rows lie this near to it, in standard deviations of the bounding column."""
MOST_LEVELS = 50
MOST_COLUMNS = 60


@dataclass(frozen=True)
class Proposal:
    """A relation without exception in the source, and how many released rows break it."""

    relation: Relation
    broken: int


def propose(table: Table) -> list[Relation]:
    """Relations without any exception among the table's rows, for the first 60 columns."""
    columns = table.columns[:MOST_COLUMNS]
    values = {each.name: table.encoded(each.name) for each in columns}
    numbers = [each.name for each in columns if each.kind in ("number", "whole")]
    found: list[str] = []
    equal: set[str] = set()
    for one, two in combinations(columns, 2):
        if one.kind == two.kind and one.levels == two.levels and _equal(values[one.name], values[two.name]):
            found.append(f"{_quoted(one.name)} = {_quoted(two.name)}")
            equal.add(two.name)
    names = [name for name in numbers if name not in equal]
    for a, b in combinations(names, 2):
        if _zeros(values[a], values[b]):
            found.append(f"{_quoted(a)} = 0 <=> {_quoted(b)} = 0")
    for a in names:
        for b in names:
            if a != b and _bounded(values[a], values[b]):
                found.append(f"{_quoted(a)} <= {_quoted(b)}")
                found += _equal_in_levels(columns, values, a, b)
    levels = [
        each for each in columns if each.kind in ("levels", "ordered") and 1 < len(each.levels) <= MOST_LEVELS
    ]
    for one in levels:
        for other in columns:
            apart = one.name != other.name and not {one.name, other.name} & equal
            if apart and _determines(values[one.name], values[other.name]):
                found.append(f"{_quoted(one.name)} -> {_quoted(other.name)}")
    return [relation_of(each) for each in found]


def unconfirmed(table: Table, made: pl.DataFrame, confirmed: tuple[Relation, ...]) -> list[Proposal]:
    """Proposals that are not confirmed, with the released rows that break each."""
    known = {each.text for each in confirmed}
    by_name = {each.name: each for each in table.columns}
    found = []
    for relation in propose(table):
        if relation.text in known:
            continue
        values = {
            name: encoded(made[name].cast(table.frame[name].dtype), by_name[name], "release")
            for name in relation.columns()
        }
        if relation.kind == "determines":
            before = {name: table.encoded(name) for name in relation.columns()}
            count = _new_pairs(before, values, relation)
        else:
            count = int(broken(relation, values, by_name).sum())
        found.append(Proposal(relation, count))
    return found


def _new_pairs(before: dict[str, Floats], after: dict[str, Floats], relation: Relation) -> int:
    """Released rows whose pair of values the source does not have."""
    frames = [
        pl.DataFrame({"a": each[relation.a], "b": each[relation.b]}).fill_nan(None).drop_nulls()
        for each in (after, before)
    ]
    return frames[0].join(frames[1].unique(), on=["a", "b"], how="anti").height


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\s'<>=]+", name) else f"'{name}'"


def _equal(a: Floats, b: Floats) -> bool:
    return bool(
        len(a) >= GUARD and np.array_equal(a, b, equal_nan=True) and len(np.unique(a[~np.isnan(a)])) > 1
    )


def _zeros(a: Floats, b: Floats) -> bool:
    both = ~np.isnan(a) & ~np.isnan(b)
    zero = (a == 0)[both]
    if not GUARD <= zero.sum() <= len(zero) - GUARD or ((b == 0)[both] != zero).any():
        return False
    # 0 and 1 in both: a level that is written twice, or two sides of one; others are caught as equal columns.
    return len(np.unique(a[both])) > 2 or len(np.unique(b[both])) > 2


def _bounded(a: Floats, b: Floats) -> bool:
    both = ~np.isnan(a) & ~np.isnan(b)
    gap = (b - a)[both]
    if not len(gap) or (gap < 0).any():
        return False
    spread = float(b[both].std())
    if spread == 0 or (gap <= CLIFF * spread).sum() < GUARD:
        return False
    above = np.searchsorted(np.sort(b[both]), a[both], "left") / len(gap)
    return float(above.sum()) >= GUARD


def _equal_in_levels(columns: tuple[Column, ...], values: dict[str, Floats], a: str, b: str) -> list[str]:
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
            if inside.sum() >= GUARD and same[inside].all() and (~same[~inside]).sum() >= GUARD:
                written = column.levels[int(value)] if column.levels else f"{value:g}"
                found.append(
                    f"{_quoted(column.name)} = {_quoted(str(written))} => {_quoted(a)} = {_quoted(b)}"
                )
    return found


def _determines(a: Floats, b: Floats) -> bool:
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
    return bool(len(counts) > 1 and both.sum() - counts.max() >= GUARD and np.median(rows) >= 5)
