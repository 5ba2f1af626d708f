"""The release tables of a disassociated data set, as streams of Arrow batches.

Nodes are numbered anew in shuffled order and the subrecords of every chunk are shuffled, so neither order says
anything. Random numbers belong to blocks of nodes, not to threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leeward.arrays import AnyArray, Int32s, Int64s
from leeward.compiled import njit
from leeward.engine import ahead
from leeward.methods.disassociation.pipeline import Disassociated
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable


@dataclass(frozen=True)
class Layout:
    """The published structure, aligned to `Disassociated.leaf_codes`.

    node : int32, the node whose chunk holds the code: the leaf itself or a joint cluster above it
    chunk : int32, the chunk's number inside that node; -1: the leaf's item chunk
    below_at, below : the leaves below node j are `below[below_at[j]:below_at[j + 1]]`, ascending
    n_chunks : int32[nodes], record or shared chunks of each node
    records : int64[nodes], records below each node
    """

    node: NDArray[np.int32]
    chunk: NDArray[np.int32]
    below_at: NDArray[np.int64]
    below: NDArray[np.int32]
    n_chunks: NDArray[np.int32]
    records: NDArray[np.int64]


def layout_of(d: Disassociated, n_codes: int) -> Layout:
    """Follow every item-chunk code up the joint clusters to the shared chunk that took it, if any did."""
    nodes = len(d.shared.parent)
    key = d.shared.shared_node * n_codes + d.shared.shared_code
    by_key = np.argsort(key, kind="stable")
    first_key = np.searchsorted(d.shared.shared_node[by_key], np.arange(nodes + 1))
    node, chunk = _place(
        d.offsets, d.leaf_offsets, d.leaf_codes, d.leaf_chunk, d.leaf_n_codes, d.shared.parent,
        first_key, d.shared.shared_code[by_key], d.shared.shared_chunk[by_key],
    )  # fmt: skip
    below_at, below = _leaves_below(d.shared.parent, len(d.leaf_n_codes))
    n_chunks = np.zeros(nodes, np.int32)
    n_chunks[: len(d.leaf_n_chunks)] = d.leaf_n_chunks
    np.maximum.at(n_chunks, d.shared.shared_node, d.shared.shared_chunk + 1)
    sizes = np.diff(d.leaf_offsets)[below]
    total = np.concatenate([[0], np.cumsum(sizes)])
    return Layout(node, chunk, below_at, below, n_chunks, total[below_at[1:]] - total[below_at[:-1]])


@njit
def _place(
    offsets: NDArray[np.int64],
    leaf_offsets: NDArray[np.int64],
    leaf_codes: NDArray[np.int32],
    leaf_chunk: NDArray[np.int32],
    leaf_n_codes: NDArray[np.int32],
    parent: NDArray[np.int64],
    first_key: NDArray[np.int64],
    shared_code: NDArray[np.int32],
    shared_chunk: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    node = np.full(len(leaf_codes), -1, np.int32)
    chunk = np.full(len(leaf_codes), -1, np.int32)
    for leaf in range(len(leaf_n_codes)):
        base = offsets[leaf_offsets[leaf]]
        for i in range(base, base + leaf_n_codes[leaf]):
            node[i] = leaf
            chunk[i] = leaf_chunk[i]
            if chunk[i] >= 0:
                continue
            above = parent[leaf]
            while above >= 0:
                lo, hi = first_key[above], first_key[above + 1]
                at = lo + np.searchsorted(shared_code[lo:hi], leaf_codes[i])
                if at < hi and shared_code[at] == leaf_codes[i]:
                    node[i] = above
                    chunk[i] = shared_chunk[at]
                    break
                above = parent[above]
    return node, chunk


@njit
def _leaves_below(parent: NDArray[np.int64], leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    nodes = len(parent)
    at = np.zeros(nodes + 1, np.int64)
    for leaf in range(leaves):
        node = leaf
        while node >= 0:
            at[node + 1] += 1
            node = parent[node]
    for j in range(nodes):
        at[j + 1] += at[j]
    fill = at[:-1].copy()
    below = np.empty(at[nodes], np.int32)
    for leaf in range(leaves):
        node = leaf
        while node >= 0:
            below[fill[node]] = leaf
            fill[node] += 1
            node = parent[node]
    return at, below


ROWS_A_BATCH = 1 << 18

NODES = pa.schema(
    [("node", pa.int64()), ("parent", pa.int64()), ("kind", pa.string()), ("records", pa.int64())]
)
CHUNKS = pa.schema(
    [
        ("node", pa.int64()),
        ("chunk", pa.int64()),
        ("kind", pa.string()),
        ("subrecord", pa.int64()),
        ("codes", pa.list_(pa.string())),
    ]
)
PAYLOAD = pa.schema([("node", pa.int64()), ("column", pa.string()), ("value", pa.string())])
KINDS = ("record", "shared", "item")


@dataclass(frozen=True)
class Published:
    """A disassociated data set with its layout and the new numbers of its nodes.

    number : int64[nodes], the released number of each node; old : its inverse
    occurrence_node, occurrence_chunk : int32, where each (record, code) of `values` is published
    """

    data: Disassociated
    layout: Layout
    codes: tuple[str, ...]
    number: Int64s
    old: Int64s
    occurrence_node: Int32s
    occurrence_chunk: Int32s


def publish(d: Disassociated, codes: tuple[str, ...], randomness: Randomness) -> Published:
    """Number the nodes in shuffled order and note where every occurrence is published."""
    layout = layout_of(d, len(codes))
    old = randomness.stream("nodes").permutation(len(d.shared.parent)).astype(np.int64)
    number = np.empty_like(old)
    number[old] = np.arange(len(old))
    node, chunk = _occurrences(
        d.offsets,
        d.values,
        d.leaf_offsets,
        d.leaf_codes,
        d.leaf_n_codes,
        layout.node,
        layout.chunk,
        len(codes),
    )
    return Published(d, layout, codes, number, old, node, chunk)


def nullable(values: Int64s) -> pa.Array:
    """The same with nulls where values are negative."""
    plain = pa.array(values)
    return pc.if_else(pc.less(plain, 0), pa.scalar(None, pa.int64()), plain)


def node_of_records(p: Published) -> Int64s:
    """The released number of each record's cluster, in the order of the data set."""
    sizes = np.diff(p.data.leaf_offsets)
    leaves = np.repeat(p.number[: len(sizes)], sizes)
    node = np.empty(len(leaves), np.int64)
    node[p.data.order] = leaves
    return node


