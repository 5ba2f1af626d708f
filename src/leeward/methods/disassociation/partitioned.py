"""Disassociation in partitions, through the engine: the same kernel on this machine and on Spark.

Partitions are made of records with the same leading code (their most frequent one, constrained codes first), as
HorPart's first splits would; where more records have it than a partition should hold, of those with the same second
code too. Each partition has at least k records and is disassociated on its own, so the guarantee
holds whatever the partitioning; what it costs is that no cluster and no shared chunk crosses partitions.

The records of each partition and their results are files in a private folder. So a data set may be larger than
memory: the caller holds the nodes of the release (of five records or more each) and one block of rows at a time, a
worker one partition (docs/how-to/large-data.md).
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.arrays import Int64s
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.engine import Task, ahead, once, part_file, whole_or_not
from leeward.methods.disassociation.held_back import publish_chunks
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.publish import (
    CHUNKS,
    NODES,
    facts_of,
    node_of_records,
    node_table,
)
from leeward.methods.disassociation.rules import Rules, Workers
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine

MOST_CODES = 3
"""Of a record that say which group it is in."""

ROWS_A_RANGE = 1 << 19
"""Rows of `chunks.parquet` and of `clusters.parquet` that are sorted at once."""

SAMPLED = 64
"""One in this many patients is sampled to cut the patients into ranges."""

NO_CHUNKS = pa.RecordBatch.from_pylist([], schema=CHUNKS)

Work = tempfile.TemporaryDirectory[str]
PARTS = ("nodes", "chunks", "members")
"""Results of a kernel for a partition: rows of both tables, and the node of each record."""

DONE = pa.schema(
    [
        ("partition", pa.int64()),
        ("nodes", pa.int64()),
        ("chunks", pa.int64()),
        ("members", pa.int64()),
        ("facts", pa.string()),
    ]
)
"""Output of a kernel for a partition: row counts of its parts, and its facts as JSON."""


@dataclass(frozen=True)
class Blocks:
    """A data set of code sets in blocks, all rows of a record in one of them. `codes`: the distinct codes, sorted.
    `supports`: int64[codes], records that hold each. `records`: how many. `each`: the blocks: `record` (any
    identifier), `code` (its number), distinct rows in ascending order."""

    codes: tuple[str, ...]
    supports: Int64s
    records: int
    each: Callable[[], Iterator[pl.DataFrame]]

    @staticmethod
    def of(sets: CodeSets) -> Blocks:
        def each() -> Iterator[pl.DataFrame]:
            number = np.repeat(np.arange(len(sets), dtype=np.uint32), np.diff(sets.offsets))
            yield pl.DataFrame({"record": sets.patients.gather(number), "code": sets.values})

        return Blocks(sets.codes, sets.supports(), len(sets), each)

    @staticmethod
    def stored(cohort: Cohort) -> Blocks:
        """Of a cohort on the disk, a file a block."""
        known = cohort.supports()
        kind = pl.Enum(known.codes)

        def each() -> Iterator[pl.DataFrame]:
            for part in cohort.parts():
                rows = part.select(record="patient", code=pl.col("code").cast(kind).to_physical())
                yield rows.unique().sort("record", "code")

        return Blocks(known.codes, known.patients_of, known.patients, each)


def protect_partitions(
    data: Blocks,
    rules: Rules,
    partitions: int,
    engine: Engine | None,
    randomness: Randomness,
    where: Path | None = None,
) -> tuple[tuple[ReleaseTable, ...], dict[str, Any], tuple[ReleaseTable]]:
    """The release tables, the custodian's facts and `clusters.parquet` with the cluster of each record. The files of
    the partitions are in `where`, or else in a private folder as long as the tables exist."""
    from leeward.engine import make

    work = tempfile.TemporaryDirectory(prefix="partitions-", dir=where, ignore_cleanup_errors=True)
    folder = where or Path(work.name)
    done = fill_partitions(data, rules, partitions, engine or make("local"), randomness, folder)
    each = [json.loads(facts) for facts in done["facts"].to_pylist()]
    facts = {kind: sum(one[kind] for one in each) for kind in each[0]}
    total = int(pc.sum(done["nodes"]).as_py())
    order: Int64s = randomness.stream("nodes").permutation(total).astype(np.int64)
    nodes = pa.concat_tables(table for _, table in _renumber(folder, "nodes", done, order))
    nodes = nodes.sort_by("node").cast(NODES)
    tables = (ReleaseTable.of("nodes.parquet", nodes), _chunks(done, folder, work, order))
    return tables, {**facts, "partitions": partitions}, (_clusters(done, folder, work, order),)


def fill_partitions(
    data: Blocks, rules: Rules, partitions: int, engine: Engine, randomness: Randomness, folder: Path
) -> pa.Table:
    """Write the parts of each partition into `folder`, but for what is there already; returns their counts (`DONE`)."""
    numbers = engine.there(partial(once, folder / "cut", partial(cut, data, rules, partitions, folder)))
    kernel = partition_kernel(rules, data.codes, randomness)
    return engine.map_tasks(numbers, kernel, DONE, folder, ("rows",), PARTS)


def code_ranks(supports: np.ndarray[Any, Any], rules: Rules) -> np.ndarray[Any, Any]:
    """Rank of each code: constrained before unconstrained, not sensitive before sensitive, by support, by code."""
    order = np.lexsort((np.arange(len(supports)), -supports, rules.constraint_of < 0, rules.sensitive))
    rank = np.empty(len(supports), np.int64)
    rank[order] = np.arange(len(supports))
    return rank


def assign_groups(groups: pl.DataFrame, partitions: int, k: int) -> pl.DataFrame:
    """`group` → `partition`: runs of groups (`records` each, ascending) of about equal size, with at least k records. A
    group goes where its middle lies, so of groups of at most the target no run has more than twice the target; a run
    below k joins the one before, the first one the next."""
    records = groups["records"].to_numpy()
    middle = np.cumsum(records) - records / 2
    partition = (middle * partitions / max(1, records.sum())).astype(np.int64)
    filled = 0
    for run in np.unique(partition)[::-1].tolist():
        filled = int(records[partition == run].sum())
        if filled < k and run != partition[0]:
            partition[partition == run] = partition[partition < run].max()
    if filled < k and partition[-1] != partition[0]:
        partition[partition == partition[0]] = partition[partition > partition[0]].min()
    return groups.select("group").with_columns(pl.Series("partition", partition))


def cut(data: Blocks, rules: Rules, partitions: int, folder: Path) -> list[int]:
    """Write the rows of each partition to a file of its own; returns the partitions' numbers."""
    rank = code_ranks(data.supports, rules)
    target = data.records / partitions
    large: list[Int64s] = []
    while True:
        counted: Counter[int] = Counter()
        for block in data.each():
            group, _ = _groups(block, rank, large)
            counted.update(
                dict(zip(*(each.tolist() for each in np.unique(group, return_counts=True)), strict=True))
            )
        large.append(np.array(sorted(group for group, n in counted.items() if n > target), np.int64))
        if len(large) == MOST_CODES or not len(large[-1]):
            break
    groups = pl.DataFrame(
        {"group": sorted(counted), "records": [counted[group] for group in sorted(counted)]}
    )
    assigned = assign_groups(groups, partitions, rules.k)
    known, partition_of = assigned["group"].to_numpy(), assigned["partition"].to_numpy()
    numbers: list[int] = assigned["partition"].unique().sort().to_list()
    with whole_or_not(folder) as aside, ExitStack() as files:
        writers: dict[int, pq.ParquetWriter] = {}
        for block in data.each():
            group, lengths = _groups(block, rank, large[:-1])
            of_row = pl.Series(np.repeat(partition_of[np.searchsorted(known, group)], lengths))
            for number in of_row.unique().to_list():
                rows = block.filter(of_row == number).to_arrow()
                if number not in writers:
                    file = part_file(aside, "rows", number)
                    writer = pq.ParquetWriter(file, rows.schema, compression="zstd")
                    writers[number] = files.enter_context(writer)
                writers[number].write_table(rows)
    return numbers


