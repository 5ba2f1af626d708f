"""Disassociation from flat code sets to flat clusters, chunks and joint clusters (docs/methods/disassociation.md).

Partition the records, split every cluster's codes into chunks, refine. Nothing here knows of files or frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import AnyArray, Bools, Int32s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.fit import fit_partition
from leeward.methods.disassociation.horpart import (
    Partition,
    gather_records,
    horizontal_partition,
    rows_to_leaves,
)
from leeward.methods.disassociation.joins import Leaves
from leeward.methods.disassociation.recut import improve_partition
from leeward.methods.disassociation.refine import SharedChunks, leaf_clusters, refine
from leeward.methods.disassociation.rules import Rules, Workers
from leeward.methods.disassociation.verpart import place_leaves

if TYPE_CHECKING:
    from leeward.engine import Engine


@dataclass(frozen=True)
class Disassociated:
    """Clusters and chunks as flat arrays, records in the order of the clusters.

    order : int32[n], the record at each position
    offsets, values : the code sets in that order
    leaf_offsets : int64[leaves + 1], positions
    leaf_codes, leaf_chunk, leaf_n_codes, leaf_n_chunks : each leaf's distinct codes and their record chunk (-1: item
        chunk), from position `offsets[leaf_offsets[l]]` on
    fit_alone : whether a leaf may have an empty item chunk
    shared : joint nodes and shared chunks
    condition_fired : how often the empty-item-chunk condition moved a code
    """

    order: Int32s
    offsets: Int64s
    values: Int32s
    leaf_offsets: Int64s
    leaf_codes: Int32s
    leaf_chunk: Int32s
    leaf_n_codes: Int32s
    leaf_n_chunks: Int32s
    fit_alone: Bools
    shared: SharedChunks
    condition_fired: int


def partition_records(
    sets: CodeSets, rules: Rules, workers: Workers, weight: float | None = None
) -> Partition:
    """HorPart, fitted where the rules ask for it, and recut; `weight` in place of the fitted one's own."""
    if rules.fit:
        first = fit_partition(sets.offsets, sets.values, rules, workers, weight)
    else:
        first = horizontal_partition(sets.offsets, sets.values, rules, workers)
    return improve_partition(sets.offsets, sets.values, first, rules, workers)


def disassociate(
    sets: CodeSets, rules: Rules, workers: Workers, partition: Partition | None = None
) -> Disassociated:
    """Clusters and chunks of a data set (or one partition of it): VerPart of every leaf and Refine over all of them.

    `partition` where the records are partitioned already.
    """
    partition = partition or partition_records(sets, rules, workers)
    offsets, values = gather_records(sets.offsets, sets.values, partition.order, workers)
    leaf_offsets = partition.leaf_offsets
    leaves = len(leaf_offsets) - 1
    leaf_codes = np.empty(len(values), np.int32)
    leaf_chunk = np.empty(len(values), np.int32)
    leaf_n_codes = np.zeros(leaves, np.int32)
    leaf_n_chunks = np.zeros(leaves, np.int32)
    fit_alone = np.zeros(leaves, np.bool_)
    fired = workers.blocks(
        leaves,
        lambda lo, hi: place_leaves(
            offsets, values, leaf_offsets, lo, hi, rules, leaf_codes, leaf_chunk, leaf_n_codes, leaf_n_chunks,
            fit_alone,
        ),
    )  # fmt: skip
    n_codes = rules.n_codes
    item_left, holders = count_items(offsets, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes)
    shared = refine(
        leaf_clusters(offsets, values, leaf_offsets, leaf_codes, leaf_chunk, leaf_n_codes, n_codes),
        Leaves(rows_to_leaves(leaf_offsets), np.diff(leaf_offsets), item_left, fit_alone),
        rules,
        holders=holders,
        blocks=workers.blocks,
    )
    return Disassociated(
        partition.order,
        offsets,
        values,
        leaf_offsets,
        leaf_codes,
        leaf_chunk,
        leaf_n_codes,
        leaf_n_chunks,
        fit_alone,
        shared,
        sum(f for f in fired if isinstance(f, int)),
    )


@njit
def count_items(
    offsets: Int64s,
    leaf_offsets: Int64s,
    leaf_codes: Int32s,
    leaf_chunk: Int32s,
    leaf_n_codes: Int32s,
    n_codes: int,
) -> tuple[Int32s, Int64s]:
    """Codes in each leaf's item chunk, and the number of leaves whose item chunk has each code."""
    item_left = np.zeros(len(leaf_n_codes), np.int32)
    holders = np.zeros(n_codes, np.int64)
    for leaf in range(len(leaf_n_codes)):
        base = offsets[leaf_offsets[leaf]]
        for i in range(base, base + leaf_n_codes[leaf]):
            if leaf_chunk[i] < 0:
                item_left[leaf] += 1
                holders[leaf_codes[i]] += 1
    return item_left, holders


ARRAYS = tuple(each.name for each in fields(Disassociated) if each.name not in ("shared", "condition_fired"))
SHARED = tuple(each.name for each in fields(SharedChunks) if each.name != "passes")
NUMBERS = ("condition_fired", "passes")
PIECE = pa.schema(
    [("class", pa.int64())]
    + [(name, pa.binary()) for name in (*ARRAYS, *SHARED)]
    + [(name, pa.int64()) for name in NUMBERS]
)
"""What a kernel returns: one row, the arrays as they are in memory."""

WEIGHT = 0.6
"""w of fitted partitioning in classes: they are small and their records unlike, so that the weight of a whole data set
puts too many codes in item chunks (docs/methods/whole-patient.md#methods)."""


@dataclass(frozen=True)
class Classed:
    """A data set disassociated class by class, and the class of each node: int64[nodes]."""

    data: Disassociated
    of_node: Int64s


