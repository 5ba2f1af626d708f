"""Expected answers to queries for pairs, under the uniform reading of generalized values."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.analysis.kernels import popcount
from leeward.compiled import njit


@njit(inner=True, error_model="numpy")
def _cover(p, q_codes, q_ages, c_low, c_high, a_low, a_high):
    """The pairs of a query that the published pair p covers, as bits."""
    covered = np.int64(0)
    for s in range(len(q_codes)):
        if c_low[p] <= q_codes[s] < c_high[p] and a_low[p] <= q_ages[s] < a_high[p]:
            covered |= np.int64(1) << s
    return covered


@njit(error_model="numpy")
def estimate(q_offsets, q_codes, q_ages, offsets, c_low, c_high, a_low, a_high, times, out):
    """out[q] = Σ over trajectories (each `times` often) of P(it holds all pairs of query q)
    (docs/methods/trajectories.md#measures). P = Σ_{S⊆Q} (−1)^|S| Π_p (1 − Σ_{q∈S}[p covers q] / (leaves of p's code ·
    leaves of p's age))."""
    covered = np.empty(len(c_low), np.int64)
    for q in range(len(q_offsets) - 1):
        own = slice(q_offsets[q], q_offsets[q + 1])
        every = (np.int64(1) << (q_offsets[q + 1] - q_offsets[q])) - 1
        out[q] = 0.0
        for t in range(len(offsets) - 1):
            held = np.int64(0)
            for p in range(offsets[t], offsets[t + 1]):
                covered[p] = _cover(p, q_codes[own], q_ages[own], c_low, c_high, a_low, a_high)
                held |= covered[p]
            if held != every:
                continue  # a pair that no published one covers: probability 0
            probability = 0.0
            for subset in range(every + 1):
                term = 1.0
                for p in range(offsets[t], offsets[t + 1]):
                    inside = popcount(covered[p] & subset)
                    if inside:
                        term *= 1.0 - inside / ((c_high[p] - c_low[p]) * (a_high[p] - a_low[p]))
                probability += -term if popcount(subset) & 1 else term
            out[q] += times[t] * probability
