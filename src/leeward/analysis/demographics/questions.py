"""Questions of demographics and codes together, and the risk of whoever knows both
(docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leeward.analysis.demographics.classes import group_vectors
from leeward.analysis.demographics.columns import Columns, Level
from leeward.analysis.demographics.figures import AreAbove, Asked, JointRisk, KnownBy
from leeward.analysis.itemsets import supports_of
from leeward.analysis.risk import risk_before
from leeward.arrays import AnyArray, Float64s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.randomness import Randomness

SEED = 20170101
"""The questions are drawn from a fixed stream: the same cohort gives the same questions on every run."""

SIZES = (1, 2, 3)
FLOORS = (10, 30, 100)
"""Errors are averaged over the questions with a true count of at least so many."""

QUESTIONS = 1_000
"""Questions a size, unless told otherwise."""

DEFAULT_LEVELS: dict[str, Level] = {"intervals": 10, "prefix": 3}
"""How finely columns are asked for that a recipient did not have to get (`keep`); others as they are."""


@dataclass(frozen=True)
class Questions:
    """Questions "how many patients of this cell have these codes", drawn from records.

    cell_of : int64[records], the cell of each record: its labels at the levels asked for
    cells : int32[cells, columns], nodes
    cell, size : int64[questions]
    codes : the codes of each question, ascending
    true : int64[questions]
    """

    cell_of: Int64s
    cells: AnyArray
    cell: Int64s
    size: Int64s
    codes: list[AnyArray]
    true: Int64s


def levels_asked(columns: Columns, keep: dict[str, Level]) -> dict[str, Level]:
    """The levels of the questions: what is kept, else decades, three characters, or the value itself."""
    found: dict[str, Level] = {}
    for column in columns.columns:
        if column.name in keep:
            found[column.name] = keep[column.name]
            continue
        wanted = DEFAULT_LEVELS.get(column.kind, "exact")
        levels = column.levels()
        found[column.name] = wanted if wanted in levels or column.kind == "prefix" else levels[0]
    return found


def draw(
    columns: Columns,
    sets: CodeSets,
    levels: dict[str, Level],
    questions: int = QUESTIONS,
    *,
    seed: int = SEED,
) -> Questions:
    """`questions` of each size, each the cell and some codes of a random record that has so many."""
    cells, cell_of = group_vectors(columns.vectors(levels))
    stream = Randomness.of(seed).stream("questions")
    lengths = sets.lengths()
    cell: list[int] = []
    codes: list[AnyArray] = []
    for size in SIZES:
        able = np.flatnonzero(lengths >= size)
        if not len(able):
            continue
        for record in stream.choice(able, questions):
            own = sets.values[sets.offsets[record] : sets.offsets[record + 1]]
            codes.append(np.sort(stream.permutation(own)[:size]))
            cell.append(int(cell_of[record]))
    where = np.array(cell, np.int64)
    true = by_cell(
        where, codes, lambda number, asked: supports_of(sets.take(np.flatnonzero(cell_of == number)), asked)
    )
    return Questions(
        cell_of, cells, where, np.array([len(each) for each in codes], np.int64), codes, true.astype(np.int64)
    )


def by_cell(cell: Int64s, codes: list[AnyArray], answer: Callable[[int, list[AnyArray]], Any]) -> AnyArray:
    """The answers to all questions, asked cell by cell."""
    found = np.zeros(len(cell))
    for number in np.unique(cell):
        mine = np.flatnonzero(cell == number)
        found[mine] = answer(int(number), [codes[i] for i in mine])
    return found


def independence(questions: Questions, sets: CodeSets) -> Float64s:
    """The expected counts where codes and demographics are released apart: the true number of patients with the codes
    times the cell's true share of the patients. No release can do better than that without linking both."""
    share = np.bincount(questions.cell_of, minlength=len(questions.cells)) / len(questions.cell_of)
    return np.asarray(supports_of(sets, questions.codes) * share[questions.cell])


def errors(questions: Questions, expected: dict[str, Float64s]) -> tuple[Asked, ...]:
    """ARE by size and least true count, of each way to answer."""
    found = []
    for size in SIZES:
        for floor in FLOORS:
            mine = (questions.size == size) & (questions.true >= floor)
            if not mine.any():
                continue
            true = questions.true[mine]
            ares = tuple(
                AreAbove(way, float(np.mean(np.abs(values[mine] - true) / true)))
                for way, values in expected.items()
            )
            found.append(Asked(size, floor, int(mine.sum()), ares))
    return tuple(found)


def joint_risk(columns: Columns, sets: CodeSets, k: int, m: int) -> JointRisk:
    """Patients whom an attacker singles out in the source by exact demographics, alone and with m codes: nobody else is
    like them, or fewer than k are. (By codes alone: `leeward.analysis.risk`.)"""
    n = len(sets)
    _, group = group_vectors(columns.vectors({}))
    alike = np.bincount(group)[group]
    by_demographics = KnownBy(0, n, int((alike == 1).sum()), int((alike < k).sum()))
    both = risk_before(with_group(sets, group), k, seed=SEED, largest_m=m)
    rows = [
        KnownBy(row["m"], n, row["unique"], row["below_k"], row["patients_exact"]) for row in both["by_m"]
    ]
    return JointRisk(k, n, (by_demographics, *rows))


def with_group(sets: CodeSets, group: Int64s) -> CodeSets:
    """The code sets where the codes of different groups are different codes: whoever knows the group and a code knows
    one of them."""
    owner = np.repeat(group, sets.lengths())
    key = owner.astype(np.int64) * len(sets.codes) + sets.values
    distinct, values = np.unique(key, return_inverse=True)
    names = tuple(f"{number:012d}" for number in range(len(distinct)))
    return CodeSets(offsets_of(sets.lengths()), values.reshape(-1).astype(np.int32), names, sets.patients)
