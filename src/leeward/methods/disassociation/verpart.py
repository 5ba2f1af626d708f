"""VerPart: which codes of a cluster may be published together (Loukides et al. 2014, Fig. 9).

A cluster is a handful of records, so a code is a bit mask over them and the support of a code set is a population
count of an intersection. Conventions: docs/methods/disassociation.md#vertical-partitioning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from leeward.analysis.kernels import and_count, popcount
from leeward.arrays import Bools, Int32s, Int64s, UInt64s
from leeward.compiled import njit
from leeward.methods.disassociation.horpart import Clustered
from leeward.methods.disassociation.recut import Supports
from leeward.methods.disassociation.rules import Rules

ITEM = -1
"""Chunk number of a code in the item chunk."""


class Chunks(NamedTuple):
    """The codes of each leaf.

    `at`, `code`: leaf l has the distinct codes code[at[l]:at[l + 1]], ascending. `node`, `chunk`: int32, the node whose
    chunk has each code (the leaf, or a joint cluster above it) and the chunk's number there; ITEM: the leaf's item
    chunk. `fit_alone`: bool[leaves], whether the record chunks satisfy the condition on an empty item chunk
    (docs/methods/disassociation.md#empty-item-chunks).
    """

    at: Int64s
    code: Int32s
    node: Int32s
    chunk: Int32s
    fit_alone: Bools


class Groups(NamedTuple):
    """Zeroed scratch of `place_codes`, one entry per constraint: support and number of its first code, codes left."""

    support: Int32s
    first: Int32s
    left: Int32s


@njit(inner=True)
def empty_groups(n_constraints: int) -> Groups:
    return Groups(
        np.zeros(n_constraints + 1, np.int32),
        np.zeros(n_constraints + 1, np.int32),
        np.zeros(n_constraints + 1, np.int32),
    )


@njit(inner=True)
def extends_km(masks: UInt64s, current: Int32s, t: int, support: int, k: int, m: int) -> bool:
    """Whether every code set of `current` + {t} with t and at most m codes that occurs, occurs at least k times.
    Depth-first over the code sets that occur. A code that every record of the set holds changes no support, so it is
    never branched on: the depth is bounded by the number of records, whatever m."""
    if m == 2:
        for c in current:
            together = _held_together(masks, t, c)
            if 0 < together < k:
                return False
        return True
    limit = min(m - 1, len(current))
    work = np.empty((limit + 1, masks.shape[1]), np.uint64)
    counts, at = np.empty(limit + 1, np.int64), np.empty(limit + 1, np.int64)
    work[0], counts[0], at[0] = masks[t], support, 0
    depth = 0
    while depth >= 0:
        if depth == limit or at[depth] == len(current):
            depth -= 1
            continue
        c = current[at[depth]]
        at[depth] += 1
        s = and_count(work[depth], masks[c], work[depth + 1])
        if s == 0 or s == counts[depth]:
            continue
        if s < k:
            return False
        counts[depth + 1], at[depth + 1] = s, at[depth]
        depth += 1
    return True


@njit(inner=True)
def _held_together(masks: UInt64s, x: int, y: int) -> int:
    together = 0
    for w in range(masks.shape[1]):
        together += popcount(masks[x, w] & masks[y, w])
    return together


@njit(inner=True)
def extends_k(masks: UInt64s, current: Int32s, t: int, rows: int, k: int) -> bool:
    """Whether every distinct non-empty subrecord over `current` + {t} appears k times (Property 1)."""
    label = np.zeros(rows, np.int64)
    empty = np.ones(rows, np.bool_)
    classes = 1
    for i in range(len(current) + 1):
        c = t if i == len(current) else current[i]
        split = np.full(2 * classes, -1, np.int64)
        used = 0
        for r in range(rows):
            bit = np.int64((masks[c, r >> 6] >> uint64(r & 63)) & uint64(1))
            empty[r] = empty[r] and bit == 0
            key = 2 * label[r] + bit
            if split[key] < 0:
                split[key] = used
                used += 1
            label[r] = split[key]
        classes = used
    size = np.bincount(label, minlength=classes)
    good = True
    for r in range(rows):
        good = good and (empty[r] or size[label[r]] >= k)
    return good


@njit(inner=True)
def place_codes(
    codes: Int32s,
    support: Int32s,
    masks: UInt64s,
    rows: int,
    rules: Rules,
    strict: Bools,
    groups: Groups,
    chunk: Int32s,
) -> int:
    """VerPart over ascending `codes` in `rows` records; writes each code's chunk number, returns the number of chunks.
    Sensitive codes and codes below k go to the item chunk; a chunk that holds a `strict` code must be k-anonymous."""
    n, constraint_of = len(codes), rules.constraint_of
    remaining = np.empty(n, np.int32)
    left = 0
    for i in range(n):
        chunk[i] = ITEM
        if support[i] >= rules.k and not rules.sensitive[codes[i]]:
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
        turn = _turn_of(i, codes, support, constraint_of, groups)
        while y >= 0 and turn < _turn_of(remaining[y], codes, support, constraint_of, groups):
            remaining[y + 1] = remaining[y]
            y -= 1
        remaining[y + 1] = i
    current = np.empty(left, np.int32)
    n_chunks = 0
    while left > 0:
        size = 0
        any_strict = False
        for x in range(left):
            i = remaining[x]
            if any_strict or strict[i]:
                good = extends_k(masks, current[:size], i, rows, rules.k)
            else:
                good = extends_km(masks, current[:size], i, support[i], rules.k, rules.m)
            if good:
                current[size] = i
                size += 1
                any_strict = any_strict or strict[i]
        first = constraint_of[codes[current[0]]]
        for x in range(size):  # codes of each constraint left if all of `current` are taken
            u = constraint_of[codes[current[x]]]
            if u >= 0:
                groups.left[u] -= 1
        for x in range(size):
            u = constraint_of[codes[current[x]]]
            if u >= 0 and u != first and groups.left[u] > 0:
                groups.left[u] += (
                    1  # another constraint, only partly placed: it gets a later chunk of its own
                )
            else:
                chunk[current[x]] = n_chunks
        n_chunks += 1
        kept = 0
        for x in range(left):
            if chunk[remaining[x]] == ITEM:
                remaining[kept] = remaining[x]
                kept += 1
        left = kept
    return n_chunks


@njit(inline="always")
def _turn_of(
    i: int, codes: Int32s, support: Int32s, constraint_of: Int32s, groups: Groups
) -> tuple[Any, ...]:
    """Sort key of a code: constraints by the support of their first code, inside one by support; ties by code."""
    u = constraint_of[codes[i]]
    if u < 0:
        return -np.int64(support[i]), 1, np.int64(codes[i]), 0, 0
    return (
        -np.int64(groups.support[u]), 0, np.int64(groups.first[u]), -np.int64(support[i]), np.int64(codes[i])
    )  # fmt: skip


@njit(inner=True)
def split_covers(support: Int32s, masks: UInt64s, n_chunks: int, chunk: Int32s) -> int:
    """`safe`: while some code of a chunk reveals another, the most-covering code gets a chunk of its own. x reveals y
    when s(xy) = s(x). Returns the new number of chunks (docs/methods/disassociation.md#cover-problem)."""
    n, total = len(chunk), n_chunks
    for c in range(n_chunks):
        while True:
            best, most = -1, 0
            for y in range(n):
                covered = 0
                for x in range(n):
                    if x != y and chunk[x] == c and chunk[y] == c:
                        covered += int(_held_together(masks, x, y) == support[x])
                if covered > most:
                    best, most = y, covered
            if best < 0:
                break
            chunk[best] = total
            total += 1
    return total


@njit
def place_leaves(
    near: Clustered, supports: Supports, first: int, last: int, rules: Rules, chunks: Chunks
) -> int:
    """VerPart and the empty-item-chunk condition for leaves `first…last-1`, into `chunks`; returns how often the
    condition fired."""
    offsets, values, bounds = near
    local = np.full(len(rules.constraint_of), -1, np.int32)
    groups = empty_groups(rules.n_constraints)
    cells = 4096
    store = np.zeros(cells, np.uint64)
    fired = 0
    for leaf in range(first, last):
        begin = bounds[leaf]
        rows = bounds[leaf + 1] - begin
        words = (rows + 63) >> 6
        low, high = chunks.at[leaf], chunks.at[leaf + 1]
        codes, support, chunk = chunks.code[low:high], supports.support[low:high], chunks.chunk[low:high]
        n = len(codes)
        for i in range(n):
            local[codes[i]] = i
        if n * words > cells:
            cells = 2 * n * words
            store = np.zeros(cells, np.uint64)
        masks = store[: n * words].reshape((n, words))
        masks[:, :] = 0
        for r in range(rows):
            for c in values[offsets[begin + r] : offsets[begin + r + 1]]:
                masks[local[c], r >> 6] |= uint64(1) << uint64(r & 63)
        n_chunks = place_codes(codes, support, masks, rows, rules, np.zeros(n, np.bool_), groups, chunk)
        if rules.safe:
            n_chunks = split_covers(support, masks, n_chunks, chunk)
        fits = _fit_alone(masks, rows, rules, n_chunks, chunk)
        if not fits and chunk.min() != ITEM:
            fired += 1
            n_chunks = _spare_one(support, n_chunks, chunk)
            fits = _fit_alone(masks, rows, rules, n_chunks, chunk)
        chunks.fit_alone[leaf] = fits
    return fired


@njit
def entries_of(near: Clustered, chunks: Chunks) -> Int32s:
    """Index into `Chunks.code` of every occurrence."""
    entry = np.empty(len(near.values), np.int32)
    place = np.zeros(chunks.code.max() + 1, np.int32)
    for leaf in range(len(near.bounds) - 1):
        for i in range(chunks.at[leaf], chunks.at[leaf + 1]):
            place[chunks.code[i]] = i
        for j in range(near.offsets[near.bounds[leaf]], near.offsets[near.bounds[leaf + 1]]):
            entry[j] = place[near.values[j]]
    return entry


@njit(inner=True)
def _fit_alone(masks: UInt64s, rows: int, rules: Rules, n_chunks: int, chunk: Int32s) -> bool:
    held = 0
    for c in range(n_chunks):
        for w in range(masks.shape[1]):
            union = uint64(0)
            for i in range(len(chunk)):
                if chunk[i] == c:
                    union |= masks[i, w]
            held += popcount(union)
    return n_chunks > 0 and held >= rows + rules.k * (min(rules.m, n_chunks) - 1)


@njit(inner=True)
def _spare_one(support: Int32s, n_chunks: int, chunk: Int32s) -> int:
    """Move the code of lowest support (tie: the largest) to the item chunk; drop its chunk if it was alone."""
    spare = 0
    for i in range(1, len(chunk)):
        if support[i] <= support[spare]:
            spare = i
    old = chunk[spare]
    chunk[spare] = ITEM
    if (chunk == old).any():
        return n_chunks
    for i in range(len(chunk)):
        if chunk[i] > old:
            chunk[i] -= 1
    return n_chunks - 1
