"""Kernels of generalization under constraints: records as mutable lists of clusters, supports kept up to date, and a
depth-first search for sets of three and more clusters over the records that hold the sets' prefixes.

A cluster is named by its smallest code, so that comparing names breaks ties as
docs/methods/constraints.md#algorithms asks. Records are distinct code sets with a weight (how many patients
hold them). When cluster h is merged into g, only the records that hold h are touched: each is rewritten in
place, and pair supports follow by inclusion and exclusion, s(g ∪ h, v) = s(g, v) + s(h, v) - s(g, h, v).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.arrays import Bools, Int32s, Int64s
from leeward.compiled import njit


class Records(NamedTuple):
    """R distinct records over C codes; merges change them in place.

    values, start, length : the clusters of each record, unordered
    weight : int64[R]
    posting_at, postings : int64[C + 1], int32, the records of each code before any merge
    tail, after : int32[C], the codes of a cluster as a chain that begins with the cluster's own name
    pair : int64[C, C], supports of pairs of clusters; the diagonal holds supports of clusters (0: gone)
    """

    values: Int32s
    start: Int64s
    length: Int32s
    weight: Int64s
    posting_at: Int64s
    postings: Int32s
    tail: Int32s
    after: Int32s
    pair: Int64s


@njit
def pair_supports(values: Int32s, offsets: Int64s, weight: Int64s, n_codes: int) -> Int64s:
    """int64[C, C], symmetric: the weight of the records that hold both codes; the diagonal: one code."""
    pair = np.zeros((n_codes, n_codes), np.int64)
    for r in range(len(offsets) - 1):
        w = weight[r]
        for i in range(offsets[r], offsets[r + 1]):
            row = pair[values[i]]
            for j in range(i, offsets[r + 1]):  # values ascend, so this fills the upper triangle
                row[values[j]] += w
    for a in range(n_codes):
        for b in range(a):
            pair[a, b] = pair[b, a]
    return pair


@njit
def place_of(r: Records, record: int, cluster: int) -> int:
    for i in range(r.start[record], r.start[record] + r.length[record]):
        if r.values[i] == cluster:
            return i
    return -1


@njit
def merge(g: int, h: int, r: Records) -> None:
    """Merge cluster h into g (g < h): rewrite the records of h, update supports and the chain."""
    pair = r.pair
    triple = np.zeros(len(pair), np.int64)
    code = h
    while code >= 0:
        for record in r.postings[r.posting_at[code] : r.posting_at[code + 1]]:
            here = place_of(r, record, h)
            if here < 0:  # done already: the record holds several codes of h
                continue
            if place_of(r, record, g) < 0:
                r.values[here] = g
                continue
            begin, end = r.start[record], r.start[record] + r.length[record]
            for v in r.values[begin:end]:
                triple[v] += r.weight[record]
            r.values[here] = r.values[end - 1]
            r.length[record] -= 1
        code = r.after[code]
    both = pair[g, h]
    for v in range(len(pair)):
        if v not in (g, h):
            pair[g, v] += pair[h, v] - triple[v]
            pair[v, g] = pair[g, v]
    pair[g, g] += pair[h, h] - both
    pair[h, :] = 0
    pair[:, h] = 0
    r.after[r.tail[g]] = h
    r.tail[g] = r.tail[h]


@njit
def suppress(h: int, r: Records) -> None:
    code = h
    while code >= 0:
        for record in r.postings[r.posting_at[code] : r.posting_at[code + 1]]:
            here = place_of(r, record, h)
            if here >= 0:
                r.length[record] -= 1
                r.values[here] = r.values[r.start[record] + r.length[record]]
        code = r.after[code]
    r.pair[h, :] = 0
    r.pair[:, h] = 0


@njit
def refresh_row(i: int, k: int, pair: Int64s, best: Int64s, partner: Int32s) -> None:
    """Find the violating pair (i, j), j > i, of largest support (ties: smallest j); support 0 if there is none."""
    row = pair[i]
    top, where = 0, -1
    for j in range(i + 1, len(pair)):
        s = row[j]
        if s < k and s > top:
            top, where = s, j
    best[i], partner[i] = top, where


@njit
def refresh_rows(g: int, h: int, k: int, pair: Int64s, best: Int64s, partner: Int32s) -> None:
    """Update the rows after h was merged into g (g < h) or suppressed (g = -1)."""
    for i in range(h):
        if partner[i] in (h, g if g >= 0 else h):
            refresh_row(i, k, pair, best, partner)
    best[h], partner[h] = 0, -1
    if g < 0:
        return
    refresh_row(g, k, pair, best, partner)
    for i in range(g):
        s = pair[i, g]
        if 0 < s < k and (s > best[i] or (s == best[i] and g < partner[i])):
            best[i], partner[i] = s, g


@njit
def support_of(image: Int32s, r: Records) -> int:
    """The weight of the records that hold every cluster of `image` (give the rarest first)."""
    seen = np.zeros(len(r.start), np.bool_)
    total = 0
    code = image[0]
    while code >= 0:
        for record in r.postings[r.posting_at[code] : r.posting_at[code + 1]]:
            if seen[record]:
                continue
            seen[record] = True
            inside = True
            for cluster in image[1:]:
                inside = inside and place_of(r, record, cluster) >= 0
            if inside:
                total += r.weight[record]
        code = r.after[code]
    return total


@njit
def next_violating_pair(pairs: Int32s, begin: int, k: int, of_code: Int32s, pair: Int64s) -> int:
    """The first row of `pairs`, from `begin`, whose current clusters have a support above 0 and below k."""
    for x in range(begin, len(pairs)):
        s = pair[of_code[pairs[x, 0]], of_code[pairs[x, 1]]]
        if 0 < s < k:
            return x
    return len(pairs)


@njit
def support_of_intervals(
    first: Int64s,
    last: Int64s,
    leaves: Int32s,
    offsets: Int64s,
    weight: Int64s,
    posting_at: Int64s,
    postings: Int32s,
) -> int:
    """The weight of the records that hold a leaf of every interval first…last (give the rarest first). `leaves` are the
    records' leaf numbers; a record counts at the first of its entries that is in the interval."""
    total = 0
    for p in range(posting_at[first[0]], posting_at[last[0] + 1]):
        r = postings[p]
        own = -1
        inside = True
        for q in range(len(first)):
            hit = False
            for i in range(offsets[r], offsets[r + 1]):
                if first[q] <= leaves[i] <= last[q]:
                    hit = True
                    if q == 0:
                        own = leaves[i]
                    break
            if not hit:
                inside = False
                break
        if inside and posting_at[own] <= p < posting_at[own + 1]:
            total += weight[r]
    return total


