"""Which original trajectories a published one can stand for."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def owners(c_low, c_high, a_low, a_high, originals, offsets, codes, ages, out):
    """Originals that hold the published pairs in order; returns how many, their numbers in `out`.

    c_low … a_high : leaf intervals of the published pairs (high excluded). The leftmost fit of each pair in turn
    finds an order-preserving matching whenever there is one.
    """
    m = len(c_low)
    count = 0
    for i in range(len(originals)):
        original = originals[i]
        j, end = offsets[original], offsets[original + 1]
        p = 0
        while p < m and end - j >= m - p:
            if c_low[p] <= codes[j] < c_high[p] and a_low[p] <= ages[j] < a_high[p]:
                p += 1
            j += 1
        if p == m:
            out[count] = original
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def grid_sum(sums, c_low, c_high, a_low, a_high):
    """Entries inside a rectangle, from the table of cumulative sums."""
    return sums[c_high, a_high] - sums[c_low, a_high] - sums[c_high, a_low] + sums[c_low, a_low]


@njit(cache=True, nogil=True, error_model="numpy")
def holders(c_low, c_high, a_low, a_high, starts, holder, width, seen, stamp, out):
    """Distinct originals with a pair in the rectangle, ascending by cell; `seen` is stamped."""
    count = 0
    for c in range(c_low, c_high):
        for i in range(starts[c * width + a_low], starts[c * width + a_high]):
            original = holder[i]
            if seen[original] != stamp:
                seen[original] = stamp
                out[count] = original
                count += 1
    return count
