"""The confirmed relations of a table as they are kept: each said of as few columns as possible
(docs/methods/condensation.md#relations)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Column, Floats
from leeward.methods.condensation.relations import Relation, broken, code_of


@dataclass(frozen=True)
class Rules:
    """Relations, and what they are said of.

    stated : as the custodian confirmed them
    relations : the same but equalities, said of one of equal columns and of levels that determine others
    first : the column that each other one is equal to
    times : columns whose values stay in their stratum as they are; held : those that are not changed at all
    """

    stated: tuple[Relation, ...]
    relations: tuple[Relation, ...]
    first: dict[str, str]
    columns: Mapping[str, Column]
    times: frozenset[str]
    held: frozenset[str]

    def counted(self, values: Mapping[str, Floats]) -> NDArray[np.int64]:
        """int64[rows]: how many of `relations` each row breaks."""
        rows = len(next(iter(values.values())))
        total = np.zeros(rows, np.int64)
        for each in self.relations:
            total += broken(each, values, self.columns)
        return total

    def broken(self, values: Mapping[str, Floats]) -> int:
        """How many rows break a stated relation."""
        return int(np.any([broken(each, values, self.columns) for each in self.stated], axis=0).sum())


def rules_of(
    stated: Sequence[Relation],
    values: Mapping[str, Floats],
    columns: Mapping[str, Column],
    times: Collection[str],
    held: Collection[str] = (),
) -> Rules:
    """The rules of a table's `values` (NaN: missing); of equal columns the one with the fewest missing is kept, a time
    before others."""
    missing = {
        name: (int(np.isnan(values[name]).sum()), name not in times)
        for each in stated
        for name in each.columns()
    }
    relations, first = _of_one_column(stated, missing)
    apart = tuple(_of_determining_levels(relations, columns))
    return Rules(tuple(stated), apart, first, columns, frozenset(times), frozenset(held))


def _of_one_column(
    relations: Sequence[Relation], rank: Mapping[str, tuple[int, bool]]
) -> tuple[list[Relation], dict[str, str]]:
    equal = [(each.a, each.b) for each in relations if each.kind == "equal"]
    first = {name: name for pair in equal for name in pair}
    for a, b in equal:
        low, high = sorted((first[a], first[b]), key=lambda name: rank[name])
        first = {name: low if other == high else other for name, other in first.items()}
    renamed = [
        replace(
            each,
            a=first.get(each.a, each.a),
            b=first.get(each.b, each.b),
            level=each.level and (first.get(each.level[0], each.level[0]), each.level[1]),
        )
        for each in relations
        if each.kind != "equal"
    ]
    return renamed, {name: other for name, other in first.items() if name != other}


def _of_determining_levels(relations: Sequence[Relation], columns: Mapping[str, Column]) -> list[Relation]:
    """`c = v => …` where a determines c: the same of each level of a that has v."""
    found = list(relations)
    for determines in [each for each in relations if each.kind == "determines"] * len(relations):
        assert determines.pairs is not None  # of a table
        levels = columns[determines.a].levels
        apart: list[Relation] = []
        for each in found:
            if each.level is None or each.level[0] != determines.b:
                apart.append(each)
                continue
            of_level = determines.pairs[1] == code_of(columns[determines.b], each.level[1])
            apart += [
                replace(each, level=(determines.a, str(levels[int(code)])))
                for code in determines.pairs[0][of_level].tolist()
            ]
        found = apart
    return found
