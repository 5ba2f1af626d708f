"""Refine: shared chunks for codes in the item chunks of several clusters (Loukides et al. 2014, 4).

Conventions: docs/methods/disassociation.md#refining. The scan of a pass is sequential by definition, its tests are
not: every pair of neighbours is tested at once (in threads), then the scan takes the accepted pairs from the left. A
pair that was refused is not tested again as long as neither side changed, and an unchanged cluster is not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import uint64

from leeward.analysis.itemsets import owners_of
from leeward.arrays import AnyArray, Bools, Int32s, Int64s, UInt64s, offsets_of
from leeward.compiled import njit
from leeward.methods.disassociation.horpart import Clustered
from leeward.methods.disassociation.joins import Fresh, Leaves, Sides, Stars, merge_pairs, test_pairs
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.verpart import Chunks, entries_of

IDLE_PASSES = 2
"""Fitted: passes in a row, each by other ranks, that may change nothing."""

SCATTERED_JOINT = 200
"""Those passes make no joint cluster of more than this many times k records: it would blur which codes go
together."""

Blocks = Callable[[int, Callable[[int, int], object]], list[Any]]
"""Runs a function over blocks of 0…n-1 in threads and returns the results in block order."""


@dataclass
class Entries:
    """Growing array of the entries of all clusters (for item pairs with a second, parallel one). `at`: int64[clusters,
    2], where each cluster's entries begin and end."""

    at: Int64s
    code: Int32s
    row: Int32s | None = None
    used: int = 0

    def room_for(self, sizes: Int64s) -> Int64s:
        """Reserve room for new clusters of at most these sizes; returns their empty bounds."""
        begins = self.used + offsets_of(sizes)
        self.used = int(begins[-1])
        if self.used > len(self.code):
            more = np.empty(2 * self.used - len(self.code), np.int32)
            self.code = np.concatenate([self.code, more])
            if self.row is not None:
                self.row = np.concatenate([self.row, more])
        return np.stack([begins[:-1], begins[:-1]], axis=1)

    def sizes(self, clusters: Int64s) -> Int64s:
        return self.at[clusters, 1] - self.at[clusters, 0]


@dataclass
class Clusters:
    """The clusters of a pass, leaves or joint clusters.

    items : the (code, record position) pairs of the item chunks below, sorted
    published : codes of record or shared chunks below, ascending
    virtual : the distinct codes of `items`, in the order of the last ranking
    records : records below; node : the number of the cluster's node
    refused : the node to its right with which a join was last refused (-1: none)
    """

    items: Entries
    published: Entries
    virtual: Entries
    records: Int64s
    node: Int64s
    refused: Int64s

    def sides(self) -> Sides:
        """Arguments of the join kernels; to be taken anew after `room_for`, which may move the arrays."""
        assert self.items.row is not None
        return Sides(
            self.items.at,
            self.items.code,
            self.items.row,
            self.published.at,
            self.published.code,
            self.records,
        )


def leaf_clusters(near: Clustered, chunks: Chunks) -> Clusters:
    leaves = len(chunks.fit_alone)
    leaf, is_item = chunks.node, chunks.chunk < 0
    entry = entries_of(near, chunks)
    pairs = np.flatnonzero(is_item[entry])
    pairs = pairs[np.argsort(entry[pairs], kind="stable")]  # by leaf, code, record
    row = owners_of(near.offsets)[pairs].astype(np.int32)

    def at(entries: AnyArray) -> Int64s:
        return offsets_of(np.bincount(leaf[entries], minlength=leaves))

    return Clusters(
        items=Entries(_bounds(at(entry[pairs])), near.values[pairs], row, len(pairs)),
        published=Entries(_bounds(at(~is_item)), chunks.code[~is_item], None, int((~is_item).sum())),
        virtual=Entries(_bounds(at(is_item)), chunks.code[is_item], None, int(is_item.sum())),
        records=np.diff(near.bounds),
        node=np.arange(leaves, dtype=np.int64),
        refused=np.full(leaves, -1, np.int64),
    )


