"""Expected answers to queries for pairs, under the uniform reading of generalized values."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.analysis.kernels import popcount
from leeward.compiled import njit


@njit(inner=True, error_model="numpy")
def _cover(p, q_codes, q_ranges, c_low, c_high, age, inside, leaves):
    """Fill `leaves`: how many ages below the published pair p are in each range asked, 0 where it has another code.
    Returns the pairs of the query that p covers, as bits."""
    covered = np.int64(0)
    for s in range(len(q_codes)):
        leaves[s] = inside[age[p], q_ranges[s]] if c_low[p] <= q_codes[s] < c_high[p] else 0
        covered |= np.int64(leaves[s] > 0) << s
    return covered


@njit(error_model="numpy")
def estimate(q_offsets, q_codes, q_ranges, offsets, c_low, c_high, age, choices, inside, times, out):
    """out[q] = Σ over trajectories (each `times` often) of P(it holds all pairs of query q)
    (docs/methods/trajectories.md#measures). `inside[node, range]`: ages of a range below a node; `choices`: (code, age)
    pairs that a published pair may mean. P = Σ_{S⊆Q} (−1)^|S| Π_p (1 − Σ_{q∈S} inside[p, q]/choices[p])."""
    covered = np.empty(len(c_low), np.int64)
    leaves = np.empty((np.diff(offsets).max(), np.diff(q_offsets).max()), np.int64)
    for q in range(len(q_offsets) - 1):
        own = slice(q_offsets[q], q_offsets[q + 1])
        every = (np.int64(1) << (q_offsets[q + 1] - q_offsets[q])) - 1
        out[q] = 0.0
        for t in range(len(offsets) - 1):
            held = np.int64(0)
            for p in range(offsets[t], offsets[t + 1]):
                own_leaves = leaves[p - offsets[t]]
                covered[p] = _cover(p, q_codes[own], q_ranges[own], c_low, c_high, age, inside, own_leaves)
                held |= covered[p]
            if held != every:
                continue  # a pair that no published one covers: probability 0
            probability = 0.0
            for subset in range(every + 1):
                term = 1.0
                for p in range(offsets[t], offsets[t + 1]):
                    if covered[p] & subset:
                        wanted = np.int64(0)
                        for s in range(q_offsets[q + 1] - q_offsets[q]):
                            wanted += leaves[p - offsets[t], s] * (subset >> s & 1)
                        term *= 1.0 - wanted / choices[p]
                probability += -term if popcount(subset) & 1 else term
            out[q] += times[t] * probability
