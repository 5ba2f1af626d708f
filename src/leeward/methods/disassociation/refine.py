"""Refine: shared chunks for codes in the item chunks of several clusters (Loukides et al. 2014, 4).

Conventions: docs/methods/disassociation.md#refining. The scan of a pass is sequential by definition, its tests are
not: every pair of neighbours is tested at once (in threads), then the scan takes the accepted pairs from the left. A
pair that was refused is not tested again as long as neither side changed, and a cluster that stays as it is is not
copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leeward.arrays import Int32s, Int64s, offsets_of
from leeward.compiled import njit
from leeward.methods.disassociation.joins import Fresh, Leaves, Sides, merge_pairs, take_from_left, test_pairs
from leeward.methods.disassociation.ranking import sort_by_ranks, sort_by_sketch
from leeward.methods.disassociation.rules import Rules

IDLE_PASSES = 2
"""Fitted: so many passes in a row, each by other ranks, may change nothing."""

SCATTERED_JOINT = 200
"""In those passes no joint cluster of more than so many times k records is made: it would blur which codes go
together."""

Blocks = Callable[[int, Callable[[int, int], object]], list[object]]
"""Runs a function over blocks of 0…n-1 in threads and returns the results in block order."""


@dataclass
class Entries:
    """One entry array of all clusters (with a second one beside it, for item pairs), which only grows.

    at : int64[clusters, 2], where each cluster's entries begin and end
    """

    at: Int64s
    code: Int32s
    row: Int32s | None = None
    used: int = 0

    def room_for(self, sizes: Int64s) -> Int64s:
        """Make room for new clusters of at most these sizes: their bounds, empty as yet."""
        begins = self.used + offsets_of(sizes)
        self.used = int(begins[-1])
        if self.used > len(self.code):
            self.code = _enlarge(self.code, 2 * self.used)
            if self.row is not None:
                self.row = _enlarge(self.row, 2 * self.used)
        return np.stack([begins[:-1], begins[:-1]], axis=1)

    def sizes(self, clusters: Int64s) -> Int64s:
        return self.at[clusters, 1] - self.at[clusters, 0]

    def rearrange(self, order: Int64s) -> None:
        """Cluster i becomes what `order[i]` was, and its entries come to lie before those of cluster i + 1."""
        begins = offsets_of(self.sizes(order))
        self.code = _gather(self.at, order, self.code, begins)
        if self.row is not None:
            self.row = _gather(self.at, order, self.row, begins)
        self.at, self.used = _bounds(begins), int(begins[-1])


@dataclass
class Clusters:
    """The clusters of a pass, leaves or joint clusters.

    items : the (code, record position) pairs of the item chunks below, sorted
    published : codes of record or shared chunks below, ascending
    virtual : the distinct codes of `items`, in the order of the last ranking
    records : records below; node : the number of the cluster's node
    refused : the node that it was last refused to join to its right (-1: none)
    """

    items: Entries
    published: Entries
    virtual: Entries
    records: Int64s
    node: Int64s
    refused: Int64s

    def rearrange(self, order: Int64s) -> None:
        """Cluster i becomes what `order[i]` was: neighbours in the order become neighbours in memory."""
        for entries in (self.items, self.published, self.virtual):
            entries.rearrange(order)
        self.records, self.node, self.refused = self.records[order], self.node[order], self.refused[order]

    def sides(self) -> Sides:
        """What the kernels of joins take. A new tuple after `room_for`, which may move the arrays."""
        assert self.items.row is not None
        return Sides(
            self.items.at,
            self.items.code,
            self.items.row,
            self.published.at,
            self.published.code,
            self.records,
        )


@dataclass(frozen=True)
class SharedChunks:
    """What Refine found: joint nodes and the codes of their shared chunks.

    parent : int64[nodes], -1 for none; nodes 0…leaves-1 are the leaves
    shared_node, shared_code, shared_chunk : one entry a code of a shared chunk
    item_left : int32, the number of codes left in each leaf's item chunk
    """

    parent: Int64s
    shared_node: Int64s
    shared_code: Int32s
    shared_chunk: Int32s
    item_left: Int32s
    passes: int


@njit
def leaf_items(
    offsets: Int64s,
    values: Int32s,
    leaf_offsets: Int64s,
    leaf_codes: Int32s,
    leaf_chunk: Int32s,
    leaf_n_codes: Int32s,
    n_codes: int,
) -> tuple[Int64s, Int32s, Int32s, Int64s, Int32s]:
    """Each leaf's item pairs (code, record position), sorted, and its published codes, with room for as many more."""
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
    item_code = np.empty(2 * item_at[leaves], np.int32)  # with room for joint clusters
    item_row = np.empty(2 * item_at[leaves], np.int32)
    published_code = np.empty(2 * published_at[leaves], np.int32)
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


