"""The plan's models fitted: least squares; logistic, Poisson and Cox models (Efron's ties) by Newton's method with step
halving.

A fit is at the maximum of its likelihood, or says that it did not converge (`maximum`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.analysis.plan import Design, Model, design_of, median_time
from leeward.cohort.lenses.table import Floats, Table
from leeward.compiled import njit
from leeward.errors import require_extra

GRADIENT = 1e-7
"""At a maximum no component of the gradient (of standardized columns) is larger, …"""
ROUNDING = 1e-12
"""… but for this much a row of large tables: the rounding of sums."""
STEP = 1e-6
"""Nor is the next step: where the likelihood rises for ever (complete separation) the gradient vanishes, the step does
not."""
ITERATIONS = 60
HALVINGS = 40

Evaluated = tuple[float, Floats, Floats]
"""Log likelihood, gradient float64[coefficients], observed information float64[coefficients, coefficients]."""


def maximum(evaluate: Callable[[Floats], Evaluated], width: int, rows: int) -> tuple[Floats, Floats] | None:
    """The coefficients at the maximum and the information there; None where the search did not converge.

    `evaluate` takes float64[width] coefficients of `rows` rows of standardized columns. Steps that do not raise the
    likelihood are halved.
    """
    small = max(GRADIENT, ROUNDING * rows)
    at = np.zeros(width)
    value, gradient, information = evaluate(at)
    for _ in range(ITERATIONS):
        try:
            root = np.linalg.cholesky(information)
        except np.linalg.LinAlgError:
            return None
        step = np.linalg.solve(root.T, np.linalg.solve(root, gradient))
        if not np.isfinite(step).all():
            return None
        if np.abs(gradient).max() < small and np.abs(step).max() < STEP:
            return at, information
        slack = max(1e-13, 1e-15 * np.sqrt(rows)) * abs(value)  # rounding of the sum
        for _ in range(HALVINGS):
            tried = evaluate(at + step)
            if np.isfinite(tried[0]) and tried[0] >= value - slack:
                break
            step = step / 2.0
        else:
            return None
        at = at + step
        value, gradient, information = tried
    return None


def logistic(matrix: Floats, outcome: Floats) -> Callable[[Floats], Evaluated]:
    """The log likelihood of a logistic model; `matrix` has the intercept's column of ones, `outcome` is 0 or 1."""

    def evaluate(at: Floats) -> Evaluated:
        eta = matrix @ at
        share = 0.5 * (1.0 + np.tanh(0.5 * eta))
        value = float((outcome * eta - np.logaddexp(0.0, eta)).sum())
        weighted = matrix * (share * (1.0 - share))[:, None]
        return value, matrix.T @ (outcome - share), matrix.T @ weighted

    return evaluate


def poisson(matrix: Floats, outcome: Floats) -> Callable[[Floats], Evaluated]:
    """The log likelihood, up to a constant, of counts with a log-linear mean; `matrix` as for `logistic`."""

    def evaluate(at: Floats) -> Evaluated:
        eta = matrix @ at
        with np.errstate(over="ignore", invalid="ignore"):  # of a step too long, which is halved
            mean = np.exp(eta)
            value = float((outcome * eta - mean).sum())
            return value, matrix.T @ (outcome - mean), matrix.T @ (matrix * mean[:, None])

    return evaluate


def cox(matrix: Floats, time: Floats, event: NDArray[np.bool_]) -> Callable[[Floats], Evaluated]:
    """Cox's log partial likelihood with Efron's ties (Efron 1977); everybody with time ≥ t is at risk at t."""
    order = np.argsort(-time, kind="stable")
    rows, times, events = np.ascontiguousarray(matrix[order]), time[order], event[order]

    def evaluate(at: Floats) -> Evaluated:
        eta = rows @ at
        value, gradient, information = _efron(rows, times, events, eta - eta.max())
        return float(value), gradient, information

    return evaluate


