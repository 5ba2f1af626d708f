"""Made rows made to keep the confirmed relations (docs/methods/condensation.md#relations): values change rows inside
their group; in rows that still break a relation they are exchanged, or follow another row's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Column, Floats
from leeward.compiled import njit
from leeward.methods.condensation.relations import Relation, Rules, code_of
from leeward.methods.condensation.synthesis import Longs

Bundle = tuple[str, ...]

LOOKED_AT = 2_000
"""Rows of the cell whose values a row may take where its group has none that fit."""


def keep(rules: Rules, made: dict[str, Floats], own: Mapping[str, Floats], offsets: Longs) -> int:
    """Change `made` so that the relations hold; returns how many rows still break one.

    `own` are the source's values of the same groups, which keep the relations. Values change rows inside their group.
    In order: numbers keep to their side of a cut and of 0, levels in ranges, times by level where two columns are equal
    in it, zeros together, bounds, then what is determined; rows that still break a relation are mended one by one, and
    equal columns follow.
    """
    made.update({name: values.copy() for name, values in made.items()})
    held = {name: made[name].copy() for name in rules.held}
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    by_kind: defaultdict[str, list[Relation]] = defaultdict(list)
    for relation in rules.relations:
        by_kind[relation.kind].append(relation)
    ranges, zeros = by_kind["range"], by_kind["zeros"]
    for name, cuts in _cuts(ranges, zeros).items():
        made[name] = _on_its_side(made[name], own[name], cuts, group)
    _levels(ranges, made, rules.columns, offsets)
    fixed = _equal_in_levels(by_kind["equal-in-level"], made, own, rules.columns, group)
    for relation in zeros:
        zeros_together(made[relation.a], made[relation.b], group)
    _bounds(by_kind["at-most"], made, fixed, offsets, rules)
    for relation in by_kind["determines"]:
        made[relation.b] = _derive(relation, made[relation.a], made[relation.b])
    made.update(held)
    if rules.counted(made).any():
        mend(rules, made, offsets)
    for name, other in rules.first.items():
        together = np.array_equal(np.isnan(own[name]), np.isnan(own[other]))
        made[name] = made[other] if together else np.where(np.isnan(made[name]), np.nan, made[other])
    return rules.broken(made)


def _cuts(ranges: Sequence[Relation], zeros: Sequence[Relation]) -> dict[str, list[tuple[float, float]]]:
    """Half-open sides of each number, as (low, high) that a value is inside of or not."""
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for relation in ranges:
        found[relation.a].append((relation.low, relation.high))
    for name in (name for relation in zeros for name in (relation.a, relation.b)):
        found[name].append((0.0, 0.0))
    return found


def _on_its_side(made: Floats, own: Floats, cuts: Sequence[tuple[float, float]], group: Longs) -> Floats:
    """Made values whose rank's own value is on another side of a cut take that own value."""
    ranks, source = np.lexsort((made, group)), np.lexsort((own, group))
    moved, kept = made[ranks], own[source]
    crossed = np.zeros(len(made), bool)
    for low, high in cuts:
        crossed |= ((moved >= low) & (moved <= high)) != ((kept >= low) & (kept <= high))
    found = made.copy()
    found[ranks] = np.where(crossed & ~np.isnan(moved) & ~np.isnan(kept), kept, moved)
    return found


def _levels(
    ranges: Sequence[Relation], made: dict[str, Floats], columns: Mapping[str, Column], offsets: Longs
) -> None:
    for name in dict.fromkeys(each.level[0] for each in ranges if each.level):
        codes = made[name]
        # Numbers that are levels (0 and 1, say) are numbered through.
        values = np.unique(codes[~np.isnan(codes)])
        allowed = np.ones((max(1, len(values)), len(codes)), bool)
        for each in ranges:
            if each.level and each.level[0] == name:
                outside = (made[each.a] < each.low) | (made[each.a] > each.high)
                allowed[np.flatnonzero(values == code_of(columns[name], each.level[1]))] &= ~outside
        found = np.where(np.isnan(codes), np.nan, np.searchsorted(values, np.nan_to_num(codes)))
        levels_in_range(found, allowed, offsets)
        made[name] = np.where(np.isnan(found), np.nan, values[np.nan_to_num(found).astype(np.int64)])


