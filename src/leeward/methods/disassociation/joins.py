"""Kernels of Refine: may two clusters be joined, by which shared chunks, and what the joint cluster then holds.

A cluster's entries lie at `…_at[c, 0]` to `…_at[c, 1]` of an array that only grows: item pairs (code, record
position), published codes, virtual item chunk.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from leeward.methods.disassociation.verpart import place_codes, split_covers


@njit(cache=True, nogil=True)
def try_join(
    a: int,
    b: int,
    item_at: NDArray[np.int64],
    item_code: NDArray[np.int32],
    item_row: NDArray[np.int32],
    published_at: NDArray[np.int64],
    published_code: NDArray[np.int32],
    records: NDArray[np.int64],
    leaf_of_row: NDArray[np.int32],
    leaf_records: NDArray[np.int64],
    item_left: NDArray[np.int32],
    fit_alone: NDArray[np.bool_],
    k: int,
    m: int,
    constraint_of: NDArray[np.int32],
    sensitive: NDArray[np.bool_],
    max_joint: int,
    nested: bool,
    safe: bool,
    group_support: NDArray[np.int32],
    group_first: NDArray[np.int32],
    group_left: NDArray[np.int32],
    leaf_count: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Codes and chunks of the shared chunks that would join a and b; empty when the join is refused."""
    nothing = (np.empty(0, np.int32), np.empty(0, np.int32))
    if records[a] + records[b] > max_joint:
        return nothing
    ia, ea = item_at[a, 0], item_at[a, 1]
    ib, eb = item_at[b, 0], item_at[b, 1]
    room = min(ea - ia, eb - ib)
    codes = np.empty(room, np.int32)
    support = np.empty(room, np.int32)
    begin_a = np.empty(room, np.int64)
    begin_b = np.empty(room, np.int64)
    below = np.empty(room, np.bool_)
    n = 0
    pa, pb = published_at[a, 0], published_at[b, 0]
    qa, qb = published_at[a, 1], published_at[b, 1]
    while ia < ea and ib < eb:
        ca, cb = item_code[ia], item_code[ib]
        if ca < cb:
            ia += 1
        elif cb < ca:
            ib += 1
        else:
            sa, sb = ia, ib
            while ia < ea and item_code[ia] == ca:
                ia += 1
            while ib < eb and item_code[ib] == ca:
                ib += 1
            s = (ia - sa) + (ib - sb)
            if s < k or sensitive[ca]:
                continue
            while pa < qa and published_code[pa] < ca:
                pa += 1
            while pb < qb and published_code[pb] < ca:
                pb += 1
            known = (pa < qa and published_code[pa] == ca) or (pb < qb and published_code[pb] == ca)
            if known and not nested:
                continue
            codes[n] = ca
            support[n] = s
            begin_a[n] = sa
            begin_b[n] = sb
            below[n] = known
            n += 1
    if n == 0:
        return nothing
    # the records that hold a candidate, numbered locally
    total = 0
    for i in range(n):
        total += support[i]
    rows = np.empty(total, np.int32)
    pair_code = np.empty(total, np.int32)
    at = 0
    for i in range(n):
        j = begin_a[i]
        while j < ea and item_code[j] == codes[i]:
            rows[at] = item_row[j]
            pair_code[at] = i
            at += 1
            j += 1
        j = begin_b[i]
        while j < eb and item_code[j] == codes[i]:
            rows[at] = item_row[j]
            pair_code[at] = i
            at += 1
            j += 1
    distinct = np.unique(rows)
    n_rows = len(distinct)
    words = (n_rows + 63) >> 6
    masks = np.zeros((n, words), np.uint64)
    for x in range(total):
        r = np.searchsorted(distinct, rows[x])
        masks[pair_code[x], r >> 6] |= uint64(1) << uint64(r & 63)
    barred = np.zeros(n, np.bool_)
    chunk = np.empty(n, np.int32)
    n_chunks = place_codes(
        codes[:n], support[:n], n, masks, words, n_rows, k, m, constraint_of, barred, below[:n],
        group_support, group_first, group_left, chunk,
    )  # fmt: skip
    if n_chunks == 0:
        return nothing
    if safe:
        split_covers(support[:n], n, masks, words, n_chunks, chunk)
    # the gain test, in whole numbers: sum s / |J| >= sum u / sum |P_i|
    sum_s, sum_u, holding = 0, 0, 0
    for x in range(total):
        leaf_count[leaf_of_row[rows[x]]] = 0
    last_leaf, last_code = -1, -1
    for x in range(total):  # a code's records ascend inside a and inside b, so its leaves come in runs
        leaf = leaf_of_row[rows[x]]
        if leaf == last_leaf and pair_code[x] == last_code:
            sum_s += 1
            continue
        last_leaf, last_code = leaf, pair_code[x]
        sum_s += 1
        sum_u += 1
        if leaf_count[leaf] == 0:
            holding += leaf_records[leaf]
        leaf_count[leaf] += 1
    if sum_s * holding < sum_u * (records[a] + records[b]):
        return nothing
    for x in range(total):
        leaf = leaf_of_row[rows[x]]
        if leaf_count[leaf] == item_left[leaf] and not fit_alone[leaf]:
            return nothing
    return codes[:n], chunk


