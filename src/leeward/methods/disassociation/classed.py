"""Disassociation inside classes of demographics: no cluster and no joint cluster crosses a class
(docs/methods/whole-patient.md#methods).

Each class is disassociated by itself with the same kernels, in threads here or as groups on Spark, and the flat results
are put one after the other, so that the bytes do not depend on where they were made. Payload is shuffled inside
clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import AnyArray, Int32s, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.partition import Partition, partition_records
from leeward.methods.disassociation.pipeline import Disassociated, disassociate
from leeward.methods.disassociation.publish import Published, facts_of, publish
from leeward.methods.disassociation.refine import SharedChunks
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.workers import Workers
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics.search import Lost
    from leeward.engine import Engine

ARRAYS = tuple(each.name for each in fields(Disassociated) if each.name not in ("shared", "condition_fired"))
SHARED = tuple(each.name for each in fields(SharedChunks) if each.name != "passes")
NUMBERS = ("condition_fired", "passes")
PIECE = pa.schema(
    [("class", pa.int64())]
    + [(name, pa.binary()) for name in (*ARRAYS, *SHARED)]
    + [(name, pa.int64()) for name in NUMBERS]
)
"""What a kernel returns: one row, the arrays as they are in memory."""

PAYLOAD = pa.schema([("node", pa.int64()), ("column", pa.string()), ("value", pa.string())])

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


def lost_in(sets: CodeSets, rules: Rules, workers: Workers) -> Lost:
    """Occurrences in item chunks when each of some sets of records is disassociated as a class."""

    def lost(parts: Sequence[AnyArray]) -> list[int]:
        counts = [0] * len(parts)

        def run(i: int) -> Callable[[], object]:
            def task() -> None:
                part, alone = sets.take(parts[i]), Workers(1)
                data = disassociate(part, rules, alone, partition_records(part, rules, alone, WEIGHT))
                counts[i] = facts_of(publish(data, sets.codes, Randomness.of(0)))["item_occurrences"]

            return task

        workers.tasks([run(i) for i in sorted(range(len(parts)), key=lambda i: -len(parts[i]))])
        return counts

    return lost


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
