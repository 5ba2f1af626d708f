"""Expected answers to queries for pairs, under the uniform reading of generalized values."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit


@njit(error_model="numpy")
def expected(q_offsets, q_codes, q_ages, offsets, c_low, c_high, a_low, a_high, times, out):
    """out[q] = Σ over trajectories (each `times` often) of P(it holds all pairs of query q)
    (docs/methods/trajectories.md#measures).

    P = Σ_{S⊆Q} (−1)^|S| Π_p (1 − Σ_{q∈S}[p covers q] / (leaves of p's code · leaves of p's age)).
    """
    covers = np.empty(64, np.int64)
    for q in range(len(q_offsets) - 1):
        first, size = q_offsets[q], q_offsets[q + 1] - q_offsets[q]
        total = 0.0
        for t in range(len(offsets) - 1):
            held = np.int64(0)
            for p in range(offsets[t], offsets[t + 1]):
                for s in range(size):
                    if (
                        c_low[p] <= q_codes[first + s] < c_high[p]
                        and a_low[p] <= q_ages[first + s] < a_high[p]
                    ):
                        held |= np.int64(1) << s
            if held != (np.int64(1) << size) - 1:
                continue  # a pair that no published one covers: probability 0
            probability = 0.0
            for subset in range(1 << size):
                term = 1.0
                bits = 0
                for s in range(size):
                    if subset >> s & 1:
                        covers[bits] = s
                        bits += 1
                for p in range(offsets[t], offsets[t + 1]):
                    inside = 0
                    for b in range(bits):
                        s = covers[b]
                        if (
                            c_low[p] <= q_codes[first + s] < c_high[p]
                            and a_low[p] <= q_ages[first + s] < a_high[p]
                        ):
                            inside += 1
                    if inside:
                        term *= 1.0 - inside / ((c_high[p] - c_low[p]) * (a_high[p] - a_low[p]))
                probability += -term if bits & 1 else term
            total += times[t] * probability
        out[q] = total
