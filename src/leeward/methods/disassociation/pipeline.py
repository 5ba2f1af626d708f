"""Disassociation from flat code sets to flat clusters, chunks and joint clusters (docs/methods/disassociation.md).

Partition the records, split every cluster's codes into chunks, refine.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.analysis.itemsets import owners_of
from leeward.arrays import AnyArray, Int32s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.fit import fit_partition
from leeward.methods.disassociation.horpart import Clustered, Partition, gather_records, horizontal_partition
from leeward.methods.disassociation.recut import count_supports, improve_partition
from leeward.methods.disassociation.refine import refine
from leeward.methods.disassociation.rules import Rules, Workers
from leeward.methods.disassociation.verpart import Chunks, place_leaves

if TYPE_CHECKING:
    from leeward.engine import Engine


@dataclass(frozen=True)
class Disassociated:
    """Clusters and chunks as flat arrays, records in the order of the clusters. `order`: int32[n], the record at each
    position. `records`: the code sets in that order. `chunks`: the codes of each leaf. `parent`: int64[nodes], -1 for
    none; the leaves are the first nodes. `condition_fired`: how often the empty-item-chunk condition moved a code."""

    order: Int32s
    records: Clustered
    chunks: Chunks
    parent: Int64s
    condition_fired: int

    @property
    def leaves(self) -> int:
        return len(self.chunks.fit_alone)


def partition_records(sets: CodeSets, rules: Rules, workers: Workers) -> Partition:
    """Partition by HorPart, then fit and recut if the rules ask for it."""
    partition = fit_partition if rules.fit else horizontal_partition
    first = partition(sets.offsets, sets.values, rules, workers)
    return improve_partition(sets.offsets, sets.values, first, rules, workers)


def disassociate(
    sets: CodeSets, rules: Rules, workers: Workers, partition: Partition | None = None
) -> Disassociated:
    """Clusters and chunks of a data set (or one partition of it): VerPart of every leaf and Refine over all of them.
    `partition`: given if the records are partitioned already."""
    partition = partition or partition_records(sets, rules, workers)
    near = gather_records(sets.offsets, sets.values, partition, workers)
    leaves = len(near.bounds) - 1
    supports = count_supports(near, rules.n_codes)
    leaf = owners_of(supports.at).astype(np.int32)
    chunks = Chunks(supports.at, supports.code, leaf, np.empty_like(leaf), np.zeros(leaves, np.bool_))
    fired = workers.blocks(leaves, lambda lo, hi: place_leaves(near, supports, lo, hi, rules, chunks))
    parent = refine(near, chunks, rules, workers.blocks)
    return Disassociated(partition.order, near, chunks, parent, sum(fired))


PIECE = pa.schema([("class", pa.int64()), ("piece", pa.binary())])
"""Output of a kernel for a class."""


def disassociate_classes(
    sets: CodeSets,
    class_of: Int32s,
    rules: Rules,
    engine: Engine | None,
    workers: Workers,
    partitions: Sequence[Partition] = (),
) -> tuple[Disassociated, Int64s]:
    """Disassociate each class separately: `class_of`, int32[records], from 0 on without gaps. No cluster and no joint
    cluster crosses a class (docs/methods/whole-patient.md#methods). Returns one data set, with the same bytes on every
    engine, and the class of each node.

    `partitions`: of the classes, given if their records are partitioned already (not on Spark).
    """
    members = np.split(np.argsort(class_of, kind="stable"), np.cumsum(np.bincount(class_of))[:-1])
    if engine is not None and engine.name == "spark":
        return join_classes(_on_engine(sets, class_of, rules, engine), members)
    found: dict[int, Disassociated] = {}

    def run(number: int, helpers: Workers) -> None:
        part = sets.take(members[number])
        found[number] = disassociate(part, rules, helpers, partitions[number] if partitions else None)

    # A class larger than a thread's share uses all threads; the others run in parallel, the largest first.
    sizes = np.array([len(each) for each in members])
    order = np.argsort(-sizes, kind="stable")
    large = int((sizes * workers.threads > len(class_of)).sum())
    for c in order[:large]:
        run(c, workers)
    workers.tasks([partial(run, c, Workers(1)) for c in order[large:]])
    return join_classes([found[c] for c in range(len(members))], members)


def join_classes(parts: Sequence[Disassociated], members: Sequence[AnyArray]) -> tuple[Disassociated, Int64s]:
    """Concatenate the classes' results into one data set: first all leaves, then all joint nodes. Returns it and the
    class of each node."""
    leaves = np.array([part.leaves for part in parts])
    joints = np.array([len(part.parent) for part in parts]) - leaves
    first_leaf, first_joint = offsets_of(leaves), int(leaves.sum()) + offsets_of(joints)

    def renumber(nodes: AnyArray, c: int) -> AnyArray:
        """A class's node numbers among all nodes; -1 stays."""
        moved = np.where(nodes < leaves[c], nodes + first_leaf[c], nodes - leaves[c] + first_joint[c])
        return np.where(nodes < 0, -1, moved).astype(nodes.dtype)

    def join(array: Callable[[Disassociated], AnyArray]) -> AnyArray:
        return np.concatenate([array(part) for part in parts])

    def chain(offsets: Callable[[Disassociated], Int64s]) -> Int64s:
        return offsets_of(join(lambda part: np.diff(offsets(part))))

    parents = [np.split(renumber(part.parent, c), [leaves[c]]) for c, part in enumerate(parts)]
    data = Disassociated(
        np.concatenate([members[c][part.order] for c, part in enumerate(parts)]).astype(np.int32),
        Clustered(
            chain(lambda part: part.records.offsets),
            join(lambda part: part.records.values),
            chain(lambda part: part.records.bounds),
        ),
        Chunks(
            chain(lambda part: part.chunks.at),
            join(lambda part: part.chunks.code),
            np.concatenate([renumber(part.chunks.node, c) for c, part in enumerate(parts)]),
            join(lambda part: part.chunks.chunk),
            join(lambda part: part.chunks.fit_alone),
        ),
        np.concatenate([nodes for nodes, _ in parents] + [nodes for _, nodes in parents]),
        sum(part.condition_fired for part in parts),
    )
    number = np.arange(len(parts))
    return data, np.concatenate([np.repeat(number, leaves), np.repeat(number, joints)])


def _on_engine(sets: CodeSets, class_of: Int32s, rules: Rules, engine: Engine) -> list[Disassociated]:
    record = owners_of(sets.offsets)
    frame = pl.DataFrame(
        {"class": class_of.astype(np.int64)[record], "record": record, "code": sets.values.astype(np.int64)}
    )
    codes = sets.codes

    def kernel(occurrences: pa.Table) -> pa.Table:
        record = occurrences["record"].to_numpy()
        starts = np.concatenate([[True], record[1:] != record[:-1]])
        offsets = np.append(np.flatnonzero(starts), len(record)).astype(np.int64)
        values = occurrences["code"].to_numpy().astype(np.int32)
        own = CodeSets(offsets, values, codes, pl.Series(record[offsets[:-1]]))
        part = disassociate(own, rules, Workers(1))
        return pa.table([[occurrences["class"][0].as_py()], [pickle.dumps(part)]], schema=PIECE)

    pieces = engine.map_groups(engine.frame(frame), "class", kernel, PIECE, order=("record", "code"))
    return [pickle.loads(piece.as_py()) for piece in pieces["piece"]]
