"""Relations between columns that hold in every row: read from text, checked on the source, readied to be kept.

See docs/methods/condensation.md#relations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Column, Floats, Table
from leeward.errors import BadInput, GuaranteeUnreachable

NAME = r"('[^']+'|[^\s'<>=]+)"
VALUE = r"('[^']+'|[^\s'<>=]+)"
NUMBER = r"(-?\d+(?:\.\d+)?)"
FORMS = {
    "zeros": rf"{NAME} = 0 <=> {NAME} = 0",
    "range": rf"{NAME} = {VALUE} => {NAME} (<=|>=) {NUMBER}",
    "equal-in-level": rf"{NAME} = {VALUE} => {NAME} = {NAME}",
    "determines": rf"{NAME} -> {NAME}",
    "at-most": rf"{NAME} <= {NAME}",
    "equal": rf"{NAME} = {NAME}",
}
EXAMPLES = "`a <= b`, `a = b`, `a -> b`, `a = 0 <=> b = 0`, `c = v => a = b`, `c = v => x >= 40`"
ROWS_SHOWN = 20

Kind = Literal["zeros", "range", "equal-in-level", "determines", "at-most", "equal"]


@dataclass(frozen=True)
class Relation:
    """One relation, its `text` as the custodian writes it. `a`, `b`: its columns (of `range`: a alone). `level`: column
    and value as text, of the forms that begin with `c = v`. `low`, `high`: of `range`. `pairs`: of `determines`: each
    level of a and its value of b (`in_table`)."""

    text: str
    kind: Kind
    a: str
    b: str = ""
    level: tuple[str, str] | None = None
    low: float = -np.inf
    high: float = np.inf
    pairs: tuple[Floats, Floats] | None = field(default=None, compare=False)

    def columns(self) -> tuple[str, ...]:
        named = [self.a, self.b, *([self.level[0]] if self.level else [])]
        return tuple(each for each in named if each)

    def renamed(self, names: Mapping[str, str]) -> Relation:
        a, b = names.get(self.a, self.a), names.get(self.b, self.b)
        return replace(
            self, a=a, b=b, level=self.level and (names.get(self.level[0], self.level[0]), self.level[1])
        )


def relation_of(text: str) -> Relation:
    """A relation from its text; BadInput for one of no known form."""
    plain = " ".join(text.split())
    for kind, form in FORMS.items():
        found = re.fullmatch(form, plain)
        if found:
            return _relation(kind, plain, [each.strip("'") for each in found.groups()])
    raise BadInput(f"`relations`: '{text}' has no known form; write {EXAMPLES}.")


def _relation(kind: Any, text: str, parts: list[str]) -> Relation:
    if kind == "range":
        column, value, x, side, number = parts
        bounds: dict[str, Any] = {"low" if side == ">=" else "high": float(number)}
        return Relation(text, kind, x, "", (column, value), **bounds)
    if kind == "equal-in-level":
        column, value, a, b = parts
        return Relation(text, kind, a, b, (column, value))
    return Relation(text, kind, parts[0], parts[1])


def code_of(column: Column, value: str) -> float:
    """The number of the level written `value`, or the number itself; NaN where the column has no such level."""
    if column.kind in ("levels", "ordered"):
        places = [place for place, level in enumerate(column.levels) if str(level) == value]
        return float(places[0]) if places else np.nan
    try:
        return float(value)
    except ValueError:
        return np.nan


def broken(
    relation: Relation, values: Mapping[str, Floats], columns: Mapping[str, Column]
) -> NDArray[np.bool_]:
    """bool[rows]: rows that break a relation; a missing value breaks none. Of `determines`: rows whose value of b is
    not that of their level of a in the table, or where that is not known, the level's most frequent one."""
    a = values[relation.a]
    if relation.kind == "range":
        return _is_within(relation, values, columns) & ((a < relation.low) | (a > relation.high))
    b = values[relation.b]
    both = ~np.isnan(a) & ~np.isnan(b)
    if relation.kind == "at-most":
        return np.asarray(a > b)
    if relation.kind == "equal":
        return both & (a != b)
    if relation.kind == "zeros":
        return both & ((a == 0) != (b == 0))
    if relation.kind == "equal-in-level":
        return _is_within(relation, values, columns) & both & (a != b)
    keys, wanted = relation.pairs or mapping(a, b)
    place = np.minimum(np.searchsorted(keys, a), max(len(keys) - 1, 0))
    return both & (keys[place] == a) & (wanted[place] != b) if len(keys) else np.zeros(len(a), bool)


def _is_within(
    relation: Relation, values: Mapping[str, Floats], columns: Mapping[str, Column]
) -> NDArray[np.bool_]:
    assert relation.level is not None  # forms that begin with `c = v` have one
    name, value = relation.level
    return np.asarray(values[name] == code_of(columns[name], value))


