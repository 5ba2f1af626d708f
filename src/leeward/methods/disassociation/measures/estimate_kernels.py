"""Kernels of `estimates` (docs/methods/disassociation.md#estimating-counts).

Nodes are numbered so that all nodes below a node come right before it; code sets of a query are bit masks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.kernels import empty_list, first_not_below, popcount
from leeward.compiled import njit

Array = NDArray[Any]

RECORD, SHARED, ITEM = 0, 1, 2


class Entries(NamedTuple):
    """Where each code is: code c has the entries at[c] … at[c + 1], ascending by node. `mean`: the expected count of
    each item-chunk entry. `want`: as `wanting` counts it. `root`: the topmost ancestor of each entry's node.
    `most`: the most records of its cluster behind an item-chunk entry."""

    at: Array
    node: Array
    chunk: Array
    place: Array
    root: Array
    want: Array
    mean: Array
    most: Array


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


class Parts(NamedTuple):
    """The codes of a query in one node. By chunk: the bits of its codes, and the expected and the greatest count of one
    in an item chunk. By code: where its bitmap starts, and its entry's `want`."""

    chunk: Array
    mask: Array
    mean: Array
    most: Array
    place: Array
    want: Array


class Scratch(NamedTuple):
    """By node: whether `_touched` has met it, and records of its children that were met (False and 0 between trees). A
    stack of sums of records below nodes: the node, the codes still wanted from shared chunks above, estimates."""

    seen: Array
    under: Array
    node: Array
    left: Array
    low: Array
    expected: Array
    high: Array


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
def _next_tree(root: Array, at: Array, stop: Array, rarest: Any) -> Any:
    """The next tree that holds every code, -1 when there is none; moves `at` to its first entries."""
    while at[rarest] < stop[rarest]:
        tree = np.int64(root[at[rarest]])
        whole = True
        for j in range(len(at)):
            at[j] = first_not_below(root, at[j], stop[j], tree)
            if at[j] == stop[j]:
                return -1
            if root[at[j]] != tree:
                whole = False
                break
        if whole:
            return tree
        at[rarest] = first_not_below(root, at[rarest], stop[rarest], tree + 1)
    return -1


@njit(inner=True)
def _take_node(x: int, at: Array, stop: Array, entries: Entries, kind: Array, parts: Parts) -> Any:
    """The number of the query's parts in node x, and the bits of its codes there; moves `at` beyond its entries."""
    n, held = 0, np.uint64(0)
    for j in range(len(at)):
        if at[j] == stop[j] or entries.node[at[j]] != x:
            continue
        entry, bit = at[j], np.uint64(1) << np.uint64(j)
        held |= bit
        parts.place[j], parts.want[j] = entries.place[entry], entries.want[entry]
        chunk, mine = entries.chunk[entry], n
        if kind[chunk] != ITEM:
            for i in range(n):
                if parts.chunk[i] == chunk:
                    mine = i
        if mine == n:
            parts.chunk[n], parts.mask[n] = chunk, np.uint64(0)
            parts.mean[n], parts.most[n] = entries.mean[entry], entries.most[entry]
            n += 1
        parts.mask[mine] |= bit
        while at[j] < stop[j] and entries.node[at[j]] == x:
            at[j] += 1
    return n, held


@njit(inner=True)
def _in_leaf(n: int, n_parts: int, parts: Parts, chunks: Chunks) -> Any:
    """(low, expected, high) of a cluster of n records."""
    below, mean, above = n, np.float64(n), n
    for i in range(n_parts):
        chunk = parts.chunk[i]
        if chunks.kind[chunk] == ITEM:
            below += 1 - n
            mean *= parts.mean[i] / n
            above = min(above, parts.most[i])
        else:
            s = _support(parts.mask[i], parts.place, chunks.words[chunk], chunks.bits)
            below += s - n
            mean *= s / n
            above = min(above, s)
    return max(below, 0), mean, above


