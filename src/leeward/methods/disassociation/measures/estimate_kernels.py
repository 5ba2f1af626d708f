"""Kernels of `estimates` (docs/methods/disassociation.md#estimating-counts).

Nodes are numbered so that all nodes below a node come right before it; code sets of a query are bit masks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.kernels import popcount
from leeward.compiled import njit

Array = NDArray[Any]

RECORD, SHARED, ITEM = 0, 1, 2


class Entries(NamedTuple):
    """Where each code is: code c has the entries at[c] … at[c + 1], ascending by node.

    mean : the expected count of each item-chunk entry. want : as `wanting` counts it. root : the topmost ancestor of
    each entry's node.
    """

    at: Array
    node: Array
    chunk: Array
    place: Array
    root: Array
    want: Array
    mean: Array


class Chunks(NamedTuple):
    """Kind, words of a bitmap and bitmaps, by chunk."""

    kind: Array
    words: Array
    bits: Array


class Nodes(NamedTuple):
    """Parent (-1 for a root), whether it is a leaf, and records, by node."""

    parent: Array
    leaf: Array
    records: Array


@njit
def _support(mask: Any, place: Array, words: int, bits: Array) -> Any:
    """Subrecords that hold every code of `mask`; `place[j]` is where code j's bitmap starts."""
    total = np.int64(0)
    for w in range(words):
        together = np.uint64(0xFFFFFFFFFFFFFFFF)
        for j in range(len(place)):
            if (mask >> np.uint64(j)) & np.uint64(1):
                together &= bits[place[j] + w]
        total += popcount(together)
    return total


@njit(inner=True)
def _find_touched(any_of: Array, words: int, bits: Array, n: int) -> Any:
    """Subrecords that hold at least one of the first `n` codes of `any_of`."""
    total = np.int64(0)
    for w in range(words):
        together = np.uint64(0)
        for j in range(n):
            together |= bits[any_of[j] + w]
        total += popcount(together)
    return total


@njit(inner=True)
def _add_part(
    entry: int,
    bit: Any,
    parts: int,
    post_group: Array,
    kind: Array,
    item_mean: Array,
    part_group: Array,
    part_mask: Array,
    part_mean: Array,
) -> Any:
    """Adds a code to the parts of a query in one node, its codes by chunk; returns the number of parts."""
    g = post_group[entry]
    mine = parts
    if kind[g] != ITEM:
        for i in range(parts):
            if part_group[i] == g:
                mine = i
    if mine == parts:
        part_group[parts] = g
        part_mask[parts] = np.uint64(0)
        part_mean[parts] = item_mean[entry]
        parts += 1
    part_mask[mine] |= bit
    return parts


@njit(inner=True)
def _in_leaf(
    n: int,
    parts: int,
    place: Array,
    kind: Array,
    words: Array,
    bits: Array,
    part_group: Array,
    part_mask: Array,
    part_mean: Array,
    item_most: int,
) -> Any:
    """(low, expected, high) of a cluster of n records."""
    below = n
    mean = np.float64(n)
    above = n
    for i in range(parts):
        if kind[part_group[i]] == ITEM:
            below += 1 - n
            mean *= part_mean[i] / n
            above = min(above, item_most)
        else:
            s = _support(part_mask[i], place, words[part_group[i]], bits)
            below += s - n
            mean *= s / n
            above = min(above, s)
    return max(below, 0), mean, above


