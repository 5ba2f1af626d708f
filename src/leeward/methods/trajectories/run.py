"""From trajectories to clusters: one partition on all threads, or many parts on whatever engine there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from leeward.methods.trajectories import (
    cells,
    clustering,
    diversity,
    improvement,
    losses,
    partitioning,
    problem,
)
from leeward.methods.trajectories.clustering import Cluster
from leeward.methods.trajectories.improvement import Progress
from leeward.methods.trajectories.problem import Problem
from leeward.methods.trajectories.records import Group, Records
from leeward.methods.trajectories.space import Space

if TYPE_CHECKING:
    from leeward.engine import Engine

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("cluster", pa.int32()),
        ("record", pa.int64()),
        ("codes", pa.list_(pa.int32())),
        ("ages", pa.list_(pa.int32())),
    ]
)
"""A clustered part: its records in joining order; the published pairs are with the first of each cluster."""


@dataclass(frozen=True)
class Settings:
    """What clustering needs to know, plain enough to travel to another process."""

    k: int
    joining: str
    most: int = clustering.NO_LIMIT
    improve: bool = False
    rounds: int = 6
    seconds: float = 0.0
    realign: bool = False
    diversity: int = 0
    clustering: str = "alignment"
    in_order: bool = True


def clustered(
    records: Records,
    space: Space,
    settings: Settings,
    threads: int,
    say: Callable[[str], None] | None = None,
    part: str = "",
    searched: list[Progress] | None = None,
) -> list[Group]:
    """All records as one partition. `say` reports how far the local search is; `part` names this one; `searched` gets
    what the search did.

    With `improve` and a diversity, groups are made diverse first, as far as these records allow, and stay so.
    """
    if settings.clustering == "cells":
        return cells.publish(
            cells.cluster(records, space, settings.k, settings.most), records, space, settings.in_order
        )
    p = problem.make(records.offsets, records.codes, records.ages, space, settings.k, records.group)
    clusters = clustering.mdav(p, settings.k, settings.joining, threads, settings.most)
    if settings.realign and not settings.improve:
        clusters = improvement.realign(p, clusters, settings.k)
    if settings.improve:
        tell = None if say is None else _spoken(say, part, settings.rounds)
        done = improvement.Progress()
        if settings.diversity:
            clusters = _diverse(p, clusters, records, space, settings)
        clusters = improvement.improve(
            p,
            clusters,
            settings.k,
            settings.rounds,
            settings.seconds,
            threads,
            done,
            tell,
            settings.diversity,
        )
        if searched is not None:
            searched.append(done)
    members = clustering.record_members(p, clusters)
    return [Group(m, c.codes, c.ages) for m, c in zip(members, clusters, strict=True)]


def _diverse(
    p: Problem, clusters: list[Cluster], records: Records, space: Space, settings: Settings
) -> list[Cluster]:
    assert records.group is not None  # for the types: the diversity of a column was asked for
    if int(np.bincount(records.group).max()) * settings.diversity > len(records):
        return clusters  # a part by itself need not be diverse; the whole is repaired at the end
    members = clustering.record_members(p, clusters)
    groups = [Group(m, c.codes, c.ages) for m, c in zip(members, clusters, strict=True)]
    entry = np.empty(len(records), np.int32)
    entry[p.records] = np.repeat(np.arange(len(p), dtype=np.int32), np.diff(p.record_offsets))
    groups = diversity.diversify(groups, records, space, settings.diversity, settings.k)
    return [Cluster(entry[group.members], group.codes, group.ages) for group in groups]


def _spoken(say: Callable[[str], None], part: str, rounds: int) -> Callable[[int, float, float], None]:
    width = 12

    def tell(done: int, left: float, loss: float) -> None:
        filled = width * done // rounds
        bar = "█" * filled + "░" * (width - filled)
        say(f"Improving{part} {bar} {done} of {rounds} rounds, at most {left:.0f} s left, loss {loss:.4f}")

    return tell


def in_parts(
    records: Records,
    part: Ints,
    space: Space,
    settings: Settings,
    engine: Engine,
    searched: list[Progress] | None = None,
) -> list[Group]:
    """Each part by itself, on the engine; groups in the order of their parts.

    With more than one part, each cluster is then published from its best starting member, which gives back some of
    what the cuts cost; one part alone stays the exact answer of MDAV. The seconds of the local search are shared out
    among the parts; `searched` gets what it did, if the work is done on this machine.
    """
    import polars as pl

    columns: dict[str, Any] = {
        "part": part,
        "record": np.arange(len(records), dtype=np.int64),
        "group": np.full(len(records), -1, np.int32) if records.group is None else records.group,
    }
    frame = pl.DataFrame(columns).with_columns(
        _lists("codes", records.codes, records.offsets), _lists("ages", records.ages, records.offsets)
    )
    parts = int(part.max()) + 1
    share = min(1.0, engine.threads / parts)
    settings = replace(settings, realign=parts > 1, seconds=settings.seconds * share)
    here = searched if engine.name == "local" else None
    kernel = _kernel(space, settings, records.group is not None, reporter_of(engine), here)
    table = engine.map_groups(frame, "part", kernel, SCHEMA, ["record"])
    return groups_of(table)


def reporter_of(engine: Engine) -> Callable[[str], None] | None:
    """The reporter of a long step's progress: none on engines that work elsewhere."""
    from leeward.engine import LocalEngine

    return engine.say if isinstance(engine, LocalEngine) else None


