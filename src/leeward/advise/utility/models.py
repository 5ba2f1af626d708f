"""The plan's models: how far the 95 % intervals of a release overlap those of the original.

Overlap of an interval pair (Karr et al. 2006): the mean of the shared length over each interval's own; 0 where they are
apart. The floor is the mean overlap of bootstrap resamples of the original. A random forest has no coefficients: it is
judged by what it predicts of patients left out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leeward.advise.plan import Regression
from leeward.advise.utility.verdicts import Kept, judge
from leeward.analysis.plan import Model, check_models, models_of
from leeward.analysis.regression import Fit, fit_model
from leeward.arrays import Float64s
from leeward.cohort.lenses.table import Table
from leeward.methods.condensation.measures.columns import pair_tables
from leeward.methods.condensation.measures.utility import predict

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

ROUNDS = 20
SEED = 20261122
FIGURE = "mean overlap of 95 % intervals with the original's"
PREDICTED = "1 - what is lost of the area under the curve (of numbers: R²) of patients left out"


@dataclass(frozen=True)
class Fitted:
    """A model fitted to the original, but for a forest. floor : the mean overlap of resamples; None where none can be
    estimated."""

    line: Regression
    model: Model
    table: Table
    original: Fit | None
    floor: float | None


def fit_original(line: Regression, cohort: Cohort) -> Fitted:
    """The model fitted to the source and to resamples of it. BadInput where it does not fit the table."""
    table = cohort.table()
    (model,) = models_of([line.model])
    check_models([model], table)
    if model.kind == "forest":
        return Fitted(line, model, table, None, None)
    original = fit_model(model, table, table.frame)
    random = np.random.Generator(np.random.Philox(SEED))
    found = []
    for _ in range(ROUNDS):
        drawn = np.sort(random.integers(0, table.frame.height, table.frame.height))
        one = overlap(original, fit_model(model, table, table.frame[drawn]))
        if one is not None:
            found.append(one)
    return Fitted(line, model, table, original, float(np.mean(found)) if found else None)


def compare(fitted: Fitted, release: Release) -> Kept:
    """The overlap of the intervals of a release's fit with the original's."""
    figure = PREDICTED if fitted.original is None else FIGURE
    refuse = functools.partial(judge, fitted.line, figure, None, fitted.floor)
    if not (release.share / "data" / "table.parquet").is_file():
        return refuse(reason="the release is no table of patients")
    names = release.table("table.parquet").collect_schema().names()
    missing = [name for name in fitted.model.columns() if name not in names]
    if missing:
        return refuse(reason=f"the release lacks {', '.join(missing)}")
    columns = tuple(map(fitted.table.column, names))
    both = pair_tables(release, Table(fitted.table.frame.select(names), columns, fitted.table.name))
    if fitted.original is None:
        areas = predict(both, both.groups, fitted.model) if both.groups else {"before": None}
        if areas["before"] is None:
            return refuse(reason="the release has no custody, or no patients left out have both outcomes")
        kept = float(np.clip(1 - areas["before"] + areas["after"], 0, 1))
        return judge(fitted.line, figure, kept, None, detail=areas)
    after = fit_model(fitted.model, fitted.table, both.made)
    value = overlap(fitted.original, after)
    if value is None:
        return refuse(reason="the model cannot be estimated from the original")
    known = ~np.isnan(fitted.original.coefficients)
    same = np.sign(fitted.original.coefficients) == np.sign(after.coefficients)
    detail = {
        "coefficients": int(known.sum()),
        "same_sign": int((same & known).sum()),
        "same_significance": int(((fitted.original.significant == after.significant) & known).sum()),
        "converged": bool(after.converged),
    }
    return judge(fitted.line, figure, value, fitted.floor, detail=detail)


def overlap(before: Fit, after: Fit) -> float | None:
    """The mean overlap over the coefficients that the original estimates; None where it estimates none.

    A coefficient that is not estimable any more has no overlap.
    """
    known = ~np.isnan(before.coefficients)
    if not known.any():
        return None
    found = overlaps(before.low[known], before.high[known], after.low[known], after.high[known])
    return float(np.mean(np.nan_to_num(found, nan=0.0)))


def overlaps(low: Float64s, high: Float64s, other_low: Float64s, other_high: Float64s) -> Float64s:
    """Of each pair of intervals: the mean of the shared length over either length, 0 to 1; NaN where one is unknown."""
    shared = np.maximum(np.minimum(high, other_high) - np.maximum(low, other_low), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((shared / (high - low) + shared / (other_high - other_low)) / 2)
