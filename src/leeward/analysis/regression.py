"""The plan's models fitted: least squares, logistic and Cox models (Efron's ties) by Newton's method.

A fit is at the maximum of its likelihood, or says that it did not converge: `likelihood.maximum`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from leeward.analysis.likelihood import cox, logistic, maximum
from leeward.analysis.plan import Design
from leeward.cohort.lenses.table import Floats

ALPHA = 0.05
Z = float(ndtri(1 - ALPHA / 2))
"""The quantile of the normal distribution for intervals at 1 - ALPHA."""


@dataclass(frozen=True)
class Fit:
    """A model's coefficients (intercept left out): float64 arrays in the order of `names`.

    A coefficient is NaN where it is not estimable: its column does not vary or depends on earlier ones, or there are
    too few rows or no event. `converged` is False where the search for the maximum did not converge, as with complete
    separation, which has no finite maximum-likelihood estimate; then all coefficients are NaN.
    """

    names: tuple[str, ...]
    coefficients: Floats
    errors: Floats
    p: Floats
    converged: bool = True

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
    """A fitted model of `kind` `linear`, `logistic` or `cox`."""
    names = design.names
    nothing = np.full(len(names), np.nan)
    none = Fit(names, nothing, nothing, nothing)
    if len(design.outcome) <= len(names) + 1 or (kind == "cox" and not design.event.any()):
        return none
    estimable = np.array(_independent(design.matrix), bool)
    if not estimable.any():
        return none
    matrix = design.matrix if estimable.all() else design.matrix[:, estimable]
    fitters = {"linear": _linear, "logistic": _logistic, "cox": _cox}
    found = fitters[kind](matrix, design)
    if found is None:
        return replace(none, converged=False)
    coefficients, errors, p = (np.full(len(names), np.nan) for _ in range(3))
    for target, source in zip((coefficients, errors, p), found, strict=True):
        target[estimable] = source
    return Fit(names, coefficients, errors, p)


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
    """Ordinary least squares on standardized columns, with p values of Student's t."""
    from scipy.special import stdtr

    scaled, spread = _standardize(matrix)
    with_intercept = np.column_stack([scaled, np.ones(len(scaled))])
    at, *_ = np.linalg.lstsq(with_intercept, design.outcome)
    rest = design.outcome - with_intercept @ at
    free = len(rest) - len(at)
    variances = rest @ rest / free * np.diagonal(np.linalg.inv(with_intercept.T @ with_intercept))
    at, errors = at[:-1], np.sqrt(variances[:-1])
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # nothing is left over of an outcome that is 0 everywhere
        p = 2.0 * stdtr(free, -np.abs(at / errors))
    return at / spread, errors / spread, p


def _logistic(matrix: Floats, design: Design) -> tuple[Floats, ...] | None:
    if len(np.unique(design.outcome)) < 2:
        return tuple(np.full(matrix.shape[1], np.nan) for _ in range(3))
    scaled, spread = _standardize(matrix)
    with_intercept = np.column_stack([scaled, np.ones(len(scaled))])
    found = maximum(logistic(with_intercept, design.outcome), with_intercept.shape[1], len(scaled))
    return None if found is None else _estimates(*found, spread)


def _cox(matrix: Floats, design: Design) -> tuple[Floats, ...] | None:
    scaled, spread = _standardize(matrix)
    found = maximum(cox(scaled, design.outcome, np.asarray(design.event, bool)), scaled.shape[1], len(scaled))
    return None if found is None else _estimates(*found, spread)


def _standardize(matrix: Floats) -> tuple[Floats, Floats]:
    spread = matrix.std(axis=0)
    return np.ascontiguousarray((matrix - matrix.mean(axis=0)) / spread), spread


def _estimates(at: Floats, information: Floats, spread: Floats) -> tuple[Floats, ...]:
    """Coefficients, standard errors and Wald p values in the columns' own units, without the intercept's."""
    from scipy.special import ndtr

    width = len(spread)
    errors = np.sqrt(np.diagonal(np.linalg.inv(information)))[:width]
    return at[:width] / spread, errors / spread, 2.0 * ndtr(-np.abs(at[:width] / errors))
