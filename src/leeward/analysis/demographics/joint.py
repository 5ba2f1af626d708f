"""What a release with demographics keeps of questions about demographics and codes, and what the joint attacker finds,
whatever the method (docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from leeward.analysis.demographics.classes import group_vectors
from leeward.analysis.demographics.columns import Columns, columns_of
from leeward.analysis.demographics.figures import ColumnLoss, JointCandidates, WholePatient
from leeward.analysis.demographics.questions import draw, errors, independence, joint_risk, levels_asked
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.arrays import AnyArray, Bools, Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.randomness import Randomness
from leeward.release import Release
from leeward.vocabulary import Hierarchy

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
        file = (
            None if release.custody is None else release.custody / "data" / "hierarchies" / f"{name}.parquet"
        )
        if kind == "file" and file is not None and file.is_file():
            table = pl.read_parquet(file)
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
    """The same of patients whose columns are at hand."""
    distinct, number = group_vectors(columns.vectors({}))
    rows = [columns.labels(vector) for vector in distinct]
    fitting = np.ones((len(rows), len(classes.labels)), np.bool_)
    for i in range(len(columns.names)):
        fits = {value: classes.fitting_value(i, value) for value in {row[i] for row in rows}}
        fitting &= np.stack([fits[row[i]] for row in rows])
    return number, fitting


def select_released_records(release: Release, cohort: Cohort, sets: CodeSets) -> CodeSets:
    """The code sets of the patients who are released: with `small: drop`, those whose values fit a class."""
    if release.parameters.get("small") != "drop" or not release.parameters.get("demographics"):
        return sets
    return sets.take(np.flatnonzero(_fitting_any(release, cohort, sets.patients)))


def select_released_cohort(release: Release, cohort: Cohort, patients: pl.Series) -> Cohort:
    """The cohort of those of `patients` who are released, see `select_released_records`."""
    if release.parameters.get("small") != "drop" or not release.parameters.get("demographics"):
        return cohort
    inside = patients.filter(pl.Series(_fitting_any(release, cohort, patients)))
    shown = pl.col("patient").is_in(inside.implode())
    return replace(cohort, events=cohort.require_events().filter(shown))


def _fitting_any(release: Release, cohort: Cohort, patients: pl.Series) -> Bools:
    """bool[patients]: whether the exact values fit a class."""
    number, fitting = fitting_classes(release, cohort, patients)
    return np.asarray(fitting[number].any(axis=1))


def column_losses(classes: ReleasedClasses, columns: Columns) -> dict[str, float]:
    """The mean LM of each column over the released records."""
    return {
        column.name: float(
            np.average(
                [column.losses[column.tree.index[each[i]]] for each in classes.labels],
                weights=classes.records,
            )
        )
        for i, column in enumerate(columns.columns)
    }


def whole_patient(
    release: Release, cohort: Cohort, sets: CodeSets, m: int, estimating: Estimating, counting: Counting
) -> WholePatient:
    """Errors of questions of demographics and codes beside the baseline, loss per column, risk before and after; `m`,
    the codes of the attacker."""
    columns = exact_columns(release, cohort, sets.patients)
    classes = ReleasedClasses.read(release)
    levels = levels_asked(columns, dict(release.parameters.get("keep") or {}))
    questions = draw(columns, sets, levels)
    expected, low, high = np.zeros((3, len(questions.codes)))
    for cell in np.unique(questions.cell):
        where = dict(zip(columns.names, columns.labels(questions.cells[cell]), strict=True))
        mine = np.flatnonzero(questions.cell == cell)
        low[mine], expected[mine], high[mine] = estimating(
            classes.concerned_known(where), [questions.codes[i] for i in mine]
        )
    outside = int(((questions.true < low) | (questions.true > high)).sum())
    ways = {IN_CLASSES: expected, APART: independence(questions, sets)}
    losses = column_losses(classes, columns)
    k = int(release.guarantee["k"])
    return WholePatient(
        len(classes.number),
        int(classes.records.min()),
        float(np.mean(list(losses.values()))),
        tuple(ColumnLoss(name, losses[name], str(levels[name])) for name in columns.names),
        errors(questions, ways),
        outside,
        joint_risk(columns, sets, k, max(m, 1)),
        candidates(classes, columns, sets, k, m, counting),
    )


def figures_of_records(
    release: Release,
    cohort: Cohort,
    sets: CodeSets,
    class_of: Int64s,
    holders: Sequence[tuple[Int64s, Float64s]],
) -> WholePatient:
    """The same of released records that show codes; no pieces of knowledge are looked up. A code that is shown was
    recorded, one that is not may have been.

    class_of : int64[records], the place of the class of each
    holders : for each code the records that show it, ascending, and the chance that it is meant
    """

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
) -> JointCandidates:
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
    return JointCandidates(alone, len(counts), min(counts, default=0), sum(n < k for n in counts))