def mapping(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Each known value of a, ascending, and its most frequent value of b (equal counts: the least)."""
    both = ~np.isnan(a) & ~np.isnan(b)
    pairs, counts = np.unique(np.column_stack([a[both], b[both]]), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -counts, pairs[:, 0]))
    pairs = pairs[order]
    first = np.concatenate(([True], pairs[1:, 0] != pairs[:-1, 0])) if len(pairs) else np.zeros(0, bool)
    return pairs[first, 0], pairs[first, 1]


def in_table(relations: Iterable[Relation], values: Mapping[str, Floats]) -> tuple[Relation, ...]:
    """The relations, those that determine a column with what each level determines in the table."""
    return tuple(
        replace(each, pairs=mapping(values[each.a], values[each.b])) if each.kind == "determines" else each
        for each in relations
    )


def require_relations(
    relations: Sequence[Relation], table: Table, condensed: Collection[str], exact: Sequence[str]
) -> None:
    """BadInput where a relation names an unknown column or one that is not condensed, or does not hold in the source;
    GuaranteeUnreachable where it names one of several exact times."""
    columns = {each.name: each for each in table.columns}
    for relation in relations:
        for name in relation.columns():
            table.column(name, f"`relations`, '{relation.text}',")
        _require_kinds(relation, columns, table.name)
        values = {name: table.encode(name) for name in relation.columns()}
        rows = np.flatnonzero(broken(relation, values, columns))
        if len(rows):
            listed = ", ".join(map(str, (rows[:ROWS_SHOWN] + 1).tolist()))
            raise BadInput(
                f"{table.name}: the relation '{relation.text}' does not hold in {len(rows):,} rows (rows {listed}); "
                "correct them or leave it out."
            )
    for relation in relations:
        for name in relation.columns():
            if name not in condensed:
                raise BadInput(
                    f"{table.name}: the relation '{relation.text}' names '{name}', which is a stratum or has no values."
                )
        if of_several_times(relation, exact):
            raise GuaranteeUnreachable(
                f"{table.name}: the relation '{relation.text}' names one of {len(exact):,} times that are released as "
                f"they are ({', '.join(exact)}): keeping it would lead somebody who knows one of a patient's times to "
                "another one more often than once in k. Leave the relation out, publish medians of groups "
                "(`coarsen_time`), or drop all times but one."
            )


def of_several_times(relation: Relation, exact: Sequence[str]) -> bool:
    """Whether a relation names one of several exact times: keeping it would lead from one of them to another."""
    return len(exact) > 1 and not set(exact).isdisjoint(relation.columns())


def comparable(a: Column, b: Column) -> bool:
    """Whether values of the two columns can be compared: two numbers, two dates of a type, the same levels."""
    numbers = {a.kind, b.kind} <= {"number", "whole"}
    return numbers or (a.kind == b.kind and a.dtype == b.dtype and a.levels == b.levels)


def _of_numbers(relation: Relation, a: Column, b: Column) -> tuple[Column, ...]:
    """The columns that have to be numbers."""
    dates = a.kind == "date" and relation.kind in ("at-most", "equal-in-level") and comparable(a, b)
    return () if relation.kind in ("determines", "equal") or dates else (a, b)


def _require_kinds(relation: Relation, columns: Mapping[str, Column], name: str) -> None:
    a, b = columns[relation.a], columns.get(relation.b, columns[relation.a])
    for each in _of_numbers(relation, a, b):
        if each.kind not in ("number", "whole"):
            raise BadInput(f"{name}: the relation '{relation.text}' needs numbers in '{each.name}'.")
    if relation.kind == "determines" and columns[relation.a].kind not in ("levels", "ordered"):
        raise BadInput(f"{name}: the relation '{relation.text}' needs levels in '{relation.a}'.")
    if relation.kind == "equal" and not comparable(a, b):
        raise BadInput(f"{name}: the relation '{relation.text}' needs two columns of one type.")
    if relation.level and np.isnan(code_of(columns[relation.level[0]], relation.level[1])):
        raise BadInput(
            f"{name}: the relation '{relation.text}' names a value that is no level of '{relation.level[0]}'."
        )


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

    def values_of(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        """The values of the columns that `relations` name."""
        return {name: values[name] for each in self.relations for name in each.columns()}

    def of_columns(self, names: Collection[str]) -> Rules:
        """The same with those relations alone that name one of the columns."""
        return replace(
            self, relations=tuple(each for each in self.relations if set(each.columns()) & {*names})
        )

    def wrong(self, values: Mapping[str, Floats]) -> list[int]:
        rows: list[int] = np.flatnonzero(self.counted(values)).tolist() if values else []
        return rows

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
    renamed = [each.renamed(first) for each in relations if each.kind != "equal"]
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