@njit
def answer(
    query_at: Array, query_codes: Array, entries: Entries, chunks: Chunks, nodes: Nodes, item_most: int
) -> Any:
    """(low, expected, high) of each query; `item_most` is the most records of a cluster that may hold an item-chunk
    code.

    Trees without some code of the query are skipped by bisection. In a tree, touched nodes are walked
    bottom up with a stack of their ancestors. Each open node keeps, for every set of codes still wanted
    from shared chunks above (`left`), the sums of (low, expected, high) below it; what no entry touches
    wants all codes from above."""
    post_at, post_node, post_group, post_place, post_root, want, item_mean = entries
    kind, words, bits = chunks
    parent, leaf, records = nodes
    queries = len(query_at) - 1
    out_low = np.zeros(queries, np.int64)
    out_expected = np.zeros(queries, np.float64)
    out_high = np.zeros(queries, np.int64)
    most = 1
    for q in range(queries):
        most = max(most, query_at[q + 1] - query_at[q])
    at = np.zeros(most, np.int64)
    stop = np.zeros(most, np.int64)
    tree_stop = np.zeros(most, np.int64)
    place = np.zeros(most, np.int64)
    part_group = np.zeros(most, np.int64)
    part_mask = np.zeros(most, np.uint64)
    part_mean = np.zeros(most, np.float64)
    wants = np.zeros(most, np.int64)
    open_node = np.zeros(64, np.int64)
    open_first = np.zeros(64, np.int64)
    open_sum = np.zeros(64, np.int64)
    left = np.zeros(256, np.uint64)
    low = np.zeros(256, np.int64)
    expected = np.zeros(256, np.float64)
    high = np.zeros(256, np.int64)
    for q in range(queries):
        size = query_at[q + 1] - query_at[q]
        full = np.uint64(0)
        for j in range(size):
            c = query_codes[query_at[q] + j]
            at[j] = post_at[c]
            stop[j] = post_at[c + 1]
            full |= np.uint64(1) << np.uint64(j)
        rarest = 0
        for j in range(size):
            if stop[j] - at[j] < stop[rarest] - at[rarest]:
                rarest = j
        while True:
            # The next tree that holds every code.
            target = np.int64(-1)
            if at[rarest] < stop[rarest]:
                target = np.int64(post_root[at[rarest]])
            if target < 0:
                break
            whole = True
            beyond = False
            shared = np.uint64(0)
            for j in range(size):
                if j != rarest:
                    # leap to the tree
                    step = np.int64(1)
                    while at[j] + step < stop[j] and post_root[at[j] + step] < target:
                        step *= 2
                    lo = at[j] + step // 2
                    hi = min(at[j] + step, stop[j])
                    if at[j] < stop[j] and post_root[at[j]] >= target:
                        hi = at[j]
                        lo = at[j]
                    while lo < hi:
                        mid = (lo + hi) // 2
                        if post_root[mid] < target:
                            lo = mid + 1
                        else:
                            hi = mid
                    at[j] = lo
                if at[j] >= stop[j]:
                    beyond = True
                    break
                if post_root[at[j]] != target:
                    whole = False
                    break
            if beyond:
                break
            if not whole:
                while at[rarest] < stop[rarest] and post_root[at[rarest]] == target:
                    at[rarest] += 1
                continue
            if leaf[target]:  # a tree of one cluster, as most are
                parts = 0
                for j in range(size):
                    place[j] = post_place[at[j]]
                    parts = _add_part(
                        at[j], np.uint64(1) << np.uint64(j), parts, post_group, kind, item_mean,
                        part_group, part_mask, part_mean,
                    )  # fmt: skip
                    while at[j] < stop[j] and post_root[at[j]] == target:
                        at[j] += 1
                below, mean, above = _in_leaf(
                    records[target], parts, place[:size], kind, words, bits, part_group, part_mask, part_mean,
                    item_most,
                )  # fmt: skip
                if above > 0:
                    out_low[q] += below
                    out_expected[q] += mean
                    out_high[q] += above
                continue
            for j in range(size):
                t = at[j]
                while t < stop[j] and post_node[t] <= target:
                    if kind[post_group[t]] == SHARED:
                        shared |= np.uint64(1) << np.uint64(j)
                    t += 1
                tree_stop[j] = t
            depth = 0
            n_keys = 0
            while True:
                x = np.int64(-1)
                for j in range(size):
                    if at[j] < tree_stop[j] and (x < 0 or post_node[at[j]] < x):
                        x = post_node[at[j]]
                parts = 0
                held = np.uint64(0)
                if depth > 0 and (x < 0 or open_node[depth - 1] < x):
                    x = open_node[depth - 1]  # complete: nothing below it is left, and it has no code itself
                elif x < 0:
                    break
                else:
                    if depth == 0 or open_node[depth - 1] != x:
                        if depth == len(open_node):
                            open_node = np.append(open_node, np.zeros(depth, np.int64))
                            open_first = np.append(open_first, np.zeros(depth, np.int64))
                            open_sum = np.append(open_sum, np.zeros(depth, np.int64))
                        open_node[depth] = x
                        open_first[depth] = n_keys
                        open_sum[depth] = 0
                        depth += 1
                    for j in range(size):
                        bit = np.uint64(1) << np.uint64(j)
                        while at[j] < tree_stop[j] and post_node[at[j]] == x:
                            if not (held & bit):
                                held |= bit
                                place[j] = post_place[at[j]]
                                wants[j] = want[at[j]]
                                parts = _add_part(
                                    at[j],
                                    bit,
                                    parts,
                                    post_group,
                                    kind,
                                    item_mean,
                                    part_group,
                                    part_mask,
                                    part_mean,
                                )
                            at[j] += 1
                if n_keys + 2 >= len(left):
                    left = np.append(left, np.zeros(len(left), np.uint64))
                    low = np.append(low, np.zeros(len(low), np.int64))
                    expected = np.append(expected, np.zeros(len(expected), np.float64))
                    high = np.append(high, np.zeros(len(high), np.int64))
                base = open_first[depth - 1]
                n = records[x]
                if leaf[x]:
                    wanted = full & ~held
                    if (wanted & ~shared) == np.uint64(0):
                        below, mean, above = _in_leaf(
                            n,
                            parts,
                            place[:size],
                            kind,
                            words,
                            bits,
                            part_group,
                            part_mask,
                            part_mean,
                            item_most,
                        )
                        if above > 0:
                            left[n_keys] = wanted
                            low[n_keys] = below
                            expected[n_keys] = mean
                            high[n_keys] = above
                            n_keys += 1
                else:
                    rest = n - open_sum[depth - 1]
                    if rest > 0 and (full & ~shared) == np.uint64(0):
                        known = False
                        for i in range(base, n_keys):
                            if left[i] == full:
                                low[i] += rest
                                expected[i] += rest
                                high[i] += rest
                                known = True
                                break
                        if not known:
                            left[n_keys] = full
                            low[n_keys] = rest
                            expected[n_keys] = rest
                            high[n_keys] = rest
                            n_keys += 1
                    for i in range(base, n_keys):
                        for p in range(parts):
                            taken = left[i] & part_mask[p]
                            if taken != np.uint64(0):
                                s = _support(taken, place[:size], words[part_group[p]], bits)
                                among = np.int64(0)
                                for j in range(size):
                                    if (taken >> np.uint64(j)) & np.uint64(1):
                                        among = max(among, wants[j])
                                low[i] = max(low[i] + s - among, 0)
                                expected[i] *= s / among
                                high[i] = min(high[i], s)
                                left[i] &= ~taken
                depth -= 1
                up = parent[x]
                if up < 0:
                    for i in range(base, n_keys):
                        if left[i] == np.uint64(0):
                            out_low[q] += low[i]
                            out_expected[q] += expected[i]
                            out_high[q] += high[i]
                    n_keys = base
                    continue
                if depth == 0 or open_node[depth - 1] != up:
                    open_node[depth] = up
                    open_first[depth] = base
                    open_sum[depth] = 0
                    depth += 1
                open_sum[depth - 1] += n
                # Add what x leaves to what its parent has, one sum for each set still wanted.
                start = open_first[depth - 1]
                kept = base
                for i in range(base, n_keys):
                    if high[i] == 0:
                        continue
                    known = False
                    for t in range(start, kept):
                        if left[t] == left[i]:
                            low[t] += low[i]
                            expected[t] += expected[i]
                            high[t] += high[i]
                            known = True
                            break
                    if not known:
                        left[kept] = left[i]
                        low[kept] = low[i]
                        expected[kept] = expected[i]
                        high[kept] = high[i]
                        kept += 1
                n_keys = kept
        if size == 0:
            for top in range(len(parent)):
                if parent[top] < 0:
                    out_low[q] += records[top]
                    out_expected[q] += records[top]
                    out_high[q] += records[top]
    return out_low, out_expected, out_high


