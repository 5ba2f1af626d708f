"""Logistic regression over cells of people with equal covariates, one fit after the other.

Newton's method in blocks that stay in the processor's cache; the exponential is written out so that the compiler makes
vector instructions of it (the C library's is called once a number). Each fit is one thread's, so results do not depend
on how many there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.arrays import Float64s, Int64s
from leeward.compiled import njit

MOST_STEPS = 60
SMALL_STEP = 1e-10
"""Newton's steps square: after a step so small, and it is taken, the coefficients are exact in double precision."""
LONGEST_STEP = 4.0
"""A coefficient moves no farther at once (in units of a standardised column): the first steps may overshoot."""
FARTHEST = 30.0
"""A coefficient beyond this means that cases and controls are separated."""

FITTED, FEW, COLLINEAR, SEPARATED = 0, 1, 2, 3
"""Outcomes: fitted; fewer cases or controls than asked for; a column tells nothing new; no finite maximum."""


class Groups(NamedTuple):
    """The cases of each phenotype, and everybody who is neither case nor control of it."""

    case_starts: Int64s
    case_people: Int64s
    out_starts: Int64s
    out_people: Int64s


BLOCK = 512
FARTHEST_SCORE = 700.0
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
TO_WHOLE = 6755399441055744.0
"""1.5 · 2^52: added and taken off again, it rounds; its low bits then hold the whole number."""


@njit
def shares(score: Float64s, n: int, whole: Float64s, scale: Float64s, share: Float64s) -> None:
    """share = 1 / (1 + exp(-score)) of the first n, to the last bits; `whole` and `scale` are used up."""
    bits, power = whole.view(np.int64), scale.view(np.int64)
    for i in range(n):
        x = min(max(-score[i], -FARTHEST_SCORE), FARTHEST_SCORE)
        score[i] = x
        whole[i] = x * LOG2_E + TO_WHOLE
    for i in range(n):
        power[i] = (bits[i] + 1023) << 52
    for i in range(n):
        m = whole[i] - TO_WHOLE
        r = (score[i] - m * LN2_HIGH) - m * LN2_LOW
        # The series of exp for |r| < 0.35, to the 12th power: what is left off is below 2e-16.
        e = 1.0 / 479001600.0
        e = e * r + 1.0 / 39916800.0
        e = e * r + 1.0 / 3628800.0
        e = e * r + 1.0 / 362880.0
        e = e * r + 1.0 / 40320.0
        e = e * r + 1.0 / 5040.0
        e = e * r + 1.0 / 720.0
        e = e * r + 1.0 / 120.0
        e = e * r + 1.0 / 24.0
        e = e * r + 1.0 / 6.0
        e = e * r + 0.5
        e = e * r + 1.0
        e = e * r + 1.0
        share[i] = 1.0 / (1.0 + e * scale[i])


@njit(inner=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(one: Float64s, other: Float64s) -> float:
    """Sum of products; the fixed order is the compiler's."""
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@njit(inner=True)
def _derivatives(
    design: Float64s,
    cases: Float64s,
    people: Float64s,
    beta: Float64s,
    gradient: Float64s,
    information: Float64s,
    room: Float64s,
) -> None:
    """Gradient and information (lower part) of the log-likelihood at beta. room : float64[6, BLOCK]."""
    columns, cells = design.shape
    score, whole, scale, share, weight, product = room[0], room[1], room[2], room[3], room[4], room[5]
    gradient[:] = 0.0
    information[:, :] = 0.0
    for first in range(0, cells, BLOCK):
        n = min(BLOCK, cells - first)
        score[:n] = beta[0]
        for c in range(1, columns):
            b, column = beta[c], design[c, first : first + n]
            for i in range(n):
                score[i] += b * column[i]
        shares(score, n, whole, scale, share)
        here, ill = people[first : first + n], cases[first : first + n]
        for i in range(n):
            expected = here[i] * share[i]
            weight[i] = expected * (1.0 - share[i])
            share[i] = ill[i] - expected
        for c in range(columns):
            column = design[c, first : first + n]
            gradient[c] += _dot(column, share[:n])
            for i in range(n):
                product[i] = weight[i] * column[i]
            for d in range(c + 1):
                information[c, d] += _dot(product[:n], design[d, first : first + n])


@njit(inner=True)
def fit_logistic(
    design: Float64s, cases: Float64s, people: Float64s, beta: Float64s, error: Float64s, room: Float64s
) -> int:
    """Maximum likelihood by Newton's method from `beta`; writes coefficients and standard errors, says the outcome.

    design : float64[columns, cells], the first row all 1. cases, people : float64[cells], of each cell.
    """
    columns = design.shape[0]
    gradient = np.empty(columns)
    information = np.empty((columns, columns))
    step = np.empty(columns)
    for turn in range(MOST_STEPS):
        _derivatives(design, cases, people, beta, gradient, information, room)
        if not _cholesky(information):
            return COLLINEAR if turn == 0 else SEPARATED
        _solve(information, gradient, step)
        largest = np.abs(step).max()
        if not largest < np.inf:
            return SEPARATED
        shorter = min(1.0, LONGEST_STEP / largest) if largest > 0 else 1.0
        for c in range(columns):
            beta[c] += shorter * step[c]
            if not abs(beta[c]) < FARTHEST:
                return SEPARATED
        if largest < SMALL_STEP:
            for c in range(columns):
                gradient[:] = 0.0
                gradient[c] = 1.0
                _solve(information, gradient, step)
                error[c] = np.sqrt(step[c])
            return FITTED
    return SEPARATED


@njit(inner=True)
def _cholesky(matrix: Float64s) -> bool:
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


@njit(inner=True)
def _solve(factor: Float64s, right: Float64s, out: Float64s) -> None:
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


@njit(inner=True)
def count_cells(
    cell: Int64s,
    totals: Float64s,
    groups: Groups,
    phenotype: int,
    cases: Float64s,
    people: Float64s,
) -> None:
    """Cases and people of each cell for a phenotype. cell : int64[n], -1 for people who are left out altogether."""
    case_starts, case_people, out_starts, out_people = groups
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


@njit
def scan(
    first: int,
    last: int,
    design: Float64s,
    cell: Int64s,
    totals: Float64s,
    groups: Groups,
    fewest: int,
    beta: Float64s,
    error: Float64s,
    counted: Int64s,
    outcome: Int64s,
) -> None:
    """Fit the phenotypes first … last - 1.

    beta : float64[phenotypes, columns], where each fit starts (NaN: nowhere known) and where it ends (NaN: no answer).
    error : the same of the standard errors. counted : cases and controls. outcome : FITTED, FEW, COLLINEAR, SEPARATED.
    """
    cells = design.shape[1]
    cases, people = np.empty(cells), np.empty(cells)
    room = np.empty((6, BLOCK))
    for p in range(first, last):
        count_cells(cell, totals, groups, p, cases, people)
        ill, everyone = cases.sum(), people.sum()
        counted[p, 0], counted[p, 1] = np.int64(ill), np.int64(everyone - ill)
        outcome[p] = FEW
        if counted[p, 0] >= fewest and counted[p, 1] >= fewest:
            if np.isnan(beta[p, 0]):
                beta[p, :] = 0.0
                beta[p, 0] = np.log(ill / (everyone - ill))
            outcome[p] = fit_logistic(design, cases, people, beta[p], error[p], room)
        if outcome[p] != FITTED:
            beta[p, :] = np.nan
            error[p, :] = np.nan
