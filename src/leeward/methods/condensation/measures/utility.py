"""What a table keeps for any use, by the measures that Gal et al. (2014, §1) name beside the recipient's models
(docs/methods/condensation.md#other-measures-of-utility)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.plan import Model, design_of, median_time, models_of
from leeward.analysis.regression import fit
from leeward.analysis.workloads import average_relative_error
from leeward.cohort.lenses.table import Table
from leeward.errors import BadInput
from leeward.methods.condensation.measures.attacks import area, bin_numbers, choose_rows, entropy, some_groups
from leeward.methods.condensation.measures.columns import CORRELATED, SEED, Both, Groups, Longs


def discernibility_of(rows: pl.DataFrame) -> int:
    """The sum of the squared sizes of classes of equal rows (Bayardo and Agrawal 2005)."""
    sizes = rows.group_by(rows.columns).len()["len"].cast(pl.Int64)
    return int((sizes**2).sum())


def discernibility(both: Both) -> dict[str, int] | None:
    """Of classes of rows that agree on all quasi-identifiers; None for a release without, which has no classes."""
    names = both.release.parameters.get("quasi_identifiers")
    if not names:
        return None
    before, after = (discernibility_of(each.select(names)) for each in (both.table.frame, both.made))
    return {"rows": both.made.height, "before": before, "after": after}


def mutual_information(both: Both, bins: int = 20, sample: int = 100_000) -> dict[str, float] | None:
    """Bits that two columns tell of each other, and how far they are off after release: over the pairs of at most 30
    columns, from `sample` rows. Numbers have the `bins` of conditional privacy, a missing value one more."""
    if bins < 2:
        raise BadInput("`measure.mutual_information`: `bins` must be at least 2.")
    rows = [choose_rows(each.height, sample) for each in (both.table.frame, both.made)]
    columns = [_binned(both, each.name, bins, rows) for each in both.table.columns[:CORRELATED]]
    told = [
        [measure_information(*pair) for pair in zip(*two, strict=True)] for two in combinations(columns, 2)
    ]
    if not told:
        return None
    before, after = np.mean(told, axis=0).tolist()
    gaps = np.abs(np.diff(told))
    differences = {"mean_difference": float(gaps.mean()), "largest_difference": float(gaps.max())}
    return {"before": before, "after": after, **differences}


def _binned(both: Both, name: str, bins: int, rows: list[Longs]) -> list[Longs]:
    """The bin of each of the `rows` before and after, from 1; 0 where the value is missing."""
    column, *sides = both.columns(name)
    if column.kind not in ("levels", "ordered") and column.missing < len(both.table):
        low, high = float(np.nanmin(sides[0])), float(np.nanmax(sides[0]))
        sides = [np.where(np.isnan(v), v, bin_numbers(np.nan_to_num(v), low, high, bins)) for v in sides]
    return [np.nan_to_num(v[own] + 1).astype(np.int64) for v, own in zip(sides, rows, strict=True)]


def measure_information(a: Longs, b: Longs) -> float:
    """Mutual information I(A; B) in bits; `a` and `b` number categories from 0."""
    return entropy(a, np.zeros_like(a)) - entropy(a, b)


def range_counts(
    both: Both, queries: int = 200, columns: int = 3, least: float = 0.01, sample: int = 100_000
) -> dict[str, Any]:
    """Average relative error of COUNT queries: how many rows lie, in each of up to `columns` random columns, between
    the values of two random original rows (of unordered levels: have one of the two). Counted among `sample` rows;
    counts below the share `least` of them are skipped."""
    if queries < 1 or columns < 1:
        raise BadInput("`measure.range_counts`: `queries` and `columns` must be at least 1.")
    random = np.random.Generator(np.random.Philox(SEED))
    rows = [choose_rows(each.height, sample) for each in (both.table.frame, both.made)]
    known = [
        (column, one[rows[0]], two[rows[1]]) for column, one, two in map(both.columns, both.made.columns)
    ]
    counts = np.zeros((2, queries), np.int64)
    for number in range(queries):
        ends = random.integers(0, len(rows[0]), 2)
        chosen = random.permutation(len(known))[: random.integers(1, columns + 1)]
        for side in (0, 1):
            asked = [(known[at][0], known[at][1][ends], known[at][1 + side]) for at in chosen]
            inside = [
                np.isin(values, two) if column.is_categorical else np.clip(values, *np.sort(two)) == values
                for column, two, values in asked
            ]
            counts[side, number] = np.logical_and.reduce(inside).sum()
    true = np.where(counts[0] >= least * len(rows[0]), counts[0], 0)
    scale = len(rows[0]) / len(both.table) * both.made.height / max(1, len(rows[1]))
    return average_relative_error(true, counts[1] * scale)


def generalization(both: Both) -> dict[str, float] | None:
    """What a row's group leaves open of the quasi-identifiers, or else of all columns: n of the N values of a column
    (numbers: a range). Means over rows and columns: `loss`, (n - 1)/(N - 1) (Iyengar 2002), and `height`, log2 n, the
    steps of a hierarchy that halves; `ambiguity`: log10 of the mean product of a row's n (Nergiz and Clifton 2007).
    None without custody."""
    if both.groups is None:
        return None
    row, group, _ = both.groups
    names = both.release.parameters.get("quasi_identifiers") or both.table.frame.columns
    ranks = {name: np.unique(both.table.encode(name), return_inverse=True)[1] for name in names}
    ranges = {name: pl.col(name).max() - pl.col(name).min() + 1 for name in names}
    levels = {name: pl.col(name).n_unique() for name in names if both.table.column(name).is_categorical}
    values = pl.DataFrame({name: rank[row] for name, rank in ranks.items()})
    left = values.select(each.over(pl.Series(group)) for each in (ranges | levels).values()).to_numpy()
    steps = np.log2(left)
    return {
        "loss": float(((left - 1) / [max(1, rank.max()) for rank in ranks.values()]).mean()),
        "height": float(steps.mean()),
        "ambiguity": float(np.log10(2) * (np.logaddexp2.reduce(steps.sum(axis=1)) - np.log2(len(row)))),
    }


def prediction(both: Both, folds: int = 5) -> list[dict[str, Any]] | None:
    """What each logistic model and forest of the plan `predict`s. None without custody, or without such a model."""
    if folds < 2:
        raise BadInput("`measure.prediction`: `folds` must be at least 2.")
    plan = models_of(both.release.parameters.get("plan", ()))
    if both.groups is None:
        return None
    return [
        predict(both, both.groups, each, folds) for each in plan if each.kind in ("logistic", "forest")
    ] or None


def predict(both: Both, groups: Groups, model: Model, folds: int = 5) -> dict[str, Any]:
    """The mean `score_of` patients of groups that were left out, by the model trained on the other groups' original
    rows (`before`) and on their released ones (`after`). A fold without a score does not count."""
    row, own, group = groups
    random = np.random.Generator(np.random.Philox(SEED))
    fold = np.where(some_groups(group, random), random.permutation(int(group.max()) + 1) % folds, -1)
    cut, scores = median_time(model, both.table.frame), []
    for number in range(folds):
        asked = both.table.frame[row[fold[own] == number]]
        known = [(fold[of] >= 0) & (fold[of] != number) for of in (own, group)]
        trained = both.table.frame[row[known[0]]], both.made[np.flatnonzero(known[1])]
        scores.append([score_of(model, both.table, each, asked, cut) for each in trained])
    counted = [each for each in scores if None not in each]
    before, after = np.mean(np.array(counted, float), axis=0).tolist() if counted else (None, None)
    return {"title": model.title, "before": before, "after": after}


def score_of(
    model: Model, table: Table, trained: pl.DataFrame, asked: pl.DataFrame, cut: float | None
) -> float | None:
    """Area under the curve of the rows `asked`, by the model or forest (scikit-learn: 100 trees, leaves of five)
    trained on others; of a forest of numbers R². None where a fit did not converge or an outcome does not vary."""
    known, tested = (design_of(model, each, table.columns, cut) for each in (trained, asked))
    if len(np.unique(known.outcome)) < 2 or len(np.unique(tested.outcome)) < 2:
        return None
    if model.kind == "forest":
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        if not {*known.outcome, *tested.outcome} <= {0.0, 1.0}:
            numbers = RandomForestRegressor(min_samples_leaf=5, random_state=SEED).fit(
                known.matrix, known.outcome
            )
            return float(numbers.score(tested.matrix, tested.outcome))
        forest = RandomForestClassifier(min_samples_leaf=5, random_state=SEED)
        told = forest.fit(known.matrix, known.outcome).predict_proba(tested.matrix)[:, 1]
    else:
        found = fit(model.kind, known)
        if not found.converged:
            return None
        told = tested.matrix @ np.nan_to_num(found.coefficients)
    return area(told[tested.outcome == 1], told[tested.outcome == 0])
