"""The attacker of visits: counts from the files how many patients share each visit's set; compares with the source.

Written from the definitions (Heatherly et al. 2013; ALGORITHMS §5.2) and shares nothing with the method. The
custodian's files are used as witnesses only: they say where to look, and what they say is checked.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.release.visit_lists import VisitLists, read_visit_lists
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.manifest import Share

LEVELS = ("code", "containment", "visit")

Longs = NDArray[np.int64]


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a release of visits, or of a cohort drawn from one.

    Raises
    ------
    BadInput
        What the guarantee speaks of is not at hand: the master of an extract, the custodian's visit sets at level
        `containment`.
    """
    checks, visits = layout(share)
    if visits is None:
        return checks
    k, level = share.guarantee("k"), str(share.manifest["parameters"].get("level"))
    if level not in LEVELS:
        return [*checks, Check("level", False, f"the manifest's level is none of {', '.join(LEVELS)}.")]
    if share.manifest["parameters"].get("extract"):
        from leeward.verify.visits.cohorts import extract_checks

        return [*checks, *extract_checks(share, visits, k, level)]
    checks += level_checks(share, visits, visits, k, level)
    if source is not None:
        from leeward.verify.visits.source import source_checks

        checks += source_checks(share, visits, source)
    return checks


def layout(share: Share) -> tuple[list[Check], VisitLists | None]:
    """Both tables have their columns and types, records and visits are numbered, sets are sorted."""
    try:
        schema = pq.read_schema(share.data("visits.parquet"))
        numbers = pq.read_table(share.data("records.parquet"))
        payload = [str(name) for name in share.manifest["parameters"].get("payload", [])]
        wrong = schema.names != ["record", "visit", "codes"] or numbers.column_names != ["record", *payload]
        if wrong or not pa.types.is_list(schema.field("codes").type):
            detail = "visits.parquet or records.parquet has other columns than the contract and the manifest's payload."
            return [Check("layout", False, detail)], None
        visits = read_visit_lists(share.data("visits.parquet"))
    except (OSError, pa.ArrowInvalid):
        return [
            Check("layout", False, "visits.parquet or records.parquet is missing or cannot be read.")
        ], None
    records = int(share.manifest["records"])
    whole = np.array_equal(np.sort(numbers["record"].to_numpy()), np.arange(records))
    checks = [
        Check("layout", True, "visits.parquet and records.parquet have the columns of the contract."),
        Check(
            "records_numbered",
            whole,
            "Records are numbered from 0, each once."
            if whole
            else "Record numbers have gaps, repeats or a wrong count.",
        ),
        *_visit_checks(visits, records),
    ]
    return checks, visits if all(each.passed for each in checks) else None


def _visit_checks(visits: VisitLists, records: int) -> list[Check]:
    strangers = int(np.count_nonzero((visits.record < 0) | (visits.record >= records)))
    return [
        of_count(
            "visits_of_records", strangers, "Every visit belongs to a record.", "visits belong to no record."
        ),
        of_count(
            "visits_numbered",
            _misnumbered(visits),
            "Visits are numbered from 0 inside each record.",
            "records have visit numbers with gaps or repeats.",
        ),
        of_count(
            "sets_sorted",
            _disordered(visits) + visits.nulls,
            "Every visit holds distinct codes in ascending order.",
            "visits have no codes, null codes, repeats or another order.",
        ),
    ]


def _misnumbered(visits: VisitLists) -> int:
    """Records whose visits are not numbered 0, 1, …, in whatever order they stand."""
    record, visit = visits.record, visits.visit
    same = record[1:] == record[:-1]
    if not bool(((record[1:] > record[:-1]) | (same & (visit[1:] > visit[:-1]))).all()):
        order = np.lexsort((visit, record))
        record, visit = record[order], visit[order]
    first = np.ones(len(record), np.bool_)
    first[1:] = record[1:] != record[:-1]
    starts = np.flatnonzero(first)
    wanted = np.arange(len(record)) - np.repeat(starts, np.diff(np.append(starts, len(record))))
    return len(np.unique(record[visit != wanted]))


def _disordered(visits: VisitLists) -> int:
    """Visits without codes, or with codes that do not ascend."""
    sizes = visits.sizes()
    falls = np.zeros(len(visits.values), np.bool_)
    falls[1:] = visits.values[1:] <= visits.values[:-1]
    falls[visits.offsets[:-1][sizes > 0]] = False  # a visit's first code follows none
    at = np.searchsorted(visits.offsets, np.flatnonzero(falls), side="right") - 1
    return len(np.unique(at)) + int(np.count_nonzero(sizes == 0))


