"""What a release shows of source visits: by whatever visit of the same record a code is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source
from leeward.verify.visits.counting import joint, number_sets, pairs_of, shared
from leeward.verify.visits.kernels import count_containers
from leeward.verify.visits.reading import Longs, VisitLists


def contained_check(name: str, sets: VisitLists, population: VisitLists, k: int) -> Check:
    """The codes of each source visit that its record shows are all in k records.

    sets : the images of source visits, under the numbers of the released records (docs/methods/visits.md#containment).
    """
    sets, population = joint(sets, population)
    parts = parts_shown(sets, population)
    (numbers,) = number_sets(parts)
    chosen = parts.take(np.unique(numbers, return_index=True)[1])
    starts, holders = holders_of(population)
    counts = count_containers(chosen.offsets, chosen.values, starts, holders, k)
    return shared(name, counts, k, population, "parts of source visits that records show", "contain")


def parts_shown(sets: VisitLists, population: VisitLists) -> VisitLists:
    """The codes of each set that its record shows; sets of which nothing is shown are left out."""
    width = max(1, len(population.labels))
    record = np.repeat(sets.record, sets.sizes())
    kept = np.isin(record * width + sets.values, pairs_of(population))
    sizes = np.bincount(np.repeat(np.arange(len(sets)), sets.sizes())[kept], minlength=len(sets))
    full = np.flatnonzero(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[full])]).astype(np.int64)
    return VisitLists(sets.record[full], sets.visit[full], offsets, sets.values[kept], sets.labels)


def holders_of(population: VisitLists) -> tuple[Longs, Longs]:
    """(starts, records): the records with label c, ascending, are records[starts[c]:starts[c + 1]]."""
    width = max(1, len(population.labels))
    pairs = pairs_of(population)
    order = np.argsort(pairs % width, kind="stable")
    starts = np.searchsorted((pairs % width)[order], np.arange(width + 1))
    return starts.astype(np.int64), pairs[order] // width


def sets_of_source(source: Source, folder: Path, codes: pl.DataFrame) -> VisitLists:
    """The image of every source visit, by the custodian's files of who is who and what became of each code."""
    people = pl.read_parquet(folder / "patients.parquet").select("record", "patient")
    codes = codes.select(pl.col("code").cast(pl.String), "label")
    events = source.events
    column = next((name for name in ("visit", "date") if name in events.columns), None)
    alone = pl.int_range(pl.len()).cast(pl.String)
    of_visit = pl.lit("") if column is None else pl.col(column).cast(pl.String)
    seen = (
        events.select(
            "patient",
            pl.col("code").cast(pl.String),
            own=pl.lit("") if column is None else pl.when(pl.col(column).is_null()).then(alone),
            visit=of_visit,
        )
        .join(codes.drop_nulls("label"), on="code", how="inner")
        .join(people, on="patient", how="inner")
        .select("record", "visit", "own", "label")
        .unique()
        .sort("record", "visit", "own", "label")
    )
    labels = tuple(sorted(seen["label"].unique()))
    visit = seen.select(pl.struct("record", "visit", "own").rle_id()).to_series().to_numpy()
    first = np.flatnonzero(np.diff(visit, prepend=-1))
    return VisitLists(
        seen["record"].to_numpy()[first],
        np.arange(len(first), dtype=np.int64),
        np.append(first, len(visit)).astype(np.int64),
        seen["label"].cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.int32),
        labels,
    )
