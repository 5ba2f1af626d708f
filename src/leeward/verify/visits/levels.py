"""The guarantee of each level, counted in the released files (docs/methods/visits.md#levels): the records that share
what a visit shows, a code, its whole set, every set of at most m codes, or what records show of source visits."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import Placed
from leeward.verify.flat import Ints, Longs, distinct, find, offsets_of, values_of_groups
from leeward.verify.kernels import count_containers, number_lists
from leeward.verify.manifest import Share
from leeward.verify.visits.layout import VisitLists, apart, read_visits


def number_sets(*parts: VisitLists) -> list[Longs]:
    """The number of each visit's set; equal sets have equal numbers, in all parts (labels of one numbering)."""
    bounds = offsets_of(np.array([len(part) for part in parts]))
    shifts = offsets_of(np.array([len(part.values) for part in parts]))
    offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    numbers = number_lists(
        np.concatenate([*offsets, shifts[-1:]]), np.concatenate([part.values for part in parts])
    )
    return [numbers[low:high] for low, high in pairwise(bounds)]


def people_with(visits: VisitLists, things: Longs, n: int, *, of_visits: bool) -> Longs:
    """Records with each of `n` things, which are numbered for each visit, or for each entry of the visits."""
    record = visits.record if of_visits else np.repeat(visits.record, visits.sizes())
    return np.bincount(distinct(record * n + things) % max(1, n), minlength=n)


def joint(*parts: VisitLists) -> list[VisitLists]:
    """The same visits with one numbering of labels."""
    labels = tuple(sorted(set().union(*(part.labels for part in parts))))
    return [part.with_labels(labels) for part in parts]


def visit_check(wanted: VisitLists, population: VisitLists, k: int) -> Check:
    """G3: every visit's set is held exactly by k records."""
    if wanted is population:
        (theirs,) = number_sets(population)
        mine = theirs
    else:
        mine, theirs = number_sets(*joint(wanted, population))
    n = int(max(mine.max(initial=-1), theirs.max(initial=-1))) + 1
    held = people_with(population, theirs, n, of_visits=True)
    shown = np.bincount(mine, minlength=n) > 0
    return sharing_check("visit_sets", held[shown], k, population, "visit sets", "have exactly")


def code_check(wanted: VisitLists, population: VisitLists, k: int) -> Check:
    """G1: every code occurs in k records."""
    wanted, population = joint(wanted, population)
    n = len(population.labels)
    held = people_with(population, population.values.astype(np.int64), n, of_visits=False)
    shown = np.bincount(wanted.values, minlength=n) > 0
    return sharing_check("codes", held[shown], k, population, "codes", "have")


def sharing_check(name: str, holders: Longs, k: int, population: VisitLists, what: str, verb: str) -> Check:
    """Whether each of several things has k holders among the records of `population`."""
    records = len(distinct(population.record))
    return of_count(
        name,
        int((holders < k).sum()),
        f"Each of {len(holders):,} distinct {what} is shared: at least {k} of {records:,} records {verb} it.",
        f"of {len(holders):,} distinct {what} are shared by fewer than {k} records.",
        {"k": k, "distinct": len(holders), "smallest": int(holders.min()) if len(holders) else None},
    )


def pairs_of(visits: VisitLists) -> Longs:
    """Distinct (record, label) pairs as ascending keys."""
    return distinct(np.repeat(visits.record, visits.sizes()) * max(1, len(visits.labels)) + visits.values)


RECORDS_A_HOLDER = 256
"""A label that more than one record in so many has gets a row of bits."""


def check_containment(name: str, sets: VisitLists, population: VisitLists, k: int) -> Check:
    """The codes of each source visit that its record shows are all in k records. `sets`: the images of source visits,
    under the numbers of the released records (docs/methods/visits.md#containment)."""
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
    return sharing_check(name, counts, k, population, "parts of source visits that records show", "contain")


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


def sets_of_source(source: Source, people: pl.DataFrame, codes: pl.DataFrame) -> VisitLists:
    """The image of every source visit, by the custodian's tables of who is who and what became of each code."""
    labels, label = images_of(source, codes.drop_nulls("label").select("code", "label"))
    patients = source.numbered.patients.to_frame("patient")
    owners = patients.join(people, on="patient", how="left", maintain_order="left")["record"]
    owner_of = owners.cast(pl.Int64).fill_null(-1).to_numpy()
    visit, n = source.numbered.visits(visit_column(source))
    owner = np.full(n, -1)
    owner[visit] = owner_of[source.numbered.patient]
    offsets, entries = values_of_groups(visit, np.where(owner[visit] >= 0, label, np.int32(-1)), n)
    full = np.flatnonzero(np.diff(offsets))
    return VisitLists(owner[full], np.arange(len(full)), np.unique(offsets), entries, labels)


