"""What a release shows of source visits: by whatever visit of the same record a code is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, Source
from leeward.verify.flat import Ints, Longs, distinct, find, offsets_of, values_of_groups
from leeward.verify.visits.counting import check_shared, joint, number_sets, pairs_of, people_with
from leeward.verify.visits.kernels import count_containers
from leeward.verify.visits.reading import VisitLists

RECORDS_A_HOLDER = 256
"""A label that more than one record in so many has gets a row of bits."""


def check_contained(name: str, sets: VisitLists, population: VisitLists, k: int) -> Check:
    """The codes of each source visit that its record shows are all in k records.

    sets : the images of source visits, under the numbers of the released records (docs/methods/visits.md#containment).
    """
    sets, population = joint(sets, population)
    parts = parts_shown(sets, population)
    (numbers,) = number_sets(parts)
    n = int(numbers.max(initial=-1)) + 1
    # Records that show the same of one of their own visits contain it: only for the other parts others are looked for.
    counts = np.minimum(people_with(parts, numbers, n, of_visits=True), k)
    first = np.empty(n, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    few = np.flatnonzero(counts < k)
    chosen = parts.take(first[few])
    counts[few] = count_containers(chosen.offsets, chosen.values, *holders_of(population), k)
    return check_shared(name, counts, k, population, "parts of source visits that records show", "contain")


def parts_shown(sets: VisitLists, population: VisitLists) -> VisitLists:
    """The codes of each set that its record shows; sets of which nothing is shown are left out."""
    width = max(1, len(population.labels))
    record = np.repeat(sets.record, sets.sizes())
    pairs, asked = pairs_of(population), record * width + sets.values
    kept = find(pairs, asked, -1) >= 0
    sizes = np.bincount(np.repeat(np.arange(len(sets)), sets.sizes())[kept], minlength=len(sets))
    full = np.flatnonzero(sizes)
    offsets = offsets_of(sizes[full])
    return VisitLists(sets.record[full], sets.visit[full], offsets, sets.values[kept], sets.labels)


def holders_of(population: VisitLists) -> tuple[Longs, Ints, Ints, NDArray[np.uint64]]:
    """(starts, records, row of, bits): the records with label c, numbered from 0, ascending, are
    records[starts[c]:starts[c + 1]]; where more than one record in `RECORDS_A_HOLDER` has c, bits[row of c] has a bit
    for each record (else the row is -1)."""
    width = max(1, len(population.labels))
    people = distinct(population.record)
    record = np.repeat(np.searchsorted(people, population.record), population.sizes())
    starts, records = values_of_groups(population.values, record.astype(np.int32), width)
    frequent = np.flatnonzero(np.diff(starts) * RECORDS_A_HOLDER > len(people))
    row_of = np.full(width, -1, np.int32)
    row_of[frequent] = np.arange(len(frequent))
    bits = np.zeros((len(frequent), len(people) // 64 + 1), np.uint64)
    for row, label in enumerate(frequent):
        has = np.zeros(bits.shape[1] * 64, np.bool_)
        has[records[starts[label] : starts[label + 1]]] = True
        bits[row] = np.packbits(has, bitorder="little").view(np.uint64)
    return starts, records, row_of, bits


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