def _groups(block: pl.DataFrame, rank: Int64s, large: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
    """The group of each record of a block, and its number of rows. Records of a group have the same leading code; those
    of a group in `large` are apart by their second code too, and by their third where they are in the next."""
    record = block["record"]
    starts = np.flatnonzero(record.ne_missing(record.shift(1)).to_numpy())
    if len(record) and (not len(starts) or starts[0]):  # nothing before the first row to differ from
        starts = np.append(0, starts)
    lengths = np.diff(np.append(starts, len(record)))
    ranks, none = rank[block["code"].to_numpy()], np.int64(len(rank))
    group = np.zeros(len(starts), np.int64)
    divided = np.ones(len(starts), np.bool_)
    for place in range(len(large) + 1):
        first = np.minimum.reduceat(ranks, starts)
        ranks = np.where(ranks == np.repeat(first, lengths), none, ranks)
        group += np.where(divided, first + 1, 0) * (none + 2) ** (MOST_CODES - 1 - place)
        divided = divided & np.isin(group, large[place]) if place < len(large) else divided
    return group, lengths


def partition_kernel(rules: Rules, codes: tuple[str, ...], randomness: Randomness) -> Task:
    """Kernel that turns a partition's rows in a folder into its parts there."""

    def protect(partition: int, folder: Path) -> pa.Table:
        occurrences = pl.read_parquet(part_file(folder, "rows", partition)).sort("record", "code")
        streams = Randomness(randomness.number("partition", partition), randomness.seeded)
        with whole_or_not(folder) as aside:
            counts, facts = _write_parts(occurrences, rules, codes, streams, aside, partition)
        row = (partition, *counts, json.dumps(facts))
        return pa.table([[each] for each in row], schema=DONE)

    def kernel(partition: int, folder: Path) -> pa.Table:
        return once(folder / f"done-{partition}", partial(protect, partition, folder))

    return kernel


def _write_parts(
    occurrences: pl.DataFrame,
    rules: Rules,
    codes: tuple[str, ...],
    streams: Randomness,
    folder: Path,
    partition: int,
) -> tuple[list[int], dict[str, Any]]:
    """Disassociate a partition and write its parts; returns their rows and the facts."""
    record = occurrences["record"]
    starts = np.flatnonzero(record.is_first_distinct().to_numpy())
    offsets = np.append(starts, len(record)).astype(np.int64)
    values = occurrences["code"].to_numpy().astype(np.int32)
    sets = CodeSets(offsets, values, codes, record.gather(starts))
    del occurrences, record
    result, chunks = publish_chunks(disassociate(sets, rules, Workers(1)), codes, rules, streams)
    members = pl.DataFrame({"patient": sets.patients, "node": node_of_records(result)}).to_arrow()
    parts = (
        ReleaseTable.of("", node_table(result)),
        chunks,
        ReleaseTable.of("", members),
    )
    counts = dict.fromkeys(PARTS, 0)
    for part, table in zip(PARTS, parts, strict=True):
        with pq.ParquetWriter(part_file(folder, part, partition), table.schema, compression="zstd") as file:
            for batch in table.batches():
                file.write_batch(batch)
                counts[part] += batch.num_rows
    return [*counts.values()], facts_of(result)


def _renumber(folder: Path, part: str, done: pa.Table, number: Int64s) -> Iterator[tuple[int, pa.Table]]:
    """The part of each partition, its nodes numbered as in the release: in an order that hides the partition."""
    bases = np.cumsum(done["nodes"].to_numpy()) - done["nodes"].to_numpy()
    for partition, base in zip(done["partition"].to_pylist(), bases, strict=True):
        table = pq.read_table(part_file(folder, part, partition))
        for column in ("node", "parent"):
            if column in table.column_names:
                local = table[column].combine_chunks()
                new = pa.array(number[base + local.fill_null(0).to_numpy()])
                place = table.column_names.index(column)
                table = table.set_column(place, column, pc.if_else(local.is_valid(), new, None))
        yield partition, table


def _chunks(done: pa.Table, folder: Path, work: Work, number: Int64s) -> ReleaseTable:
    """`chunks.parquet`: the rows of each partition are sorted and cut at the same numbers of nodes; then each cut is
    sorted over all partitions, one after the other."""
    ranges = max(1, -(-int(pc.sum(done["chunks"]).as_py()) // ROWS_A_RANGE))
    cuts = np.linspace(0, len(number), ranges + 1).astype(np.int64)
    files = []
    for partition, table in _renumber(folder, "chunks", done, number):
        order = np.argsort(table["node"].to_numpy(), kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
        places = np.searchsorted(table["node"].to_numpy(), cuts)
        files.append(Path(work.name) / f"sorted-{partition}.arrow")
        with pa.ipc.new_file(files[-1], CHUNKS, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
            for low, high in itertools.pairwise(places.tolist()):
                (batch,) = table.slice(low, high - low).combine_chunks().to_batches() or (NO_CHUNKS,)
                file.write_batch(batch)

    def batches() -> Iterator[pa.RecordBatch]:
        assert Path(work.name).is_dir()  # `work` removes its folder once nothing refers to it
        with ExitStack() as opened:
            parts = [pa.ipc.open_file(opened.enter_context(pa.OSFile(str(file)))) for file in files]
            for place in range(ranges):
                rows = pa.Table.from_batches([part.get_batch(place) for part in parts])
                order = np.argsort(rows["node"].to_numpy(), kind="stable")
                yield from rows.take(pa.array(order)).combine_chunks().to_batches()

    return ReleaseTable("chunks.parquet", CHUNKS, lambda: ahead(batches()))


def _clusters(done: pa.Table, folder: Path, work: Work, number: Int64s) -> ReleaseTable:
    """`clusters.parquet` for custody, sorted by patient, one range of patients at a time."""
    members = int(pc.sum(done["members"]).as_py())
    sample, files = [], []
    for partition, table in _renumber(folder, "members", done, number):
        frame = pl.DataFrame(pl.from_arrow(table))
        files.append(part_file(Path(work.name), "numbered", partition))
        frame.write_parquet(files[-1], row_group_size=1 << 16)
        sample.append(frame["patient"].gather_every(SAMPLED))
    known = pl.concat(sample).sort()
    step = max(1, len(known) * ROWS_A_RANGE // members)
    bounds = [None, *known.gather_every(step, step).unique(maintain_order=True).to_list(), None]

    def batches() -> Iterator[pa.RecordBatch]:
        assert Path(work.name).is_dir()
        rows = pl.scan_parquet(files)
        for low, high in itertools.pairwise(bounds):
            patient = pl.col("patient")
            inside = [patient >= low] if low is not None else []
            inside += [patient < high] if high is not None else []
            found = (rows.filter(*inside) if inside else rows).sort("patient").collect()
            yield from found.to_arrow().to_batches()

    return ReleaseTable("clusters.parquet", frame.to_arrow().schema, batches)
