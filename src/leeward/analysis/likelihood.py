"""Maxima of likelihoods by Newton's method with step halving, and the two likelihoods that the plan's models need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Floats
from leeward.compiled import njit

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
