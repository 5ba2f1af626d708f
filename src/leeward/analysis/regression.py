"""The plan's models fitted: statsmodels for linear and logistic, lifelines for Cox (Efron's ties)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from leeward.analysis.plan import Design
from leeward.cohort.lenses.table import Floats

ALPHA = 0.05
Z = 1.959963984540054


@dataclass(frozen=True)
class Fit:
    """A model's coefficients (intercept left out): float64 arrays in the order of `names`; NaN where not estimable."""

    names: tuple[str, ...]
    coefficients: Floats
    errors: Floats
    p: Floats

    @property
    def low(self) -> Floats:
        """Lower end of the 95 % interval."""
        return self.coefficients - Z * self.errors

    @property
    def high(self) -> Floats:
        """Upper end of the 95 % interval."""
        return self.coefficients + Z * self.errors

    @property
    def significant(self) -> Any:
        """bool: p < 0.05; a coefficient that cannot be estimated is not significant."""
        return np.nan_to_num(self.p, nan=1.0) < ALPHA


def fit(kind: str, design: Design) -> Fit:
    """A fitted model. Coefficients of columns that do not vary are NaN; all are, where the fit fails."""
    names = design.names
    none = Fit(names, *(np.full(len(names), np.nan) for _ in range(3)))
    if len(design.outcome) <= len(names) + 1 or (kind == "cox" and not design.event.any()):
        return none
    estimable = np.array(_independent(design.matrix), bool)
    if not estimable.any():
        return none
    matrix = design.matrix if estimable.all() else design.matrix[:, estimable]
    fitters = {"linear": _linear, "logistic": _logistic, "cox": _cox}
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # near-separation and slow convergence show in the errors and p values
        found = fitters[kind](matrix, design)
    if found is None:
        return none
    values = [each.copy() for each in (none.coefficients, none.errors, none.p)]
    for target, source in zip(values, found, strict=True):
        target[estimable] = source
    return Fit(names, *values)


def _independent(matrix: Floats) -> list[bool]:
    """Columns that are no linear combination of the ones before them and a constant."""
    kept: list[bool] = []
    # R has the columns' lengths and angles, in as few rows as there are columns.
    triangle = np.asarray(np.linalg.qr(np.column_stack([np.ones(len(matrix)), matrix]), mode="r"))
    basis = triangle[:, :1] / np.linalg.norm(triangle[:, 0])
    for column in triangle[:, 1:].T:
        length = np.linalg.norm(column - basis[:, :1] @ (basis[:, :1].T @ column))
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        # A constant column leaves a trace of rounding.
        independent = bool(length > 1e-12 * np.linalg.norm(column) and size > 1e-8 * length)
        kept.append(independent)
        if independent:
            basis = np.column_stack([basis, rest / size])
    return kept


def _linear(matrix: Floats, design: Design) -> tuple[Floats, ...]:
    import statsmodels.api as sm

    result = sm.OLS(design.outcome, sm.add_constant(matrix, has_constant="add")).fit()
    return result.params[1:], result.bse[1:], result.pvalues[1:]


def _logistic(matrix: Floats, design: Design) -> tuple[Floats, ...] | None:
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import PerfectSeparationError

    if len(np.unique(design.outcome)) < 2:
        return None
    try:
        result = sm.Logit(design.outcome, sm.add_constant(matrix, has_constant="add")).fit(disp=0, maxiter=50)
    except (np.linalg.LinAlgError, PerfectSeparationError):
        return None
    return result.params[1:], result.bse[1:], result.pvalues[1:]


def _cox(matrix: Floats, design: Design) -> tuple[Floats, ...] | None:
    import pandas as pd
    from lifelines import CoxPHFitter
    from lifelines.exceptions import ConvergenceError

    columns = [f"x{number}" for number in range(matrix.shape[1])]
    frame = pd.DataFrame(matrix, columns=columns)
    frame["time"], frame["event"] = design.outcome, design.event.astype(int)
    try:
        fitter = CoxPHFitter().fit(frame, "time", "event")
    except (ConvergenceError, np.linalg.LinAlgError):
        return None
    summary = fitter.summary.loc[columns]
    return tuple(summary[name].to_numpy(float) for name in ("coef", "se(coef)", "p"))
