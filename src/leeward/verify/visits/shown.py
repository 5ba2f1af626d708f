"""What a release shows of source visits: by whatever visit of the same record a code is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source
from leeward.verify.numbered_kernels import values_of_groups
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
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    chosen = parts.take(first)
    starts, holders = holders_of(population)
    counts = count_containers(chosen.offsets, chosen.values, starts, holders, k)
    return shared(name, counts, k, population, "parts of source visits that records show", "contain")


def parts_shown(sets: VisitLists, population: VisitLists) -> VisitLists:
    """The codes of each set that its record shows; sets of which nothing is shown are left out."""
    width = max(1, len(population.labels))
    record = np.repeat(sets.record, sets.sizes())
    pairs, asked = pairs_of(population), record * width + sets.values
    kept = np.zeros(len(asked), np.bool_)
    if len(pairs):
        kept = pairs[np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)] == asked
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
    image = dict(codes.drop_nulls("label").select("code", "label").rows())
    numbered = source.numbered
    labels = tuple(sorted({image[code] for code in numbered.codes if code in image}))
    place = {label: number for number, label in enumerate(labels)}
    column = next((name for name in ("visit", "date") if name in source.events.columns), None)
    label = np.array([place.get(image.get(code, ""), -1) for code in numbered.codes], np.int32)[numbered.code]
    owners = numbered.patients.to_frame("patient").join(
        people, on="patient", how="left", maintain_order="left"
    )
    of_patient = owners["record"].cast(pl.Int64).fill_null(-1).to_numpy()
    visit, n = numbered.visits(column)
    owner = np.full(n, -1)
    owner[visit] = of_patient[numbered.patient]
    offsets, entries = values_of_groups(visit, np.where(owner[visit] >= 0, label, np.int32(-1)), n)
    full = np.flatnonzero(np.diff(offsets))
    return VisitLists(owner[full], np.arange(len(full)), np.unique(offsets), entries, labels)