@njit
def _gather(at: Int64s, order: Int64s, entries: Int32s, begins: Int64s) -> Int32s:
    """The entries of the clusters of `order`, one cluster's after another's, and as much room behind."""
    gathered = np.empty(2 * begins[-1], np.int32)
    for i in range(len(order)):
        shift = begins[i] - at[order[i], 0]
        for j in range(at[order[i], 0], at[order[i], 1]):
            gathered[j + shift] = entries[j]
    return gathered


@njit
def distinct_codes(item_at: Int64s, item_code: Int32s) -> tuple[Int64s, Int32s]:
    """Each cluster's virtual item chunk: the distinct codes of its item pairs."""
    at = np.zeros(len(item_at), np.int64)
    code = np.empty(2 * item_at[-1], np.int32)
    n = 0
    for c in range(len(item_at) - 1):
        for j in range(item_at[c], item_at[c + 1]):
            if j == item_at[c] or item_code[j] != item_code[j - 1]:
                code[n] = item_code[j]
                n += 1
        at[c + 1] = n
    return at, code


def leaf_clusters(
    offsets: Int64s,
    values: Int32s,
    leaf_offsets: Int64s,
    leaf_codes: Int32s,
    leaf_chunk: Int32s,
    leaf_n_codes: Int32s,
    n_codes: int,
) -> Clusters:
    """Every leaf as a cluster, before the first pass."""
    item_at, item_code, item_row, published_at, published_code = leaf_items(
        offsets, values, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes
    )
    virtual_at, virtual_code = distinct_codes(item_at, item_code)
    leaves = len(leaf_n_codes)
    return Clusters(
        items=Entries(_bounds(item_at), item_code, item_row, int(item_at[-1])),
        published=Entries(_bounds(published_at), published_code, None, int(published_at[-1])),
        virtual=Entries(_bounds(virtual_at), virtual_code, None, int(virtual_at[-1])),
        records=np.diff(leaf_offsets),
        node=np.arange(leaves, dtype=np.int64),
        refused=np.full(leaves, -1, np.int64),
    )


def _bounds(offsets: Int64s) -> Int64s:
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def _enlarge(values: Int32s, room: int) -> Int32s:
    more = np.empty(room, np.int32)
    more[: len(values)] = values
    return more


def refine(
    clusters: Clusters,
    leaves: Leaves,
    rules: Rules,
    *,
    holders: Int64s,
    blocks: Blocks,
) -> SharedChunks:
    """Joint clusters and their shared chunks, pass after pass, until one changes nothing (or `max_passes` are done).

    Fitted: when a pass changes nothing, the others look at the clusters in other orders, until `IDLE_PASSES` and one
    more in a row change nothing (docs/methods/disassociation.md#refining).

    `leaves.item_left` and `holders` (leaves whose item chunk has each code) are updated.
    """
    n_codes = rules.n_codes
    n_nodes = len(clusters.node)
    parent = [np.full(n_nodes, -1, np.int64)]
    found: list[tuple[Int64s, Int32s, Int32s]] = []
    passes = scattered = idle = 0
    while passes < rules.max_passes:
        passes += 1
        if scattered:
            rank = _scatter_ranks(holders, scattered)
            order = sort_by_sketch(clusters.virtual.at, clusters.virtual.code, rank, blocks)
        else:
            rank = np.empty(n_codes, np.int32)
            rank[np.lexsort((np.arange(n_codes), -holders))] = np.arange(n_codes, dtype=np.int32)
            order = sort_by_ranks(clusters.virtual.at, clusters.virtual.code, rank, blocks)
        if passes == 1:  # later passes hardly change the order
            clusters.rearrange(order)
            order = np.arange(len(order))
        limit = min(rules.max_joint, SCATTERED_JOINT * rules.k) if scattered else rules.max_joint
        taken, pair, code, chunk = _scan(clusters, order, leaves, rules._replace(max_joint=limit), blocks)
        idle = 0 if len(taken) else idle + 1
        if (not rules.fit and idle) or idle > IDLE_PASSES:
            break
        if scattered or idle:
            scattered += 1
        if idle:
            continue
        new_node = n_nodes + np.arange(len(taken))
        found.append((new_node[pair], code, chunk))
        for side in (order[taken], order[taken + 1]):
            _set_parents(parent, clusters.node[side], new_node)
        parent.append(np.full(len(taken), -1, np.int64))
        n_nodes += len(taken)
        star_at = offsets_of(np.bincount(pair, minlength=len(taken)))
        clusters = _join(clusters, order, taken, new_node, star_at, code, leaves, holders, blocks)
    empty = np.empty(0, np.int32)
    return SharedChunks(
        np.concatenate(parent),
        np.concatenate([np.empty(0, np.int64), *(f[0] for f in found)]),
        np.concatenate([empty, *(f[1] for f in found)]),
        np.concatenate([empty, *(f[2] for f in found)]),
        leaves.item_left,
        passes,
    )


