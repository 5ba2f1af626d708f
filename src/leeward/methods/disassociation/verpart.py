"""VerPart: which codes of a cluster may be published together (Loukides et al. 2014, Fig. 9).

A cluster is a handful of records, so a code is a bit mask over them and the support of a code set is a population
count of an intersection. Conventions: docs/methods/disassociation.md#vertical-partitioning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64

from leeward.analysis.bits import popcount
from leeward.arrays import Bools, Int32s, Int64s, UInt64s
from leeward.compiled import njit
from leeward.methods.disassociation.rules import Rules

ITEM = -1
"""Chunk number of a code in the item chunk."""


class Groups(NamedTuple):
    """Zeroed scratch of `place_codes`, one entry a constraint: support and number of its first code, codes left."""

    support: Int32s
    first: Int32s
    left: Int32s


@njit(inner=True)
def empty_groups(n_constraints: int) -> Groups:
    """Scratch for so many constraints."""
    return Groups(
        np.zeros(n_constraints + 1, np.int32),
        np.zeros(n_constraints + 1, np.int32),
        np.zeros(n_constraints + 1, np.int32),
    )


@njit(inner=True)
def extends_km(
    masks: UInt64s,
    words: int,
    current: Int32s,
    n_current: int,
    t: int,
    support: int,
    k: int,
    m: int,
) -> bool:
    """Whether every code set of `current` + {t} that holds t, has at most m codes and occurs, occurs k times.

    Depth-first over the code sets that occur. A code that every record of the set holds changes no support, so it is
    never branched on: the depth is bounded by the number of records, whatever m.
    """
    if m == 1:
        return True
    if m == 2:
        for i in range(n_current):
            s = 0
            for w in range(words):
                s += popcount(masks[t, w] & masks[current[i], w])
                if s >= k:
                    break
            if 0 < s < k:
                return False
        return True
    limit = min(m - 1, n_current)
    work = np.empty((limit + 1, words), np.uint64)
    counts = np.empty(limit + 1, np.int64)
    at = np.empty(limit + 1, np.int64)
    for w in range(words):
        work[0, w] = masks[t, w]
    counts[0] = support
    at[0] = 0
    depth = 0
    while depth >= 0:
        if depth == limit or at[depth] == n_current:
            depth -= 1
            continue
        c = current[at[depth]]
        at[depth] += 1
        s = 0
        for w in range(words):
            both = work[depth, w] & masks[c, w]
            work[depth + 1, w] = both
            s += popcount(both)
        if s == 0 or s == counts[depth]:
            continue
        if s < k:
            return False
        counts[depth + 1] = s
        at[depth + 1] = at[depth]
        depth += 1
    return True


@njit(inner=True)
def extends_k(
    masks: UInt64s,
    words: int,
    current: Int32s,
    n_current: int,
    t: int,
    rows: int,
    k: int,
) -> bool:
    """Whether every distinct non-empty subrecord over `current` + {t} appears k times (Property 1)."""
    label = np.zeros(rows, np.int64)
    classes = 1
    for i in range(n_current + 1):
        c = t if i == n_current else current[i]
        split = np.full(2 * classes, -1, np.int64)
        used = 0
        for r in range(rows):
            bit = np.int64((masks[c, r >> 6] >> uint64(r & 63)) & uint64(1))
            key = 2 * label[r] + bit
            if split[key] < 0:
                split[key] = used
                used += 1
            label[r] = split[key]
        classes = used
    size = np.zeros(classes, np.int64)
    empty = np.ones(classes, np.bool_)
    for r in range(rows):
        size[label[r]] += 1
        for i in range(n_current + 1):
            c = t if i == n_current else current[i]
            if (masks[c, r >> 6] >> uint64(r & 63)) & uint64(1):
                empty[label[r]] = False
    good = True
    for x in range(classes):
        good = good and (empty[x] or size[x] >= k)
    return good


@njit(inner=True)
def place_codes(
    codes: Int32s,
    support: Int32s,
    n: int,
    masks: UInt64s,
    words: int,
    rows: int,
    k: int,
    m: int,
    constraint_of: Int32s,
    barred: Bools,
    strict: Bools,
    groups: Groups,
    chunk: Int32s,
) -> int:
    """VerPart over local codes 0…n-1 (`codes` ascending); writes each one's chunk number and returns their number.

    `barred` codes (sensitive) and codes below k go to the item chunk; a chunk that holds a `strict` code must be
    k-anonymous.
    """
    remaining = np.empty(n, np.int32)
    left = 0
    for i in range(n):
        chunk[i] = ITEM
        if support[i] >= k and not barred[i]:
            remaining[left] = i
            left += 1
            u = constraint_of[codes[i]]
            if u >= 0:
                if groups.left[u] == 0 or support[i] > groups.support[u]:
                    groups.support[u] = support[i]
                    groups.first[u] = codes[i]
                groups.left[u] += 1
    # groups by the support of their first code; inside a group by support; ties by code
    for x in range(1, left):
        i = remaining[x]
        y = x - 1
        while y >= 0 and _before(i, remaining[y], codes, support, constraint_of, groups):
            remaining[y + 1] = remaining[y]
            y -= 1
        remaining[y + 1] = i
    current = np.empty(left, np.int32)
    taken = np.zeros(n, np.bool_)
    n_chunks = 0
    while left > 0:
        size = 0
        any_strict = False
        for x in range(left):
            i = remaining[x]
            if any_strict or strict[i]:
                good = extends_k(masks, words, current, size, i, rows, k)
            else:
                good = extends_km(masks, words, current, size, i, support[i], k, m)
            if good:
                current[size] = i
                size += 1
                any_strict = any_strict or strict[i]
        first = constraint_of[codes[current[0]]]
        for x in range(size):  # what would be left of each constraint, were all of `current` taken
            u = constraint_of[codes[current[x]]]
            if u >= 0:
                groups.left[u] -= 1
        kept = 0
        for x in range(size):
            i = current[x]
            u = constraint_of[codes[i]]
            if u >= 0 and u != first and groups.left[u] > 0:
                continue  # another constraint, only partly placed: it gets a later chunk of its own
            chunk[i] = n_chunks
            taken[i] = True
            current[kept] = i
            kept += 1
        n_chunks += 1
        for x in range(left):
            u = constraint_of[codes[remaining[x]]]
            if u >= 0:
                groups.left[u] = 0
        kept = 0
        for x in range(left):
            i = remaining[x]
            if not taken[i]:
                remaining[kept] = i
                kept += 1
                u = constraint_of[codes[i]]
                if u >= 0:
                    groups.left[u] += 1
        left = kept
    return n_chunks


@njit(inline="always")
def _before(
    i: int,
    j: int,
    codes: Int32s,
    support: Int32s,
    constraint_of: Int32s,
    groups: Groups,
) -> bool:
    u, v = constraint_of[codes[i]], constraint_of[codes[j]]
    s_u = groups.support[u] if u >= 0 else support[i]
    s_v = groups.support[v] if v >= 0 else support[j]
    if s_u != s_v:
        return s_u > s_v
    if (u >= 0) != (v >= 0):
        return u >= 0
    f_u = groups.first[u] if u >= 0 else codes[i]
    f_v = groups.first[v] if v >= 0 else codes[j]
    if f_u != f_v:
        return f_u < f_v
    if support[i] != support[j]:
        return support[i] > support[j]
    return codes[i] < codes[j]


@njit(inner=True)
def split_covers(
    support: Int32s,
    n: int,
    masks: UInt64s,
    words: int,
    n_chunks: int,
    chunk: Int32s,
) -> int:
    """`safe`: while some code of a chunk reveals another, the most-covering code gets a chunk of its own.

    x reveals y when s(xy) = s(x). Returns the new number of chunks (docs/methods/disassociation.md#cover-problem).
    """
    total = n_chunks
    covering = np.zeros(n, np.int32)
    for c in range(n_chunks):
        while True:
            best = -1
            for y in range(n):
                if chunk[y] != c:
                    continue
                covering[y] = 0
                for x in range(n):
                    if x == y or chunk[x] != c:
                        continue
                    s = 0
                    for w in range(words):
                        s += popcount(masks[x, w] & masks[y, w])
                    if s == support[x]:
                        covering[y] += 1
                if covering[y] > 0 and (best < 0 or covering[y] > covering[best]):
                    best = y
            if best < 0:
                break
            chunk[best] = total
            total += 1
    return total


@njit
def nonempty_subrecords(n: int, masks: UInt64s, words: int, n_chunks: int, chunk: Int32s) -> int:
    """Number of non-empty subrecords over all record chunks."""
    total = 0
    for c in range(n_chunks):
        for w in range(words):
            union = uint64(0)
            for i in range(n):
                if chunk[i] == c:
                    union |= masks[i, w]
            total += popcount(union)
    return total


@njit
def place_leaves(
    offsets: Int64s,
    values: Int32s,
    leaf_offsets: Int64s,
    first: int,
    last: int,
    rules: Rules,
    leaf_codes: Int32s,
    leaf_chunk: Int32s,
    leaf_n_codes: Int32s,
    leaf_n_chunks: Int32s,
    fit_alone: Bools,
) -> int:
    """VerPart and the empty-item-chunk condition for leaves `first…last-1`; returns how often the condition fired.

    Leaf l writes its distinct codes, ascending, and their chunks from position `offsets[leaf_offsets[l]]` on;
    `fit_alone[l]` tells whether its record chunks satisfy the condition on
    an empty item chunk (docs/methods/disassociation.md#empty-item-chunks).
    """
    k, m = rules.k, rules.m
    n_codes = len(rules.constraint_of)
    local = np.full(n_codes, -1, np.int32)
    touched = np.empty(n_codes, np.int32)
    groups = empty_groups(rules.n_constraints)
    cells = 4096
    store = np.zeros(cells, np.uint64)
    fired = 0
    for leaf in range(first, last):
        begin, end = leaf_offsets[leaf], leaf_offsets[leaf + 1]
        rows = end - begin
        words = (rows + 63) >> 6
        n = 0
        for j in range(offsets[begin], offsets[end]):
            c = values[j]
            if local[c] < 0:
                local[c] = 0
                touched[n] = c
                n += 1
        codes = touched[:n]
        codes.sort()
        for i in range(n):
            local[codes[i]] = i
        if n * words > cells:
            cells = 2 * n * words
            store = np.zeros(cells, np.uint64)
        masks = store[: n * words].reshape((n, words))
        masks[:, :] = 0
        support = np.zeros(n, np.int32)
        for r in range(rows):
            for j in range(offsets[begin + r], offsets[begin + r + 1]):
                i = local[values[j]]
                masks[i, r >> 6] |= uint64(1) << uint64(r & 63)
                support[i] += 1
        barred = np.zeros(n, np.bool_)
        strict = np.zeros(n, np.bool_)
        for i in range(n):
            barred[i] = rules.sensitive[codes[i]]
            local[codes[i]] = -1
        out = offsets[begin]
        chunk = leaf_chunk[out : out + n]
        n_chunks = place_codes(
            codes, support, n, masks, words, rows, k, m, rules.constraint_of, barred, strict,
            groups, chunk,
        )  # fmt: skip
        if rules.safe:
            n_chunks = split_covers(support, n, masks, words, n_chunks, chunk)
        no_item = True
        for i in range(n):
            leaf_codes[out + i] = codes[i]
            no_item = no_item and chunk[i] != ITEM
        needed = rows + k * (min(m, n_chunks) - 1)
        fits = n_chunks > 0 and nonempty_subrecords(n, masks, words, n_chunks, chunk) >= needed
        if no_item and not fits:
            fired += 1
            n_chunks = _spare_one(codes, support, n, n_chunks, chunk)
            needed = rows + k * (min(m, n_chunks) - 1)
            fits = n_chunks > 0 and nonempty_subrecords(n, masks, words, n_chunks, chunk) >= needed
        fit_alone[leaf] = fits
        leaf_n_codes[leaf] = n
        leaf_n_chunks[leaf] = n_chunks
    return fired


@njit(inner=True)
def _spare_one(codes: Int32s, support: Int32s, n: int, n_chunks: int, chunk: Int32s) -> int:
    """Move the code of lowest support (tie: the largest) to the item chunk; drop its chunk if it was alone."""
    spare = 0
    for i in range(1, n):
        if support[i] <= support[spare]:
            spare = i
    old = chunk[spare]
    chunk[spare] = ITEM
    for i in range(n):
        if chunk[i] == old:
            return n_chunks
    for i in range(n):
        if chunk[i] > old:
            chunk[i] -= 1
    return n_chunks - 1