def _equal_in_levels(
    relations: Sequence[Relation],
    made: dict[str, Floats],
    own: Mapping[str, Floats],
    columns: Mapping[str, Column],
    group: Longs,
) -> dict[str, NDArray[np.bool_]]:
    """Both columns given by rank inside group and level; a copied from b in the level. Rows fixed so, by column a."""
    fixed: dict[str, NDArray[np.bool_]] = {}
    for relation in relations:
        assert relation.level is not None  # the form begins with `c = v`
        name, value = relation.level
        code = code_of(columns[name], value)
        here, there = made[name] == code, own[name] == code
        counts = [np.bincount(group, each, group[-1] + 1) for each in (here, there)]
        if not np.array_equal(counts[0], counts[1]):
            continue  # the level's count changed (imputed values): broken rows are counted at the end
        for each in (relation.b, relation.a):
            made[each] = _by_cell(made[each], own[each], here, there, group)
        made[relation.a] = np.where(here, made[relation.b], made[relation.a])
        fixed[relation.a] = fixed.get(relation.a, np.zeros(len(here), bool)) | here
    return fixed


def _by_cell(
    made: Floats, own: Floats, here: NDArray[np.bool_], there: NDArray[np.bool_], group: Longs
) -> Floats:
    """The made values of a group given by rank inside its two cells, each cell those of its own values."""
    as_made = np.empty_like(made)
    as_made[np.lexsort((own, group))] = made[np.lexsort((made, group))]
    found = np.empty_like(made)
    found[np.lexsort((made, here, group))] = as_made[np.lexsort((as_made, there, group))]
    return found


def _bounds(
    relations: Sequence[Relation],
    made: dict[str, Floats],
    fixed: Mapping[str, NDArray[np.bool_]],
    offsets: Longs,
    rules: Rules,
) -> None:
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for each in relations:
        waiting[each.a].append(each.b)
    while waiting:
        ready = [name for name, above in waiting.items() if not set(above) & set(waiting)] or list(waiting)
        for name in ready:
            bound = np.fmin.reduce([made[above] for above in waiting.pop(name)])
            held = fixed.get(name, np.zeros(len(bound), bool))
            if at_most(made[name], bound, held, offsets, name not in rules.times):
                made[name] = rules.columns[name].permissible(made[name])


def _derive(relation: Relation, a: Floats, b: Floats) -> Floats:
    """b as a determines it in the table; as it is where a is missing or its level unknown there."""
    assert relation.pairs is not None  # of a table
    keys, values = relation.pairs
    if not len(keys):
        return b
    place = np.minimum(np.searchsorted(keys, a), len(keys) - 1)
    return np.where(keys[place] == a, values[place], b)


def refill(
    rules: Rules, filled: dict[str, Floats], imputed: Mapping[str, NDArray[np.bool_]], offsets: Longs
) -> None:
    """Choose imputed values anew in rows that break a relation; changes `filled`. An imputed value is that of an equal
    column, where this is known; else the row takes its imputed values from a row of its group, else of the cell, with
    which it breaks nothing."""
    for name, other in rules.first.items():
        for a, b in ((name, other), (other, name)):
            known = imputed[a] & ~imputed[b]
            filled[a] = np.where(known, filled[b], filled[a])
    values = rules.values_of(filled)
    for row in rules.wrong(values):
        gone = tuple(name for name in values if imputed[name][row])
        _take_somewhere(rules, values, [*((name,) for name in gone), gone], row, offsets)


def mend(rules: Rules, made: dict[str, Floats], offsets: Longs) -> None:
    """Mend the rows of `made` that break a relation, where that is possible; changes `made`.

    A row exchanges the values of one column, or of columns tied to it, with a row of its group, as long as that lowers
    the number of broken relations in the two. A row that is left takes values, but no times, from a row of its group,
    else of the cell, with which it breaks nothing.
    """
    bundles = bundles_of(rules)
    values = rules.values_of(made)
    # An exchange changes what the relations of its columns say, and no other.
    met = {each: rules.of_columns(each) for each in bundles}
    for row in rules.wrong(values):
        inside = _group(row, offsets)
        while rules.wrong({n: v[[row]] for n, v in values.items()}) and _exchange(met, values, row, inside):
            pass
    taken = [tuple(name for name in each if name not in rules.times) for each in (*bundles, tuple(values))]
    for row in rules.wrong(values):
        _take_somewhere(rules, values, taken, row, offsets)


def _group(row: int, offsets: Longs) -> Longs:
    group = int(np.searchsorted(offsets, row, side="right")) - 1
    return np.arange(offsets[group], offsets[group + 1])


def bundles_of(rules: Rules) -> list[Bundle]:
    """Columns that change rows together: each with those that it determines, then those that one relation names."""
    follows = [(each.a, each.b) for each in rules.relations if each.kind == "determines"]

    def tie(names: Sequence[str]) -> Bundle:
        found = list(dict.fromkeys(names))
        for name in found:
            found += [b for a, b in follows if a == name and b not in found]
        return tuple(name for name in found if name not in rules.held)

    named = dict.fromkeys(chain.from_iterable(each.columns() for each in rules.relations))
    determined = dict(follows).values()
    single = [tie([name]) for name in named if name not in determined]
    return list(filter(None, dict.fromkeys([*single, *(tie(each.columns()) for each in rules.relations)])))