def facts_of(p: Published) -> dict[str, Any]:
    """What the method reports to the custodian; every figure is a plain sum, so partitions add up."""
    d = p.data
    in_item = np.add.reduceat(p.occurrence_chunk < 0, d.offsets[:-1])
    return {
        "clusters": len(d.leaf_n_codes),
        "joint_clusters": len(d.shared.parent) - len(d.leaf_n_codes),
        "occurrences": len(d.values),
        "item_occurrences": int(in_item.sum()),
        "item_only_records": int((in_item == np.diff(d.offsets)).sum()),
        "empty_item_chunk_condition_fired": d.condition_fired,
    }


def node_table(p: Published, of_node: Int64s | None = None) -> pa.Table:
    """`nodes.parquet`: one row a cluster or joint cluster; `of_node`, the class of each node, where there are any."""
    parent = p.data.shared.parent[p.old]
    leaf = p.old < len(p.data.leaf_n_codes)
    table = pa.table(
        {
            "node": pa.array(np.arange(len(p.old), dtype=np.int64)),
            "parent": nullable(np.where(parent >= 0, p.number[parent], -1)),
            "kind": pa.array(["joint", "cluster"], pa.string()).take(pa.array(leaf.astype(np.int8))),
            "records": pa.array(p.layout.records[p.old]),
        },
        schema=NODES,
    )
    return table if of_node is None else table.append_column("class", pa.array(of_node[p.old]))


def chunk_table(p: Published, randomness: Randomness) -> ReleaseTable:
    """`chunks.parquet`: one row a subrecord (empty ones too), one a leaf's item chunk."""
    rows = p.layout.records[p.old] * p.layout.n_chunks[p.old] + 1
    block_of = np.cumsum(rows) // ROWS_A_BATCH
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(block_of)) + 1, [len(rows)]])

    def batches() -> Iterator[pa.RecordBatch]:
        d = p.data
        contents = _Contents(d.offsets, d.values, d.leaf_offsets, d.leaf_codes, d.leaf_n_codes)
        at = p.layout
        places = _Places(at.chunk, at.n_chunks, at.records, at.below_at, at.below)
        code_names = pa.array(p.codes, pa.string())
        kind_names = pa.array(KINDS, pa.string())
        for block, (lo, hi) in enumerate(itertools.pairwise(bounds)):
            slots = int((rows[lo:hi] - 1).sum())
            keys = randomness.stream("chunks", block).integers(0, 2**63, slots, dtype=np.int64)
            node, chunk, kind, subrecord, code_at, code = _emit(
                lo, hi, p.old, contents, places, p.occurrence_node, p.occurrence_chunk, keys
            )
            yield pa.record_batch(
                [
                    pa.array(node),
                    pa.array(chunk),
                    kind_names.take(pa.array(kind)),
                    nullable(subrecord),
                    pa.ListArray.from_arrays(pa.array(code_at), code_names.take(pa.array(code))),
                ],
                schema=CHUNKS,
            )

    return ReleaseTable("chunks.parquet", CHUNKS, lambda: ahead(batches()))