def _lists(name: str, values: Ints, offsets: Longs) -> Any:
    import polars as pl

    return pl.Series(name, pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values)))


def _kernel(
    space: Space,
    settings: Settings,
    grouped: bool,
    say: Callable[[str], None] | None,
    searched: list[Progress] | None,
) -> Callable[[pa.Table], pa.Table]:
    def kernel(table: pa.Table) -> pa.Table:
        codes = table.column("codes").combine_chunks()
        ages = table.column("ages").combine_chunks()
        offsets = codes.offsets.to_numpy().astype(np.int64)
        records = Records(
            offsets - offsets[0],
            codes.flatten().to_numpy().astype(np.int32),
            ages.flatten().to_numpy().astype(np.int32),
            table.column("group").to_numpy().astype(np.int32) if grouped else None,
        )
        part = int(table.column("part")[0].as_py())
        groups = clustered(records, space, settings, 1, say, f" part {part + 1}", searched)
        return table_of(groups, table.column("record").to_numpy(), part)

    return kernel


def table_of(groups: list[Group], names: Longs, part: int) -> pa.Table:
    """Groups as rows of SCHEMA; `names` numbers the records."""
    sizes = np.array([len(group.members) for group in groups])
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    total = int(sizes.sum())

    def lists(values: list[Ints]) -> pa.Array:
        lengths = np.zeros(total, np.int64)
        lengths[firsts] = [len(v) for v in values]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(values).astype(np.int32)))

    return pa.table(
        {
            "part": pa.array(np.full(total, part, np.int32)),
            "cluster": pa.array(np.repeat(np.arange(len(groups), dtype=np.int32), sizes)),
            "record": pa.array(names[np.concatenate([group.members for group in groups])]),
            "codes": lists([group.codes for group in groups]),
            "ages": lists([group.ages for group in groups]),
        },
        schema=SCHEMA,
    )


def groups_of(table: pa.Table) -> list[Group]:
    """The groups of rows of SCHEMA."""
    table = table.combine_chunks()
    part, cluster = table.column("part").to_numpy(), table.column("cluster").to_numpy()
    changes = (np.diff(part) != 0) | (np.diff(cluster) != 0)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(part)]])
    members = table.column("record").to_numpy()
    parts_of = []
    for name in ("codes", "ages"):
        column = table.column(name).combine_chunks()
        ends = column.offsets.to_numpy()
        parts_of.append((ends, column.values.to_numpy()))
    (ends, codes), (_, ages) = parts_of
    return [
        Group(members[a:b], codes[ends[a] : ends[a + 1]], ages[ends[a] : ends[a + 1]])
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]


def describe_parts(records: Records, space: Space, largest: int) -> Ints:
    """The part of each record."""
    return partitioning.parts(records.offsets, records.codes, records.ages, space, largest)


HALVING_SAMPLE = 12_000
"""Records on which the cost of one more halving is measured."""


def cost_of_halving(records: Records, space: Space, settings: Settings, threads: int) -> float:
    """How much more is lost (relative, ILM + ALM) when a sample is clustered in two halves instead of at once.

    The sample is every n-th record by patient number, so that the figure is the same on every run.
    """
    step = max(1, len(records) // HALVING_SAMPLE)
    sample = records.take(np.arange(0, len(records), step)[:HALVING_SAMPLE])
    plain = Settings(settings.k, settings.joining, settings.most)
    halved = replace(plain, realign=True)
    whole = losses.of(clustered(sample, space, plain, threads), sample.lengths(), space).total
    part = describe_parts(sample, space, (len(sample) + 1) // 2)
    groups: list[Group] = []
    for number in range(int(part.max()) + 1):
        chosen = np.flatnonzero(part == number)
        halves = clustered(sample.take(chosen), space, halved, threads)
        groups += [Group(chosen[half.members], half.codes, half.ages) for half in halves]
    return losses.of(groups, sample.lengths(), space).total / whole - 1
