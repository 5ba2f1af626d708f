"""A disassociated release with what most checks need: preorder, chunks by node, codes with their supports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.verify.disassociation.files import ITEM, Chunks, Nodes
from leeward.verify.flat import Ints, Longs, distinct, find, heads_of, offsets_of


class Flat(NamedTuple):
    """The arrays of a layout, as kernels take them: of nodes, of their groups (chunks), of rows and of codes."""

    order: Ints
    position: Longs
    end: Ints
    leaf: NDArray[np.bool_]
    parent: Ints
    records: Longs
    node_groups: Longs
    groups_of: Longs
    kind: NDArray[np.int8]
    start: Longs
    number: Longs
    offsets: Longs
    values: Ints
    bounds: Longs
    codes: Ints
    supports: Longs


@dataclass(frozen=True)
class Layout:
    """A release with what most checks need.

    order, end : nodes in preorder; the place there where a node's subtree ends.
    node_groups, groups_of : chunks by node.
    bounds, codes, supports : the distinct codes of chunk g, and how many of its rows have each, are those from
        bounds[g] to bounds[g + 1].
    filled, unordered : rows of each chunk that are not empty, and those whose codes do not ascend.
    """

    nodes: Nodes
    chunks: Chunks
    order: Ints
    end: Ints
    node_groups: Longs
    groups_of: Longs
    bounds: Longs
    codes: Ints
    supports: Longs
    filled: Longs
    unordered: Longs

    @cached_property
    def group(self) -> Longs:
        """The chunk of each of `codes`."""
        return np.repeat(np.arange(len(self.chunks.kind)), np.diff(self.bounds))

    @cached_property
    def place(self) -> Longs:
        """The place of each code among the sorted ones, from 1 on."""
        return alphabetical(self.chunks.codes)

    @cached_property
    def flat(self) -> Flat:
        """What kernels take."""
        nodes, chunks = self.nodes, self.chunks
        return Flat(
            self.order, np.argsort(self.order), self.end, nodes.leaf, nodes.parent, nodes.records, self.node_groups,
            self.groups_of, chunks.kind, chunks.start, chunks.number, chunks.offsets, chunks.values, self.bounds,
            self.codes, self.supports,
        )  # fmt: skip

    @cached_property
    def of_nodes(self) -> tuple[Longs, Longs]:
        """(keys, places among `codes`): node × number of codes + code of each of `codes`, ascending."""
        keys = self.chunks.node[self.group].astype(np.int64) * len(self.chunks.codes) + self.codes
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def lowest(self, node: Ints | Longs, code: Ints) -> Longs:
        """The place among `codes` of each code in the lowest chunk that has it, of its node or those above; else -1,
        as where a node is below 0."""
        keys, places = self.of_nodes
        found = np.full(len(code), -1, np.int64)
        left = np.flatnonzero(node >= 0)
        at = node[left].astype(np.int64)
        while len(left):
            place = find(keys, at * len(self.chunks.codes) + code[left], -1)
            has = place >= 0
            found[left[has]] = places[place[has]]
            at = self.nodes.parent[at].astype(np.int64)
            left, at = left[~has & (at >= 0)], at[~has & (at >= 0)]
        return found

    def chain(self, leaf: int) -> Ints:
        """A cluster and the joint clusters above it, lowest first."""
        path = [leaf]
        while self.nodes.parent[path[-1]] >= 0:
            path.append(int(self.nodes.parent[path[-1]]))
        return np.array(path, np.int32)


def lay_out(nodes: Nodes, chunks: Chunks) -> Layout:
    """Preorder, chunks by node, and the codes of every chunk with their supports."""
    order, end = preorder(nodes.parent)
    groups_of = np.argsort(chunks.node, kind="stable").astype(np.int64)
    node_groups = offsets_of(np.bincount(chunks.node, minlength=len(nodes.leaf)))
    return Layout(nodes, chunks, order, end, node_groups, groups_of, *chunk_codes(chunks))


def preorder(parent: Ints) -> tuple[Ints, Ints]:
    """(nodes in preorder, the place there where each one's subtree ends); nodes of a cycle are left out."""
    n = len(parent)
    above = np.where(parent < 0, n, parent).tolist()
    below: list[list[int]] = [[] for _ in range(n + 1)]
    for node in range(n):
        below[above[node]].append(node)
    order: list[int] = []
    waiting = below[n][::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(below[order[-1]])
    size = [1] * (n + 1)
    for node in reversed(order):
        size[above[node]] += size[node]
    end = np.zeros(n, np.int32)
    end[order] = np.arange(len(order)) + np.array(size, np.int32)[order]
    return np.array(order, np.int32), end


def chunk_codes(chunks: Chunks) -> tuple[Longs, Ints, Longs, Longs, Longs]:
    """The fields of `Layout` from `bounds` on. Where codes ascend in a row none is twice in it."""
    groups, width = len(chunks.kind), max(len(chunks.codes), 1)
    lengths = np.diff(chunks.offsets)
    group = np.repeat(np.arange(groups), chunks.rows())
    row = np.repeat(np.arange(len(lengths)), lengths)
    keys = np.sort(group[row] * width + chunks.values)
    heads = np.flatnonzero(heads_of(keys))
    supports = np.diff(np.append(heads, len(keys)))
    owner, codes = np.divmod(keys[heads], width)
    place = alphabetical(chunks.codes)[chunks.values]
    falls = row[1:][(row[1:] == row[:-1]) & (place[1:] <= place[:-1])]
    return (
        np.searchsorted(owner, np.arange(groups + 1)),
        codes.astype(np.int32),
        supports,
        np.bincount(group[lengths > 0], minlength=groups),
        np.bincount(group[distinct(falls)], minlength=groups),
    )


def alphabetical(codes: tuple[str, ...]) -> Longs:
    """The place of each code among the sorted codes, from 1 on."""
    place = np.empty(len(codes), np.int64)
    place[np.argsort(np.array(codes, dtype=object), kind="stable")] = np.arange(1, len(codes) + 1)
    return place


def count_bounds(layout: Layout) -> tuple[NDArray[Any], NDArray[Any]]:
    """Fewest and most records that may hold each code: exact but for item chunks (1 to all of a cluster)."""
    n = len(layout.chunks.codes)
    item = layout.chunks.kind[layout.group] == ITEM
    most = np.where(item, layout.nodes.records[layout.chunks.node[layout.group]], layout.supports)
    low = np.bincount(layout.codes, weights=np.where(item, 1, layout.supports), minlength=n)
    return low, np.bincount(layout.codes, weights=most, minlength=n)


def first_node(nodes: Nodes, mask: NDArray[np.bool_]) -> str:
    """Names the first node concerned, by its released number."""
    return f" First: node {int(nodes.numbers[np.argmax(mask)])}." if mask.any() else ""


def first_chunk(layout: Layout, mask: NDArray[np.bool_]) -> str:
    """Names the node of the first chunk concerned."""
    return (
        f" First: node {int(layout.nodes.numbers[layout.chunks.node[np.argmax(mask)]])}."
        if mask.any()
        else ""
    )
