"""Kernels of generalization under constraints: records as rewritable lists of clusters, supports kept up to
date.

A cluster is named by its smallest code, so that comparing names breaks ties as
docs/methods/constraints.md#algorithms asks. Records are distinct code sets with a weight (how many patients
hold them). When cluster h is merged into g, only the records that hold h are touched: each is rewritten in
place, and pair supports follow by inclusion and exclusion, s(g ∪ h, v) = s(g, v) + s(h, v) - s(g, h, v).

Arrays shared by the kernels (C codes, R distinct records):

values int32, start int64[R], length int32[R] : the clusters of each record, in no order.
weight int64[R]
posting_at int64[C + 1], postings int32 : the records of each code, as given.
tail, after int32[C] : the codes of a cluster as a chain that begins with the cluster's own name.
pair int64[C, C] : supports of pairs of clusters; the diagonal holds supports of clusters (0: gone).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@njit
def pair_supports(values: Int32, offsets: Int64, weight: Int64, n_codes: int) -> Int64:
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
def invert(values: Int32, offsets: Int64, n_codes: int) -> tuple[Int64, Int32]:
    """(posting_at, postings): the records of each code, ascending."""
    at = np.zeros(n_codes + 1, np.int64)
    for v in values:
        at[v + 1] += 1
    for c in range(n_codes):
        at[c + 1] += at[c]
    postings = np.empty(len(values), np.int32)
    cursor = at.copy()
    for r in range(len(offsets) - 1):
        for i in range(offsets[r], offsets[r + 1]):
            c = values[i]
            postings[cursor[c]] = r
            cursor[c] += 1
    return at, postings


@njit
def place_of(values: Int32, begin: int, size: int, cluster: int) -> int:
    """Where a record holds the cluster, -1 if it does not."""
    for i in range(begin, begin + size):
        if values[i] == cluster:
            return i
    return -1


@njit
def merge(
    g: int, h: int, values: Int32, start: Int64, length: Int32, weight: Int64,
    posting_at: Int64, postings: Int32, tail: Int32, after: Int32, pair: Int64,
) -> None:  # fmt: skip
    """Merge cluster h into g (g < h): rewrite the records of h, update supports and the chain."""
    n_codes = len(pair)
    triple = np.zeros(n_codes, np.int64)
    code = h
    while code >= 0:
        for p in range(posting_at[code], posting_at[code + 1]):
            r = postings[p]
            begin, size = start[r], length[r]
            here = place_of(values, begin, size, h)
            if here < 0:  # done already: the record holds several codes of h
                continue
            if place_of(values, begin, size, g) < 0:
                values[here] = g
                continue
            for i in range(begin, begin + size):
                triple[values[i]] += weight[r]
            values[here] = values[begin + size - 1]
            length[r] = size - 1
        code = after[code]
    both = pair[g, h]
    for v in range(n_codes):
        if v not in (g, h):
            pair[g, v] += pair[h, v] - triple[v]
            pair[v, g] = pair[g, v]
    pair[g, g] += pair[h, h] - both
    pair[h, :] = 0
    pair[:, h] = 0
    after[tail[g]] = h
    tail[g] = tail[h]


@njit
def suppress(
    h: int, values: Int32, start: Int64, length: Int32,
    posting_at: Int64, postings: Int32, after: Int32, pair: Int64,
) -> None:  # fmt: skip
    """Take cluster h out of every record."""
    code = h
    while code >= 0:
        for p in range(posting_at[code], posting_at[code + 1]):
            r = postings[p]
            here = place_of(values, start[r], length[r], h)
            if here >= 0:
                length[r] -= 1
                values[here] = values[start[r] + length[r]]
        code = after[code]
    pair[h, :] = 0
    pair[:, h] = 0


@njit
def refresh_row(i: int, k: int, pair: Int64, best: Int64, partner: Int32) -> None:
    """The violating pair (i, j), j > i, of largest support, and the smallest such j; support 0 if there is
    none.
    """
    row = pair[i]
    top, where = 0, -1
    for j in range(i + 1, len(pair)):
        s = row[j]
        if s < k and s > top:
            top, where = s, j
    best[i], partner[i] = top, where


@njit
def refresh_rows(g: int, h: int, k: int, pair: Int64, best: Int64, partner: Int32) -> None:
    """Bring the rows up to date after h went into g (g < h), or after h was suppressed (g = -1)."""
    for i in range(h):
        if partner[i] == h or (g >= 0 and partner[i] == g):
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
def next_small(k: int, m: int, pair: Int64, best: Int64, partner: Int32) -> tuple[int, int, int]:
    """(support, i, j) of the violating set of at most two clusters to treat next; j = -1: i alone; support
    0: none.
    """
    top, first, second = 0, -1, -1
    for i in range(len(pair)):
        s = pair[i, i]
        if s < k and s > top:
            top, first = s, i
    if m > 1:
        for i in range(len(pair)):
            if best[i] > top:
                top, first, second = best[i], i, partner[i]
    return int(top), first, second


@njit
def support_of(
    image: Int32, values: Int32, start: Int64, length: Int32, weight: Int64,
    posting_at: Int64, postings: Int32, after: Int32,
) -> int:  # fmt: skip
    """The weight of the records that hold every cluster of `image` (give the rarest first)."""
    n = len(start)
    seen = np.zeros(n, np.bool_)
    total = 0
    code = image[0]
    while code >= 0:
        for p in range(posting_at[code], posting_at[code + 1]):
            r = postings[p]
            if seen[r]:
                continue
            seen[r] = True
            inside = True
            for q in range(1, len(image)):
                if place_of(values, start[r], length[r], image[q]) < 0:
                    inside = False
                    break
            if inside:
                total += weight[r]
        code = after[code]
    return total


@njit
def next_violating_pair(pairs: Int32, begin: int, k: int, of_code: Int32, pair: Int64) -> int:
    """The first row of `pairs`, from `begin`, whose clusters of today have a support above 0 and below k."""
    for x in range(begin, len(pairs)):
        s = pair[of_code[pairs[x, 0]], of_code[pairs[x, 1]]]
        if 0 < s < k:
            return x
    return len(pairs)


@njit
def support_of_intervals(
    first: Int64,
    last: Int64,
    leaves: Int32,
    offsets: Int64,
    weight: Int64,
    posting_at: Int64,
    postings: Int32,
) -> int:
    """The weight of the records that hold a leaf of every interval first…last (give the rarest first).

    `leaves` are the records' leaf numbers; a record counts at the first of its entries that is in the
    interval.
    """
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


@njit
def relabel(offsets: Int64, values: Int32, label_of: Int32, n_labels: int) -> tuple[Int64, Int32]:
    """Records with every code replaced by its label (-1: left out), distinct and ascending inside a
    record.
    """
    n = len(offsets) - 1
    out_at = np.zeros(n + 1, np.int64)
    out = np.empty(len(values), np.int32)
    stamp = np.full(n_labels, -1, np.int64)
    filled = 0
    for r in range(n):
        begin = filled
        for i in range(offsets[r], offsets[r + 1]):
            label = label_of[values[i]]
            if label >= 0 and stamp[label] != r:
                stamp[label] = r
                out[filled] = label
                filled += 1
        out[begin:filled].sort()
        out_at[r + 1] = filled
    return out_at, out[:filled].copy()


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
