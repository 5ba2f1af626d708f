"""Kernels of Refine: whether two clusters may be joined, by which shared chunks, and the joint cluster's entries.

A cluster's entries are at `…_at[c, 0]` to `…_at[c, 1]` of an array that only grows: item pairs (code, record
position), published codes, virtual item chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from leeward.analysis.kernels import empty_list
from leeward.arrays import Bools, Int32s, Int64s
from leeward.compiled import njit
from leeward.methods.disassociation.horpart import place_in
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.verpart import Chunks, Groups, empty_groups, place_codes, split_covers


class Sides(NamedTuple):
    """Entries of the clusters that may be joined. `item_at`, `item_code`, `item_row`: each cluster's (code, record
    position) pairs of item chunks, sorted. `published_at`, `published_code`: its codes of record and shared chunks,
    ascending. `records`: int64[clusters]."""

    item_at: Int64s
    item_code: Int32s
    item_row: Int32s
    published_at: Int64s
    published_code: Int32s
    records: Int64s


class Leaves(NamedTuple):
    """The leaves below the clusters. `of_row`: int32, the leaf of each record position. `records`: int64[leaves].
    `item_left`: int32[leaves], codes left in the item chunk. `chunks`: their codes."""

    of_row: Int32s
    records: Int64s
    item_left: Int32s
    chunks: Chunks


class Fresh(NamedTuple):
    """int64[pairs, 2]: begin and end of each joint cluster's entries, in room reserved for them."""

    item_at: Int64s
    published_at: Int64s
    virtual_at: Int64s


class Stars(NamedTuple):
    """Shared codes of the joined pairs: pair x shares code[at[x]:at[x + 1]], ascending, in these chunks of its node."""

    at: Int64s
    code: Int32s
    chunk: Int32s
    node: Int64s


class Scratch(NamedTuple):
    """Scratch of a pair's test. Candidates: codes in the item chunks below both clusters, with enough records to be
    shared.

    code, support : of the candidates, with the number of records of both clusters
    begin_a, begin_b : where a candidate's item pairs begin in each
    below : whether a chunk below publishes the candidate
    leaf_count, number : of each leaf, and a record's place in a list; set before use
    """

    code: Int32s
    support: Int32s
    begin_a: Int64s
    begin_b: Int64s
    below: Bools
    groups: Groups
    leaf_count: Int32s
    number: Int32s


@njit(inner=True)
def find_candidates(a: int, b: int, side: Sides, rules: Rules, found: Scratch) -> int:
    """Fill `found` with the candidates, by ascending codes; returns their number."""
    # Unsigned indices need no check for negative values.
    ia, ea = np.uint64(side.item_at[a, 0]), np.uint64(side.item_at[a, 1])
    ib, eb = np.uint64(side.item_at[b, 0]), np.uint64(side.item_at[b, 1])
    n = 0
    while ia < ea and ib < eb:
        ca, cb = side.item_code[ia], side.item_code[ib]
        if ca != cb:
            ia += np.uint64(ca < cb)  # no branch to mispredict
            ib += np.uint64(cb < ca)
            continue
        sa, sb = ia, ib
        ia, ib = _after(side.item_code, ia, ea), _after(side.item_code, ib, eb)
        s = np.int64((ia - sa) + (ib - sb))
        if s < rules.k or rules.sensitive[ca]:
            continue
        known = _publishes(side, a, ca) or _publishes(side, b, ca)
        if rules.nested or not known:
            found.code[n], found.support[n], found.below[n] = ca, s, known
            found.begin_a[n], found.begin_b[n] = sa, sb
            n += 1
    return n


@njit(inner=True)
def _after(codes: Int32s, place: Any, end: Any) -> Any:
    code = codes[place]
    while place < end and codes[place] == code:
        place += np.uint64(1)
    return place


@njit(inner=True)
def _publishes(side: Sides, cluster: int, code: int) -> bool:
    codes = published(side, cluster)
    return place_in(codes, 0, len(codes), code) >= 0


@njit
def try_join(a: int, b: int, n: int, side: Sides, leaves: Leaves, rules: Rules, scratch: Scratch) -> Int32s:
    """The shared chunk's number of each of the `n` candidates found, if a and b are joined; empty if the join is
    refused."""
    nothing = np.empty(0, np.int32)
    codes, support = scratch.code[:n], scratch.support[:n]
    ea, eb = side.item_at[a, 1], side.item_at[b, 1]
    # the records that hold a candidate, numbered locally
    total = 0
    for i in range(n):
        total += support[i]
    rows = np.empty(total, np.int32)
    pair_code = np.empty(total, np.int32)
    local = np.empty(total, np.int32)
    held = np.empty(total, np.int32)
    at, n_rows = 0, 0
    for i in range(n):
        for j, e in ((scratch.begin_a[i], ea), (scratch.begin_b[i], eb)):
            while j < e and side.item_code[j] == codes[i]:
                r = side.item_row[j]
                x = scratch.number[r]
                if not (0 <= x < n_rows and held[x] == r):
                    x = n_rows
                    scratch.number[r] = x
                    held[x] = r
                    n_rows += 1
                rows[at], pair_code[at], local[at] = r, i, x
                at += 1
                j += 1
    words = (n_rows + 63) >> 6
    masks = np.zeros((n, words), np.uint64)
    for x in range(total):
        masks[pair_code[x], local[x] >> 6] |= uint64(1) << uint64(local[x] & 63)
    chunk = np.empty(n, np.int32)
    n_chunks = place_codes(codes, support, masks, n_rows, rules, scratch.below[:n], scratch.groups, chunk)
    if n_chunks == 0:
        return nothing
    if rules.safe:
        split_covers(support, masks, n_chunks, chunk)
    # the gain test, in whole numbers: sum s / |J| >= sum u / sum |P_i|
    leaf_count = scratch.leaf_count
    sum_s, sum_u, holding = 0, 0, 0
    for x in range(total):
        leaf_count[leaves.of_row[rows[x]]] = 0
    last_leaf, last_code = -1, -1
    for x in range(total):  # a code's records ascend inside a and inside b, so its leaves come in runs
        leaf = leaves.of_row[rows[x]]
        if leaf == last_leaf and pair_code[x] == last_code:
            sum_s += 1
            continue
        last_leaf, last_code = leaf, pair_code[x]
        sum_s += 1
        sum_u += 1
        if leaf_count[leaf] == 0:
            holding += leaves.records[leaf]
        leaf_count[leaf] += 1
    if sum_s * holding < sum_u * (side.records[a] + side.records[b]):
        return nothing
    for x in range(total):
        leaf = leaves.of_row[rows[x]]
        if leaf_count[leaf] == leaves.item_left[leaf] and not leaves.chunks.fit_alone[leaf]:
            return nothing
    return chunk


