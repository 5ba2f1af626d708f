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


class Parts(NamedTuple):
    """The codes of a query in one node. By chunk: the bits of its codes, and the expected count of one in an item
    chunk. By code: where its bitmap starts, and its entry's `want`."""

    chunk: Array
    mask: Array
    mean: Array
    place: Array
    want: Array


class Open(NamedTuple):
    """Ancestors of the current node, root first: the node, where its `Sums` begin, records of complete children."""

    node: Array
    first: Array
    records: Array


class Sums(NamedTuple):
    """Sums below an open node: one for each set of codes still wanted from shared chunks above (`left`)."""

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
def _leap(root: Array, at: Any, stop: Any, tree: Any) -> Any:
    """The first entry from `at` to `stop` whose root is `tree` or beyond."""
    if at == stop or root[at] >= tree:
        return at
    step = np.int64(1)
    while at + step < stop and root[at + step] < tree:
        step *= 2
    low, high = at + step // 2, min(at + step, stop)
    while low < high:
        middle = (low + high) // 2
        if root[middle] < tree:
            low = middle + 1
        else:
            high = middle
    return low


@njit(inner=True)
def _next_tree(root: Array, at: Array, stop: Array, rarest: Any) -> Any:
    """The next tree that holds every code, -1 when there is none; moves `at` to its first entries."""
    while at[rarest] < stop[rarest]:
        tree = np.int64(root[at[rarest]])
        whole = True
        for j in range(len(at)):
            at[j] = _leap(root, at[j], stop[j], tree)
            if at[j] == stop[j]:
                return -1
            if root[at[j]] != tree:
                whole = False
                break
        if whole:
            return tree
        while at[rarest] < stop[rarest] and root[at[rarest]] == tree:
            at[rarest] += 1
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
            parts.chunk[n], parts.mask[n], parts.mean[n] = chunk, np.uint64(0), entries.mean[entry]
            n += 1
        parts.mask[mine] |= bit
        while at[j] < stop[j] and entries.node[at[j]] == x:
            at[j] += 1
    return n, held


@njit(inner=True)
def _in_leaf(n: int, n_parts: int, parts: Parts, chunks: Chunks, item_most: int) -> Any:
    """(low, expected, high) of a cluster of n records."""
    below, mean, above = n, np.float64(n), n
    for i in range(n_parts):
        chunk = parts.chunk[i]
        if chunks.kind[chunk] == ITEM:
            below += 1 - n
            mean *= parts.mean[i] / n
            above = min(above, item_most)
        else:
            s = _support(parts.mask[i], parts.place, chunks.words[chunk], chunks.bits)
            below += s - n
            mean *= s / n
            above = min(above, s)
    return max(below, 0), mean, above


@njit(inner=True)
def _meet_shared(n_parts: int, parts: Parts, chunks: Chunks, sums: Sums, i: int) -> None:
    """Sum i after a joint cluster whose shared chunks have some of the codes that it wants."""
    left, low, expected, high = sums
    for p in range(n_parts):
        taken = left[i] & parts.mask[p]
        if taken != np.uint64(0):
            s = _support(taken, parts.place, chunks.words[parts.chunk[p]], chunks.bits)
            among = np.int64(0)
            for j in range(len(parts.place)):
                if (taken >> np.uint64(j)) & np.uint64(1):
                    among = max(among, parts.want[j])
            low[i] = max(low[i] + s - among, 0)
            expected[i] *= s / among
            high[i] = min(high[i], s)
            left[i] &= ~taken


@njit(inner=True)
def _add(sums: Sums, first: int, n: int, left: Any, low: int, expected: float, high: int) -> int:
    """Add to the sum of the same codes left among `first…n-1`, or append one; returns the number of sums."""
    i = first
    while i < n and sums.left[i] != left:
        i += 1
    if i == n:
        sums.left[n], sums.low[n], sums.expected[n], sums.high[n] = left, low, expected, high
        return n + 1
    sums.low[i] += low
    sums.expected[i] += expected
    sums.high[i] += high
    return n


@njit
def _more_open(old: Open) -> Open:
    """`old` with room for twice as many nodes."""
    none = np.zeros_like(old.node)
    return Open(np.append(old.node, none), np.append(old.first, none), np.append(old.records, none))


@njit
def _more_sums(old: Sums) -> Sums:
    """`old` with room for twice as many sums."""
    none = np.zeros_like(old.low)
    return Sums(
        np.append(old.left, np.zeros_like(old.left)),
        np.append(old.low, none),
        np.append(old.expected, np.zeros_like(old.expected)),
        np.append(old.high, none),
    )


