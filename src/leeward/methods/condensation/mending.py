"""Rows that still break a relation: values change rows in the group, or follow another row's
(docs/methods/condensation.md#relations)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Floats
from leeward.methods.condensation.rules import Rules
from leeward.methods.condensation.synthesis import Longs

Bundle = tuple[str, ...]

LOOKED_AT = 2_000
"""Rows of the cell whose values a row may take where its group has none that fit."""


def refill(
    rules: Rules, filled: dict[str, Floats], imputed: Mapping[str, NDArray[np.bool_]], offsets: Longs
) -> None:
    """Choose imputed values anew in rows that break a relation; changes `filled`.

    An imputed value is that of an equal column, where this is known; else the row takes its imputed values from a row
    of its group, else of the cell, with which it breaks nothing.
    """
    for name, other in rules.first.items():
        for a, b in ((name, other), (other, name)):
            known = imputed[a] & ~imputed[b]
            filled[a] = np.where(known, filled[b], filled[a])
    values = {name: filled[name] for each in rules.relations for name in each.columns()}
    for row in np.flatnonzero(rules.counted(values)).tolist():
        gone = tuple(name for name in values if imputed[name][row])
        _take_somewhere(rules, values, [*((name,) for name in gone), gone], row, offsets)


def mend(rules: Rules, made: dict[str, Floats], offsets: Longs) -> None:
    """Mend the rows of `made` that break a relation, where that is possible; changes `made`.

    A row exchanges the values of one column, or of columns tied to it, with a row of its group, as long as that lowers
    the number of broken relations in the two. A row that is left takes values, but no times, from a row of its group,
    else of the cell, with which it breaks nothing.
    """
    bundles = bundles_of(rules)
    values = {name: made[name] for each in bundles for name in each}
    for row in _wrong(rules, values):
        inside = _group(row, offsets)
        while _exchange(rules, values, bundles, row, inside):
            pass
    taken = [tuple(name for name in each if name not in rules.times) for each in (*bundles, tuple(values))]
    for row in _wrong(rules, values):
        _take_somewhere(rules, values, taken, row, offsets)


def _wrong(rules: Rules, values: Mapping[str, Floats]) -> list[int]:
    rows: list[int] = np.flatnonzero(rules.counted(values)).tolist() if values else []
    return rows


def _group(row: int, offsets: Longs) -> Longs:
    """The rows of a row's group."""
    group = int(np.searchsorted(offsets, row, side="right")) - 1
    return np.arange(offsets[group], offsets[group + 1])


def bundles_of(rules: Rules) -> list[Bundle]:
    """Columns that change rows together: each with those that it determines, then those that one relation names."""
    follows: dict[str, list[str]] = {}
    for each in rules.relations:
        if each.kind == "determines":
            follows.setdefault(each.a, []).append(each.b)
    determined = {name for each in follows.values() for name in each}

    def tie(names: Sequence[str]) -> Bundle:
        found = list(dict.fromkeys(names))
        for name in found:
            found += [each for each in follows.get(name, ()) if each not in found]
        return tuple(name for name in found if name not in rules.held)

    named = list(dict.fromkeys(name for each in rules.relations for name in each.columns()))
    single = [tie([name]) for name in named if name not in determined]
    return list(dict.fromkeys([*single, *(tie(each.columns()) for each in rules.relations)]))


def _beside(
    values: Mapping[str, Floats], bundle: Bundle, row: int, others: Longs
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """`row` with the bundle of each of the others, and each of the others with the bundle of `row`."""
    mine = {name: np.full(len(others), each[row]) for name, each in values.items()}
    theirs = {name: each[others] for name, each in values.items()}
    for name in bundle:
        mine[name], theirs[name] = theirs[name], mine[name]
    return mine, theirs


def _exchange(
    rules: Rules, values: dict[str, Floats], bundles: Sequence[Bundle], row: int, inside: Longs
) -> bool:
    """Make the exchange that lowers the number of broken relations most; False where none does."""
    before = rules.counted({name: each[inside] for name, each in values.items()})
    own = int(before[row - inside[0]])
    if not own:
        return False
    most, best = 0, None
    for bundle in bundles:
        mine, theirs = _beside(values, bundle, row, inside)
        gain = before + own - rules.counted(mine) - rules.counted(theirs)
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
