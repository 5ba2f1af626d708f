"""Refine: shared chunks for codes that stand in the item chunks of several clusters (Loukides et al. 2014, 4).

Conventions: ALGORITHMS 1.5. The scan of a pass is sequential by definition, its tests are not: every pair of
neighbours is tested at once (in threads), then the scan takes the accepted pairs from the left. A pair that was
refused is not tested again as long as neither side changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from leeward.protect.disassociation.verpart import place_codes, split_covers

RANK_BITS = 21
"""Three ranks fill a word; at most 2^21 - 1 distinct codes."""


Blocks = Callable[[int, Callable[[int, int], object]], list[object]]
"""Runs a function over blocks of 0…n-1 in threads and returns the results in block order."""


@dataclass
class Clusters:
    """The clusters of a pass as flat arrays; cluster c is a leaf or a joint cluster.

    items : the (code, record) pairs of the item chunks below c, sorted (`item_code`, `item_row` at `item_at`)
    published : codes of record or shared chunks below c, ascending (`published_code` at `published_at`)
    virtual : the distinct codes of those pairs (`virtual_code` at `virtual_at`), in the order of the last ranking
    records : records below c; node : the number of the cluster's node
    refused : the node that it was last refused to join to its right (-1: none)
    """

    item_at: NDArray[np.int64]
    item_code: NDArray[np.int32]
    item_row: NDArray[np.int32]
    published_at: NDArray[np.int64]
    published_code: NDArray[np.int32]
    virtual_at: NDArray[np.int64]
    virtual_code: NDArray[np.int32]
    records: NDArray[np.int64]
    node: NDArray[np.int64]
    refused: NDArray[np.int64]


@dataclass(frozen=True)
class SharedChunks:
    """What Refine found: joint nodes and the codes of their shared chunks.

    parent : int64[nodes], -1 for none; nodes 0…leaves-1 are the leaves
    shared_node, shared_code, shared_chunk : one entry a code of a shared chunk
    item_left : int32, the number of codes left in each leaf's item chunk
    """

    parent: NDArray[np.int64]
    shared_node: NDArray[np.int64]
    shared_code: NDArray[np.int32]
    shared_chunk: NDArray[np.int32]
    item_left: NDArray[np.int32]
    passes: int


@njit(cache=True, nogil=True)
def leaf_items(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    leaf_offsets: NDArray[np.int64],
    leaf_codes: NDArray[np.int32],
    leaf_chunk: NDArray[np.int32],
    leaf_n_codes: NDArray[np.int32],
    n_codes: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Each leaf's item pairs (code, record position), sorted, and its published codes."""
    leaves = len(leaf_n_codes)
    item_at = np.zeros(leaves + 1, np.int64)
    published_at = np.zeros(leaves + 1, np.int64)
    is_item = np.zeros(n_codes, np.bool_)
    for leaf in range(leaves):
        base = offsets[leaf_offsets[leaf]]
        published = 0
        for i in range(base, base + leaf_n_codes[leaf]):
            if leaf_chunk[i] < 0:
                is_item[leaf_codes[i]] = True
            else:
                published += 1
        pairs = 0
        for j in range(base, offsets[leaf_offsets[leaf + 1]]):
            if is_item[values[j]]:
                pairs += 1
        item_at[leaf + 1] = item_at[leaf] + pairs
        published_at[leaf + 1] = published_at[leaf] + published
        for i in range(base, base + leaf_n_codes[leaf]):
            is_item[leaf_codes[i]] = False
    item_code = np.empty(item_at[leaves], np.int32)
    item_row = np.empty(item_at[leaves], np.int32)
    published_code = np.empty(published_at[leaves], np.int32)
    place = np.full(n_codes, -1, np.int64)
    for leaf in range(leaves):
        base = offsets[leaf_offsets[leaf]]
        p = published_at[leaf]
        n = leaf_n_codes[leaf]
        for i in range(base, base + n):
            if leaf_chunk[i] < 0:
                place[leaf_codes[i]] = 0
            else:
                published_code[p] = leaf_codes[i]
                p += 1
        for j in range(base, offsets[leaf_offsets[leaf + 1]]):
            if place[values[j]] >= 0:
                place[values[j]] += 1
        at = item_at[leaf]
        for i in range(base, base + n):
            c = leaf_codes[i]
            if place[c] >= 0:
                size = place[c]
                place[c] = at
                at += size
        for r in range(leaf_offsets[leaf], leaf_offsets[leaf + 1]):
            for j in range(offsets[r], offsets[r + 1]):
                c = values[j]
                if place[c] >= 0:
                    item_code[place[c]] = c
                    item_row[place[c]] = r
                    place[c] += 1
        for i in range(base, base + n):
            place[leaf_codes[i]] = -1
    return item_at, item_code, item_row, published_at, published_code


