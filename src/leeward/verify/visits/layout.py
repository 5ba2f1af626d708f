"""Lay out a release of visits: columns, numbers of records and visits, sorted sets."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.verify.checks import Check, of_count
from leeward.verify.classes import demographics_of
from leeward.verify.manifest import Share
from leeward.verify.visits.reading import VisitLists, read_visits

TREE = "code_hierarchy.csv"
ROOT = "*"


def layout(share: Share) -> tuple[list[Check], VisitLists | None]:
    """Both tables have their columns and types, records and visits are numbered, sets are sorted."""
    try:
        schema = pq.read_schema(share.data("visits.parquet"))
        numbers = pq.read_table(share.data("records.parquet"))
        payload = [str(name) for name in share.manifest["parameters"].get("payload", [])]
        columns = ["record", *demographics_of(share), *payload]
        wrong = schema.names != ["record", "visit", "codes"] or numbers.column_names != columns
        if wrong or not pa.types.is_list(schema.field("codes").type):
            detail = "visits.parquet or records.parquet has other columns than the contract and the manifest's payload."
            return [Check("layout", False, detail)], None
        visits = read_visits(share.data("visits.parquet"))
    except (OSError, pa.ArrowInvalid):
        return [
            Check("layout", False, "visits.parquet or records.parquet is missing or cannot be read.")
        ], None
    records = int(share.manifest["records"])
    whole = numbers.num_rows == records and np.array_equal(
        np.sort(numbers["record"].to_numpy()), np.arange(records)
    )
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
    tree = share.data(TREE)
    if tree.is_file():
        shown = {visits.labels[label] for label in np.unique(visits.values).tolist()}
        checks.append(code_hierarchy(tree, shown))
    return checks, visits if all(each.passed for each in checks) else None


def code_hierarchy(file: Path, shown: set[str]) -> Check:
    """The nodes that visits show and those above them, once each: the root, then by their texts."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream))
        above = dict(rows[1:])
    except (OSError, UnicodeDecodeError, csv.Error, ValueError):
        return Check("code_hierarchy", False, f"{TREE} cannot be read as node,parent.")
    nodes = [row[0] for row in rows[1:]]
    wanted = shown | {above[node] for node in shown & set(above)} | {ROOT}
    wrong = len(set(nodes) ^ wanted) + (nodes != [ROOT, *sorted(set(nodes) - {ROOT})])
    wrong += above.get(ROOT) != "" or rows[:1] != [["node", "parent"]]
    return of_count(
        "code_hierarchy",
        wrong,
        f"{TREE} lists the {len(nodes):,} nodes that visits show and those above them, in order.",
        f"nodes of {TREE} are not shown or above a shown one, are missing, twice or in another order.",
    )


def _visit_checks(visits: VisitLists, records: int) -> list[Check]:
    strangers = int(np.count_nonzero((visits.record < 0) | (visits.record >= records)))
    return [
        of_count(
            "visits_of_records", strangers, "Every visit belongs to a record.", "visits belong to no record."
        ),
        of_count(
            "visits_numbered",
            _count_misnumbered(visits),
            "Visits are numbered from 0 inside each record.",
            "records have visit numbers with gaps or repeats.",
        ),
        of_count(
            "sets_sorted",
            _count_disordered(visits) + visits.nulls,
            "Every visit holds distinct codes in ascending order.",
            "visits have no codes, null codes, repeats or another order.",
        ),
    ]


def _count_misnumbered(visits: VisitLists) -> int:
    """Records whose visits are not numbered 0, 1, …; the order of the rows does not matter."""
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


def _count_disordered(visits: VisitLists) -> int:
    """Visits without codes, or with codes that do not ascend."""
    sizes = visits.sizes()
    falls = np.zeros(len(visits.values), np.bool_)
    falls[1:] = visits.values[1:] <= visits.values[:-1]
    falls[visits.offsets[:-1][sizes > 0]] = False  # a visit's first code follows none
    at = np.searchsorted(visits.offsets, np.flatnonzero(falls), side="right") - 1
    return len(np.unique(at)) + int(np.count_nonzero(sizes == 0))
