"""What a release with demographics keeps of questions about demographics and codes, and what the joint attacker finds,
whatever the method (docs/methods/whole-patient.md#measures).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.classes import group_vectors
from leeward.analysis.demographics.columns import Columns, Level, columns_of
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.analysis.itemsets import supports_of
from leeward.analysis.risk import risk_before
from leeward.arrays import AnyArray, Bools, Float64s, Int64s, offsets_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.randomness import Randomness
from leeward.release import Release
from leeward.vocabulary import Hierarchy

WholePatient = Mapping[str, Any]
"""What a release with demographics keeps, and what an attacker finds in it.

classes, smallest_class, loss : of the released classes; columns : the `loss` of each `column` (mean LM over the
    records), and the level `asked` for in questions
asked : questions of `codes` codes in a cell of demographics with a true count of `at_least` so many, `questions` of
    them; their `errors`: the average relative error (`are`) of each `way` to answer
outside_bounds : true counts outside of the bounds
risk : `before` release, of `patients`: how many are alone (`unique`), or among fewer than `k` (`below_k`), in their
    exact demographics and `codes` codes; `exact` is False where that is estimated from a sample
after : pieces of knowledge (exact demographics of a real patient, with up to m codes) that were looked up in the
    release: the fewest candidates `by_demographics` alone, the number of `sets`, the `smallest` number of candidates,
    and how many have fewer than k (`below_k`)
"""

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


def question_levels(columns: Columns, keep: dict[str, Level]) -> dict[str, Level]:
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
    true = np.zeros(len(where), np.int64)
    for number in np.unique(where):
        mine = np.flatnonzero(where == number)
        true[mine] = supports_of(sets.take(np.flatnonzero(cell_of == number)), [codes[i] for i in mine])
    return Questions(cell_of, cells, where, np.array([len(each) for each in codes], np.int64), codes, true)


def independence(questions: Questions, sets: CodeSets) -> Float64s:
    """The expected counts where codes and demographics are released apart: the true number of patients with the codes
    times the cell's true share of the patients. No release can do better than that without linking both."""
    share = np.bincount(questions.cell_of, minlength=len(questions.cells)) / len(questions.cell_of)
    return np.asarray(supports_of(sets, questions.codes) * share[questions.cell])


def errors(questions: Questions, expected: dict[str, Float64s]) -> list[dict[str, Any]]:
    found = []
    for size in SIZES:
        for floor in FLOORS:
            mine = (questions.size == size) & (questions.true >= floor)
            if not mine.any():
                continue
            true = questions.true[mine]
            ares = [
                {"way": way, "are": float(np.mean(np.abs(values[mine] - true) / true))}
                for way, values in expected.items()
            ]
            found.append({"codes": size, "at_least": floor, "questions": int(mine.sum()), "errors": ares})
    return found


def joint_risk(columns: Columns, sets: CodeSets, k: int, m: int) -> dict[str, Any]:
    """Patients whom an attacker singles out in the source by exact demographics, alone and with m codes: nobody else is
    like them, or fewer than k are. (By codes alone: `leeward.analysis.risk`.)"""
    n = len(sets)
    _, group = group_vectors(columns.vectors({}))
    alike = np.bincount(group)[group]
    found = [(0, int((alike == 1).sum()), int((alike < k).sum()), True)]
    both = risk_before(with_group(sets, group), k, seed=SEED, largest_m=m)
    found += [(row["m"], row["unique"], row["below_k"], row["patients_exact"]) for row in both["by_m"]]
    rows = [
        {"codes": codes, "patients": n, "unique": unique, "below_k": below, "exact": exact}
        for codes, unique, below, exact in found
    ]
    return {"k": k, "patients": n, "before": rows}


def with_group(sets: CodeSets, group: Int64s) -> CodeSets:
    """The code sets, each code made distinct per group: who knows the group and a code knows one of these."""
    owner = np.repeat(group, sets.lengths())
    key = owner.astype(np.int64) * len(sets.codes) + sets.values
    distinct, values = np.unique(key, return_inverse=True)
    names = tuple(f"{number:012d}" for number in range(len(distinct)))
    return CodeSets(offsets_of(sets.lengths()), values.reshape(-1).astype(np.int32), names, sets.patients)


PIECES = 1_000
"""Pieces of knowledge that are looked up."""

IN_CLASSES = "this release"
APART = "codes and demographics apart"

Estimating = Callable[[Concerned, list[AnyArray]], tuple[AnyArray, AnyArray, AnyArray]]
"""Least, expected and greatest number of patients who have each of some sets of the cohort's codes (as numbers), in
the part of the classes that is concerned."""

Counting = Callable[[Concerned, list[AnyArray]], AnyArray]
"""How many records of these classes may be a patient's whose codes, of a set each, are known."""


def exact_columns(release: Release, cohort: Cohort, patients: pl.Series) -> Columns:
    """The exact demographics of patients, over the hierarchies that the release was made with."""
    stated = release.parameters
    named: dict[str, str | Hierarchy] = dict(stated.get("hierarchies") or {})
    for name, kind in named.items():
        table = release.custody_table(f"hierarchies/{name}")
        if kind == "file" and table is not None:
            named[name] = Hierarchy.from_pairs(zip(table["node"], table["parent"], strict=True), name)
    return columns_of(
        cohort.patients, patients, stated["demographics"], named, stated.get("keep") or {}, cohort.name
    )


def fitting_classes(release: Release, cohort: Cohort, patients: pl.Series) -> tuple[Int64s, Bools]:
    """int64[patients]: a number for each patient's exact demographics; bool[numbers, classes]: which of the release's
    classes a patient with them may be in. Without demographics everybody fits one class."""
    if not release.parameters.get("demographics"):
        return np.zeros(len(patients), np.int64), np.ones((1, 1), np.bool_)
    return fitting_of(exact_columns(release, cohort, patients), ReleasedClasses.read(release))