@njit(cache=True, nogil=True)
def pack_first_ranks(
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
    lo: int,
    hi: int,
    key: NDArray[np.uint64],
) -> None:
    """Bring each cluster's virtual item chunk into rank order and pack its first three ranks.

    Ranks hardly move from pass to pass, so insertion sort finds nearly everything in place.
    """
    for c in range(lo, hi):
        begin, end = virtual_at[c], virtual_at[c + 1]
        for i in range(begin + 1, end):
            code = virtual_code[i]
            r = rank[code]
            j = i - 1
            while j >= begin and rank[virtual_code[j]] > r:
                virtual_code[j + 1] = virtual_code[j]
                j -= 1
            virtual_code[j + 1] = code
        packed = uint64(0)  # 0: the sequence has ended, which sorts first
        for q in range(3):
            packed <<= uint64(RANK_BITS)
            if begin + q < end:
                packed |= uint64(rank[virtual_code[begin + q]] + 1)
        key[c] = packed


@njit(cache=True, nogil=True)
def _comes_before(
    a: int, b: int, virtual_at: NDArray[np.int64], virtual_code: NDArray[np.int32], rank: NDArray[np.int32]
) -> bool:
    """Whether the ranks of a from the fourth on are lexicographically smaller than those of b."""
    i, j = virtual_at[a] + 3, virtual_at[b] + 3
    end_a, end_b = virtual_at[a + 1], virtual_at[b + 1]
    while i < end_a and j < end_b:
        r, s = rank[virtual_code[i]], rank[virtual_code[j]]
        if r != s:
            return r < s
        i += 1
        j += 1
    return i >= end_a and j < end_b


@njit(cache=True, nogil=True)
def break_ties(
    order: NDArray[np.int64],
    key: NDArray[np.uint64],
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    rank: NDArray[np.int32],
) -> None:
    """Sort runs of equal keys by their further ranks, stably: a natural merge sort, linear when nearly sorted."""
    n = len(order)
    spare = np.empty(n, np.int64)
    cuts = np.empty(n + 1, np.int64)
    begin = 0
    while begin < n:
        end = begin + 1
        k = key[order[begin]]
        while end < n and key[order[end]] == k:
            end += 1
        if end - begin > 1 and k & uint64((1 << RANK_BITS) - 1) != uint64(0):
            runs = 0
            cuts[0] = begin
            for i in range(begin + 1, end):
                if _comes_before(order[i], order[i - 1], virtual_at, virtual_code, rank):
                    runs += 1
                    cuts[runs] = i
            runs += 1
            cuts[runs] = end
            while runs > 1:
                merged = 0
                for r in range(0, runs, 2):
                    lo, mid = cuts[r], cuts[r + 1]
                    hi = cuts[r + 2] if r + 1 < runs else mid
                    i, j = lo, mid
                    for x in range(lo, hi):
                        if j >= hi or (
                            i < mid and not _comes_before(order[j], order[i], virtual_at, virtual_code, rank)
                        ):
                            spare[x] = order[i]
                            i += 1
                        else:
                            spare[x] = order[j]
                            j += 1
                    for x in range(lo, hi):
                        order[x] = spare[x]
                    cuts[merged] = lo
                    merged += 1
                cuts[merged] = end
                runs = merged
        begin = end


def sort_by_ranks(clusters: Clusters, rank: NDArray[np.int32], blocks: Blocks) -> NDArray[np.int64]:
    """Positions of the clusters, stably sorted by the rank sequence of their virtual item chunks."""
    n = len(clusters.node)
    key = np.empty(n, np.uint64)
    blocks(n, lambda lo, hi: pack_first_ranks(clusters.virtual_at, clusters.virtual_code, rank, lo, hi, key))
    order = np.argsort(key, kind="stable")
    break_ties(order, key, clusters.virtual_at, clusters.virtual_code, rank)
    return order