def _bounds(offsets: Int64s) -> Int64s:
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def refine(near: Clustered, chunks: Chunks, rules: Rules, blocks: Blocks) -> Int64s:
    """Build joint clusters with shared chunks, pass after pass, until one changes nothing (or `max_passes` are done).
    Returns the parent of each node, int64, -1 for none; nodes 0…leaves-1 are the leaves. Updates in `chunks` the item
    codes that move to shared chunks.

    Fitted: after a pass that changes nothing, passes use other orders of the clusters, until `IDLE_PASSES` and one more
    in a row change nothing (docs/methods/disassociation.md#refining).
    """
    clusters = leaf_clusters(near, chunks)
    item_left = clusters.virtual.sizes(clusters.node).astype(np.int32)
    leaves = Leaves(owners_of(near.bounds).astype(np.int32), np.diff(near.bounds), item_left, chunks)
    # leaves whose item chunk has each code
    holders = np.bincount(clusters.virtual.code, minlength=rules.n_codes)
    n_nodes = len(clusters.node)
    parent = np.full(2 * n_nodes, -1, np.int64)  # of a binary forest
    passes = scattered = idle = 0
    while passes < rules.max_passes:
        passes += 1
        order = _order_clusters(clusters, holders, scattered, blocks)
        limit = min(rules.max_joint, SCATTERED_JOINT * rules.k) if scattered else rules.max_joint
        taken, pair, code, chunk = _scan(clusters, order, leaves, rules._replace(max_joint=limit), blocks)
        idle = 0 if len(taken) else idle + 1
        if (not rules.fit and idle) or idle > IDLE_PASSES:
            break
        scattered += int(scattered > 0 or idle > 0)
        if idle:
            continue
        new_node = n_nodes + np.arange(len(taken))
        for side in (order[taken], order[taken + 1]):
            parent[clusters.node[side]] = new_node
        n_nodes += len(taken)
        stars = Stars(offsets_of(np.bincount(pair, minlength=len(taken))), code, chunk, new_node)
        clusters = _join(clusters, order, taken, stars, leaves, holders, blocks)
    return parent[:n_nodes]


def _order_clusters(clusters: Clusters, holders: Int64s, scattered: int, blocks: Blocks) -> Int64s:
    """The order of a pass: by codes in the most item chunks first; if `scattered`, by a new permutation of the codes
    each time, with codes in fewer than two item chunks, which join nothing, last."""
    number = np.arange(len(holders), dtype=np.int32)
    rank = np.empty_like(number)
    if not scattered:
        rank[np.lexsort((number, -holders))] = number
        return sort_by_ranks(clusters.virtual, rank, blocks)
    step = np.uint64(2654435761 + 2 * scattered * 40503)
    mixed = (number.astype(np.uint64) + np.uint64(1)) * step % np.uint64(1 << 32)
    rank[np.lexsort((mixed, holders < 2))] = number
    return sort_by_sketch(clusters.virtual, rank, blocks)


def take_from_left(accepts: Bools) -> Bools:
    """Scan of a pass: take an accepted pair and skip both sides, otherwise move on by one."""
    place = np.arange(len(accepts))
    refused = np.maximum.accumulate(np.where(accepts, -1, place))  # the last refused pair up to each
    taken: Bools = accepts & ((place - refused) % 2 == 1)
    return taken


RANK_BITS = 21
"""Three ranks fill a word; at most 2^21 - 1 distinct codes."""


def sort_by_ranks(virtual: Entries, rank: Int32s, blocks: Blocks) -> Int64s:
    """Positions of the clusters, stably sorted by the rank sequence of their virtual item chunks, which it sorts
    by rank (docs/methods/disassociation.md#refining)."""
    blocks(len(virtual.at), lambda lo, hi: order_codes(virtual.at, virtual.code, rank, lo, hi))
    order = np.arange(len(virtual.at))
    place, group, depth = order.copy(), np.zeros(len(order), np.int64), 0
    while len(place):  # three ranks at a time, of the clusters that are equal so far
        key = _pack_ranks(virtual, order[place], rank, depth)
        again = np.lexsort((key, group)) if depth else np.argsort(key, kind="stable")
        order[place], key = order[place[again]], key[again]
        group = np.cumsum(np.append(True, (group[1:] != group[:-1]) | (key[1:] != key[:-1])))
        alike = (np.bincount(group)[group] > 1) & (key & np.uint64((1 << RANK_BITS) - 1) > 0)
        place, group, depth = place[alike], group[alike], depth + 3
    return order


@njit
def order_codes(at: Int64s, code: Int32s, rank: Int32s, lo: int, hi: int) -> None:
    """Sort the virtual item chunks of clusters `lo…hi-1` by rank. Ranks hardly change from pass to pass, so insertion
    sort moves little."""
    one = uint64(1)
    for c in range(lo, hi):
        # Unsigned indices need no check for negative values.
        begin, end = uint64(at[c, 0]), uint64(at[c, 1])
        highest = np.int32(-1)
        for i in range(begin, end):
            own = code[i]
            r = rank[uint64(own)]
            if r > highest:
                highest = r
                continue
            j = i
            while j > begin and rank[uint64(code[j - one])] > r:
                code[j] = code[j - one]
                j -= one
            code[j] = own


