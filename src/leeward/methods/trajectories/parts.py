"""Cluster trajectories into groups: one partition on all threads, or many parts on the engine.

Beyond N², similar trajectories are clustered apart. Records are halved until parts are small enough, each time by
balanced 2-means in the space where the inner product of two records is the average saving of their pairs if published
together: a code (an age) has a coordinate for each node above it, as long as the square root of what
the node saves more than its parent. So a record's coordinate along an axis is a sum of one number for each
of its pairs, and no coordinates are stored. Lengths count too: grouped with a short trajectory, a long one loses pairs.

Axes are found on a sample (every n-th record); sums are made one after the other, in a fixed order, and coordinates
are rounded before they are compared: the parts are the same whatever the threads or the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import Bools, Float64s, Int32s, Int64s, offsets_of
from leeward.methods.trajectories import cells, clustering
from leeward.methods.trajectories.hierarchies import Axis, Space
from leeward.methods.trajectories.records import Group, Records

if TYPE_CHECKING:
    from leeward.engine import Engine

LARGEST = 65_000
"""Most records clustered at once: N² work a part, so that a million records take minutes."""

SAMPLE = 20_000
"""Records on which an axis is found."""

POWER_STEPS, MEANS_STEPS = 6, 10
"""Power iterations for the axis of most spread, where 2-means begins, and iterations of 2-means."""

LENGTH_WEIGHT = 0.02
"""Weight of a product of log2(length), in savings of an exact match: 0.005–0.05 give the same loss within 0.1 %."""

ROUNDED = 2.0**20

SCHEMA = pa.schema(
    [("records", pa.list_(pa.int64())), ("codes", pa.list_(pa.int32())), ("ages", pa.list_(pa.int32()))]
)
"""The groups of a part: records in joining order, published pairs."""


@dataclass(frozen=True)
class Settings:
    """Settings of clustering, serializable for other processes. `most` : records of one sensitive value in a group."""

    k: int
    normalised: bool = True
    cells: bool = False
    in_order: bool = True
    most: int = clustering.NO_LIMIT

    @property
    def largest(self) -> int:
        return max(cells.LARGEST if self.cells else LARGEST, 4 * self.k)


def cluster(
    records: Records, space: Space, settings: Settings, threads: int, realign: bool = False
) -> list[Group]:
    """Cluster all records as one partition; `realign`: then align each group again from its best starting member."""
    if settings.cells:
        groups = cells.cluster(records, space, settings.k, settings.most)
        return cells.publish(groups, records, space, settings.in_order)
    p = clustering.make_problem(records, space, settings.k)
    clusters = clustering.mdav(p, settings.k, settings.normalised, threads, settings.most)
    return clustering.groups_of(p, clustering.realign(p, clusters, settings.k) if realign else clusters)


def cluster_parts(
    records: Records, part: Int32s, space: Space, settings: Settings, engine: Engine
) -> list[Group]:
    """Cluster each part separately, on the engine; groups in the order of their parts. With more than one part, each
    cluster is then aligned again from its best starting member, which recovers some of the loss from cutting; a single
    part keeps the exact result of MDAV, and runs on all threads of this machine."""
    several = int(part.max()) > 0
    if not several and engine.name == "local":
        return cluster(records, space, settings, engine.threads)
    grouped = records.group is not None
    frame = pl.DataFrame(
        {
            "part": part,
            "record": np.arange(len(records), dtype=np.int64),
            "group": records.group if grouped else np.full(len(records), -1, np.int32),
            "codes": _lists(records.codes, records.offsets),
            "ages": _lists(records.ages, records.offsets),
        }
    )

    def kernel(table: pa.Table) -> pa.Table:
        (offsets, codes), (_, ages) = (_flat(table, name) for name in ("codes", "ages"))
        own = Records(offsets, codes, ages, table.column("group").to_numpy() if grouped else None)
        return _table_of(cluster(own, space, settings, 1, several), table.column("record").to_numpy())

    found = engine.map_groups(frame, "part", kernel, SCHEMA, ["record"])
    (bounds, members), (starts, codes), (_, ages) = (_flat(found, name) for name in SCHEMA.names)
    return [
        Group(members[bounds[g] : bounds[g + 1]], codes[here], ages[here])
        for g in range(len(found))
        for here in [slice(starts[g], starts[g + 1])]
    ]


def _table_of(groups: Sequence[Group], names: Int64s) -> pa.Table:
    columns = [names[g.members] for g in groups], [g.codes for g in groups], [g.ages for g in groups]
    lists = [
        pa.ListArray.from_arrays(
            offsets_of([len(v) for v in values]).astype(np.int32), np.concatenate(values)
        )
        for values in columns
    ]
    return pa.table(lists, schema=SCHEMA)


def _lists(values: Int32s, offsets: Int64s) -> pl.Series:
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values)))


def _flat(table: pa.Table, name: str) -> tuple[Int64s, Any]:
    column = table.column(name).combine_chunks()
    offsets = column.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], column.flatten().to_numpy()


def parts_of(classes: Sequence[Int64s], records: Records, space: Space, largest: int) -> Int32s:
    """The part of each record, int32: its class, cut into parts where that has more than `largest` records."""
    part = np.empty(len(records), np.int32)
    waiting, made = [np.asarray(members) for members in reversed(classes)], 0
    while waiting:
        members = waiting.pop()
        if len(members) <= largest:
            part[members] = made
            made += 1
            continue
        axis = _halving_axis(records.take(members[:: -(-len(members) // SAMPLE)]), space)
        order = members[np.argsort(_round(_along(records.take(members), *axis)), kind="stable")]
        middle = len(order) // 2
        waiting += [np.sort(order[middle:]), np.sort(order[:middle])]
    return part


def _along(records: Records, code_scores: Float64s, age_scores: Float64s, per_size: float) -> Float64s:
    """The coordinate of each record: the mean score of its pairs plus a term for its length."""
    scores = code_scores[records.codes] + age_scores[records.ages]
    lengths = records.lengths()
    return np.add.reduceat(scores, records.offsets[:-1]) / lengths + per_size * np.log2(lengths)


def _sum(records: Records, space: Space, weights: Float64s) -> tuple[Float64s, Float64s, float]:
    """The sum of the records, weighted by `weights`, as scores for `_along`."""
    lengths = records.lengths()
    each = np.repeat(weights / lengths, lengths)
    return (
        _scores(space.code, records.codes, each, space.unit),
        _scores(space.age, records.ages, each, space.unit),
        LENGTH_WEIGHT * float(np.cumsum(weights * np.log2(lengths))[-1]),
    )


def _halving_axis(sample: Records, space: Space) -> tuple[Float64s, Float64s, float]:
    """From the middle of one half to the middle of the other, once 2-means has settled."""
    n = len(sample)
    # Any start with both signs will do; it must be the same on every run.
    at = np.random.Generator(np.random.Philox(n)).standard_normal(n)
    for _ in range(POWER_STEPS):
        at = at - np.cumsum(at)[-1] / n
        at = _along(sample, *_sum(sample, space, at / max(float(np.abs(at).max()), 1e-300)))
    upper = _upper_half(at)
    for _ in range(MEANS_STEPS):
        axis = _sum(sample, space, np.where(upper, 1.0, -1.0))
        found = _upper_half(_along(sample, *axis))
        if np.array_equal(found, upper):
            break
        upper = found
    return axis


def _upper_half(at: Float64s) -> Bools:
    upper = np.zeros(len(at), np.bool_)
    upper[np.argsort(_round(at), kind="stable")[len(at) // 2 :]] = True
    return upper


def _round(at: Float64s) -> Float64s:
    """Round relative to the largest value, so that the last bits of a sum cannot reorder equal records."""
    return np.rint(at * (ROUNDED / max(float(np.abs(at).max()), 1e-300)))


def _scores(axis: Axis, leaves: Int32s, each: Float64s, unit: int) -> Float64s:
    """Saving of every leaf with all `leaves`, weighted by `each`, in savings of an exact match."""
    tree = axis.hierarchy
    nodes = np.arange(len(tree))
    total = np.concatenate([[0.0], np.cumsum(np.bincount(leaves, each, len(tree)))])
    below = total[tree.end + 1] - total[nodes]
    gain = np.maximum(axis.gain, 0) / unit
    scores = (gain - np.where(tree.parent >= 0, gain[tree.parent], 0)) * below
    for depth in range(1, int(tree.depth.max()) + 1):
        here = np.flatnonzero(tree.depth == depth)
        scores[here] += scores[tree.parent[here]]
    return scores