def _beside(
    values: Mapping[str, Floats], bundle: Sequence[str], row: int, others: Longs
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """`row` with the bundle of each of the others, and each of the others with the bundle of `row`."""
    mine = {name: np.full(len(others), each[row]) for name, each in values.items()}
    theirs = {name: each[others] for name, each in values.items()}
    for name in bundle:
        mine[name], theirs[name] = theirs[name], mine[name]
    return mine, theirs


def _exchange(met: Mapping[Bundle, Rules], values: dict[str, Floats], row: int, inside: Longs) -> bool:
    """Make the exchange that lowers the number of broken relations most; False where none does."""
    most, best = 0, None
    for bundle, rules in met.items():
        named = rules.values_of(values)
        before = rules.counted({name: each[inside] for name, each in named.items()})
        mine, theirs = _beside(named, [name for name in bundle if name in named], row, inside)
        gain = before + before[row - inside[0]] - rules.counted(mine) - rules.counted(theirs)
        place = int(gain.argmax())
        if gain[place] > most:
            most, best = int(gain[place]), (bundle, int(inside[place]))
    if best is None:
        return False
    bundle, other = best
    for name in bundle:
        values[name][[row, other]] = values[name][[other, row]]
    return True


def _take_somewhere(
    rules: Rules, values: dict[str, Floats], bundles: Sequence[Bundle], row: int, offsets: Longs
) -> None:
    """Take the values of the fewest columns with which `row` breaks nothing from the first row that has such."""
    for others in (_group(row, offsets), np.arange(min(LOOKED_AT, int(offsets[-1])))):
        for bundle in sorted(bundles, key=len):
            mine, _ = _beside(values, bundle, row, others)
            found = np.flatnonzero(rules.counted(mine) == 0)
            if len(found):
                for name in bundle:
                    values[name][row] = values[name][others[found[0]]]
                return


@njit
def at_most(a: Any, bound: Any, fixed: Any, offsets: Any, cap: bool) -> int:
    """Give each group's values of `a` to its rows so that none is above `bound`; changes `a`.

    Values in descending order, each to the free row of greatest own value among those whose bound is not below it: rows
    that may take a value may take every smaller one, so an assignment is found where one exists. A value that no free
    row may take goes to the free row with the greatest bound, and becomes that bound with `cap`; their number is
    returned. Rows that are `fixed` (bool) or whose value is NaN take no part; a bound of NaN bounds nothing.
    """
    changed = 0
    for g in range(len(offsets) - 1):
        inside = range(offsets[g], offsets[g + 1])
        rows = np.array([row for row in inside if not (fixed[row] or np.isnan(a[row]))])
        if not (a[rows] > bound[rows]).any():
            continue
        rows = rows[np.argsort(-a[rows], kind="mergesort")]
        limits, free = bound[rows], np.ones(len(rows), np.bool_)
        for value in a[rows]:
            fitting = np.flatnonzero(free & ~(limits < value))  # also where the limit is NaN
            if len(fitting) > 0:
                chosen = fitting[0]
                a[rows[chosen]] = value
            else:
                chosen = np.argmax(np.where(free, limits, -np.inf))
                a[rows[chosen]] = limits[chosen] if cap else value
                changed += 1
            free[chosen] = False
    return changed


def zeros_together(a: Floats, b: Floats, group: Longs) -> None:
    """Swap values of `b` inside groups so that they are 0 where `a` is; changes `b`."""
    stray = np.flatnonzero((a == 0) & (b != 0) & ~np.isnan(b))
    free = np.flatnonzero((b == 0) & (a != 0) & ~np.isnan(a))
    # The i-th stray row of a group swaps with its i-th free row.
    ranks = [np.arange(len(rows)) - np.searchsorted(group[rows], group[rows]) for rows in (stray, free)]
    keys = [group[rows] * len(a) + rank for rows, rank in zip((stray, free), ranks, strict=True)]
    _, one, other = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    b[stray[one]], b[free[other]] = b[free[other]], b[stray[one]]


@njit
def levels_in_range(codes: Any, allowed: Any, offsets: Any) -> None:
    """Swap levels inside groups until each is in a row where it is allowed; changes `codes`. `codes`: float64[rows];
    `allowed`: bool[levels, rows]. A level whose row does not allow it goes to the first row of the group where both are
    then allowed."""
    for g in range(len(offsets) - 1):
        for row in range(offsets[g], offsets[g + 1]):
            if np.isnan(codes[row]) or allowed[int(codes[row]), row]:
                continue
            for other in range(offsets[g], offsets[g + 1]):
                if (
                    not np.isnan(codes[other])
                    and codes[other] != codes[row]
                    and allowed[int(codes[row]), other]
                    and allowed[int(codes[other]), row]
                ):
                    codes[row], codes[other] = codes[other], codes[row]
                    break
