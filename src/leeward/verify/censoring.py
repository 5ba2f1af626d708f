"""The attacker of a k-map: counts, for every released record, the people of the population who could be its owner.

Written from the definition (Tamersoy 2011, III.4) and shares nothing with the method: each released record is looked
for among the people who hold its rarest code, code by code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.manifest import Share

Longs = NDArray[np.int64]
Record = tuple[tuple[str, int], ...]
"""A released record: its codes with their mentions, ascending by code."""

FIRST_LOOK = 4_096
"""Candidates looked at first; safe records rarely need more."""
MOST_EDGES = 20_000_000
"""Up to this many (released record, possible owner) pairs the owners are matched one to one."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a censored release.

    Raises BadInput without a population: nothing in the files says how many people look alike outside of them.
    """
    if source is None or source.population_events is None:
        raise BadInput(
            "a k-map speaks of a population, so it can only be checked against it: give the population that the "
            "release was made with (--population)."
        )
    checks, table = layout(share)
    if table is None:
        return checks
    released = records_of(table)
    people = People.of(source.population_events)
    checks += [k_map(released, people, share.guarantee("k")), *caps(released, share.manifest["parameters"])]
    checks += against_source(released, table, share, source)
    return checks


def layout(share: Share) -> tuple[list[Check], pa.Table | None]:
    """`records.parquet` has its columns, one row a record, numbered 0…n-1, codes sorted."""
    try:
        table = pq.read_table(share.data("records.parquet"))
    except (OSError, pa.ArrowInvalid):
        return [Check("layout", False, "records.parquet is missing or cannot be read.")], None
    payload = [str(name) for name in share.manifest["parameters"].get("payload", [])]
    expected = ["record", "codes", *payload]
    if table.column_names != expected or not _is_list(table.schema.field("codes").type):
        detail = "records.parquet has other columns than `record`, `codes` and the payload that the manifest names."
        return [Check("layout", False, detail)], None
    numbers = np.sort(table["record"].to_numpy())
    lists = table["codes"].to_pylist()
    unsorted = sum(codes is None or None in codes or codes != sorted(codes) for codes in lists)
    whole = np.array_equal(numbers, np.arange(int(share.manifest["records"])))
    checks = [
        Check("layout", True, "records.parquet has the columns of the contract."),
        Check(
            "records_numbered",
            whole,
            "Records are numbered from 0, each once."
            if whole
            else "Record numbers have gaps, repeats or a wrong count.",
        ),
        of_count(
            "codes_sorted",
            unsorted,
            "Every record's codes are sorted.",
            "records have unsorted or null codes.",
        ),
    ]
    return checks, table if unsorted == 0 else None


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def records_of(table: pa.Table) -> list[Record]:
    """The released records."""
    return [tuple(sorted(Counter(codes).items())) for codes in table["codes"].to_pylist()]


@dataclass(frozen=True)
class People:
    """Who holds each code how often: per code the people ascending, and their mentions."""

    n: int
    holders: dict[str, tuple[Longs, Longs]]

    @staticmethod
    def of(events: pl.DataFrame) -> People:
        """Count the mentions of `events`; with a visit column a code counts once a visit."""
        if "visit" in events.columns:
            known = events.filter(pl.col("visit").is_not_null()).unique(["patient", "visit", "code"])
            events = pl.concat([known, events.filter(pl.col("visit").is_null())])
        people = events.select("patient").unique().with_row_index("person", 1)
        counted = (
            events.select("patient", pl.col("code").cast(pl.String))
            .group_by("code", "patient")
            .len()
            .join(people, on="patient")
            .select("code", pl.col("person").cast(pl.Int64), "len")
            .sort("code", "person")
        )
        holders = {
            str(code): (part["person"].to_numpy(), part["len"].cast(pl.Int64).to_numpy())
            for (code,), part in counted.partition_by("code", as_dict=True).items()
        }
        return People(people.height, holders)

    def owners(self, record: Record, enough: int | None = None) -> Longs:
        """The people who hold the whole record; at least `enough` of them where that many are asked for."""
        if not record:
            return np.arange(1, self.n + 1)
        lists = sorted((self._with(code, count) for code, count in record), key=len)
        looked = len(lists[0]) if enough is None else FIRST_LOOK
        while True:
            found = lists[0][:looked]
            for others in lists[1:]:
                place = np.searchsorted(others, found)
                found = (
                    found[others[np.minimum(place, len(others) - 1)] == found] if len(others) else found[:0]
                )
            if looked >= len(lists[0]) or len(found) >= (enough or 0):
                return found
            looked *= 16

    def _with(self, code: str, count: int) -> Longs:
        people, mentions = self.holders.get(code, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        return people[mentions >= count]


def k_map(released: list[Record], people: People, k: int) -> Check:
    """At least k people of the population hold each released record."""
    fewest = {record: len(people.owners(record, k)) for record in set(released)}
    violations = sum(fewest[record] < k for record in released)
    figures: dict[str, Any] = {"k": k, "population": people.n, "distinct_records": len(fewest)}
    if violations:
        figures["smallest"] = min(fewest.values())
    return of_count(
        "k_map",
        violations,
        f"Every one of {len(released):,} records is contained in at least {k} of {people.n:,} people.",
        f"of {len(released):,} records are contained in fewer than {k} people.",
        figures,
    )


def caps(released: list[Record], parameters: dict[str, Any]) -> list[Check]:
    """No code stands more often in a record than the caps that the manifest states."""
    given, rest = parameters.get("caps"), parameters.get("cap")
    if given is None and rest is None:
        return []
    limits = {str(code): int(cap) for code, cap in (given or {}).items()}
    other = int(rest) if rest is not None else 0
    above = sum(any(count > limits.get(code, other) for code, count in record) for record in released)
    return [
        of_count("caps", above, "No record exceeds a cap.", "records hold a code more often than its cap."),
    ]


def against_source(released: list[Record], table: pa.Table, share: Share, source: Source) -> list[Check]:
    """Nothing was invented: every record is part of an original, each original used once; the payload is whole."""
    sample = People.of(source.events)
    checks = [
        Check(
            "every_patient_once",
            sample.n == len(released),
            f"{len(released):,} records for {sample.n:,} patients of the sample.",
        )
    ]
    owners = {record: sample.owners(record) for record in set(released)}
    strangers = sum(len(owners[record]) == 0 for record in released)
    checks.append(
        of_count(
            "parts_of_originals",
            strangers,
            "Every record is part of an original record.",
            "records hold codes or mentions that no record of the sample has.",
        )
    )
    edges = sum(len(owners[record]) for record in released)
    if not strangers and edges <= MOST_EDGES:
        unmatched = len(released) - _matched(released, owners, sample.n)
        checks.append(
            of_count(
                "one_original_each",
                unmatched,
                "Records and originals match one to one.",
                "records have no original left when each original is used once.",
            )
        )
    return checks + payload(table, share, source)


def _matched(released: list[Record], owners: dict[Record, Longs], people: int) -> int:
    """How many records can be given an original of their own."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    lists = [owners[record] - 1 for record in released]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])])
    columns = np.concatenate([np.zeros(0, np.int64), *lists])
    graph = csr_matrix((np.ones(len(columns), np.int8), columns, offsets), shape=(len(released), people))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def payload(table: pa.Table, share: Share, source: Source) -> list[Check]:
    """The payload's rows are those of the sample's patients, in whatever order."""
    names = [str(name) for name in share.manifest["parameters"].get("payload", [])]
    if not names or source.patients is None:
        return []
    patients = source.events.select("patient").unique().join(source.patients, on="patient", how="left")
    released = pl.DataFrame(pl.from_arrow(table.select(names)))
    shown, held = (
        Counter(frame.select(pl.col(names).cast(pl.String)).rows()) for frame in (released, patients)
    )
    return [
        of_count(
            "payload",
            sum((shown - held).values()) + sum((held - shown).values()),
            "The payload's rows are those of the sample.",
            "rows of payload differ from those of the sample.",
        )
    ]