@njit
def matching(
    nodes: Array,
    groups: Array,
    places: Array,
    kind: Array,
    words: Array,
    bits: Array,
    parent: Array,
    leaf: Array,
    records: Array,
    item_mean: Array,
) -> Any:
    """Expected records with at least one of the codes whose entries are given, sorted by node, then chunk."""
    total = 0.0
    open_node = np.zeros(64, np.int64)
    open_hit = np.zeros(64, np.float64)
    depth = 0
    at = 0
    while at < len(nodes) or depth > 0:
        if depth > 0 and (at >= len(nodes) or open_node[depth - 1] < nodes[at]):
            x = open_node[depth - 1]
        else:
            x = nodes[at]
            if depth == 0 or open_node[depth - 1] != x:
                if depth + 1 >= len(open_node):
                    open_node = np.append(open_node, np.zeros(len(open_node), np.int64))
                    open_hit = np.append(open_hit, np.zeros(len(open_hit), np.float64))
                open_node[depth] = x
                open_hit[depth] = 0.0
                depth += 1
        n = records[x]
        missing = n - open_hit[depth - 1]
        while at < len(nodes) and nodes[at] == x:
            g = groups[at]
            same = at
            while same < len(nodes) and groups[same] == g:
                same += 1
            if kind[g] == ITEM:
                for i in range(at, same):
                    missing *= 1.0 - item_mean[i] / n
            else:
                missing *= 1.0 - _find_touched(places[at:same], words[g], bits, same - at) / n
            at = same
        hit = n - missing
        depth -= 1
        up = parent[x]
        if up < 0:
            total += hit
            continue
        if depth == 0 or open_node[depth - 1] != up:
            if depth + 1 >= len(open_node):
                open_node = np.append(open_node, np.zeros(len(open_node), np.int64))
                open_hit = np.append(open_hit, np.zeros(len(open_hit), np.float64))
            open_node[depth] = up
            open_hit[depth] = 0.0
            depth += 1
        open_hit[depth - 1] += hit
    return total