@njit(inner=True)
def _meet_shared(n_parts: int, parts: Parts, chunks: Chunks, sums: Scratch, i: int) -> None:
    """Sum i after a joint cluster whose shared chunks have some of the codes that it wants."""
    for p in range(n_parts):
        taken = sums.left[i] & parts.mask[p]
        if taken == np.uint64(0):
            continue
        s = _support(taken, parts.place, chunks.words[parts.chunk[p]], chunks.bits)
        among = np.int64(0)
        for j in range(len(parts.place)):
            if (taken >> np.uint64(j)) & np.uint64(1):
                among = max(among, parts.want[j])
        sums.low[i] = max(sums.low[i] + s - among, 0)
        sums.expected[i] *= s / among
        sums.high[i] = min(sums.high[i], s)
        sums.left[i] &= ~taken


@njit(inner=True)
def _add(sums: Scratch, first: int, n: int, x: int, left: Any, low: int, expected: float, high: int) -> int:
    """Add to the sum of the same codes left among `first…n-1`, or append one, of node x; returns the number of sums."""
    i = first
    while i < n and sums.left[i] != left:
        i += 1
    if i == n:
        sums.left[n], sums.low[n], sums.expected[n], sums.high[n] = left, np.int64(0), 0.0, np.int64(0)
        n += 1
    sums.node[i] = x
    sums.low[i] += low
    sums.expected[i] += expected
    sums.high[i] += high
    return n


@njit(inner=True)
def _touched(
    tree: int, at: Array, stop: Array, entries: Entries, chunks: Chunks, parent: Array, seen: Array
) -> Any:
    """The nodes of a tree that hold a code of the query, and all nodes above them, children first; and the codes that
    its shared chunks hold."""
    nodes, shared = empty_list(), np.uint64(0)
    for j in range(len(at)):
        for t in range(at[j], stop[j]):
            x = int(entries.node[t])
            if x > tree:
                break
            if chunks.kind[entries.chunk[t]] == SHARED:
                shared |= np.uint64(1) << np.uint64(j)
            while x >= 0 and not seen[x]:
                seen[x] = True
                nodes.append(x)
                x = parent[x]
    return np.sort(np.array(nodes)), shared


@njit
def _walk_tree(
    tree: int,
    at: Array,
    stop: Array,
    entries: Entries,
    chunks: Chunks,
    nodes: Nodes,
    parts: Parts,
    sums: Scratch,
) -> Any:
    """(low, expected, high) of a tree of joint clusters. What no entry touches wants all codes from above."""
    full = (np.uint64(1) << np.uint64(len(at))) - np.uint64(1)
    order, shared = _touched(tree, at, stop, entries, chunks, nodes.parent, sums.seen)
    n = 0
    for x in order:
        n_parts, held = _take_node(x, at, stop, entries, chunks.kind, parts)
        records, base = nodes.records[x], n
        if nodes.leaf[x]:
            wanted = full & ~held
            if (wanted & ~shared) == np.uint64(0):
                below, mean, above = _in_leaf(records, n_parts, parts, chunks)
                n = _add(sums, n, n, x, wanted, below, mean, above)
        else:
            while base > 0 and nodes.parent[sums.node[base - 1]] == x:
                base -= 1
            children, n = n, base
            for i in range(base, children):  # those with the same codes left are added up
                n = _add(sums, base, n, x, sums.left[i], sums.low[i], sums.expected[i], sums.high[i])
            rest = records - sums.under[x]
            if (full & ~shared) == np.uint64(0):
                n = _add(sums, base, n, x, full, rest, rest, rest)
            for i in range(base, n):
                _meet_shared(n_parts, parts, chunks, sums, i)
        if x != tree:
            sums.under[nodes.parent[x]] += records
        sums.seen[x], sums.under[x] = False, 0
    found = sums.left[:n] == np.uint64(0)
    return sums.low[:n][found].sum(), sums.expected[:n][found].sum(), sums.high[:n][found].sum()