@njit(cache=True, nogil=True)
def distinct_codes(
    item_at: NDArray[np.int64], item_code: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Each cluster's virtual item chunk: the distinct codes of its item pairs."""
    at = np.zeros(len(item_at), np.int64)
    code = np.empty(len(item_code), np.int32)
    n = 0
    for c in range(len(item_at) - 1):
        for j in range(item_at[c], item_at[c + 1]):
            if j == item_at[c] or item_code[j] != item_code[j - 1]:
                code[n] = item_code[j]
                n += 1
        at[c + 1] = n
    return at, code[:n].copy()


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
    ia, ea = item_at[a], item_at[a + 1]
    ib, eb = item_at[b], item_at[b + 1]
    room = min(ea - ia, eb - ib)
    codes = np.empty(room, np.int32)
    support = np.empty(room, np.int32)
    begin_a = np.empty(room, np.int64)
    begin_b = np.empty(room, np.int64)
    below = np.empty(room, np.bool_)
    n = 0
    pa, pb = published_at[a], published_at[b]
    qa, qb = published_at[a + 1], published_at[b + 1]
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
        while j < item_at[a + 1] and item_code[j] == codes[i]:
            rows[at] = item_row[j]
            pair_code[at] = i
            at += 1
            j += 1
        j = begin_b[i]
        while j < item_at[b + 1] and item_code[j] == codes[i]:
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
    leaf_count = np.zeros(len(leaf_records), np.int32)
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
def merge_joined(
    order: NDArray[np.int64],
    taken: NDArray[np.bool_],
    star_at: NDArray[np.int64],
    star_code: NDArray[np.int32],
    item_at: NDArray[np.int64],
    item_code: NDArray[np.int32],
    item_row: NDArray[np.int32],
    published_at: NDArray[np.int64],
    published_code: NDArray[np.int32],
    virtual_at: NDArray[np.int64],
    virtual_code: NDArray[np.int32],
    leaf_of_row: NDArray[np.int32],
    item_left: NDArray[np.int32],
    holders: NDArray[np.int64],
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int32],
]:
    """The clusters after a pass. `star_at[i]` locates the shared codes (ascending) of the taken pair i, i+1.

    Shared codes leave the leaves' item chunks: `item_left` and `holders` are updated.
    """
    n = len(order)
    new = n
    for i in range(n):
        if i < len(taken) and taken[i]:
            new -= 1
    new_item_at = np.zeros(new + 1, np.int64)
    new_item_code = np.empty(len(item_code), np.int32)
    new_item_row = np.empty(len(item_row), np.int32)
    new_published_at = np.zeros(new + 1, np.int64)
    new_published = np.empty(len(published_code) + len(star_code), np.int32)
    new_virtual_at = np.zeros(new + 1, np.int64)
    new_virtual = np.empty(len(virtual_code), np.int32)
    at, pat, vat, out, i = 0, 0, 0, 0, 0
    while i < n:
        a = order[i]
        if i < len(taken) and taken[i]:
            b = order[i + 1]
            s, e = star_at[i], star_at[i + 1]
            ia, ib = item_at[a], item_at[b]
            ea, eb = item_at[a + 1], item_at[b + 1]
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
                        holders[c] -= 1
                        last_code, last_leaf = c, leaf
                else:
                    if at == new_item_at[out] or new_item_code[at - 1] != c:
                        new_virtual[vat] = c
                        vat += 1
                    new_item_code[at] = c
                    new_item_row[at] = r
                    at += 1
            x, y, z = published_at[a], published_at[b], star_at[i]
            ex, ey = published_at[a + 1], published_at[b + 1]
            big = np.int32(2147483647)
            while x < ex or y < ey or z < e:
                c = big
                if x < ex:
                    c = min(c, published_code[x])
                if y < ey:
                    c = min(c, published_code[y])
                if z < e:
                    c = min(c, star_code[z])
                while x < ex and published_code[x] == c:
                    x += 1
                while y < ey and published_code[y] == c:
                    y += 1
                while z < e and star_code[z] == c:
                    z += 1
                new_published[pat] = c
                pat += 1
            i += 2
        else:
            for j in range(item_at[a], item_at[a + 1]):
                new_item_code[at] = item_code[j]
                new_item_row[at] = item_row[j]
                at += 1
            for j in range(published_at[a], published_at[a + 1]):
                new_published[pat] = published_code[j]
                pat += 1
            for j in range(virtual_at[a], virtual_at[a + 1]):
                new_virtual[vat] = virtual_code[j]
                vat += 1
            i += 1
        out += 1
        new_item_at[out] = at
        new_published_at[out] = pat
        new_virtual_at[out] = vat
    return (
        new_item_at, new_item_code[:at], new_item_row[:at], new_published_at, new_published[:pat],
        new_virtual_at, new_virtual[:vat],
    )  # fmt: skip


