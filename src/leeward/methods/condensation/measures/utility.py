"""What a table keeps for any use, by the measures that Gal et al. (2014, §1) name beside the recipient's models
(docs/methods/condensation.md#other-measures-of-utility)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.plan import Model, design_of, median_time, models_of
from leeward.analysis.regression import fit
from leeward.errors import BadInput
from leeward.methods.condensation.measures.attacks import area, bin_numbers, choose_rows, entropy, some_groups
from leeward.methods.condensation.measures.columns import CORRELATED, SEED, Both, Longs


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


def prediction(both: Both, folds: int = 5, classifier: str = "logistic") -> list[dict[str, Any]] | None:
    """How well the outcomes of the plan's logistic models are predicted, of patients of groups that were left out, by
    such a model or a random forest trained on the other groups' original rows (`before`) and on their released ones
    (`after`): mean area under the curve. A fold does not count whose fit did not converge, or that has one outcome
    only. None without custody, or without such a model."""
    if folds < 2 or classifier not in ("logistic", "forest"):
        raise BadInput(
            "`measure.prediction`: `folds` must be at least 2, and `classifier` logistic or forest."
        )
    plan = [each for each in models_of(both.release.parameters.get("plan", ())) if each.kind == "logistic"]
    if both.groups is None or not plan:
        return None
    row, own, group = both.groups
    random = np.random.Generator(np.random.Philox(SEED))
    fold = np.where(some_groups(group, random), random.permutation(int(group.max()) + 1) % folds, -1)
    found = []
    for model in plan:
        cut, scores = median_time(model, both.table.frame), []
        for number in range(folds):
            asked = both.table.frame[row[fold[own] == number]]
            known = [(fold[of] >= 0) & (fold[of] != number) for of in (own, group)]
            trained = both.table.frame[row[known[0]]], both.made[np.flatnonzero(known[1])]
            scores.append([_score(both, model, each, asked, cut, classifier) for each in trained])
        counted = [each for each in scores if None not in each]
        before, after = np.mean(np.array(counted, float), axis=0).tolist() if counted else (None, None)
        found.append({"title": model.title, "before": before, "after": after})
    return found


def _score(
    both: Both, model: Model, trained: pl.DataFrame, asked: pl.DataFrame, cut: float | None, classifier: str
) -> float | None:
    known, tested = (design_of(model, each, both.table.columns, cut) for each in (trained, asked))
    if len(np.unique(known.outcome)) < 2 or len(np.unique(tested.outcome)) < 2:
        return None
    if classifier == "forest":
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(min_samples_leaf=5, random_state=SEED).fit(
            known.matrix, known.outcome
        )
        told = forest.predict_proba(tested.matrix)[:, 1]
    else:
        found = fit(model.kind, known)
        if not found.converged:
            return None
        told = tested.matrix @ np.nan_to_num(found.coefficients)
    return area(told[tested.outcome == 1], told[tested.outcome == 0])
