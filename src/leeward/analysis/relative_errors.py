"""Relative errors of estimated counts: the one function that measures every method's releases."""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.arrays import Float64s, Int64s


def relative_errors(true: Int64s, expected: Float64s) -> Float64s:
    """|estimate - true| / true of every query with a true count above 0."""
    asked = true > 0
    return np.asarray(np.abs(expected[asked] - true[asked]) / true[asked], np.float64)


def average_relative_error(
    true: Int64s,
    expected: Float64s,
    low: Int64s | None = None,
    high: Int64s | None = None,
) -> dict[str, Any]:
    """ARE and what it rests on; a query with a true count of 0 has no relative error and is counted as
    skipped.

    `outside_bounds`: true counts outside [low, high]; 0 unless the release or its bounds are wrong.
    """
    errors = relative_errors(true, expected)
    outside = 0 if low is None or high is None else int(((true < low) | (true > high)).sum())
    return {
        "queries": len(errors),
        "skipped": len(true) - len(errors),
        "are": float(errors.mean()) if len(errors) else 0.0,
        "median": float(np.median(errors)) if len(errors) else 0.0,
        "largest": float(errors.max()) if len(errors) else 0.0,
        "outside_bounds": outside,
    }
