"""The release tables of a disassociated data set, as streams of Arrow batches.

Nodes are numbered anew in shuffled order and the subrecords of every chunk are shuffled, so neither order reveals
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

from leeward.analysis.itemsets import owners_of
from leeward.analysis.kernels import empty_list
from leeward.arrays import AnyArray, Int32s, Int64s, offsets_of, ranges_of
from leeward.compiled import njit
from leeward.engine import ahead
from leeward.methods.disassociation.horpart import Clustered
from leeward.methods.disassociation.pipeline import Disassociated
from leeward.methods.disassociation.verpart import Chunks, entries_of
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable


class Layout(NamedTuple):
    """The node and chunk that publish each occurrence.

    node, chunk : int32, of each (record, code) of `values`, numbered as in `Chunks`
    below_at, below : the leaves below node j are `below[below_at[j]:below_at[j + 1]]`, ascending
    n_chunks : int32[nodes], record or shared chunks of each node
    records : int64[nodes], records below each node
    """

    node: Int32s
    chunk: Int32s
    below_at: Int64s
    below: Int32s
    n_chunks: Int32s
    records: Int64s


def layout_of(d: Disassociated) -> Layout:
    nodes, entry = len(d.parent), entries_of(d.records, d.chunks)
    n_chunks = np.zeros(nodes, np.int32)
    np.maximum.at(n_chunks, d.chunks.node, d.chunks.chunk + 1)
    leaf = node = np.arange(d.leaves)
    pairs = []
    while len(node):
        pairs.append((node, leaf))
        above = d.parent[node]
        node, leaf = above[above >= 0], leaf[above >= 0]
    node, leaf = (np.concatenate(each) for each in zip(*pairs, strict=True))
    below = leaf[np.lexsort((leaf, node))].astype(np.int32)
    sizes = np.bincount(node, np.diff(d.records.bounds)[leaf], minlength=nodes).astype(np.int64)
    below_at = offsets_of(np.bincount(node, minlength=nodes))
    return Layout(d.chunks.node[entry], d.chunks.chunk[entry], below_at, below, n_chunks, sizes)


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
ITEMS = 2


@dataclass(frozen=True)
class Published:
    """A disassociated data set with its layout and the new numbers of its nodes. `number`: int64[nodes], the released
    number of each node; `old`: its inverse."""

    data: Disassociated
    layout: Layout
    codes: tuple[str, ...]
    number: Int64s
    old: Int64s


def publish(d: Disassociated, codes: tuple[str, ...], randomness: Randomness) -> Published:
    """Number the nodes in shuffled order and lay out the occurrences."""
    old = randomness.stream("nodes").permutation(len(d.parent)).astype(np.int64)
    return Published(d, layout_of(d), codes, np.argsort(old), old)


def node_of_records(p: Published) -> Int64s:
    node = np.empty(len(p.data.order), np.int64)
    node[p.data.order] = p.number[owners_of(p.data.records.bounds)]
    return node


def facts_of(p: Published) -> dict[str, Any]:
    """Facts for the custodian; every figure is a plain sum, so partitions add up."""
    d = p.data
    in_item = np.add.reduceat(p.layout.chunk < 0, d.records.offsets[:-1])
    return {
        "clusters": d.leaves,
        "joint_clusters": len(d.parent) - d.leaves,
        "occurrences": len(d.records.values),
        "item_occurrences": int(in_item.sum()),
        "item_only_records": int((in_item == np.diff(d.records.offsets)).sum()),
        "empty_item_chunk_condition_fired": d.condition_fired,
    }


def node_table(p: Published, of_node: Int64s | None = None) -> pa.Table:
    """`nodes.parquet`: one row per cluster or joint cluster; `of_node`: the class of each node, if any."""
    table = node_rows(p.old, p.number, p.data.parent, p.layout.records, p.data.leaves)
    return table if of_node is None else table.append_column("class", pa.array(of_node[p.old]))


def node_rows(old: Int64s, number: Int64s, parent: Int64s, records: Int64s, leaves: int) -> pa.Table:
    """The nodes in the order of their released numbers."""
    above = parent[old]
    columns = [
        pa.array(np.arange(len(old), dtype=np.int64)),
        pa.array(number[above], mask=above < 0),
        pa.array(["joint", "cluster"], pa.string()).take(pa.array((old < leaves).astype(np.int8))),
        pa.array(records[old]),
    ]
    return pa.table(columns, schema=NODES)


def chunk_table(p: Published, randomness: Randomness) -> ReleaseTable:
    rows = p.layout.records[p.old] * p.layout.n_chunks[p.old] + 1
    block_of = np.cumsum(rows) // ROWS_A_BATCH
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(block_of)) + 1, [len(rows)]])

    def batches() -> Iterator[pa.RecordBatch]:
        code_names = pa.array(p.codes, pa.string())
        for block, (lo, hi) in enumerate(itertools.pairwise(bounds)):
            slots = int((rows[lo:hi] - 1).sum())
            keys = randomness.stream("chunks", block).integers(0, 2**63, slots, dtype=np.int64)
            node, chunk, kind, subrecord, code_at, code = _emit(
                lo, hi, p.old, p.data.records, p.data.chunks, p.layout, keys
            )
            number = pa.array(subrecord, mask=subrecord < 0)
            yield chunk_rows(node, chunk, kind, number, code_at, code_names.take(pa.array(code)))

    return ReleaseTable("chunks.parquet", CHUNKS, lambda: ahead(batches()))


def count_table(
    node: Int64s, kind: AnyArray, code: AnyArray, count: Int64s, codes: tuple[str, ...]
) -> ReleaseTable:
    """`chunks.parquet` of chunks of one code each, without empty subrecords, and of item chunks: entry i says that
    `count` records of the released `node` have the code, or, if its kind is that of an item chunk, some have."""
    order = np.lexsort((code, kind == ITEMS, node))
    node, kind, code, count = (each[order] for each in (node, kind, code, count))
    item = kind == ITEMS
    more = item[1:] & item[:-1] & (node[1:] == node[:-1])
    begin = np.flatnonzero(np.append(True, ~more))
    size = np.diff(np.append(begin, len(node)))
    node, kind, item, rows = (each[begin] for each in (node, kind, item, np.where(item, 1, count)))
    chunk = np.arange(len(node)) - np.searchsorted(node, node)
    bounds = np.flatnonzero(np.diff(np.cumsum(rows) // ROWS_A_BATCH, prepend=-1, append=-1))

    def batches() -> Iterator[pa.RecordBatch]:
        code_names = pa.array(codes, pa.string())
        for lo, hi in itertools.pairwise(bounds.tolist()):
            of = np.repeat(np.arange(lo, hi), rows[lo:hi])
            place = pa.array(ranges_of(np.zeros(hi - lo, np.int64), rows[lo:hi]), mask=item[of])
            names = code_names.take(pa.array(code[ranges_of(begin[of], size[of])]))
            yield chunk_rows(node[of], chunk[of], kind[of], place, offsets_of(size[of]), names)

    return ReleaseTable("chunks.parquet", CHUNKS, batches)


def chunk_rows(
    node: Int64s, chunk: Int64s, kind: AnyArray, subrecord: pa.Array, at: AnyArray, codes: pa.Array
) -> pa.RecordBatch:
    """Rows of `chunks.parquet`; `kind` indexes KINDS; row i has codes[at[i]:at[i + 1]]."""
    kinds = pa.array(KINDS, pa.string()).take(pa.array(kind))
    lists = pa.ListArray.from_arrays(pa.array(at, pa.int32()), codes)
    return pa.record_batch([pa.array(node), pa.array(chunk), kinds, subrecord, lists], schema=CHUNKS)


def payload_table(p: Published, values: pl.DataFrame, randomness: Randomness) -> ReleaseTable:
    """`payload.parquet`: one row per record and column; the values of each column are shuffled inside every cluster.
    Each column has as many values as the cluster has records; columns are shuffled independently."""
    node = p.number[owners_of(p.data.records.bounds)]
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


@njit
def _emit(
    lo: int, hi: int, old: Int64s, near: Clustered, chunks: Chunks, layout: Layout, keys: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Rows of the nodes numbered `lo…hi-1`, in the order of node, chunk, subrecord."""
    node_of, chunk_of, kind, subrecord = empty_list(), empty_list(), empty_list(), empty_list()
    at, code = empty_list(), empty_list()
    at.append(0)
    key = 0
    for new in range(lo, hi):
        node = old[new]
        leaf = node < len(near.bounds) - 1
        positions = positions_below(node, layout, near.bounds)
        for c in range(layout.n_chunks[node]):
            shuffled = np.argsort(keys[key : key + len(positions)], kind="mergesort")
            key += len(positions)
            for s in range(len(positions)):
                r = positions[shuffled[s]]
                for j in range(near.offsets[r], near.offsets[r + 1]):
                    if layout.node[j] == node and layout.chunk[j] == c:
                        code.append(near.values[j])
                node_of.append(new)
                chunk_of.append(c)
                kind.append(0 if leaf else 1)
                subrecord.append(s)
                at.append(len(code))
        items = np.arange(chunks.at[node], chunks.at[node + 1]) if leaf else np.arange(0)
        items = items[chunks.chunk[items] < 0]
        if len(items) > 0:
            code.extend(chunks.code[items])
            node_of.append(new)
            chunk_of.append(layout.n_chunks[node])
            kind.append(2)
            subrecord.append(-1)
            at.append(len(code))
    return (
        np.array(node_of), np.array(chunk_of), np.array(kind), np.array(subrecord), np.array(at), np.array(code)
    )  # fmt: skip


@njit
def positions_below(node: int, layout: Layout, bounds: Int64s) -> Int64s:
    positions = np.empty(layout.records[node], np.int64)
    filled = 0
    for leaf in layout.below[layout.below_at[node] : layout.below_at[node + 1]]:
        for r in range(bounds[leaf], bounds[leaf + 1]):
            positions[filled] = r
            filled += 1
    return positions
