"""Disassociation in partitions, through the engine: the same kernel on this machine and on Spark.

Partitions are made of records with the same leading code (their most frequent one, constrained codes first), as
HorPart's first splits would. Each partition has at least k records and is disassociated on its own, so the guarantee
holds whatever the partitioning; what it costs is that no cluster and no shared chunk crosses partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.arrays import Int64s
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.publish import (
    CHUNKS,
    NODES,
    chunk_table,
    facts_of,
    node_of_records,
    node_table,
    publish,
)
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.workers import Workers
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    from leeward.engine import Engine

RECORDS_A_PARTITION = 250_000

PIECE = pa.schema(
    [
        ("partition", pa.int64()),
        ("table", pa.string()),
        ("node", pa.int64()),
        ("parent", pa.int64()),
        ("kind", pa.string()),
        ("records", pa.int64()),
        ("chunk", pa.int64()),
        ("subrecord", pa.int64()),
        ("codes", pa.list_(pa.string())),
        ("member", pa.int64()),
    ]
)
"""What a kernel returns: rows of both tables, a row a record with its cluster, and one row of facts (`kind` its name,
`records` its figure)."""


def protect_partitions(
    sets: CodeSets,
    rules: Rules,
    partitions: int,
    engine: Engine | None,
    randomness: Randomness,
) -> tuple[tuple[ReleaseTable, ...], dict[str, Any], Int64s]:
    """The release tables, the custodian's facts and the cluster of each record, from all partitions."""
    from leeward.engine import make

    engine = engine or make("local")
    occurrences = pl.DataFrame(
        {
            "record": np.repeat(np.arange(len(sets), dtype=np.int64), np.diff(sets.offsets)),
            "code": sets.values.astype(np.int64),
        }
    )
    frame = engine.frame(occurrences)
    partition_of_code = assign_codes(leading_codes(engine, frame, rules), partitions, rules)
    keyed = with_partition(engine, frame, rules, partition_of_code)
    kernel = partition_kernel(rules, sets.codes, randomness)
    pieces = engine.map_groups(keyed, "partition", kernel, PIECE, order=("record", "code"))
    return join_pieces(pieces, randomness)


def code_ranks(supports: np.ndarray[Any, Any], rules: Rules) -> np.ndarray[Any, Any]:
    """Rank of each code: constrained before unconstrained, not sensitive before sensitive, by support, by code."""
    order = np.lexsort((np.arange(len(supports)), -supports, rules.constraint_of < 0, rules.sensitive))
    rank = np.empty(len(supports), np.int64)
    rank[order] = np.arange(len(supports))
    return rank


def leading_codes(engine: Engine, frame: nw.LazyFrame[Any], rules: Rules) -> pl.DataFrame:
    """Records by leading code: `rank`, `code`, `records` (relational, on the engine)."""
    supports = engine.collect(frame.group_by("code").agg(nw.len().alias("support")))
    counted = np.zeros(len(rules.constraint_of), np.int64)
    counted[supports["code"].to_numpy()] = supports["support"].to_numpy()
    ranks = pl.DataFrame({"code": np.arange(len(counted)), "rank": code_ranks(counted, rules)})
    leading = _leading(engine, frame, ranks)
    counts = engine.collect(leading.group_by("rank").agg(nw.len().alias("records")))
    return counts.join(ranks, on="rank").sort("rank")


def _leading(engine: Engine, frame: nw.LazyFrame[Any], ranks: pl.DataFrame) -> nw.LazyFrame[Any]:
    ranked = frame.join(engine.frame(ranks), on="code", how="inner")
    return ranked.group_by("record").agg(nw.col("rank").min())


def assign_codes(leading: pl.DataFrame, partitions: int, rules: Rules) -> pl.DataFrame:
    """`rank` → `partition`: runs of leading codes of about equal size, each with at least k records.

    The clean-up: a run that would stay below k joins the one before.
    """
    records = leading["records"].to_numpy()
    target = records.sum() / partitions
    partition = np.zeros(len(records), np.int64)
    current, filled = 0, 0
    for i, n in enumerate(records):
        if filled and filled + n / 2 > target and filled >= rules.k and current < partitions - 1:
            current, filled = current + 1, 0
        partition[i] = current
        filled += n
    if current and filled < rules.k:
        partition[partition == current] = current - 1
    return leading.select("rank").with_columns(pl.Series("partition", partition))


