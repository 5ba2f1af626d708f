"""Kernels that keep relations inside groups: values change rows, no value changes.

Rows are sorted by group; group g is rows offsets[g] … offsets[g + 1] − 1. See docs/methods/condensation.md#relations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.compiled import njit


@njit
def at_most(a: Any, bound: Any, fixed: Any, offsets: Any, cap: bool) -> int:
    """Give each group's values of `a` to its rows so that none is above `bound`; changes `a`.

    Values in descending order, each to the free row of greatest own value among those whose bound is not below it:
    rows that may take a value may take every smaller one, so an assignment is found where one exists. A value that no
    free row may take goes to the free row with the greatest bound, and becomes that bound with `cap`; their number is
    returned. Rows that are `fixed` (bool) or whose value is NaN take no part; a bound of NaN bounds nothing.
    """
    changed = 0
    for g in range(len(offsets) - 1):
        rows = np.empty(offsets[g + 1] - offsets[g], np.int64)
        count = 0
        clean = True
        for row in range(offsets[g], offsets[g + 1]):
            if not fixed[row] and not np.isnan(a[row]):
                rows[count] = row
                count += 1
                if a[row] > bound[row]:
                    clean = False
        if clean:
            continue
        taking = rows[:count]
        taking = taking[np.argsort(-a[taking], kind="mergesort")]
        own = a[taking].copy()
        free = np.ones(count, np.bool_)
        for i in range(count):
            chosen = -1
            highest = -1
            for place in range(count):
                if not free[place]:
                    continue
                limit = bound[taking[place]]
                if np.isnan(limit) or limit >= own[i]:
                    chosen = place
                    break
                if highest < 0 or limit > bound[taking[highest]]:
                    highest = place
            if chosen < 0:
                chosen = highest
                a[taking[chosen]] = bound[taking[chosen]] if cap else own[i]
                changed += 1
            else:
                a[taking[chosen]] = own[i]
            free[chosen] = False
    return changed


@njit
def zeros_together(a: Any, b: Any, offsets: Any) -> None:
    """Swap values of `b` inside groups so that they are 0 where `a` is; changes `b`."""
    for g in range(len(offsets) - 1):
        waiting = offsets[g]
        for row in range(offsets[g], offsets[g + 1]):
            if a[row] == 0.0 and b[row] != 0.0 and not np.isnan(b[row]):
                while waiting < offsets[g + 1] and not (
                    b[waiting] == 0.0 and a[waiting] != 0.0 and not np.isnan(a[waiting])
                ):
                    waiting += 1
                if waiting < offsets[g + 1]:
                    b[row], b[waiting] = b[waiting], b[row]


@njit
def levels_in_range(codes: Any, numbers: Any, low: Any, high: Any, offsets: Any) -> None:
    """Swap levels inside groups until each is beside numbers that it may be beside; changes `codes`.

    codes : float64[rows]; numbers : float64[columns, rows]; low, high : float64[columns, levels]. A level whose row it
    may not be beside goes to the first row of the group where both are then allowed.
    """
    columns = numbers.shape[0]
    for g in range(len(offsets) - 1):
        for row in range(offsets[g], offsets[g + 1]):
            if np.isnan(codes[row]) or _is_allowed(codes[row], row, numbers, low, high, columns):
                continue
            for other in range(offsets[g], offsets[g + 1]):
                if (
                    not np.isnan(codes[other])
                    and codes[other] != codes[row]
                    and _is_allowed(codes[row], other, numbers, low, high, columns)
                    and _is_allowed(codes[other], row, numbers, low, high, columns)
                ):
                    codes[row], codes[other] = codes[other], codes[row]
                    break


@njit(inner=True)
def _is_allowed(code: float, row: int, numbers: Any, low: Any, high: Any, columns: int) -> bool:
    level = int(code)
    for column in range(columns):
        value = numbers[column, row]
        if value < low[column, level] or value > high[column, level]:
            return False
    return True