def _pack_ranks(virtual: Entries, clusters: Int64s, rank: Int32s, first: int) -> UInt64s:
    """Pack three ranks of each cluster, from the `first` on, into a word; ranks beyond the sequence's end are 0, which
    sorts first."""
    key = np.zeros(len(clusters), np.uint64)
    for at in virtual.at[clusters, 0] + first + np.arange(3)[:, None]:
        inside = at < virtual.at[clusters, 1]
        key <<= np.uint64(RANK_BITS)
        key[inside] |= (rank[virtual.code[at[inside]]] + 1).astype(np.uint64)
    return key


@njit
def pack_least_ranks(
    virtual_at: Int64s, virtual_code: Int32s, rank: Int32s, lo: int, hi: int, key: UInt64s
) -> None:
    """Pack the three smallest ranks of each cluster's virtual item chunk, without reordering it."""
    none = np.int32((1 << RANK_BITS) - 1)
    for c in range(lo, hi):
        first, second, third = none, none, none
        for i in range(virtual_at[c, 0], virtual_at[c, 1]):
            r = rank[virtual_code[i]]
            if r < first:
                first, second, third = r, first, second
            elif r < second:
                second, third = r, second
            elif r < third:
                third = r
        key[c] = (
            (uint64(first) << uint64(2 * RANK_BITS)) | (uint64(second) << uint64(RANK_BITS)) | uint64(third)
        )


def sort_by_sketch(virtual: Entries, rank: Int32s, blocks: Blocks) -> Int64s:
    """Positions of the clusters, stably sorted by the three smallest ranks of their virtual item chunks. With ranks
    that are a permutation of the codes, clusters with similar chunks become neighbours (MinHash)."""
    key = np.empty(len(virtual.at), np.uint64)
    blocks(len(key), lambda lo, hi: pack_least_ranks(virtual.at, virtual.code, rank, lo, hi, key))
    return np.argsort(key, kind="stable")


def _scan(
    clusters: Clusters,
    order: Int64s,
    leaves: Leaves,
    rules: Rules,
    blocks: Blocks,
) -> tuple[Int64s, Int64s, Int32s, Int32s]:
    """The pairs of a pass (positions of their left sides) and their shared codes: pair, code, chunk."""
    left, right = order[:-1], order[1:]
    todo = np.flatnonzero(clusters.refused[left] != clusters.node[right])
    accepted = np.zeros(len(todo), np.bool_)
    lefts, rights = np.ascontiguousarray(left[todo]), np.ascontiguousarray(right[todo])
    sides = clusters.sides()

    def test(lo: int, hi: int) -> object:
        # a block has scratch of its own, so threads never meet
        return test_pairs(lefts, rights, accepted, lo, hi, sides, leaves, rules)

    nothing = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
    tested = zip(nothing, *blocks(len(todo), test), strict=True)
    pair, code, chunk = (np.concatenate(each) for each in tested)
    accepts = np.zeros(len(left), np.bool_)
    accepts[todo] = accepted
    clusters.refused[lefts[~accepted]] = clusters.node[rights[~accepted]]
    takes = take_from_left(accepts)
    taken = np.flatnonzero(takes)
    position = todo[pair]
    keep = takes[position] & (chunk >= 0)
    number = np.cumsum(takes) - 1
    return taken, number[position[keep]], code[keep], chunk[keep]


def _join(
    clusters: Clusters,
    order: Int64s,
    taken: Int64s,
    stars: Stars,
    leaves: Leaves,
    holders: Int64s,
    blocks: Blocks,
) -> Clusters:
    """The clusters after a pass, in the order of its scan."""
    left, right = order[taken], order[taken + 1]
    items, published, virtual = clusters.items, clusters.published, clusters.virtual
    item_at = items.room_for(items.sizes(left) + items.sizes(right))
    published_at = published.room_for(published.sizes(left) + published.sizes(right) + np.diff(stars.at))
    virtual_at = virtual.room_for(virtual.sizes(left) + virtual.sizes(right))

    sides, fresh = clusters.sides(), Fresh(item_at, published_at, virtual_at)

    def merge(lo: int, hi: int) -> object:
        lost = np.zeros(len(holders), np.int64)
        merge_pairs(left, right, lo, hi, stars, sides, virtual.code, fresh, leaves, lost)
        return lost

    for lost in blocks(len(taken), merge):
        holders -= lost
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
    node[joint] = stars.node
    refused[joint] = -1
    for entries, at in zip((items, published, virtual), fresh, strict=True):
        entries.at = np.take(entries.at, survivors, axis=0)
        entries.at[joint] = at
    return Clusters(items, published, virtual, records, node, refused)