def level_checks(share: Share, wanted: VisitLists, population: VisitLists, k: int, level: str) -> list[Check]:
    """The guarantee: what `wanted` shows is shared by k records of `population` (itself, or the master)."""
    if level == "visit":
        return [visit_check(wanted, population, k)]
    if level == "code":
        return [code_check(wanted, population, k)]
    return containment_checks(share, population, k)


def number_sets(*parts: VisitLists) -> list[Longs]:
    """The number of each visit's set; equal sets have equal numbers, in all parts (labels of one numbering)."""
    from leeward.verify.visits.kernels import number_lists

    bounds = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    shifts = np.concatenate([[0], np.cumsum([len(part.values) for part in parts])])
    offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    room = 1 << max(4, int(2 * bounds[-1]).bit_length())
    numbers, _ = number_lists(
        np.concatenate([*offsets, shifts[-1:]]),
        np.concatenate([part.values for part in parts]),
        np.full(room, -1, np.int64),
    )
    return [numbers[low:high] for low, high in pairwise(bounds)]


def people_with(visits: VisitLists, things: Longs, n: int, *, of_visits: bool) -> Longs:
    """Records with each of `n` things, which are numbered for each visit, or for each entry of the visits."""
    from leeward.verify.visits.kernels import count_people

    count = np.zeros(n, np.int64)
    record, offsets = visits.record, np.arange(len(visits) + 1) if of_visits else visits.offsets
    if bool((record[1:] < record[:-1]).any()):  # visits of a record must stand together
        order = np.argsort(record, kind="stable")
        if of_visits:
            record, things = record[order], things[order]
        else:
            ordered = visits.take(order)
            record, offsets, things = ordered.record, ordered.offsets, ordered.values.astype(np.int64)
    count_people(record, offsets, things, count)
    return count


def joint(*parts: VisitLists) -> list[VisitLists]:
    """The same visits with one numbering of labels."""
    labels = tuple(sorted(set().union(*(part.labels for part in parts))))
    return [part.relabelled(labels) for part in parts]


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
    return _shared("visit_sets", held[shown], k, population, "visit sets", "have exactly")


def code_check(wanted: VisitLists, population: VisitLists, k: int) -> Check:
    """G1: every code occurs in k records."""
    wanted, population = joint(wanted, population)
    n = len(population.labels)
    held = people_with(population, population.values.astype(np.int64), n, of_visits=False)
    shown = np.bincount(wanted.values, minlength=n) > 0
    return _shared("codes", held[shown], k, population, "codes", "have")


def _shared(name: str, holders: Longs, k: int, population: VisitLists, what: str, verb: str) -> Check:
    smallest = int(holders.min()) if len(holders) else None
    figures: dict[str, Any] = {"k": k, "distinct": len(holders), "smallest": smallest}
    records = len(np.unique(population.record))
    return of_count(
        name,
        int((holders < k).sum()),
        f"Each of {len(holders):,} distinct {what} is shared: at least {k} of {records:,} records {verb} it.",
        f"of {len(holders):,} distinct {what} are shared by fewer than {k} records.",
        figures,
    )


def containment_checks(share: Share, population: VisitLists, k: int) -> list[Check]:
    """G2: every visit set that the custodian keeps is part of k records; the records are those sets' unions."""
    from leeward.verify.visits.kernels import count_containers

    file = share.folder.parent / "custody" / "data" / "visit_sets.parquet"
    if not file.is_file():
        raise BadInput(
            "level `containment` speaks of visit sets that the merged release does not show: verify the whole release "
            "folder, with custody/data/visit_sets.parquet."
        )
    sets, population = joint(read_visit_lists(file), population)
    shown = _pairs(population)
    differing = len(np.setxor1d(_pairs(sets), shown, assume_unique=True))
    several = len(population) - len(np.unique(population.record))
    width = max(1, len(population.labels))
    holders = shown[np.argsort(shown % width, kind="stable")]
    starts = np.searchsorted(holders % width, np.arange(width + 1))
    (numbers,) = number_sets(sets)
    first = np.unique(numbers, return_index=True)[1]
    chosen = sets.take(first)
    counts = count_containers(chosen.offsets, chosen.values, starts, holders // width, k)
    return [
        of_count(
            "one_set_a_record",
            int(several),
            "Visits are merged: one set a record.",
            "rows show visits of a record apart.",
        ),
        of_count(
            "unions_of_visit_sets",
            differing,
            "Every record is the union of its visit sets.",
            "codes are in a record and in none of its visit sets, or the reverse.",
        ),
        _shared("contained_sets", counts, k, population, "visit sets", "contain"),
    ]


def _pairs(visits: VisitLists) -> Longs:
    """Distinct (record, label) pairs as ascending keys."""
    return np.unique(np.repeat(visits.record, visits.sizes()) * max(1, len(visits.labels)) + visits.values)