def _scatter_ranks(holders: Int64s, turn: int) -> Int32s:
    """A permutation of the codes, another one each turn; codes in fewer than two item chunks join nothing: last."""
    n_codes = len(holders)
    mixed = (
        np.arange(1, n_codes + 1, dtype=np.uint64) * np.uint64(2654435761 + 2 * turn * 40503)
    ) % np.uint64(1 << 32)
    rank = np.empty(n_codes, np.int32)
    rank[np.lexsort((mixed, holders < 2))] = np.arange(n_codes, dtype=np.int32)
    return rank


def _scan(
    clusters: Clusters,
    order: Int64s,
    leaves: Leaves,
    rules: Rules,
    blocks: Blocks,
) -> tuple[Int64s, Int64s, Int32s, Int32s]:
    """The pairs of a pass (positions of their left sides) and the codes that they share: pair, code, chunk."""
    left, right = order[:-1], order[1:]
    todo = np.flatnonzero(clusters.refused[left] != clusters.node[right])
    accepted = np.zeros(len(todo), np.bool_)
    lefts, rights = np.ascontiguousarray(left[todo]), np.ascontiguousarray(right[todo])
    sides = clusters.sides()

    def test(lo: int, hi: int) -> object:
        # a block has scratch of its own, so threads never meet
        return test_pairs(lefts, rights, accepted, lo, hi, sides, leaves, rules)

    tested = blocks(len(todo), test)
    pair, code, chunk = (
        np.concatenate([t[i] for t in tested])  # type: ignore[index]  # a tuple of arrays from the kernel
        if tested
        else np.empty(0, np.int64)
        for i in range(3)
    )
    accepts = np.zeros(len(left), np.bool_)
    accepts[todo] = accepted
    clusters.refused[lefts[~accepted]] = clusters.node[rights[~accepted]]
    takes = take_from_left(accepts)
    taken = np.flatnonzero(takes)
    position = todo[pair]
    keep = takes[position] & (chunk >= 0)
    number = np.cumsum(takes) - 1
    return taken, number[position[keep]], code[keep].astype(np.int32), chunk[keep].astype(np.int32)


def _join(
    clusters: Clusters,
    order: Int64s,
    taken: Int64s,
    new_node: Int64s,
    star_at: Int64s,
    star_code: Int32s,
    leaves: Leaves,
    holders: Int64s,
    blocks: Blocks,
) -> Clusters:
    """The clusters after a pass, in the order of its scan."""
    left, right = order[taken], order[taken + 1]
    items, published, virtual = clusters.items, clusters.published, clusters.virtual
    item_at = items.room_for(items.sizes(left) + items.sizes(right))
    published_at = published.room_for(published.sizes(left) + published.sizes(right) + np.diff(star_at))
    virtual_at = virtual.room_for(virtual.sizes(left) + virtual.sizes(right))

    sides, fresh = clusters.sides(), Fresh(item_at, published_at, virtual_at)

    def merge(lo: int, hi: int) -> object:
        lost = np.zeros(len(holders), np.int64)
        merge_pairs(left, right, lo, hi, star_at, star_code, sides, virtual.code, fresh, leaves, lost)
        return lost

    for lost in blocks(len(taken), merge):
        holders -= np.asarray(lost, np.int64)
    stays = np.ones(len(order), np.bool_)
    stays[taken + 1] = False
    survivors = order[stays]
    joint = np.cumsum(stays)[taken] - 1  # the places of the joints among the survivors
    records, node, refused = (
        clusters.records[survivors],
        clusters.node[survivors],
        clusters.refused[survivors],
    )
    records[joint] += clusters.records[right]
    node[joint] = new_node
    refused[joint] = -1
    for entries, at in zip((items, published, virtual), fresh, strict=True):
        entries.at = np.take(entries.at, survivors, axis=0)
        entries.at[joint] = at
    return Clusters(items, published, virtual, records, node, refused)


def _set_parents(parent: list[Int64s], nodes: Int64s, joined: Int64s) -> None:
    """Write parents into the list of arrays, one a pass, that together number the nodes."""
    first = 0
    for part in parent:
        mine = (nodes >= first) & (nodes < first + len(part))
        part[nodes[mine] - first] = joined[mine]
        first += len(part)