@njit
def test_pairs(
    left: Int64s,
    right: Int64s,
    accepted: Bools,
    lo: int,
    hi: int,
    side: Sides,
    leaves: Leaves,
    rules: Rules,
) -> tuple[Int64s, Int32s, Int32s]:
    """`try_join` for pairs `lo…hi-1`: fills `accepted`; returns (pair, code, chunk) of the shared codes."""
    longest = 0
    for x in range(lo, hi):
        a, b = left[x], right[x]
        most = min(side.item_at[a, 1] - side.item_at[a, 0], side.item_at[b, 1] - side.item_at[b, 0])
        longest = max(longest, most)
    scratch = Scratch(
        np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(longest, np.int64),
        np.empty(longest, np.int64), np.empty(longest, np.bool_), empty_groups(rules.n_constraints),
        np.empty(len(leaves.records), np.int32), np.empty(len(leaves.of_row), np.int32),
    )  # fmt: skip
    pair, code, chunks = empty_list(), empty_list(), empty_list()
    for x in range(lo, hi):
        a, b = left[x], right[x]
        accepted[x] = False
        if side.records[a] + side.records[b] > rules.max_joint:
            continue
        candidates = find_candidates(a, b, side, rules, scratch)
        if candidates == 0:
            continue
        chunk = try_join(a, b, candidates, side, leaves, rules, scratch)
        accepted[x] = len(chunk) > 0
        for i in range(len(chunk)):
            pair.append(x)
            code.append(scratch.code[i])
            chunks.append(chunk[i])
    # an empty list is of floats where kernels run as plain Python
    return np.array(pair).astype(np.int64), np.array(code).astype(np.int32), np.array(chunks).astype(np.int32)


@njit
def merge_pairs(
    left: Int64s,
    right: Int64s,
    lo: int,
    hi: int,
    stars: Stars,
    side: Sides,
    virtual_code: Int32s,
    fresh: Fresh,
    leaves: Leaves,
    lost: Int64s,
) -> None:
    """Join clusters `left[x]` and `right[x]` for x in `lo…hi-1`. Writes the ends into `fresh`. Removes shared codes
    from the leaves' item chunks: lowers `item_left`, and counts in `lost` how many leaves lost each code."""
    chunks = leaves.chunks
    for x in range(lo, hi):
        a, b = left[x], right[x]
        at, vat, pat = fresh.item_at[x, 0], fresh.virtual_at[x, 0], fresh.published_at[x, 0]
        begin, end = stars.at[x], stars.at[x + 1]
        last_code, last_leaf = np.int64(-1), -1
        for pair in np.sort(np.concatenate((_pairs(side, a), _pairs(side, b)))):
            c, r = pair >> 32, pair & 0xFFFFFFFF
            star = place_in(stars.code, begin, end, c)
            if star < 0:
                if at == fresh.item_at[x, 0] or side.item_code[at - 1] != c:
                    virtual_code[vat] = c
                    vat += 1
                side.item_code[at], side.item_row[at] = c, r
                at += 1
                continue
            leaf = leaves.of_row[r]
            if c != last_code or leaf != last_leaf:
                leaves.item_left[leaf] -= 1
                lost[c] += 1
                place = place_in(chunks.code, chunks.at[leaf], chunks.at[leaf + 1], c)
                chunks.node[place], chunks.chunk[place] = stars.node[x], stars.chunk[star]
                last_code, last_leaf = c, leaf
        codes = np.unique(np.concatenate((published(side, a), published(side, b), stars.code[begin:end])))
        side.published_code[pat : pat + len(codes)] = codes
        fresh.item_at[x, 1], fresh.virtual_at[x, 1], fresh.published_at[x, 1] = at, vat, pat + len(codes)


@njit(inner=True)
def _pairs(side: Sides, cluster: int) -> Int64s:
    """The cluster's item pairs, each as one number: the code, then the record position."""
    begin, end = side.item_at[cluster]
    return (side.item_code[begin:end].astype(np.int64) << 32) | side.item_row[begin:end]


@njit(inner=True)
def published(side: Sides, cluster: int) -> Int32s:
    begin, end = side.published_at[cluster]
    return side.published_code[begin:end]