def with_partition(
    engine: Engine, frame: nw.LazyFrame[Any], rules: Rules, partition_of_rank: pl.DataFrame
) -> nw.LazyFrame[Any]:
    """Occurrences with their record's partition."""
    supports = engine.collect(frame.group_by("code").agg(nw.len().alias("support")))
    counted = np.zeros(len(rules.constraint_of), np.int64)
    counted[supports["code"].to_numpy()] = supports["support"].to_numpy()
    ranks = pl.DataFrame({"code": np.arange(len(counted)), "rank": code_ranks(counted, rules)})
    leading = _leading(engine, frame, ranks).join(engine.frame(partition_of_rank), on="rank", how="inner")
    return frame.join(leading.select("record", "partition"), on="record", how="inner")


def partition_kernel(
    rules: Rules, codes: tuple[str, ...], randomness: Randomness
) -> Callable[[pa.Table], pa.Table]:
    """The kernel: one partition's occurrences in, its rows of both tables out."""

    def kernel(occurrences: pa.Table) -> pa.Table:
        partition = occurrences["partition"][0].as_py()
        record = occurrences["record"].to_numpy()
        starts = np.concatenate([[True], record[1:] != record[:-1]])
        offsets = np.append(np.flatnonzero(starts), len(record)).astype(np.int64)
        values = occurrences["code"].to_numpy().astype(np.int32)
        sets = CodeSets(offsets, values, codes, pl.Series(record[offsets[:-1]]))
        streams = Randomness(randomness.number("partition", partition), randomness.seeded)
        result = publish(disassociate(sets, rules, Workers(1)), codes, streams)
        nodes = node_table(result)
        chunks = pa.Table.from_batches(chunk_table(result, streams).batches(), CHUNKS)
        facts = facts_of(result)
        figures = pa.table({"kind": list(facts), "records": pa.array(list(facts.values()), pa.int64())})
        members = pa.table({"member": sets.patients.to_numpy(), "node": node_of_records(result)})
        tables = {"nodes": nodes, "chunks": chunks, "facts": figures, "members": members}
        parts = [_piece(partition, name, t) for name, t in tables.items()]
        return pa.concat_tables(parts)

    return kernel


def _piece(partition: int, name: str, table: pa.Table) -> pa.Table:
    rows = table.num_rows
    columns = {
        "partition": pa.array(np.full(rows, partition, np.int64)),
        "table": pa.array([name]).take(pa.array(np.zeros(rows, np.int64))),
    }
    for column in PIECE.names[2:]:
        has = column in table.column_names
        columns[column] = table[column] if has else pa.nulls(rows, PIECE.field(column).type)
    return pa.table(columns, schema=PIECE)


def join_pieces(
    pieces: pa.Table, randomness: Randomness
) -> tuple[tuple[ReleaseTable, ...], dict[str, Any], Int64s]:
    """Number the nodes of all partitions anew, in an order that hides the partition, and sort by it."""
    nodes = pieces.filter(pc.equal(pieces["table"], "nodes"))
    chunks = pieces.filter(pc.equal(pieces["table"], "chunks"))
    facts = pieces.filter(pc.equal(pieces["table"], "facts"))
    members = pieces.filter(pc.equal(pieces["table"], "members"))
    partition = nodes["partition"].to_numpy()
    keys, first = np.unique(partition, return_index=True)
    number = randomness.stream("nodes").permutation(nodes.num_rows).astype(np.int64)

    def renumber(table: pa.Table, column: str) -> pa.Array:
        local = table[column].fill_null(0).to_numpy()
        base = first[np.searchsorted(keys, table["partition"].to_numpy())]
        return pc.if_else(table[column].combine_chunks().is_valid(), pa.array(number[base + local]), None)

    nodes = nodes.set_column(nodes.column_names.index("parent"), "parent", renumber(nodes, "parent"))
    nodes = nodes.set_column(nodes.column_names.index("node"), "node", renumber(nodes, "node"))
    new_node = renumber(chunks, "node")
    chunks = chunks.set_column(chunks.column_names.index("node"), "node", new_node)
    chunks = chunks.take(pa.array(np.argsort(new_node.to_numpy(), kind="stable")))
    of_record = np.empty(members.num_rows, np.int64)
    of_record[members["member"].to_numpy()] = renumber(members, "node").to_numpy()
    sums: dict[str, Any] = {}
    for kind, figure in zip(facts["kind"].to_pylist(), facts["records"].to_pylist(), strict=True):
        sums[kind] = sums.get(kind, 0) + figure
    tables = (
        ReleaseTable.of("nodes.parquet", nodes.select(NODES.names).sort_by("node").cast(NODES)),
        ReleaseTable.of("chunks.parquet", chunks.select(CHUNKS.names).cast(CHUNKS)),
    )
    return tables, sums, of_record