@njit
def _walk_tree(
    tree: int,
    at: Array,
    stop: Array,
    entries: Entries,
    chunks: Chunks,
    nodes: Nodes,
    item_most: int,
    parts: Parts,
    opened: Open,
    sums: Sums,
) -> Any:
    """(low, expected, high) of a tree of joint clusters, and the scratch, which may have grown.

    Touched nodes are walked bottom up with a stack of their ancestors; what no entry touches wants all codes from
    above."""
    size = len(at)
    full = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    shared = np.uint64(0)
    for j in range(size):
        t = at[j]
        while t < stop[j] and entries.node[t] <= tree:
            if chunks.kind[entries.chunk[t]] == SHARED:
                shared |= np.uint64(1) << np.uint64(j)
            t += 1
    low, expected, high = np.int64(0), 0.0, np.int64(0)
    depth, n = 0, 0
    while True:
        x = np.int64(-1)
        for j in range(size):
            if at[j] < stop[j] and entries.node[at[j]] <= tree and (x < 0 or entries.node[at[j]] < x):
                x = np.int64(entries.node[at[j]])
        n_parts, held = 0, np.uint64(0)
        if depth > 0 and (x < 0 or opened.node[depth - 1] < x):
            x = opened.node[depth - 1]  # complete: nothing below it is left, and it has no code itself
        elif x < 0:
            return low, expected, high, opened, sums
        else:
            if depth == 0 or opened.node[depth - 1] != x:
                if depth == len(opened.node):
                    opened = _more_open(opened)
                opened.node[depth], opened.first[depth], opened.records[depth] = x, n, 0
                depth += 1
            n_parts, held = _take_node(x, at, stop, entries, chunks.kind, parts)
        if n + 2 >= len(sums.left):
            sums = _more_sums(sums)
        base, records = opened.first[depth - 1], nodes.records[x]
        if nodes.leaf[x]:
            wanted = full & ~held
            if (wanted & ~shared) == np.uint64(0):
                below, mean, above = _in_leaf(records, n_parts, parts, chunks, item_most)
                if above > 0:
                    n = _add(sums, base, n, wanted, below, mean, above)
        else:
            rest = records - opened.records[depth - 1]
            if rest > 0 and (full & ~shared) == np.uint64(0):
                n = _add(sums, base, n, full, rest, rest, rest)
            for i in range(base, n):
                _meet_shared(n_parts, parts, chunks, sums, i)
        depth -= 1
        up = nodes.parent[x]
        if up < 0:
            for i in range(base, n):
                if sums.left[i] == np.uint64(0):
                    low += sums.low[i]
                    expected += sums.expected[i]
                    high += sums.high[i]
            n = base
            continue
        if depth == 0 or opened.node[depth - 1] != up:
            opened.node[depth], opened.first[depth], opened.records[depth] = up, base, 0
            depth += 1
        opened.records[depth - 1] += records
        start, kept = opened.first[depth - 1], base
        for i in range(base, n):  # what x leaves is added to what its parent has
            if sums.high[i] > 0:
                kept = _add(sums, start, kept, sums.left[i], sums.low[i], sums.expected[i], sums.high[i])
        n = kept


@njit
def answer(
    query_at: Array, query_codes: Array, entries: Entries, chunks: Chunks, nodes: Nodes, item_most: int
) -> Any:
    """(low, expected, high) of each query; `item_most` is the most records of a cluster that may hold an item-chunk
    code. Trees without some code of the query are skipped."""
    queries = len(query_at) - 1
    out_low, out_expected, out_high = (
        np.zeros(queries, np.int64), np.zeros(queries, np.float64), np.zeros(queries, np.int64)
    )  # fmt: skip
    opened = Open(np.zeros(64, np.int64), np.zeros(64, np.int64), np.zeros(64, np.int64))
    sums = Sums(np.zeros(256, np.uint64), np.zeros(256, np.int64), np.zeros(256), np.zeros(256, np.int64))
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
            np.zeros(size, np.int64),
        )  # fmt: skip
        tree = _next_tree(entries.root, at, stop, rarest)
        while tree >= 0:
            if nodes.leaf[tree]:  # a tree of one cluster, as most are
                n_parts, _ = _take_node(tree, at, stop, entries, chunks.kind, parts)
                low, expected, high = _in_leaf(nodes.records[tree], n_parts, parts, chunks, item_most)
            else:
                low, expected, high, opened, sums = _walk_tree(
                    tree, at, stop, entries, chunks, nodes, item_most, parts, opened, sums
                )
            if high > 0:
                out_low[q] += low
                out_expected[q] += expected
                out_high[q] += high
            tree = _next_tree(entries.root, at, stop, rarest)
    return out_low, out_expected, out_high


@njit
def matching(node: Array, chunk: Array, place: Array, mean: Array, chunks: Chunks, nodes: Nodes) -> Any:
    """Expected records with at least one of the codes whose entries are given, sorted by node, then chunk."""
    total = 0.0
    open_node = np.zeros(64, np.int64)
    open_hit = np.zeros(64, np.float64)
    depth, at = 0, 0
    while at < len(node) or depth > 0:
        if depth > 0 and (at >= len(node) or open_node[depth - 1] < node[at]):
            x = open_node[depth - 1]
        else:
            x = np.int64(node[at])
            if depth == 0 or open_node[depth - 1] != x:
                if depth == len(open_node):
                    open_node = np.append(open_node, np.zeros(depth, np.int64))
                    open_hit = np.append(open_hit, np.zeros(depth, np.float64))
                open_node[depth], open_hit[depth] = x, 0.0
                depth += 1
        n = nodes.records[x]
        missing = n - open_hit[depth - 1]
        while at < len(node) and node[at] == x:
            g = chunk[at]
            same = at
            while same < len(node) and chunk[same] == g:
                same += 1
            if chunks.kind[g] == ITEM:
                for i in range(at, same):
                    missing *= 1.0 - mean[i] / n
            else:
                held = np.int64(0)
                for w in range(chunks.words[g]):
                    together = np.uint64(0)
                    for i in range(at, same):
                        together |= chunks.bits[place[i] + w]
                    held += popcount(together)
                missing *= 1.0 - held / n
            at = same
        hit = n - missing
        depth -= 1
        up = nodes.parent[x]
        if up < 0:
            total += hit
            continue
        if depth == 0 or open_node[depth - 1] != up:
            open_node[depth], open_hit[depth] = up, 0.0
            depth += 1
        open_hit[depth - 1] += hit
    return total
