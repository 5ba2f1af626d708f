"""HorPart: bring records with the same codes together (Loukides et al. 2014, Fig. 8).

Splitting "with code a" from "without" again and again is done on inverted lists: a part's chain of splits visits each
(record, code) pair once, instead of scanning the remaining records at every split. Conventions:
docs/methods/disassociation.md#horizontal-partitioning (the part without the code keeps its parent's ignore set).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

NONE = np.int32(-1)


@njit
def split_chain(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    ignored: NDArray[np.bool_],
    constraint_of: NDArray[np.int32],
    u: int,
    max_size: int,
    count: NDArray[np.int32],
    start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Split `order[lo:hi]` by its most frequent codes until the rest is a leaf.

    Permutes `order[lo:hi]`; returns the parts' begins, ends and the code each holds (-1: the rest, a leaf).
    `count` (zeros) and `start` are scratch, as long as the code domain; `count` is left zeroed.
    """
    n = hi - lo
    touched = np.empty(len(count), np.int32)
    n_touched = 0
    total = 0
    for i in range(lo, hi):
        r = order[i]
        for j in range(offsets[r], offsets[r + 1]):
            c = values[j]
            if not ignored[c]:
                if count[c] == 0:
                    touched[n_touched] = c
                    n_touched += 1
                count[c] += 1
                total += 1
    touched[:n_touched].sort()
    position = 0
    for q in range(n_touched):
        c = touched[q]
        start[c] = position
        position += count[c]
    lists = np.empty(total, np.int32)
    ends = np.empty(n_touched, np.int64)
    for i in range(lo, hi):
        r = order[i]
        for j in range(offsets[r], offsets[r + 1]):
            c = values[j]
            if not ignored[c]:
                lists[start[c]] = i - lo
                start[c] += 1
    for q in range(n_touched):  # `start` now points behind each list
        ends[q] = start[touched[q]]
        start[touched[q]] = q

    taken = np.zeros(n, np.bool_)
    out = np.empty(n, np.int32)
    begins_out = np.empty(n_touched + 1, np.int64)
    ends_out = np.empty(n_touched + 1, np.int64)
    codes_out = np.empty(n_touched + 1, np.int32)
    parts = 0
    filled = 0
    active = touched[:n_touched].copy()
    n_active = n_touched
    while n - filled >= max_size:
        best_u = NONE
        best_constrained = NONE
        best_any = NONE
        kept = 0
        for q in range(n_active):
            c = active[q]
            s = count[c]
            if s == 0:
                continue
            active[kept] = c
            kept += 1
            if best_any < 0 or s > count[best_any]:
                best_any = c
            if constraint_of[c] >= 0:
                if best_constrained < 0 or s > count[best_constrained]:
                    best_constrained = c
                if constraint_of[c] == u and (best_u < 0 or s > count[best_u]):
                    best_u = c
        n_active = kept
        a = best_u
        if u < 0 or a < 0:
            a = best_constrained
        if a < 0:
            a = best_any
        if a < 0:
            break
        u = -1
        first = filled
        q = start[a]
        begin = ends[q - 1] if q > 0 else 0
        for x in range(begin, ends[q]):
            p = lists[x]
            if taken[p]:
                continue
            taken[p] = True
            r = order[lo + p]
            out[filled] = r
            filled += 1
            for j in range(offsets[r], offsets[r + 1]):
                c = values[j]
                if not ignored[c]:
                    count[c] -= 1
        begins_out[parts] = lo + first
        ends_out[parts] = lo + filled
        codes_out[parts] = a
        parts += 1
    if filled < n:
        begins_out[parts] = lo + filled
        for p in range(n):
            if not taken[p]:
                out[filled] = order[lo + p]
                filled += 1
        ends_out[parts] = lo + filled
        codes_out[parts] = NONE
        parts += 1
    for p in range(n):
        order[lo + p] = out[p]
    for q in range(n_touched):
        count[touched[q]] = 0
    return begins_out[:parts], ends_out[:parts], codes_out[:parts]


@njit
def split_all(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    first_ignored: int,
    ignored: NDArray[np.bool_],
    constraint_of: NDArray[np.int32],
    max_size: int,
    leaf_begins: NDArray[np.bool_],
) -> None:
    """HorPart of `order[lo:hi]`, whose records all hold the code `first_ignored` (-1: none was split on yet).

    Permutes `order[lo:hi]` and marks every leaf's first position in `leaf_begins`. `ignored` is restored.
    """
    if hi <= lo:
        return
    if hi - lo < max_size:
        leaf_begins[lo] = True
        return
    n_codes = len(ignored)
    count = np.zeros(n_codes, np.int32)
    start = np.zeros(n_codes, np.int64)
    path = np.empty(n_codes + 1, np.int32)
    depth = 0  # codes on the path are ignored
    stack = [(lo, hi, first_ignored, 0)]
    while len(stack) > 0:
        begin, end, code, level = stack.pop()
        while depth > level:
            depth -= 1
            ignored[path[depth]] = False
        u = -1
        if code >= 0:
            path[depth] = code
            depth += 1
            ignored[code] = True
            u = constraint_of[code]
        b, e, c = split_chain(
            offsets, values, order, begin, end, ignored, constraint_of, u, max_size, count, start
        )
        for i in range(len(b)):
            if c[i] < 0 or e[i] - b[i] < max_size:
                leaf_begins[b[i]] = True
            else:
                stack.append((b[i], e[i], c[i], depth))
    while depth > 0:
        depth -= 1
        ignored[path[depth]] = False


@njit
def gather(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    order: NDArray[np.int32],
    new_offsets: NDArray[np.int64],
    new_values: NDArray[np.int32],
    lo: int,
    hi: int,
) -> None:
    """Copy records `order[lo:hi]` to their place in a CSR whose offsets are already set."""
    for i in range(lo, hi):
        r = order[i]
        at = new_offsets[i]
        for j in range(offsets[r], offsets[r + 1]):
            new_values[at] = values[j]
            at += 1