def disassociate_classes(
    sets: CodeSets,
    class_of: Int32s,
    rules: Rules,
    engine: Engine | None,
    workers: Workers,
    partitions: Sequence[Partition] = (),
) -> Classed:
    """Every class on its own: `class_of`, int32[records], from 0 on without gaps.

    `partitions` of the classes where their records are partitioned already (here only, not on Spark).
    """
    members = np.split(np.argsort(class_of, kind="stable"), np.cumsum(np.bincount(class_of))[:-1])
    weight = WEIGHT if len(members) > 1 else None
    if engine is not None and engine.name == "spark" and not partitions:
        return join_classes(_on_engine(sets, class_of, rules, engine, weight), members)
    found: list[Disassociated | None] = [None] * len(members)

    def run(number: int, helpers: Workers) -> Callable[[], object]:
        def task() -> None:
            part = sets.take(members[number])
            partition = partitions[number] if partitions else partition_records(part, rules, helpers, weight)
            found[number] = disassociate(part, rules, helpers, partition)

        return task

    # A class as large as a thread's share is done by all threads; the others side by side, the largest first.
    order = sorted(range(len(members)), key=lambda c: -len(members[c]))
    large = [c for c in order if len(members[c]) * workers.threads > len(class_of)]
    for c in large:
        run(c, workers)()
    workers.tasks([run(c, Workers(1)) for c in order if c not in set(large)])
    return join_classes([each for each in found if each is not None], members)


def join_classes(parts: Sequence[Disassociated], members: Sequence[AnyArray]) -> Classed:
    """One data set of the classes' results, in their order: first all leaves, then all joint nodes."""
    leaves = np.array([len(part.leaf_n_codes) for part in parts])
    joints = np.array([len(part.shared.parent) for part in parts]) - leaves
    first_leaf, first_joint = offsets_of(leaves), int(leaves.sum()) + offsets_of(joints)

    def renumber(nodes: Int64s, c: int) -> Int64s:
        """A class's node numbers among all nodes; -1 stays."""
        moved = np.where(nodes < leaves[c], nodes + first_leaf[c], nodes - leaves[c] + first_joint[c])
        return np.where(nodes < 0, -1, moved).astype(np.int64)

    parents = [renumber(part.shared.parent, c) for c, part in enumerate(parts)]
    shared = SharedChunks(
        np.concatenate(
            [each[: leaves[c]] for c, each in enumerate(parents)]
            + [each[leaves[c] :] for c, each in enumerate(parents)]
        ),
        np.concatenate([renumber(part.shared.shared_node, c) for c, part in enumerate(parts)]),
        np.concatenate([part.shared.shared_code for part in parts]),
        np.concatenate([part.shared.shared_chunk for part in parts]),
        np.concatenate([part.shared.item_left for part in parts]),
        max(part.shared.passes for part in parts),
    )

    def chain(name: str) -> Int64s:
        """Offsets of all classes one after the other."""
        return offsets_of(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

    data = Disassociated(
        order=np.concatenate([members[c][part.order] for c, part in enumerate(parts)]).astype(np.int32),
        offsets=chain("offsets"),
        leaf_offsets=chain("leaf_offsets"),
        shared=shared,
        condition_fired=sum(part.condition_fired for part in parts),
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ARRAYS
            if name not in ("order", "offsets", "leaf_offsets")
        },
    )
    number = np.arange(len(parts))
    return Classed(data, np.concatenate([np.repeat(number, leaves), np.repeat(number, joints)]))


def _on_engine(
    sets: CodeSets, class_of: Int32s, rules: Rules, engine: Engine, weight: float | None
) -> list[Disassociated]:
    """The same through the engine's groups."""
    lengths = np.diff(sets.offsets)
    frame = pl.DataFrame(
        {
            "class": np.repeat(class_of.astype(np.int64), lengths),
            "record": np.repeat(np.arange(len(sets), dtype=np.int64), lengths),
            "code": sets.values.astype(np.int64),
        }
    )
    codes = sets.codes

    def kernel(occurrences: pa.Table) -> pa.Table:
        record = occurrences["record"].to_numpy()
        starts = np.concatenate([[True], record[1:] != record[:-1]])
        offsets = np.append(np.flatnonzero(starts), len(record)).astype(np.int64)
        values = occurrences["code"].to_numpy().astype(np.int32)
        own = CodeSets(offsets, values, codes, pl.Series(record[offsets[:-1]]))
        part = disassociate(own, rules, Workers(1), partition_records(own, rules, Workers(1), weight))
        row: dict[str, list[object]] = {"class": [occurrences["class"][0].as_py()]}
        row |= {name: [_pack(getattr(part, name))] for name in ARRAYS}
        row |= {name: [_pack(getattr(part.shared, name))] for name in SHARED}
        return pa.table(
            {**row, "condition_fired": [part.condition_fired], "passes": [part.shared.passes]}, PIECE
        )

    pieces = engine.map_groups(engine.frame(frame), "class", kernel, PIECE, order=("record", "code"))
    found = []
    for row in pieces.to_pylist():
        shared = SharedChunks(**{name: _unpack(row[name]) for name in SHARED}, passes=row["passes"])
        arrays = {name: _unpack(row[name]) for name in ARRAYS}
        found.append(Disassociated(**arrays, shared=shared, condition_fired=row["condition_fired"]))
    return found


def _pack(values: AnyArray) -> bytes:
    """An array with its type, as bytes."""
    return values.dtype.str.encode().ljust(8) + np.ascontiguousarray(values).tobytes()


def _unpack(packed: bytes) -> AnyArray:
    return np.frombuffer(packed, np.dtype(packed[:8].decode().strip()), offset=8).copy()
