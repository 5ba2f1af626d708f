"""A disassociated release as flat arrays, read from its two Parquet files in batches, with what most checks need:
preorder, chunks by node, codes with their supports.

Reading is strict about form only: what cannot be laid out as arrays is reported as a structural fault, and
the properties that the guarantee needs are checked afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leeward.verify.flat import (
    Ints,
    Longs,
    count_keys,
    falls_of,
    find,
    lists_of,
    offsets_of,
    places_of,
    preorder,
)
from leeward.verify.storage import open_with_dictionaries

RECORD, SHARED, ITEM, PAYLOAD = 0, 1, 2, 3
CHUNK_KINDS = ("record", "shared", "item")
BATCH_ROWS = 1 << 19


class StructureFault(Exception):
    """The files cannot be laid out as a disassociated release; the message holds counts and names only."""


@dataclass(frozen=True)
class Nodes:
    """The clusters and joint clusters, ascending by `numbers`, the node numbers of the file. `parent` is an index, -1
    for a root, -2 where the parent named does not exist. `leaf` is True for a cluster. `of_class` is 0 in a release
    without classes."""

    numbers: Longs
    parent: Ints
    leaf: NDArray[np.bool_]
    records: Longs
    of_class: Longs


@dataclass(frozen=True)
class Chunks:
    """The rows of `chunks.parquet`; a chunk is a group of consecutive rows.

    Group g holds the rows `start[g]:start[g + 1]`; its `node` is an index, ascending where the file is, or -1 for a
    number that `nodes.parquet` lacks. `number` is a row's subrecord number, -1 where null. Row r holds the codes
    `values[offsets[r]:offsets[r + 1]]`, indices into `codes`, which stand in order of first appearance.
    """

    node: Ints
    kind: NDArray[np.int8]
    start: Longs
    number: Longs
    offsets: Longs
    values: Ints
    codes: tuple[str, ...]

    def rows(self) -> Longs:
        return np.diff(self.start)


def read_nodes(file: Path, *, classed: bool = False) -> Nodes:
    """The nodes in ascending number, with their class where there are classes; StructureFault for
    doubles and unknown kinds."""
    table = open_with_dictionaries(file, ("kind",)).read()
    numbers = table.column("node").to_numpy().astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    doubles = int(np.count_nonzero(numbers[1:] == numbers[:-1]))
    if doubles:
        raise StructureFault(f"nodes.parquet: {doubles} node numbers occur twice.")
    kind = np.asarray(table.column("kind").cast(pa.string()).to_pylist(), dtype=object)[order]
    leaf = kind == "cluster"
    unknown = int(np.count_nonzero(~leaf & (kind != "joint")))
    if unknown:
        raise StructureFault(f"nodes.parquet: {unknown} nodes are neither `cluster` nor `joint`.")
    column = table.column("parent").cast(pa.int64()).combine_chunks()
    has_parent = pc.is_valid(column).to_numpy(zero_copy_only=False)[order]
    named = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)[order]
    parent = np.where(has_parent, find(numbers, named, -2), -1).astype(np.int32)
    records = table.column("records").to_numpy().astype(np.int64)[order]
    of_class = table.column("class").to_numpy().astype(np.int64)[order] if classed else np.zeros_like(numbers)
    return Nodes(numbers, parent, leaf.astype(np.bool_), records, of_class)


def read_chunks(file: Path, nodes: Nodes) -> Chunks:
    """The chunks of every node; StructureFault for null codes, unknown kinds, and what cannot be read."""
    try:
        return _read_chunks(file, nodes)
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    # damaged pages; or a batch of two groups of rows, each with a dictionary of its own
    except pa.ArrowException:
        raise StructureFault(f"{file.name} cannot be read, or not in its groups of rows.") from None


def _read_chunks(file: Path, nodes: Nodes) -> Chunks:
    source = open_with_dictionaries(file, ("codes", "kind"))
    total = source.metadata.num_rows
    node, chunk = np.empty(total, np.int32), np.empty(total, np.int64)
    kind, number = np.empty(total, np.int8), np.empty(total, np.int64)
    offsets = np.zeros(total + 1, np.int64)
    values: list[Ints] = []
    codes: dict[str, int] = {}
    at = filled = 0
    for batch in source.iter_batches(BATCH_ROWS, columns=["node", "chunk", "kind", "subrecord", "codes"]):
        end = at + batch.num_rows
        node[at:end] = find(nodes.numbers, batch.column("node").to_numpy(), -1)
        chunk[at:end] = batch.column("chunk").to_numpy()
        kind[at:end] = _kinds(batch.column("kind"))
        number[at:end] = pc.fill_null(batch.column("subrecord").cast(pa.int64()), -1).to_numpy(
            zero_copy_only=False
        )
        lengths, flat = _code_lists(batch.column("codes"), codes)
        offsets[at + 1 : end + 1] = lengths
        values.append(flat)
        at, filled = end, filled + len(flat)
    np.cumsum(offsets, out=offsets)
    flat_values = np.concatenate(values) if values else np.empty(0, np.int32)
    return _group(node, chunk, kind, number, offsets, flat_values, tuple(codes))


def _group(
    node: Ints,
    chunk: Longs,
    kind: NDArray[np.int8],
    number: Longs,
    offsets: Longs,
    values: Ints,
    codes: tuple[str, ...],
) -> Chunks:
    change = np.ones(len(node), np.bool_)
    if len(node):
        change[1:] = (node[1:] != node[:-1]) | (chunk[1:] != chunk[:-1]) | (kind[1:] != kind[:-1])
    first = np.flatnonzero(change)
    order = np.lexsort((kind[first], chunk[first], node[first]))
    ordered = first[order]
    doubled = (
        (node[ordered[1:]] == node[ordered[:-1]])
        & (chunk[ordered[1:]] == chunk[ordered[:-1]])
        & (kind[ordered[1:]] == kind[ordered[:-1]])
    )
    if doubled.any():  # the rows of some chunk are scattered: bring them together first
        rows = np.lexsort((kind, chunk, node))
        lengths = np.diff(offsets)[rows]
        values = values[places_of(offsets[:-1][rows], lengths)]
        return _group(node[rows], chunk[rows], kind[rows], number[rows], offsets_of(lengths), values, codes)
    start = np.append(first, len(node)).astype(np.int64)
    return Chunks(node[first], kind[first], start, number, offsets, values, codes)


def _kinds(column: Any) -> NDArray[np.int8]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    unknown = [name for name in names if name not in CHUNK_KINDS]
    if unknown:
        raise StructureFault(f"chunks.parquet: {len(unknown)} kinds of chunk that the format does not know.")
    lookup = np.array([CHUNK_KINDS.index(name) for name in names] or [0], np.int8)
    return lookup[encoded.indices.to_numpy(zero_copy_only=False)]


def _code_lists(column: Any, codes: dict[str, int]) -> tuple[Longs, Ints]:
    """Lengths and code numbers of a column of lists; new codes are added to `codes`."""
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = column.flatten()
    if flat.null_count:
        raise StructureFault("chunks.parquet: a subrecord holds a null code.")
    encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    lookup = np.array(
        [codes.setdefault(code, len(codes)) for code in encoded.dictionary.to_pylist()] or [0], np.int32
    )
    return lengths, lookup[encoded.indices.to_numpy(zero_copy_only=False)]


class Flat(NamedTuple):
    """The arrays of a layout, as kernels take them: of nodes, of their groups (chunks), of rows and of codes.
    `most`: the most records that may have each code of a chunk."""

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
    most: Longs


@dataclass(frozen=True)
class Layout:
    """A release with what most checks need.

    `order` has the nodes in preorder; `end` is the place there where a node's subtree ends; `node_groups` and
    `groups_of` give chunks by node. The distinct codes of chunk g and how many of its rows have each stand at
    `bounds[g]:bounds[g + 1]` in `codes` and `supports`. `filled` and `unordered` count each chunk's rows that are not
    empty, and those whose codes do not ascend.
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
    listed: int = 2**62
    """The most records of a cluster that may have a code of its item chunk, as far as the attacker knows."""

    @cached_property
    def group(self) -> Longs:
        return np.repeat(np.arange(len(self.chunks.kind)), np.diff(self.bounds))

    @cached_property
    def place(self) -> Longs:
        """The place of each code among the sorted ones, from 1 on."""
        return alphabetical(self.chunks.codes)

    @cached_property
    def flat(self) -> Flat:
        nodes, chunks = self.nodes, self.chunks
        listed = np.minimum(nodes.records[chunks.node], self.listed)[self.group]
        most = np.where(chunks.kind[self.group] == ITEM, listed, self.supports)
        return Flat(
            self.order, np.argsort(self.order), self.end, nodes.leaf, nodes.parent, nodes.records, self.node_groups,
            self.groups_of, chunks.kind, chunks.start, chunks.number, chunks.offsets, chunks.values, self.bounds,
            self.codes, most,
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


def lay_out(nodes: Nodes, chunks: Chunks, listed: int = 2**62) -> Layout:
    """Preorder, chunks by node, and the codes of every chunk with their supports. `listed`: see `Layout`."""
    order, end = preorder(nodes.parent)
    groups_of = np.argsort(chunks.node, kind="stable").astype(np.int64)
    node_groups = offsets_of(np.bincount(chunks.node, minlength=len(nodes.leaf)))
    return Layout(nodes, chunks, order, end, node_groups, groups_of, *chunk_codes(chunks), listed)


def chunk_codes(chunks: Chunks) -> tuple[Longs, Ints, Longs, Longs, Longs]:
    """The fields of `Layout` from `bounds` on. Where codes ascend in a row none is twice in it."""
    n, width = len(chunks.kind), max(len(chunks.codes), 1)
    owner = np.repeat(np.arange(n), np.diff(chunks.offsets[chunks.start]))
    keys, supports = count_keys(owner * width + chunks.values)
    group, codes = np.divmod(keys, width)
    place = alphabetical(chunks.codes)[chunks.values]
    rows = lists_of(falls_of(place, chunks.offsets), chunks.offsets)
    filled = offsets_of((np.diff(chunks.offsets) > 0).astype(np.int64))[chunks.start]
    return (
        np.searchsorted(group, np.arange(n + 1)),
        codes.astype(np.int32),
        supports,
        np.diff(filled),
        np.bincount(np.searchsorted(chunks.start, rows, side="right") - 1, minlength=n),
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