@njit(cache=True, nogil=True)
def test_pairs(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    accepted: NDArray[np.bool_],
    lo: int,
    hi: int,
    item_at: NDArray[np.int64],
    item_code: NDArray[np.int32],
    item_row: NDArray[np.int32],
    published_at: NDArray[np.int64],
    published_code: NDArray[np.int32],
    records: NDArray[np.int64],
    leaf_of_row: NDArray[np.int32],
    leaf_records: NDArray[np.int64],
    item_left: NDArray[np.int32],
    fit_alone: NDArray[np.bool_],
    k: int,
    m: int,
    constraint_of: NDArray[np.int32],
    n_constraints: int,
    sensitive: NDArray[np.bool_],
    max_joint: int,
    nested: bool,
    safe: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """try_join for pairs `lo…hi-1`: fills `accepted`; returns (pair, code, chunk) of the shared codes."""
    group_support = np.zeros(n_constraints + 1, np.int32)
    group_first = np.zeros(n_constraints + 1, np.int32)
    group_left = np.zeros(n_constraints + 1, np.int32)
    leaf_count = np.empty(len(leaf_records), np.int32)  # each entry is set before it is read
    room = 1024
    out_pair = np.empty(room, np.int64)
    out_code = np.empty(room, np.int32)
    out_chunk = np.empty(room, np.int32)
    n = 0
    for x in range(lo, hi):
        codes, chunk = try_join(
            left[x], right[x], item_at, item_code, item_row, published_at, published_code, records,
            leaf_of_row, leaf_records, item_left, fit_alone, k, m, constraint_of, sensitive, max_joint,
            nested, safe, group_support, group_first, group_left, leaf_count,
        )  # fmt: skip
        accepted[x] = len(codes) > 0
        if n + len(codes) > room:
            room = 2 * (n + len(codes))
            out_pair = _grown(out_pair, n, room)
            out_code = _grown(out_code, n, room)
            out_chunk = _grown(out_chunk, n, room)
        for i in range(len(codes)):
            out_pair[n] = x
            out_code[n] = codes[i]
            out_chunk[n] = chunk[i]
            n += 1
    return out_pair[:n], out_code[:n], out_chunk[:n]


@njit(cache=True, nogil=True)
def _grown(a: NDArray[np.int64], n: int, room: int) -> NDArray[np.int64]:
    b = np.empty(room, a.dtype)
    b[:n] = a[:n]
    return b


@njit(cache=True, nogil=True)
def take_from_left(right_neighbour_accepts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The scan of a pass: an accepted pair is taken and both sides are skipped, otherwise move on by one."""
    n = len(right_neighbour_accepts)
    taken = np.zeros(n, np.bool_)
    i = 0
    while i < n:
        if right_neighbour_accepts[i]:
            taken[i] = True
            i += 2
        else:
            i += 1
    return taken


@njit(cache=True, nogil=True)
def merge_pairs(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    lo: int,
    hi: int,
    star_at: NDArray[np.int64],
    star_code: NDArray[np.int32],
    item_at: NDArray[np.int64],
    item_code: NDArray[np.int32],
    item_row: NDArray[np.int32],
    published_at: NDArray[np.int64],
    published_code: NDArray[np.int32],
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    new_item_at: NDArray[np.int64],
    new_published_at: NDArray[np.int64],
    new_virtual_at: NDArray[np.int64],
    leaf_of_row: NDArray[np.int32],
    item_left: NDArray[np.int32],
    lost: NDArray[np.int64],
) -> None:
    """Join clusters `left[x]` and `right[x]` for x in `lo…hi-1`, whose shared codes (ascending) `star_at` locates.

    `new_*_at[x, 0]` says where the joint's entries begin, in room of their own; `new_*_at[x, 1]` is set to their end.
    Shared codes leave the leaves' item chunks: `item_left` falls, `lost` counts how many leaves lost each code.
    """
    for x in range(lo, hi):
        a, b = left[x], right[x]
        at, pat, vat = new_item_at[x, 0], new_published_at[x, 0], new_virtual_at[x, 0]
        s, e = star_at[x], star_at[x + 1]
        ia, ea = item_at[a, 0], item_at[a, 1]
        ib, eb = item_at[b, 0], item_at[b, 1]
        last_code, last_leaf = -1, -1
        while ia < ea or ib < eb:
            from_a = ib >= eb or (
                ia < ea
                and (
                    item_code[ia] < item_code[ib]
                    or (item_code[ia] == item_code[ib] and item_row[ia] < item_row[ib])
                )
            )
            j = ia if from_a else ib
            if from_a:
                ia += 1
            else:
                ib += 1
            c, r = item_code[j], item_row[j]
            while s < e and star_code[s] < c:
                s += 1
            if s < e and star_code[s] == c:
                leaf = leaf_of_row[r]
                if c != last_code or leaf != last_leaf:
                    item_left[leaf] -= 1
                    lost[c] += 1
                    last_code, last_leaf = c, leaf
            else:
                if at == new_item_at[x, 0] or item_code[at - 1] != c:
                    virtual_code[vat] = c
                    vat += 1
                item_code[at] = c
                item_row[at] = r
                at += 1
        p, pe = published_at[a, 0], published_at[a, 1]
        q, qe = published_at[b, 0], published_at[b, 1]
        s = star_at[x]
        none = np.int32(2147483647)
        while p < pe or q < qe or s < e:
            c = none
            if p < pe:
                c = min(c, published_code[p])
            if q < qe:
                c = min(c, published_code[q])
            if s < e:
                c = min(c, star_code[s])
            while p < pe and published_code[p] == c:
                p += 1
            while q < qe and published_code[q] == c:
                q += 1
            while s < e and star_code[s] == c:
                s += 1
            published_code[pat] = c
            pat += 1
        new_item_at[x, 1], new_published_at[x, 1], new_virtual_at[x, 1] = at, pat, vat
