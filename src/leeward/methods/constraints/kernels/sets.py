"""Kernels over sets of three and more clusters, depth first over the records that hold the sets' beginnings.

Arrays as in `kernels`.
"""

from __future__ import annotations

import numpy as np

from leeward.compiled import njit
from leeward.methods.constraints.kernels.greedy import Bool, Int32, Int64, place_of


@njit(inner=True)
def posting_length(cluster: int, posting_at: Int64, after: Int32) -> int:
    """Entries in the postings of a cluster's codes (a record counts once a code)."""
    total = 0
    code = cluster
    while code >= 0:
        total += posting_at[code + 1] - posting_at[code]
        code = after[code]
    return int(total)


@njit(inner=True)
def _rows_of(cluster: int, posting_at: Int64, postings: Int32, after: Int32, stamp: Int32, out: Int32) -> int:
    """The records of a cluster, each once."""
    n = 0
    code = cluster
    while code >= 0:
        for p in range(posting_at[code], posting_at[code + 1]):
            r = postings[p]
            if stamp[r] != cluster:
                stamp[r] = cluster
                out[n] = r
                n += 1
        code = after[code]
    return n


@njit
def _count(
    rows: Int32, size: int, last: int, allowed: Bool, values: Int32, start: Int64, length: Int32,
    weight: Int64, counts: Int64, touched: Int32,
) -> int:  # fmt: skip
    """Supports, in `rows`, of the allowed clusters after `last`; returns how many were met."""
    n = 0
    for x in range(size):
        r = rows[x]
        for i in range(start[r], start[r] + length[r]):
            v = values[i]
            if v > last and allowed[v]:
                if counts[v] == 0:
                    touched[n] = v
                    n += 1
                counts[v] += weight[r]
    return n


@njit
def search(
    d: int, k: int, floor: int, allowed: Bool, values: Int32, start: Int64, length: Int32, weight: Int64,
    posting_at: Int64, postings: Int32, after: Int32, pair: Int64, found: Int32,
) -> int:  # fmt: skip
    """The violating set of exactly d ≥ 2 clusters with the largest support above `floor`; ties: the
    smallest names. The arrays come one by one: it is called for every set that is tried, and a tuple would be taken
    apart at each call.

    Depth first over sets whose beginnings all have support ≥ k: a set that is left out this way holds a
    smaller violating set of at least its support, which the caller prefers. Writes the set to `found`,
    returns its support (0: none).
    """
    n_codes = len(pair)
    widest = 0
    for c in range(n_codes):
        if allowed[c]:
            widest = max(widest, posting_length(c, posting_at, after))
    rows = np.empty((d - 1, max(widest, 1)), np.int32)
    size = np.zeros(d - 1, np.int64)
    counts = np.zeros((d - 1, n_codes), np.int64)
    touched = np.empty((d - 1, n_codes), np.int32)
    met = np.zeros(d - 1, np.int64)
    at = np.zeros(d - 1, np.int64)
    stamp = np.full(len(start), -1, np.int32)
    prefix = np.empty(d, np.int32)
    top = 0
    bar = floor
    for i in range(n_codes):
        if not allowed[i] or pair[i, i] < k:
            continue
        prefix[0] = i
        size[0] = _rows_of(i, posting_at, postings, after, stamp, rows[0])
        met[0] = _count(rows[0], size[0], i, allowed, values, start, length, weight, counts[0], touched[0])
        at[0] = -1
        level = 0
        while level >= 0:
            if at[level] < 0:
                at[level] = 0
                if level < d - 2:
                    touched[level, : met[level]].sort()
            if level == d - 2:
                last = n_codes
                for x in range(met[level]):
                    v = touched[level, x]
                    s = counts[level, v]
                    if bar < s < k or (s == bar and last < n_codes and v < last):
                        bar = top = s
                        last = v
                        found[: d - 1] = prefix[: d - 1]
                        found[d - 1] = v
                at[level] = met[level]
            while at[level] < met[level] and counts[level, touched[level, at[level]]] < k:
                at[level] += 1
            if at[level] >= met[level]:
                for x in range(met[level]):
                    counts[level, touched[level, x]] = 0
                level -= 1
                if top == k - 1:
                    return int(top)
                continue
            v = touched[level, at[level]]
            at[level] += 1
            below = 0
            for x in range(size[level]):
                r = rows[level, x]
                if place_of(values, start[r], length[r], v) >= 0:
                    rows[level + 1, below] = r
                    below += 1
            level += 1
            prefix[level] = v
            size[level] = below
            met[level] = _count(
                rows[level], below, v, allowed, values, start, length, weight, counts[level], touched[level]
            )
            at[level] = -1
    return int(top)


@njit
def violating_sets(
    d: int, k: int, values: Int32, start: Int64, length: Int32, weight: Int64,
    posting_at: Int64, postings: Int32, after: Int32, pair: Int64,
) -> Int32:  # fmt: skip
    """int32[n, d]: every violating set of exactly d ≥ 3 clusters whose smaller parts all have support ≥ k."""
    n_codes = len(pair)
    allowed = np.zeros(n_codes, np.bool_)
    widest = 1
    for c in range(n_codes):
        if pair[c, c] > 0:
            allowed[c] = True
            widest = max(widest, posting_length(c, posting_at, after))
    rows = np.empty((d - 1, widest), np.int32)
    size = np.zeros(d - 1, np.int64)
    counts = np.zeros((d - 1, n_codes), np.int64)
    touched = np.empty((d - 1, n_codes), np.int32)
    met = np.zeros(d - 1, np.int64)
    at = np.zeros(d - 1, np.int64)
    stamp = np.full(len(start), -1, np.int32)
    prefix = np.empty(d, np.int32)
    found = np.empty((1024, d), np.int32)
    n = 0
    for i in range(n_codes):
        if pair[i, i] < k:
            continue
        prefix[0] = i
        size[0] = _rows_of(i, posting_at, postings, after, stamp, rows[0])
        met[0] = _count(rows[0], size[0], i, allowed, values, start, length, weight, counts[0], touched[0])
        at[0] = 0
        level = 0
        while level >= 0:
            if at[level] == met[level]:
                for x in range(met[level]):
                    counts[level, touched[level, x]] = 0
                level -= 1
                continue
            v = touched[level, at[level]]
            at[level] += 1
            if level == d - 2:
                if counts[level, v] < k:
                    if n == len(found):
                        longer = np.empty((2 * n, d), np.int32)
                        longer[:n] = found
                        found = longer
                    found[n, : d - 1] = prefix[: d - 1]
                    found[n, d - 1] = v
                    n += 1
                continue
            if counts[level, v] < k:
                continue
            below = 0
            for x in range(size[level]):
                r = rows[level, x]
                if place_of(values, start[r], length[r], v) >= 0:
                    rows[level + 1, below] = r
                    below += 1
            level += 1
            prefix[level] = v
            size[level] = below
            met[level] = _count(
                rows[level], below, v, allowed, values, start, length, weight, counts[level], touched[level]
            )
            at[level] = 0
    return found[:n].copy()
