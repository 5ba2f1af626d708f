"""Logistic regression over cells of people with equal covariates, one fit after the other."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

MOST_STEPS = 60
SMALL_STEP = 1e-11
FARTHEST = 30.0
"""A coefficient beyond this (in units of a standardised column) means that cases and controls are separated."""


@njit(cache=True, nogil=True)
def fit_logistic(design: Floats, cases: Ints, people: Ints, beta: Floats, error: Floats) -> bool:
    """Maximum likelihood by Newton's method; writes coefficients and standard errors.

    design : float64[cells, columns], the first column all 1. cases, people : int64[cells], of each cell.
    Returns False where there is no finite answer: only cases or only controls, a column that tells nothing, separation.
    """
    columns = design.shape[1]
    all_cases, everyone = cases.sum(), people.sum()
    if all_cases == 0 or all_cases == everyone:
        return False
    beta[:] = 0.0
    beta[0] = np.log(all_cases / (everyone - all_cases))
    gradient = np.empty(columns)
    information = np.empty((columns, columns))
    step = np.empty(columns)
    for _ in range(MOST_STEPS):
        gradient[:] = 0.0
        information[:, :] = 0.0
        for r in range(design.shape[0]):
            if people[r] == 0:
                continue
            eta = 0.0
            for c in range(columns):
                eta += design[r, c] * beta[c]
            share = 1.0 / (1.0 + np.exp(-eta))
            residual = cases[r] - people[r] * share
            weight = people[r] * share * (1.0 - share)
            for c in range(columns):
                gradient[c] += design[r, c] * residual
                weighted = weight * design[r, c]
                for d in range(c + 1):
                    information[c, d] += weighted * design[r, d]
        if not _cholesky(information):
            return False
        _solve(information, gradient, step)
        largest = 0.0
        for c in range(columns):
            beta[c] += step[c]
            largest = max(largest, abs(step[c]))
            if not abs(beta[c]) < FARTHEST:
                return False
        if largest < SMALL_STEP:
            for c in range(columns):
                gradient[:] = 0.0
                gradient[c] = 1.0
                _solve(information, gradient, step)
                error[c] = np.sqrt(step[c])
            return True
    return False


@njit(cache=True, nogil=True)
def _cholesky(matrix: Floats) -> bool:
    """Factor a symmetric matrix (lower part given) in place; False when it is not positive definite."""
    n = matrix.shape[0]
    for c in range(n):
        whole = matrix[c, c]
        for i in range(c):
            matrix[c, c] -= matrix[c, i] * matrix[c, i]
        if not matrix[c, c] > 1e-11 * whole:
            return False
        matrix[c, c] = np.sqrt(matrix[c, c])
        for r in range(c + 1, n):
            for i in range(c):
                matrix[r, c] -= matrix[r, i] * matrix[c, i]
            matrix[r, c] /= matrix[c, c]
    return True


@njit(cache=True, nogil=True)
def _solve(factor: Floats, right: Floats, out: Floats) -> None:
    """Solve factor factorᵀ x = right."""
    n = factor.shape[0]
    for r in range(n):
        out[r] = right[r]
        for c in range(r):
            out[r] -= factor[r, c] * out[c]
        out[r] /= factor[r, r]
    for r in range(n - 1, -1, -1):
        for c in range(r + 1, n):
            out[r] -= factor[c, r] * out[c]
        out[r] /= factor[r, r]


@njit(cache=True, nogil=True)
def count_cells(
    cell: Ints,
    totals: Ints,
    case_starts: Ints,
    case_people: Ints,
    out_starts: Ints,
    out_people: Ints,
    phenotype: int,
    cases: Ints,
    people: Ints,
) -> None:
    """Cases and people of each cell for a phenotype. cell : int64[n], -1 for people who are left out altogether.

    case_* : the cases of each phenotype; out_* : everybody who is neither case nor control of it.
    """
    cases[:] = 0
    people[:] = totals
    for i in range(case_starts[phenotype], case_starts[phenotype + 1]):
        c = cell[case_people[i]]
        if c >= 0:
            cases[c] += 1
    for i in range(out_starts[phenotype], out_starts[phenotype + 1]):
        c = cell[out_people[i]]
        if c >= 0:
            people[c] -= 1


@njit(cache=True, nogil=True)
def scan(
    first: int,
    last: int,
    design: Floats,
    cell: Ints,
    totals: Ints,
    case_starts: Ints,
    case_people: Ints,
    out_starts: Ints,
    out_people: Ints,
    fewest: int,
    beta: Floats,
    error: Floats,
    counted: Ints,
) -> None:
    """Fit the phenotypes first … last - 1: `beta` and `error` of column 1 (NaN without an answer), `counted` cases and
    controls.
    """
    cells, columns = design.shape
    cases = np.empty(cells, np.int64)
    people = np.empty(cells, np.int64)
    b, e = np.empty(columns), np.empty(columns)
    for p in range(first, last):
        count_cells(cell, totals, case_starts, case_people, out_starts, out_people, p, cases, people)
        counted[p, 0] = cases.sum()
        counted[p, 1] = people.sum() - counted[p, 0]
        beta[p], error[p] = np.nan, np.nan
        if counted[p, 0] >= fewest and fit_logistic(design, cases, people, b, e):
            beta[p], error[p] = b[1], e[1]