def payload_table(p: Published, values: pl.DataFrame, randomness: Randomness) -> ReleaseTable:
    """`payload.parquet`: the values of each payload column, shuffled inside every cluster, one row a record and column.

    The column's values are as many as the cluster's records; two columns of a cluster are shuffled apart.
    """
    leaf_of = np.repeat(np.arange(len(p.data.leaf_n_codes)), np.diff(p.data.leaf_offsets))
    node = p.number[leaf_of]
    parts = []
    for name in values.columns:
        keys = randomness.stream("payload", name).permutation(len(node))
        order = np.lexsort((keys, node))
        text = values[name].cast(pl.String).gather(p.data.order[order]).to_arrow().cast(pa.string())
        column = pa.array([name]).take(pa.array(np.zeros(len(node), np.int64)))
        parts.append(pa.table([pa.array(node[order]), column, text], schema=PAYLOAD))
    table = pa.concat_tables(parts)
    both = np.lexsort((table["node"].to_numpy(),))  # stable: by node, then by column, then as shuffled
    return ReleaseTable.of("payload.parquet", table.take(pa.array(both)))


class _Contents(NamedTuple):
    """The records in the order of the leaves, and each leaf's distinct codes (see `Disassociated`)."""

    offsets: Int64s
    values: Int32s
    leaf_offsets: Int64s
    leaf_codes: Int32s
    leaf_n_codes: Int32s


class _Places(NamedTuple):
    """Where codes are published (see `Layout`)."""

    chunk: Int32s
    n_chunks: Int32s
    records: Int64s
    below_at: Int64s
    below: Int32s


@njit
def _occurrences(
    offsets: Int64s,
    values: Int32s,
    leaf_offsets: Int64s,
    leaf_codes: Int32s,
    leaf_n_codes: Int32s,
    code_node: Int32s,
    code_chunk: Int32s,
    n_codes: int,
) -> tuple[Int32s, Int32s]:
    node = np.empty(len(values), np.int32)
    chunk = np.empty(len(values), np.int32)
    place = np.zeros(n_codes, np.int64)
    for leaf in range(len(leaf_n_codes)):
        base = offsets[leaf_offsets[leaf]]
        for i in range(base, base + leaf_n_codes[leaf]):
            place[leaf_codes[i]] = i
        for j in range(base, offsets[leaf_offsets[leaf + 1]]):
            i = place[values[j]]
            node[j] = code_node[i]
            chunk[j] = code_chunk[i]
    return node, chunk


@njit
def _emit(
    lo: int,
    hi: int,
    old: Int64s,
    contents: _Contents,
    places: _Places,
    occurrence_node: Int32s,
    occurrence_chunk: Int32s,
    keys: Int64s,
) -> tuple[
    Int64s,
    Int64s,
    AnyArray,
    Int64s,
    Int32s,
    Int32s,
]:
    """Rows of the nodes numbered `lo…hi-1`, in the order of node, chunk, subrecord."""
    offsets, values, leaf_offsets, leaf_codes, leaf_n_codes = contents
    code_chunk, n_chunks, records, below_at, below = places
    leaves = len(leaf_n_codes)
    rows = 0
    cells = 0
    for new in range(lo, hi):
        node = old[new]
        rows += records[node] * n_chunks[node] + 1
        for b in range(below_at[node], below_at[node + 1]):
            cells += offsets[leaf_offsets[below[b] + 1]] - offsets[leaf_offsets[below[b]]]
    out_node = np.empty(rows, np.int64)
    out_chunk = np.empty(rows, np.int64)
    out_kind = np.empty(rows, np.int8)
    out_sub = np.empty(rows, np.int64)
    out_at = np.zeros(rows + 1, np.int32)
    out_code = np.empty(cells, np.int32)
    row, cell, key = 0, 0, 0
    for new in range(lo, hi):
        node = old[new]
        n = records[node]
        positions = np.empty(n, np.int64)
        x = 0
        for b in range(below_at[node], below_at[node + 1]):
            for r in range(leaf_offsets[below[b]], leaf_offsets[below[b] + 1]):
                positions[x] = r
                x += 1
        for c in range(n_chunks[node]):
            shuffled = np.argsort(keys[key : key + n], kind="mergesort")
            key += n
            for s in range(n):
                r = positions[shuffled[s]]
                for j in range(offsets[r], offsets[r + 1]):
                    if occurrence_node[j] == node and occurrence_chunk[j] == c:
                        out_code[cell] = values[j]
                        cell += 1
                out_node[row] = new
                out_chunk[row] = c
                out_kind[row] = 0 if node < leaves else 1
                out_sub[row] = s
                row += 1
                out_at[row] = cell
        if node < leaves:
            before = cell
            base = offsets[leaf_offsets[node]]
            for i in range(base, base + leaf_n_codes[node]):
                if code_chunk[i] < 0:
                    out_code[cell] = leaf_codes[i]
                    cell += 1
            if cell > before:
                out_node[row] = new
                out_chunk[row] = n_chunks[node]
                out_kind[row] = 2
                out_sub[row] = -1
                row += 1
                out_at[row] = cell
    return (
        out_node[:row], out_chunk[:row], out_kind[:row], out_sub[:row], out_at[: row + 1], out_code[:cell]
    )  # fmt: skip
