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
import pyarrow as pa
import pyarrow.compute as pc

from leeward.arrays import AnyArray, Int32s, Int64s
from leeward.compiled import njit
from leeward.engine import ahead
from leeward.methods.disassociation.layout import Layout, layout_of
from leeward.methods.disassociation.pipeline import Disassociated
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

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
