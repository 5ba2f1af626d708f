"""What a disassociated release with demographics keeps of questions about both, and what the joint attacker finds
(docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.demographics import Columns, columns_of
from leeward.analysis.demographics.figures import ColumnLoss, JointCandidates, WholePatient
from leeward.analysis.demographics.questions import draw, errors, independence, joint_risk, levels_asked
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.measures.estimates import estimates_in
from leeward.methods.disassociation.measures.published import Published
from leeward.randomness import Randomness
from leeward.release import Release
from leeward.vocabulary import Hierarchy

PIECES = 1_000
"""Pieces of knowledge that are looked up."""

IN_CLASSES = "this release"
APART = "codes and demographics apart"


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


def released_records(release: Release, cohort: Cohort, sets: CodeSets) -> CodeSets:
    """The code sets of the patients who are released: with `small: drop`, those whose values fit a class."""
    if release.parameters.get("small") != "drop" or not release.parameters.get("demographics"):
        return sets
    columns = exact_columns(release, cohort, sets.patients)
    classes = ReleasedClasses.read(release)
    distinct, number = np.unique(columns.vectors({}), axis=0, return_inverse=True)
    fits = np.array([bool(classes.fitting(columns.labels(vector)).any()) for vector in distinct])
    return sets.take(np.flatnonzero(fits[number.reshape(-1)]))


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


def whole_patient(release: Release, published: Published, cohort: Cohort, sets: CodeSets) -> WholePatient:
    """Errors of questions of demographics and codes beside the baseline, loss per column, risk before and after."""
    columns = exact_columns(release, cohort, sets.patients)
    classes = ReleasedClasses.read(release)
    levels = levels_asked(columns, dict(release.parameters.get("keep") or {}))
    questions = draw(columns, sets, levels)
    number = published.number
    translate = np.array([number.get(code, -1) for code in sets.codes], np.int32)
    expected, low, high = np.zeros((3, len(questions.codes)))
    for cell in np.unique(questions.cell):
        where = dict(zip(columns.names, columns.labels(questions.cells[cell]), strict=True))
        mine = np.flatnonzero(questions.cell == cell)
        found = estimates_in(
            published,
            classes.concerned_known(where),
            classes.number,
            [translate[questions.codes[i]] for i in mine],
        )
        expected[mine], low[mine], high[mine] = found.expected, found.low, found.high
    outside = int(((questions.true < low) | (questions.true > high)).sum())
    ways = {IN_CLASSES: expected, APART: independence(questions, sets)}
    k, m = int(release.guarantee["k"]), int(release.guarantee["m"])
    losses = column_losses(classes, columns)
    return WholePatient(
        len(classes.number),
        int(classes.records.min()),
        float(np.mean(list(losses.values()))),
        tuple(ColumnLoss(name, losses[name], str(levels[name])) for name in columns.names),
        errors(questions, ways),
        outside,
        joint_risk(columns, sets, k, m),
        candidates(published, classes, columns, sets, k, m),
    )


def candidates(
    published: Published, classes: ReleasedClasses, columns: Columns, sets: CodeSets, k: int, m: int
) -> JointCandidates:
    """The candidates of real patients whose exact demographics and up to m codes are known."""
    stream = Randomness.of(1).stream("joint attacker")
    vectors = columns.vectors({})
    distinct, group = np.unique(vectors, axis=0, return_inverse=True)
    fitting = [classes.fitting(columns.labels(vector)) for vector in distinct]
    alone = min(int(classes.records[fits].sum()) for fits in fitting)
    number = published.number
    translate = np.array([number.get(code, -1) for code in sets.codes], np.int32)
    counts: list[int] = []
    chosen = stream.integers(0, len(sets), PIECES)
    group = group.reshape(-1)
    for each in np.unique(group[chosen]):
        queries = []
        for record in chosen[group[chosen] == each]:
            codes = translate[sets.values[sets.offsets[record] : sets.offsets[record + 1]]]
            size = int(stream.integers(1, m + 1))
            queries.append(np.sort(stream.permutation(codes[codes >= 0])[:size]))
        queries = [query for query in queries if len(query)]
        meant = Concerned(fitting[each].astype(np.float64), fitting[each])
        found = estimates_in(published, meant, classes.number, queries, "one")
        counts += found.high.tolist()
    return JointCandidates(alone, len(counts), min(counts, default=0), sum(n < k for n in counts))