@njit
def answer(query_at: Array, query_codes: Array, entries: Entries, chunks: Chunks, nodes: Nodes) -> Any:
    """(low, expected, high) of each query. Trees without some code of the query are skipped."""
    queries = len(query_at) - 1
    out_low, out_expected, out_high = (
        np.zeros(queries, np.int64), np.zeros(queries, np.float64), np.zeros(queries, np.int64)
    )  # fmt: skip
    n = len(nodes.parent)
    sums = Scratch(
        np.zeros(n, np.bool_), np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint64),
        np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64),
    )  # fmt: skip
    for q in range(queries):
        codes = query_codes[query_at[q] : query_at[q + 1]]
        size = len(codes)
        if size == 0:
            records = nodes.records[nodes.parent < 0].sum()
            out_low[q], out_expected[q], out_high[q] = records, records, records
            continue
        at, stop = entries.at[codes], entries.at[codes + 1]
        rarest = np.argmin(stop - at)
        parts = Parts(
            np.zeros(size, np.int64), np.zeros(size, np.uint64), np.zeros(size), np.zeros(size, np.int64),
            np.zeros(size, np.int64), np.zeros(size, np.int64),
        )  # fmt: skip
        tree = _next_tree(entries.root, at, stop, rarest)
        while tree >= 0:
            if nodes.leaf[tree]:  # a tree of one cluster, as most are
                n_parts, _ = _take_node(tree, at, stop, entries, chunks.kind, parts)
                low, expected, high = _in_leaf(nodes.records[tree], n_parts, parts, chunks)
            else:
                low, expected, high = _walk_tree(tree, at, stop, entries, chunks, nodes, parts, sums)
            if high > 0:
                out_low[q] += low
                out_expected[q] += expected
                out_high[q] += high
            tree = _next_tree(entries.root, at, stop, rarest)
    return out_low, out_expected, out_high


@njit
def matching(
    bounds: Array, chunk: Array, place: Array, mean: Array, node: Array, chunks: Chunks, nodes: Nodes
) -> Any:
    """Expected records with at least one code of each constraint c, whose entries bounds[c] … bounds[c + 1] are sorted
    by chunk. `node`: of each chunk."""
    found = np.zeros(len(bounds) - 1)
    lacking, hit = np.ones(len(nodes.parent)), np.zeros(len(nodes.parent))
    seen = np.zeros(len(nodes.parent), np.bool_)
    for c in range(len(found)):
        touched, first = empty_list(), bounds[c]
        while first < bounds[c + 1]:
            g, last = (
                chunk[first],
                first + np.searchsorted(chunk[first : bounds[c + 1]], chunk[first], "right"),
            )
            x = int(node[g])
            lacking[x] *= _share_lacking(place[first:last], mean[first:last], g, nodes.records[x], chunks)
            while x >= 0 and not seen[x]:
                seen[x] = True
                touched.append(x)
                x = nodes.parent[x]
            first = last
        for x in sorted(touched):  # children come before parents
            with_code = nodes.records[x] - (nodes.records[x] - hit[x]) * lacking[x]
            if nodes.parent[x] < 0:
                found[c] += with_code
            else:
                hit[nodes.parent[x]] += with_code
            lacking[x], hit[x], seen[x] = 1.0, 0.0, False
    return found


@njit(inner=True)
def _share_lacking(place: Array, mean: Array, chunk: int, records: int, chunks: Chunks) -> float:
    """Share of a node's records expected to have none of some codes of its chunk."""
    if chunks.kind[chunk] == ITEM:
        return (1.0 - mean / records).prod()
    held = np.int64(0)
    for w in range(chunks.words[chunk]):
        together = np.uint64(0)
        for at in place:
            together |= chunks.bits[at + w]
        held += popcount(together)
    return 1.0 - held / records