def refine(
    clusters: Clusters,
    *,
    leaf_of_row: NDArray[np.int32],
    leaf_records: NDArray[np.int64],
    item_left: NDArray[np.int32],
    holders: NDArray[np.int64],
    fit_alone: NDArray[np.bool_],
    k: int,
    m: int,
    constraint_of: NDArray[np.int32],
    n_constraints: int,
    sensitive: NDArray[np.bool_],
    max_joint: int,
    nested: bool,
    safe: bool,
    blocks: Blocks,
) -> SharedChunks:
    """Joint clusters and their shared chunks, pass after pass, until one changes nothing.

    `item_left` (codes in each leaf's item chunk) and `holders` (leaves whose item chunk has each code) are updated.
    """
    n_codes = len(constraint_of)
    parent = [np.full(len(clusters.node), -1, np.int64)]
    n_nodes = len(clusters.node)
    found: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]] = []
    passes = 0
    while True:
        passes += 1
        by_holders = np.lexsort((np.arange(n_codes), -holders))
        rank = np.empty(n_codes, np.int32)
        rank[by_holders] = np.arange(n_codes, dtype=np.int32)
        order = sort_by_ranks(clusters, rank, blocks)
        left, right = order[:-1], order[1:]
        todo = np.flatnonzero(clusters.refused[left] != clusters.node[right])
        accepted = np.zeros(len(todo), np.bool_)
        lefts, rights = np.ascontiguousarray(left[todo]), np.ascontiguousarray(right[todo])

        def test(
            lo: int,
            hi: int,
            lefts: NDArray[np.int64] = lefts,
            rights: NDArray[np.int64] = rights,
            accepted: NDArray[np.bool_] = accepted,
            clusters: Clusters = clusters,
        ) -> object:
            return test_pairs(
                lefts, rights, accepted, lo, hi, clusters.item_at, clusters.item_code, clusters.item_row,
                clusters.published_at, clusters.published_code, clusters.records, leaf_of_row, leaf_records,
                item_left, fit_alone, k, m, constraint_of, n_constraints, sensitive, max_joint, nested, safe,
            )  # fmt: skip

        tested = blocks(len(todo), test)
        pair, code, chunk = (
            np.concatenate([t[i] for t in tested])  # type: ignore[index]  # a tuple of arrays from the kernel
            if tested
            else np.empty(0, np.int64)
            for i in range(3)
        )
        accepts = np.zeros(max(len(order) - 1, 0), np.bool_)
        accepts[todo] = accepted
        clusters.refused[lefts[~accepted]] = clusters.node[rights[~accepted]]
        taken = take_from_left(accepts)
        if not taken.any():
            break
        position = todo[pair]
        keep = taken[position] & (chunk >= 0)
        position, code, chunk = position[keep], code[keep], chunk[keep]
        star_at = np.zeros(len(order) + 1, np.int64)
        np.cumsum(np.bincount(position, minlength=len(order)), out=star_at[1:])

        second = np.zeros(len(order), np.bool_)
        second[1:] = taken
        first = np.zeros(len(order), np.bool_)
        first[:-1] = taken
        new_node = np.cumsum(first) - 1 + n_nodes  # of the joint that begins at a position
        found.append((new_node[position], code.astype(np.int32), chunk.astype(np.int32)))
        joint = np.flatnonzero(first)
        for side in (joint, joint + 1):
            nodes = clusters.node[order[side]]
            joined = new_node[joint]
            _set_parents(parent, nodes, joined)
        n_joint = len(joint)
        parent.append(np.full(n_joint, -1, np.int64))
        n_nodes += n_joint

        (
            item_at,
            item_code,
            item_row,
            published_at,
            published_code,
            virtual_at,
            virtual_code,
        ) = merge_joined(
            order, taken, star_at, code.astype(np.int32), clusters.item_at, clusters.item_code,
            clusters.item_row, clusters.published_at, clusters.published_code, clusters.virtual_at,
            clusters.virtual_code, leaf_of_row, item_left, holders,
        )  # fmt: skip
        survivors = order[~second]
        records = clusters.records[survivors].copy()
        is_joint = first[~second]
        records[is_joint] += clusters.records[order[joint + 1]]
        node = np.where(is_joint, new_node[~second], clusters.node[survivors])
        refused = np.where(is_joint, -1, clusters.refused[survivors])
        clusters = Clusters(
            item_at,
            item_code,
            item_row,
            published_at,
            published_code,
            virtual_at,
            virtual_code,
            records,
            node,
            refused,
        )
    empty = np.empty(0, np.int32)
    return SharedChunks(
        np.concatenate(parent),
        np.concatenate([f[0] for f in found]) if found else np.empty(0, np.int64),
        np.concatenate([f[1] for f in found]) if found else empty,
        np.concatenate([f[2] for f in found]) if found else empty,
        item_left,
        passes,
    )


def _set_parents(
    parent: list[NDArray[np.int64]], nodes: NDArray[np.int64], joined: NDArray[np.int64]
) -> None:
    """Write parents into the list of arrays, one a pass, that together number the nodes."""
    first = 0
    for part in parent:
        mine = (nodes >= first) & (nodes < first + len(part))
        part[nodes[mine] - first] = joined[mine]
        first += len(part)