def fitting_of(columns: Columns, classes: ReleasedClasses) -> tuple[Int64s, Bools]:
    distinct, number = group_vectors(columns.vectors({}))
    rows = [columns.labels(vector) for vector in distinct]
    fitting = np.ones((len(rows), len(classes.labels)), np.bool_)
    for i in range(len(columns.names)):
        fits = {value: classes.fitting_value(i, value) for value in {row[i] for row in rows}}
        fitting &= np.stack([fits[row[i]] for row in rows])
    return number, fitting


def records_in_release(release: Release, cohort: Cohort, sets: CodeSets) -> CodeSets:
    """The code sets of the patients who are released: with `small: drop`, those whose values fit a class."""
    inside = _released(release, cohort, sets.patients)
    return sets if inside.all() else sets.take(np.flatnonzero(inside))


def cohort_in_release(release: Release, cohort: Cohort, patients: pl.Series) -> Cohort:
    """The cohort of those of `patients` who are released, see `records_in_release`."""
    inside = _released(release, cohort, patients)
    if inside.all():
        return cohort
    shown = pl.col("patient").is_in(patients.filter(pl.Series(inside)).implode())
    return replace(cohort, events=cohort.require_events().filter(shown))


def _released(release: Release, cohort: Cohort, patients: pl.Series) -> Bools:
    """bool[patients]: whether the exact values fit a class, where `drop` may have left some out."""
    if release.parameters.get("small") != "drop":
        return np.ones(len(patients), np.bool_)
    number, fitting = fitting_classes(release, cohort, patients)
    return np.asarray(fitting[number].any(axis=1))


def whole_patient(
    release: Release, cohort: Cohort, sets: CodeSets, m: int, estimating: Estimating, counting: Counting
) -> WholePatient:
    """Errors of questions of demographics and codes beside the baseline, loss per column, risk before and after; `m`,
    the codes of the attacker."""
    columns = exact_columns(release, cohort, sets.patients)
    classes = ReleasedClasses.read(release)
    levels = question_levels(columns, dict(release.parameters.get("keep") or {}))
    questions = draw(columns, sets, levels)
    expected, low, high = np.zeros((3, len(questions.codes)))
    for cell in np.unique(questions.cell):
        where = dict(zip(columns.names, columns.labels(questions.cells[cell]), strict=True))
        mine = np.flatnonzero(questions.cell == cell)
        low[mine], expected[mine], high[mine] = estimating(
            classes.find_part(where), [questions.codes[i] for i in mine]
        )
    outside = int(((questions.true < low) | (questions.true > high)).sum())
    ways = {IN_CLASSES: expected, APART: independence(questions, sets)}
    losses = {}
    for column, labels in zip(columns.columns, zip(*classes.labels, strict=True), strict=True):
        nodes = [column.tree.index[label] for label in labels]
        losses[column.name] = float(np.average(column.losses[nodes], weights=classes.records))
    k = int(release.guarantee["k"])
    return {
        "classes": len(classes.number),
        "smallest_class": int(classes.records.min()),
        "loss": float(np.mean(list(losses.values()))),
        "columns": [
            {"column": name, "loss": losses[name], "asked": str(levels[name])} for name in columns.names
        ],
        "asked": errors(questions, ways),
        "outside_bounds": outside,
        "risk": joint_risk(columns, sets, k, max(m, 1)),
        "after": candidates(classes, columns, sets, k, m, counting),
    }


def figures_of_records(
    release: Release,
    cohort: Cohort,
    sets: CodeSets,
    class_of: Int64s,
    holders: Sequence[tuple[Int64s, Float64s]],
) -> WholePatient:
    """The same of released records that show codes (one not shown may have been recorded), without pieces of
    knowledge. `class_of`: int64[records], each one's class. `holders`: for each code the records that show it,
    ascending, and the chance that it is meant."""

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        share = concerned.share[class_of]
        low, expected = np.zeros((2, len(queries)))
        for i, query in enumerate(queries):
            records, weight = holders[int(query[0])]
            for code in query[1:]:
                others, theirs = holders[int(code)]
                records, mine, yours = np.intersect1d(records, others, True, True)
                weight = weight[mine] * theirs[yours]
            expected[i] = float((weight * share[records]).sum())
            low[i] = int(((weight == 1) & (share[records] == 1)).sum())
        return low, expected, np.full(len(queries), int(concerned.possible[class_of].sum()))

    return whole_patient(release, cohort, sets, 0, estimating, lambda concerned, queries: np.zeros(0))


def candidates(
    classes: ReleasedClasses, columns: Columns, sets: CodeSets, k: int, m: int, counting: Counting
) -> dict[str, int]:
    """The candidates of real patients whose exact demographics and up to m codes are known."""
    stream = Randomness.of(1).stream("joint attacker")
    group, fitting = fitting_of(columns, classes)
    alone = int((fitting @ classes.records).min())
    counts: list[int] = []
    chosen = stream.integers(0, len(sets), PIECES if m else 0)
    for each in np.unique(group[chosen]):
        queries = []
        for record in chosen[group[chosen] == each]:
            codes = sets.values[sets.offsets[record] : sets.offsets[record + 1]]
            size = int(stream.integers(1, m + 1))
            queries.append(np.sort(stream.permutation(codes)[:size]))
        meant = Concerned(fitting[each].astype(np.float64), fitting[each])
        counts += counting(meant, queries).tolist()
    return {
        "by_demographics": alone,
        "sets": len(counts),
        "smallest": min(counts, default=0),
        "below_k": sum(n < k for n in counts),
    }
