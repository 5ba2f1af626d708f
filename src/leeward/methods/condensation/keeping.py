"""Made rows made to keep the confirmed relations, group by group (docs/methods/condensation.md#relations)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Column, Floats
from leeward.methods.condensation.kernels import relations as kernels
from leeward.methods.condensation.mending import mend
from leeward.methods.condensation.relations import Relation, code_of
from leeward.methods.condensation.rules import Rules
from leeward.methods.condensation.synthesis import Longs


def keep(rules: Rules, made: dict[str, Floats], own: Mapping[str, Floats], offsets: Longs) -> int:
    """Change `made` so that the relations hold; returns how many rows still break one.

    `own` are the source's values of the same groups, which keep the relations. Values change rows inside their group.
    In order: numbers keep to their side of a cut and of 0, levels in ranges, times by level where two columns are
    equal in it, zeros together, bounds, then what is determined; rows that still break a relation are mended one by
    one, and equal columns follow.
    """
    for name in made:
        made[name] = made[name].copy()
    held = {name: made[name].copy() for name in rules.held}
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    by_kind = {
        kind: [each for each in rules.relations if each.kind == kind]
        for kind in {each.kind for each in rules.relations}
    }
    ranges, zeros = by_kind.get("range", []), by_kind.get("zeros", [])
    for name, cuts in _cuts(ranges, zeros).items():
        made[name] = _on_its_side(made[name], own[name], cuts, group)
    _levels(ranges, made, rules.columns, offsets)
    fixed = _equal_in_levels(by_kind.get("equal-in-level", []), made, own, rules.columns, group)
    for relation in zeros:
        kernels.zeros_together(made[relation.a], made[relation.b], offsets)
    _bounds(by_kind.get("at-most", []), made, fixed, offsets, rules)
    for relation in by_kind.get("determines", []):
        made[relation.b] = _derive(relation, made[relation.a], made[relation.b])
    made.update(held)
    if rules.counted(made).any():
        mend(rules, made, offsets)
    for name, other in rules.first.items():
        made[name] = np.where(np.isnan(made[name]), np.nan, made[other])
    return rules.broken(made)


def _cuts(ranges: Sequence[Relation], zeros: Sequence[Relation]) -> dict[str, list[tuple[float, float]]]:
    """Half-open sides of each number, as (low, high) that a value is inside of or not."""
    found: dict[str, list[tuple[float, float]]] = {}
    for relation in ranges:
        found.setdefault(relation.a, []).append((relation.low, relation.high))
    for relation in zeros:
        for name in (relation.a, relation.b):
            found.setdefault(name, []).append((0.0, 0.0))
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
        own = [each for each in ranges if each.level and each.level[0] == name]
        numbers = list(dict.fromkeys(each.a for each in own))
        column = columns[name]
        codes = made[name]
        # Numbers that are levels (0 and 1, say) are numbered through.
        values = np.unique(codes[~np.isnan(codes)])
        low = np.full((len(numbers), max(1, len(values))), -np.inf)
        high = np.full((len(numbers), max(1, len(values))), np.inf)
        for each in own:
            assert each.level is not None  # filtered above
            place = np.flatnonzero(values == code_of(column, each.level[1]))
            x = numbers.index(each.a)
            low[x, place] = np.maximum(low[x, place], each.low)
            high[x, place] = np.minimum(high[x, place], each.high)
        found = np.where(np.isnan(codes), np.nan, np.searchsorted(values, np.nan_to_num(codes)))
        kernels.levels_in_range(found, np.stack([made[x] for x in numbers]), low, high, offsets)
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
    """Each bounded column below all its bounds; a column that bounds others is settled first."""
    waiting = {each.a: [r.b for r in relations if r.a == each.a] for each in relations}
    while waiting:
        ready = [name for name, above in waiting.items() if not set(above) & set(waiting)] or list(waiting)
        for name in ready:
            bound = np.fmin.reduce([made[each] for each in waiting.pop(name)])
            held = fixed.get(name, np.zeros(len(bound), bool))
            if kernels.at_most(made[name], bound, held, offsets, name not in rules.times):
                made[name] = rules.columns[name].permissible(made[name])


def _derive(relation: Relation, a: Floats, b: Floats) -> Floats:
    """b as a determines it in the table; as it is where a is missing or its level unknown there."""
    assert relation.pairs is not None  # of a table
    keys, values = relation.pairs
    if not len(keys):
        return b
    place = np.minimum(np.searchsorted(keys, a), len(keys) - 1)
    return np.where(keys[place] == a, values[place], b)