@njit(inner=True)
def _rows_of(cluster: int, r: Records, stamp: Int32s, out: Int32s) -> int:
    """Write the distinct records of a cluster to `out`; returns their number."""
    n = 0
    code = cluster
    while code >= 0:
        for record in r.postings[r.posting_at[code] : r.posting_at[code + 1]]:
            if stamp[record] != cluster:
                stamp[record] = cluster
                out[n] = record
                n += 1
        code = r.after[code]
    return n


@njit
def _count(rows: Int32s, last: int, allowed: Bools, r: Records, counts: Int64s, touched: Int32s) -> int:
    """Count the supports, in `rows`, of the allowed clusters after `last`; returns the number of clusters found."""
    n = 0
    for record in rows:
        for v in r.values[r.start[record] : r.start[record] + r.length[record]]:
            if v > last and allowed[v]:
                if counts[v] == 0:
                    touched[n] = v
                    n += 1
                counts[v] += r.weight[record]
    return n


@njit
def find_violating(d: int, k: int, floor: int, every: bool, allowed: Bools, r: Records) -> tuple[int, Int32s]:
    """Find violating sets of exactly d ≥ 2 clusters whose prefixes all have support ≥ k: `every` one, or the one with
    the largest support above `floor` (ties: the smallest names). Returns its support (0: none), and int32[n, d]. A set
    that is left out contains a smaller violating set of at least its support, which the caller prefers."""
    n_codes = len(r.pair)
    rows = np.empty((d - 1, len(r.start)), np.int32)
    size = np.zeros(d - 1, np.int64)
    counts = np.zeros((d - 1, n_codes), np.int64)
    touched = np.empty((d - 1, n_codes), np.int32)
    met = np.zeros(d - 1, np.int64)
    at = np.zeros(d - 1, np.int64)
    stamp = np.full(len(r.start), -1, np.int32)
    prefix = np.empty(d, np.int32)
    found = np.empty((1024 if every else 1, d), np.int32)
    n, top, bar = 0, 0, floor
    for i in range(n_codes):
        if not allowed[i] or r.pair[i, i] < k:
            continue
        prefix[0] = i
        size[0] = _rows_of(i, r, stamp, rows[0])
        level = 0
        met[0] = _count(rows[0, : size[0]], i, allowed, r, counts[0], touched[0])
        at[0] = -1
        while level >= 0:
            if at[level] < 0:
                at[level] = 0
                if level < d - 2:
                    touched[level, : met[level]].sort()
            if level == d - 2:
                last = n_codes
                for v in touched[level, : met[level]]:
                    s = counts[level, v]
                    if every and s < k and n == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                    if (every and s < k) or bar < s < k or (s == bar and last < n_codes and v < last):
                        found[n, : d - 1] = prefix[: d - 1]
                        found[n, d - 1] = v
                        top = s
                        if every:
                            n += 1
                        else:
                            bar, last = s, v
                at[level] = met[level]
            while at[level] < met[level] and counts[level, touched[level, at[level]]] < k:
                at[level] += 1
            if at[level] == met[level]:
                counts[level, touched[level, : met[level]]] = 0
                level -= 1
                if not every and top == k - 1:
                    return top, found
                continue
            v = touched[level, at[level]]
            at[level] += 1
            below = 0
            for record in rows[level, : size[level]]:
                if place_of(r, record, v) >= 0:
                    rows[level + 1, below] = record
                    below += 1
            level += 1
            prefix[level] = v
            size[level] = below
            met[level] = _count(rows[level, :below], v, allowed, r, counts[level], touched[level])
            at[level] = -1
    return top, found[:n].copy() if every else found