def images_of(source: Source, image: pl.DataFrame) -> tuple[tuple[str, ...], Ints]:
    """(labels, label): the labels of the source's codes, sorted, and the place among them of each event's, -1 for none.
    `image` : code and its label."""
    of_code = dict(image.rows())
    labels = tuple(sorted({of_code[code] for code in source.numbered.codes if code in of_code}))
    place = {label: number for number, label in enumerate(labels)}
    numbers = [place.get(of_code.get(code, ""), -1) for code in source.numbered.codes]
    return labels, np.array(numbers, np.int32)[source.numbered.code]


def visit_column(source: Source) -> str | None:
    return next((name for name in ("visit", "date") if name in source.events.columns), None)


def check_known_codes(name: str, visits: VisitLists, k: int, m: int) -> Check:
    """Visits apart: each set of codes that a visit shows is in one visit each of k records."""
    columns = [f"c{i}" for i in range(min(m, longest(visits)))]
    held = subsets_of(visits, len(columns)).unique().group_by(columns).len()["len"].to_numpy()
    what = f"sets of at most {m} codes of visits"
    return sharing_check(name, held.astype(np.int64), k, visits, what, "show")


def check_codes_shown(
    sets: VisitLists, population: VisitLists, k: int, m: int, name: str = "known_codes"
) -> Check:
    """Each set of a source visit that its record shows, by whatever visit, is in k records."""
    sets, population = joint(sets, population)
    most = min(m, longest(sets, population))
    asked = subsets_of(parts_shown(sets, population), most).select(pl.exclude("record")).unique()
    codes = asked.fill_null(-1).to_numpy()
    offsets = offsets_of((codes >= 0).sum(axis=1))
    counts = count_containers(offsets, codes[codes >= 0].astype(np.int32), *holders_of(population), k)
    what = f"sets of at most {m} codes of source visits that records show"
    return sharing_check(name, counts, k, population, what, "contain")


def longest(*several: VisitLists) -> int:
    """The codes of the largest visit, at least 1: no set of codes has more."""
    return max(1, *(int(visits.sizes().max(initial=1)) for visits in several))


def subsets_of(visits: VisitLists, m: int) -> pl.DataFrame:
    """`record`, `c0` … (ascending; null after the last) of every set of at most m codes of each visit."""
    sizes = visits.sizes()
    parts = []
    for length in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == length)
        block = visits.values[visits.offsets[rows][:, None] + np.arange(length)]
        for size in range(1, min(m, int(length)) + 1):
            for chosen in combinations(range(int(length)), size):
                columns: dict[str, Any] = {"record": visits.record[rows]}
                columns |= {f"c{i}": block[:, place] for i, place in enumerate(chosen)}
                columns |= {f"c{i}": pl.Series([None] * len(rows), dtype=pl.Int32) for i in range(size, m)}
                parts.append(pl.DataFrame(columns))
    schema = {"record": pl.Int64} | {f"c{i}": pl.Int32 for i in range(m)}
    return pl.concat(parts, rechunk=False) if parts else pl.DataFrame(schema=schema)


def level_checks(
    share: Share, visits: VisitLists, k: int, level: str, placed: Placed | None = None
) -> list[Check]:
    """The guarantee: what `visits` show is shared by k records, of one class where there are demographics (`placed`;
    the labels of the visits are apart by class then). Of merged records, what they show of the source visits that the
    custodian keeps."""
    if level == "visit":
        return [visit_check(visits, visits, k)]
    if level == "code":
        return [code_check(visits, visits, k)]
    m, checks = share.manifest["parameters"].get("m"), []
    if level == "codes":
        stated = isinstance(m, int) and m >= 2 and share.manifest["guarantee"].get("m") == m
        detail = f"m = {m}, in parameters and guarantee." if stated else "no m >= 2 is stated."
        checks.append(Check("m", stated, detail))
        if not stated:
            return checks
        if not share.manifest["parameters"].get("merge_visits"):
            return [*checks, check_known_codes("known_codes", visits, k, m)]
    file = share.kept("visit_sets.parquet")
    if file is None:
        raise BadInput(
            f"level `{level}` is about visit sets that the merged release does not "
            "show: verify the whole release folder, with custody/data/visit_sets.parquet."
        )
    kept = read_visits(file)
    sets, visits = joint(kept if placed is None else apart(kept, placed), visits)
    counted = (
        check_codes_shown(sets, visits, k, m)
        if level == "codes"
        else check_containment("contained_sets", sets, visits, k)
    )
    return [*checks, unions_of_sets(sets, visits), counted]


def one_set_a_record(visits: VisitLists) -> Check:
    """Merged releases have one set per record."""
    return of_count(
        "one_set_a_record",
        len(visits) - len(distinct(visits.record)),
        "Visits are merged: one set per record.",
        "records have several rows although visits are merged.",
    )


def unions_of_sets(sets: VisitLists, population: VisitLists) -> Check:
    """The sets of merged releases are made of those that the custodian keeps."""
    return of_count(
        "unions_of_visit_sets",
        len(np.setdiff1d(pairs_of(population), pairs_of(sets), assume_unique=True)),
        "Every code of a record is in one of its visit sets.",
        "codes are in a record and in none of its visit sets.",
    )
