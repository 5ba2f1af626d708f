"""Columns before and after: moments, level counts, correlations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leeward.cohort.lenses.table import Column, Floats
from leeward.methods.condensation.measures.both import Both, Singles, dummies

CORRELATED = 30
"""Columns (numbers and dummies) of a correlation matrix, at most."""

BLOCK = 1 << 18
"""Rows that are summed at a time."""


def marginals(both: Both) -> dict[str, Any]:
    """Means, medians, sums and standard deviations of numbers, frequencies of levels, missing values."""
    numbers: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = []
    for each in both.table.columns:
        column, before, after = both.columns(each.name)
        if column.kind in ("levels", "ordered"):
            levels += _frequencies(column, before, after)
        elif not np.isnan(before).all():
            numbers.append({"column": column.name, "before": _moments(before), "after": _moments(after)})
    rows = {"before": len(both.table), "after": both.made.height}
    return {"rows": rows, "numbers": numbers, "levels": levels}


def _moments(values: Floats) -> dict[str, float | int | None]:
    """None where every value is missing."""
    known = values[~np.isnan(values)]
    moments: dict[str, Callable[[Floats], Any]] = {
        "mean": np.mean,
        "median": np.median,
        "sum": np.sum,
        "sd": np.std,
    }
    return {
        **{name: float(moment(known)) if len(known) else None for name, moment in moments.items()},
        "missing": len(values) - len(known),
    }


def _frequencies(column: Column, before: Floats, after: Floats) -> list[dict[str, Any]]:
    rows = []
    for number, level in enumerate((*column.levels, None)):
        counts = [int((np.isnan(v) if level is None else v == number).sum()) for v in (before, after)]
        if any(counts):
            name = "(missing)" if level is None else str(level)
            rows.append({"column": column.name, "level": name, "before": counts[0], "after": counts[1]})
    return rows


def correlations(both: Both) -> dict[str, Any]:
    """Pearson correlations of numbers and dummies before and after (the first level of each column left out)."""
    names, before, after, first = dummies(both)
    shown = [place for place in range(len(names)) if not first[place]][:CORRELATED]
    matrices = [_correlation(each, shown) for each in (before, after)]
    gap = np.abs(matrices[0] - matrices[1])[np.triu_indices(len(shown), 1)]
    one, two = (np.round(each, 4).tolist() for each in matrices)
    return {
        "columns": [names[place] for place in shown],
        "before": one,
        "after": two,
        "mean_difference": float(gap.mean()) if len(gap) else 0.0,
        "largest_difference": float(gap.max()) if len(gap) else 0.0,
    }


def _correlation(values: Singles, columns: list[int]) -> Floats:
    """Of some columns; sums run over blocks of rows, so that a large table is not copied."""
    blocks = range(0, len(values), BLOCK)
    mean = sum(values[start : start + BLOCK, columns].sum(axis=0, dtype=np.float64) for start in blocks)
    mean /= len(values)
    products = np.zeros((len(columns), len(columns)))
    for start in blocks:
        moved = values[start : start + BLOCK, columns] - mean
        products += moved.T @ moved
    spread = np.sqrt(np.diagonal(products))
    found: Floats = products / np.outer(*(2 * [np.where(spread > 0, spread, 1.0)]))
    return found
