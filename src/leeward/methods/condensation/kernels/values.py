"""Kernels of synthesis: group moments, recolouring, the way back to each group's own values.

See docs/methods/condensation.md#synthesis and docs/methods/condensation.md#group-marginals.

Rows are sorted by group; group g is rows offsets[g] … offsets[g + 1] − 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.compiled import njit


@njit
def moments(rows: Any, offsets: Any) -> Any:
    """Mean float64[groups, columns] and covariance float64[groups, columns, columns] (divisor: the group's rows)."""
    groups, width = len(offsets) - 1, rows.shape[1]
    means = np.zeros((groups, width))
    covariances = np.zeros((groups, width, width))
    moved = np.empty(width)
    for g in range(groups):
        start, end = offsets[g], offsets[g + 1]
        mean = means[g]
        for row in range(start, end):
            for j in range(width):
                mean[j] += rows[row, j]
        mean /= end - start
        covariance = covariances[g]
        for row in range(start, end):
            for j in range(width):
                moved[j] = rows[row, j] - mean[j]
            for i in range(width):
                factor = moved[i]
                line = covariance[i]
                for j in range(width):
                    line[j] += factor * moved[j]
        covariance /= end - start
    return means, covariances


@njit
def identical(rows: Any, offsets: Any) -> int:
    """How many groups consist of rows that are all alike."""
    count = 0
    for g in range(len(offsets) - 1):
        start = offsets[g]
        alike = True
        for row in range(start + 1, offsets[g + 1]):
            for j in range(rows.shape[1]):
                if rows[row, j] != rows[start, j]:
                    alike = False
                    break
            if not alike:
                break
        count += alike
    return count


@njit
def recolour(draws: Any, factors: Any, means: Any, offsets: Any) -> Any:
    """Each row of `draws` (float64[rows, kept]) as mean + factor · draw; `factors` is [groups, columns, kept]."""
    n, kept = draws.shape
    width = means.shape[1]
    made = np.empty((n, width))
    for g in range(len(offsets) - 1):
        factor, mean = factors[g], means[g]
        for row in range(offsets[g], offsets[g + 1]):
            for i in range(width):
                value = mean[i]
                for j in range(kept):
                    value += factor[i, j] * draws[row, j]
                made[row, i] = value
    return made


@njit(inner=True)
def _descending(scores: Any, rows: Any) -> Any:
    return rows[np.argsort(-scores[rows], kind="mergesort")]


@njit
def group_levels(scores: Any, codes: Any, offsets: Any, levels: int) -> Any:
    """Levels with the counts they have in the group: in ascending count (equal counts: in the levels' order), each
    level goes to that many still free rows with the highest scores.

    scores : float64[rows, levels] synthetic dummies. codes : int64[rows] the group's own levels, in any order.
    Returns int64[rows].
    """
    given = np.empty(len(codes), np.int64)
    counts = np.empty(levels, np.int64)
    for g in range(len(offsets) - 1):
        start, end = offsets[g], offsets[g + 1]
        counts[:] = 0
        for row in range(start, end):
            counts[codes[row]] += 1
        free = np.arange(start, end)
        for level in np.argsort(counts, kind="mergesort"):
            count = counts[level]
            if count == 0:
                continue
            if count == len(free):
                given[free] = level
                break
            ranked = _descending(scores[:, level], free)
            given[ranked[:count]] = level
            free = np.sort(ranked[count:])
    return given


@njit
def group_numbers(
    scores: Any, values: Any, offsets: Any, steps: Any, exact: bool, low: float, high: float
) -> Any:
    """The group's own values by rank: the row of rank i gets x(i), moved by |u| towards a neighbour unless `exact`.

    scores : float64[rows] synthetic values, NaN where the row is to stay missing. values : float64[rows] the group's
    values, NaN where missing, as many as there are NaN scores. steps : float64[rows] uniform in (−½, ½): its sign
    chooses the neighbour, at both ends the inward one. With low < high steps are halved and the ends move outwards as
    often as inwards, in proportion to the gap to their neighbour, but for moves that would leave low … high, which turn
    back: small groups keep their variance. Returns float64[rows].
    """
    made = np.full(len(values), np.nan)
    for g in range(len(offsets) - 1):
        start, end = offsets[g], offsets[g + 1]
        ordered = np.sort(values[start:end])
        known = 0
        while known < end - start and not np.isnan(ordered[known]):
            known += 1
        ranked = start + np.argsort(scores[start:end], kind="mergesort")
        # NaN scores rank last, like NaN values.
        for i in range(known):
            row = ranked[i]
            value = ordered[i]
            if not exact and known > 1:
                step = steps[row]
                if low < high:
                    place = min(max(i if step > 0.0 else i - 1, 0), known - 2)
                    move = 0.5 * step * (ordered[place + 1] - ordered[place])
                    value += -move if value + move < low or value + move > high else move
                else:
                    up = i == 0 or (step > 0.0 and i < known - 1)
                    neighbour = ordered[i + 1] if up else ordered[i - 1]
                    value += abs(step) * (neighbour - value)
            made[row] = value
    return made


@njit
def group_medians(values: Any, offsets: Any) -> Any:
    """Every value replaced by its group's median (of two middle ones, the lower)."""
    made = np.empty(len(values))
    for g in range(len(offsets) - 1):
        ordered = np.sort(values[offsets[g] : offsets[g + 1]])
        made[offsets[g] : offsets[g + 1]] = ordered[(len(ordered) - 1) // 2]
    return made


@njit
def fill(values: Any, offsets: Any, draws: Any, fallback: float) -> Any:
    """NaN replaced by one of the group's known values, chosen by the row's uniform draw; else by `fallback`."""
    made = values.copy()
    for g in range(len(offsets) - 1):
        start, end = offsets[g], offsets[g + 1]
        known = values[start:end][~np.isnan(values[start:end])]
        for row in range(start, end):
            if np.isnan(made[row]):
                if len(known) > 0:
                    made[row] = known[min(int(draws[row] * len(known)), len(known) - 1)]
                else:
                    made[row] = fallback
    return made


@njit
def pool(covariances: Any, offsets: Any, blocks: Any) -> Any:
    """Covariances within groups, averaged over blocks of groups (block b: groups blocks[b] … blocks[b + 1] − 1).

    covariances : float64[groups, columns, columns]. Returns float64[blocks, columns, columns], each group weighted by
    its rows.
    """
    width = covariances.shape[1]
    pooled = np.zeros((len(blocks) - 1, width, width))
    for b in range(len(blocks) - 1):
        first, last = blocks[b], blocks[b + 1]
        total = offsets[last] - offsets[first]
        for g in range(first, last):
            pooled[b] += covariances[g] * ((offsets[g + 1] - offsets[g]) / total)
    return pooled


@njit
def restore_pooled(
    rows: Any, offsets: Any, blocks: Any, covariances: Any, attribute: Any, scores: Any, least: float
) -> None:
    """`restore` for covariances within groups that are averaged over blocks; changes `covariances` [blocks, …].

    Hermite coefficients are summed over a block's groups, with scores[m] Blom's normal scores of m rows divided by
    √((m − 1)/m), the spread that scores drawn for a group have around their mean: right for groups of two rows too.
    """
    width = rows.shape[1]
    first = np.empty(width)
    second = np.empty(width)
    for b in range(len(blocks) - 1):
        covariance = covariances[b]
        total = offsets[blocks[b + 1]] - offsets[blocks[b]]
        for j in range(width):
            spread = np.sqrt(covariance[j, j])
            first[j] = 1.0
            second[j] = 0.0
            if spread > 0.0:
                linear = 0.0
                square = 0.0
                for g in range(blocks[b], blocks[b + 1]):
                    start, end = offsets[g], offsets[g + 1]
                    size = end - start
                    ordered = np.sort(rows[start:end, j])
                    mean = ordered.mean()
                    for i in range(size):
                        score = scores[size, i]
                        linear += (ordered[i] - mean) * score
                        square += (ordered[i] - mean) * (score * score - 1.0)
                first[j] = max(linear / (total * spread), least)
                second[j] = square / (total * spread * np.sqrt(2.0))
        for i in range(width):
            for j in range(i):
                unit = np.sqrt(covariance[i, i] * covariance[j, j])
                if attribute[i] != attribute[j] and unit > 0.0:
                    value = (
                        _latent(covariance[i, j] / unit, first[i] * first[j], second[i] * second[j]) * unit
                    )
                    covariance[i, j] = value
                    covariance[j, i] = value


@njit(inner=True)
def _latent(wanted: float, linear: float, square: float) -> float:
    """The r with linear · r + square · r² = wanted, within ±0.99."""
    root = linear * linear + 4.0 * square * wanted
    value = 2.0 * wanted / (linear + np.sqrt(root)) if root > 0.0 else -0.5 * linear / square
    return min(max(value, -0.99), 0.99)


@njit
def restore(rows: Any, offsets: Any, covariances: Any, attribute: Any, scores: Any, least: float) -> None:
    """Undo beforehand what matching by rank will take from covariances between attributes; changes `covariances`.

    When normal scores of correlation r are replaced by two columns' own values in the same order, the correlation of
    the values is b₁b₂r + c₁c₂r² + …, with a column's first two Hermite coefficients b (its correlation with normal
    scores; φ(z)/√(p(1 − p)) for a level of share p; at least `least`) and c (with (score² − 1)/√2). Each covariance
    becomes that of the r which solves this to the second order, kept within ±0.99.

    attribute : int64[columns], the attribute of each column; dummies of one attribute are left as they are.
    scores : float64[sizes, most], row m the standardized normal scores of a group of m rows.
    """
    width = rows.shape[1]
    first = np.empty(width)
    second = np.empty(width)
    for g in range(len(offsets) - 1):
        start, end = offsets[g], offsets[g + 1]
        size = end - start
        covariance = covariances[g]
        for j in range(width):
            spread = np.sqrt(covariance[j, j])
            first[j] = 1.0
            second[j] = 0.0
            if spread > 0.0:
                ordered = np.sort(rows[start:end, j])
                linear = 0.0
                square = 0.0
                for i in range(size):
                    linear += ordered[i] * scores[size, i]
                    square += ordered[i] * (scores[size, i] * scores[size, i] - 1.0)
                first[j] = max(linear / (size * spread), least)
                second[j] = square / (size * spread * np.sqrt(2.0))
        for i in range(width):
            for j in range(i):
                unit = np.sqrt(covariance[i, i] * covariance[j, j])
                if attribute[i] != attribute[j] and unit > 0.0:
                    value = (
                        _latent(covariance[i, j] / unit, first[i] * first[j], second[i] * second[j]) * unit
                    )
                    covariance[i, j] = value
                    covariance[j, i] = value
