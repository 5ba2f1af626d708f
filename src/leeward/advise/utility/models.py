"""The plan's models: how far the 95 % intervals of a release overlap those of the original.

Overlap of an interval pair (Karr et al. 2006): the mean of the shared length over each interval's own; 0 where they are
apart. The floor is the mean overlap of bootstrap resamples of the original.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.advise.plan import Regression
from leeward.advise.utility.verdicts import Kept, judge
from leeward.analysis.plan import Model, check_models, design_of, median_time, models_of
from leeward.analysis.regression import Fit, fit
from leeward.arrays import Float64s
from leeward.cohort.lenses.table import Table

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

ROUNDS = 20
SEED = 20261122
FIGURE = "mean overlap of 95 % intervals with the original's"


@dataclass(frozen=True)
class Fitted:
    """A model fitted to the original. floor : the mean overlap of resamples; None where none can be estimated."""

    line: Regression
    model: Model
    table: Table
    cut: float | None
    original: Fit
    floor: float | None


def fit_original(line: Regression, cohort: Cohort) -> Fitted:
    """The model fitted to the source and to resamples of it. BadInput where it does not fit the table."""
    table = cohort.table()
    (model,) = models_of([line.model])
    check_models([model], table)
    cut = median_time(model, table.frame)
    original = _fit(model, table, table.frame, cut)
    random = np.random.Generator(np.random.Philox(SEED))
    found = []
    for _ in range(ROUNDS):
        drawn = np.sort(random.integers(0, table.frame.height, table.frame.height))
        one = overlap(original, _fit(model, table, table.frame[drawn], cut))
        if one is not None:
            found.append(one)
    return Fitted(line, model, table, cut, original, float(np.mean(found)) if found else None)


def compare(fitted: Fitted, release: Release) -> Kept:
    """The overlap of the intervals of a release's fit with the original's."""
    refuse = functools.partial(judge, fitted.line, FIGURE, None, fitted.floor)
    if not (release.share / "data" / "table.parquet").is_file():
        return refuse(reason="the release is no table of patients")
    made = release.table("table.parquet").collect()
    missing = [name for name in fitted.model.columns() if name not in made.columns]
    if missing:
        return refuse(reason=f"the release lacks {', '.join(missing)}")
    made = made.with_columns(
        pl.col(name).cast(kind)
        for name, kind in fitted.table.frame.schema.items()
        if isinstance(kind, pl.Enum | pl.Categorical) and name in made.columns
    )
    after = _fit(fitted.model, fitted.table, made, fitted.cut)
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
    return judge(fitted.line, FIGURE, value, fitted.floor, detail=detail)


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


def _fit(model: Model, table: Table, frame: pl.DataFrame, cut: float | None) -> Fit:
    return fit(model.kind, design_of(model, frame, table.columns, cut))
