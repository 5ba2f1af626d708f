"""A disassociated release with what most checks need: preorder, chunks by node, codes with their supports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.verify.disassociation import kernels
from leeward.verify.disassociation.files import ITEM, Chunks, Ints, Longs, Nodes


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
    """A release with what most checks need: preorder, groups by node, distinct codes with supports of each
    chunk."""

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

    def chain(self, leaf: int) -> Ints:
        """A cluster and the joint clusters above it, lowest first."""
        path = [leaf]
        while self.nodes.parent[path[-1]] >= 0:
            path.append(int(self.nodes.parent[path[-1]]))
        return np.array(path, np.int32)


def lay_out(nodes: Nodes, chunks: Chunks) -> Layout:
    """Preorder, chunks by node, and the codes of every chunk with their supports."""
    position, end = kernels.preorder(nodes.parent)
    groups_of = np.argsort(chunks.node, kind="stable").astype(np.int64)
    node_groups = np.zeros(len(nodes.leaf) + 1, np.int64)
    np.cumsum(np.bincount(chunks.node, minlength=len(nodes.leaf)), out=node_groups[1:])
    found = kernels.chunk_codes(chunks.start, chunks.offsets, chunks.values, alphabetical(chunks.codes))
    return Layout(nodes, chunks, np.argsort(position).astype(np.int32), end, node_groups, groups_of, *found)


def alphabetical(codes: tuple[str, ...]) -> Longs:
    """The place of each code among the sorted codes, from 1 on."""
    place = np.empty(len(codes), np.int64)
    place[np.argsort(np.array(codes, dtype=object), kind="stable")] = np.arange(1, len(codes) + 1)
    return place


def count_bounds(layout: Layout) -> tuple[NDArray[Any], NDArray[Any]]:
    """Fewest and most records that may hold each code: exact but for item chunks (1 to all of a cluster)."""
    n = len(layout.chunks.codes)
    group = np.repeat(np.arange(len(layout.chunks.kind)), np.diff(layout.bounds))
    item = layout.chunks.kind[group] == ITEM
    most = np.where(item, layout.nodes.records[layout.chunks.node[group]], layout.supports)
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