@njit(error_model="numpy")
def _efron(rows: Any, times: Any, events: Any, eta: Any) -> Any:
    """Value, gradient and information of rows in descending time, whose linear predictors are `eta` (at most 0).

    With S the sums over the risk set and E those over the d deaths of a time, the terms l = 0 … d − 1 have the risk
    S − (l/d)E; only sums of their inverses are needed for the matrices.
    """
    n, width = rows.shape
    value = 0.0
    gradient = np.zeros(width)
    information = np.zeros((width, width))
    s0, s1, s2 = 0.0, np.zeros(width), np.zeros((width, width))
    e1, e2 = np.empty(width), np.empty((width, width))
    start = 0
    while start < n:
        end = start
        deaths, e0 = 0, 0.0
        e1[:] = 0.0
        e2[:, :] = 0.0
        while end < n and times[end] == times[start]:
            weight = np.exp(eta[end])
            row = rows[end]
            s0 += weight
            for i in range(width):
                part = weight * row[i]
                s1[i] += part
                for j in range(i + 1):
                    s2[i, j] += part * row[j]
            if events[end]:
                deaths += 1
                e0 += weight
                value += eta[end]
                for i in range(width):
                    part = weight * row[i]
                    gradient[i] += row[i]
                    e1[i] += part
                    for j in range(i + 1):
                        e2[i, j] += part * row[j]
            end += 1
        if deaths > 0:
            a = b = c = d = e = 0.0
            for number in range(deaths):
                share = number / deaths
                risk = s0 - share * e0
                value -= np.log(risk)
                inverse = 1.0 / risk
                a += inverse
                b += share * inverse
                c += inverse * inverse
                d += share * inverse * inverse
                e += share * share * inverse * inverse
            for i in range(width):
                gradient[i] -= a * s1[i] - b * e1[i]
                for j in range(i + 1):
                    information[i, j] += a * s2[i, j] - b * e2[i, j]
                    information[i, j] -= c * s1[i] * s1[j] + e * e1[i] * e1[j]
                    information[i, j] += d * (s1[i] * e1[j] + e1[i] * s1[j])
        start = end
    for i in range(width):
        for j in range(i):
            information[j, i] = information[i, j]
    return value, gradient, information


ALPHA = 0.05
Z = 1.959963984540054
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
        return self.coefficients - Z * self.errors

    @property
    def high(self) -> Floats:
        return self.coefficients + Z * self.errors

    @property
    def significant(self) -> Any:
        """bool: p < 0.05; a coefficient that cannot be estimated is not significant."""
        return np.nan_to_num(self.p, nan=1.0) < ALPHA


def fit_model(model: Model, table: Table, frame: pl.DataFrame) -> Fit:
    """A model of the plan fitted to the original `table`'s frame or to a released one."""
    return fit(model.kind, design_of(model, frame, table.columns, median_time(model, table.frame)))


def fit(kind: str, design: Design) -> Fit:
    require_extra("Fitting models", "models", "scipy")
    names = design.names
    nothing = np.full(len(names), np.nan)
    none = Fit(names, nothing, nothing, nothing)
    if len(design.outcome) <= len(names) + 1 or (kind == "cox" and not design.event.any()):
        return none
    estimable = np.array(_independent(design.matrix), bool)
    if not estimable.any():
        return none
    matrix = design.matrix if estimable.all() else design.matrix[:, estimable]
    fitters: dict[str, Callable[[Floats, Design], tuple[Floats, ...] | None]] = {
        "linear": _linear,
        "logistic": partial(_generalized, logistic),
        "poisson": partial(_generalized, poisson),
        "cox": _cox,
    }
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

    with_intercept, spread = _standardize(matrix)
    at, *_ = np.linalg.lstsq(with_intercept, design.outcome)
    rest = design.outcome - with_intercept @ at
    free = len(rest) - len(at)
    variances = rest @ rest / free * np.diagonal(np.linalg.inv(with_intercept.T @ with_intercept))
    at, errors = at[:-1], np.sqrt(variances[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):  # of an outcome that is 0 everywhere nothing is left
        p = 2.0 * stdtr(free, -np.abs(at / errors))
    return at / spread, errors / spread, p


def _generalized(
    likelihood: Callable[[Floats, Floats], Callable[[Floats], Evaluated]], matrix: Floats, design: Design
) -> tuple[Floats, ...] | None:
    """A logistic or Poisson model; an outcome that does not vary estimates nothing."""
    if len(np.unique(design.outcome)) < 2:
        return tuple(np.full(matrix.shape[1], np.nan) for _ in range(3))
    with_intercept, spread = _standardize(matrix)
    events = max(len(matrix), int(design.outcome.sum()))  # rounding grows with them
    found = maximum(likelihood(with_intercept, design.outcome), with_intercept.shape[1], events)
    return None if found is None else _estimates(*found, spread)


def _cox(matrix: Floats, design: Design) -> tuple[Floats, ...] | None:
    with_intercept, spread = _standardize(matrix)
    scaled = np.ascontiguousarray(with_intercept[:, :-1])
    found = maximum(cox(scaled, design.outcome, np.asarray(design.event, bool)), *scaled.shape[::-1])
    return None if found is None else _estimates(*found, spread)


def _standardize(matrix: Floats) -> tuple[Floats, Floats]:
    """The columns around their mean in units of their spread, then a column of ones; and the spreads."""
    spread = matrix.std(axis=0)
    return np.column_stack([(matrix - matrix.mean(axis=0)) / spread, np.ones(len(matrix))]), spread


def _estimates(at: Floats, information: Floats, spread: Floats) -> tuple[Floats, ...]:
    """Coefficients, standard errors and Wald p values in the columns' own units, without the intercept's."""
    from scipy.special import ndtr

    width = len(spread)
    errors = np.sqrt(np.diagonal(np.linalg.inv(information)))[:width]
    return at[:width] / spread, errors / spread, 2.0 * ndtr(-np.abs(at[:width] / errors))
