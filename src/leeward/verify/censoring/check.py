"""The attacker of a k-map: counts, for every released record, the people of the population who could be its owner.

Written from the definition (Tamersoy 2011, III.4) and shares nothing with the method: each released record is looked
for among the people who hold its rarest code, code by code.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.verify.censoring.classed import (
    Placed,
    by_groups,
    by_groups_in_classes,
    events_apart,
    k_map_of_classes,
    owners_in_order,
    place_in_classes,
    split_by_class,
)
from leeward.verify.censoring.holders import Postings, Shown, check_owners, owners_of
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import (
    demographics_of,
    demographics_of_patients,
    exact_values,
    of_class,
    select_released,
)
from leeward.verify.flat import Longs, Numbered, distinct
from leeward.verify.manifest import Share

Record = tuple[tuple[str, int], ...]
"""A released record: its codes with their mentions, ascending by code."""

FIRST_LOOK = 4_096
"""Candidates looked at first; safe records rarely need more."""
MOST_EDGES = 20_000_000
"""Up to this many (released record, possible owner) pairs records and owners are matched one to one."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a censored release.

    Raises BadInput without a population: nothing in the files says how many people look alike outside of them.
    """
    if source is None or source.population_events is None:
        raise BadInput(
            "a k-map is about a population, so it can only be checked against it: give the population that the "
            "release was made with (--population)."
        )
    checks, table = layout(share)
    if table is None:
        return checks
    parameters, shown, k = share.manifest["parameters"], Shown.of(table), share.guarantee("k")
    own = check_owners(share, table, shown, source)
    proven = bool(own) and all(each.passed for each in own)
    if demographics_of(share):
        checks += in_classes(table, shown, share, source, proven)
    else:
        postings = Postings.of(source.population)
        checks += [k_map(shown, table.num_rows, postings, k), *against_source(table, source, proven)]
        checks += [*payload(table, share, source), *accounts(shown, share, source.numbered)]
    if parameters.get("scope") == "groups" and not demographics_of(share):
        people, sample = People.of(source.population_events), People.of(source.events)
        checks += by_groups(records_of(table), sample.records(), people.records(), k, parameters)
    return [*checks, *caps(shown, parameters), *own]


def in_classes(table: pa.Table, shown: Shown, share: Share, source: Source, proven: bool) -> list[Check]:
    """What depends on demographics: the classes, the people who fit them, and what each class shows."""
    assert source.population_events is not None  # asked for before
    checks, placed = place_in_classes(table, share, source)
    if placed is None:
        return checks
    checks.append(k_map_of_classes(shown, placed, source.population_events, share.guarantee("k")))
    if share.manifest["parameters"].get("scope") == "groups":
        checks += _groups_in_classes(table, placed, share, source)
    owners = owners_of(share, source) if proven else None
    source = select_released(share, placed.classes, source)
    own = None if owners is None else owners_in_order(table, owners)
    checks += demographics_of_patients(placed.classes, placed.of_row, source, own)
    checks += [*against_source(table, source, proven), *payload(table, share, source)]
    if owners is None:
        return checks
    numbered = Numbered(events_apart(source.events, placed, table, owners))
    return checks + accounts(split_by_class(shown, placed), share, numbered, classed=True)


def _groups_in_classes(table: pa.Table, placed: Placed, share: Share, source: Source) -> list[Check]:
    """Scope `groups` with demographics: the custodian's file says which labels everybody would be published with."""
    assert source.population_events is not None  # asked for before
    file = share.folder.parent / "custody" / "data" / "people.parquet"
    if not file.is_file():
        raise BadInput(
            "which labels the population would be published with is in custody/data/people.parquet; give the whole "
            "folder of the release."
        )
    names = list(placed.classes.names)
    said = pl.read_parquet(file).sort("place")
    everyone, own = People.of(source.population_events), People.of(source.events)
    values = exact_values(placed.classes, source, own.names)
    if said["place"].to_list() != list(range(everyone.n)) or values is None or set(names) - set(said.columns):
        detail = "custody/data/people.parquet has not everybody of the population, or the columns lack."
        return [Check("population_classes", False, detail)]
    labels = [None if None in row else row for row in said.select(names).rows()]
    shown = [placed.classes.labels[c] if c >= 0 else () for c in placed.of_row.tolist()]
    number = {each: c for c, each in enumerate(placed.classes.labels)}
    return by_groups_in_classes(
        list(zip(shown, records_of(table), strict=True)),
        list(zip(values, own.records(), strict=True)),
        list(zip(placed.values, everyone.records(), strict=True)),
        labels,
        lambda mine, exact: bool(placed.classes.fit(exact)[number[mine]]),
        share.guarantee("k"),
        share.manifest["parameters"],
    )


def layout(share: Share) -> tuple[list[Check], pa.Table | None]:
    """`records.parquet` has its columns, one row a record, numbered 0…n-1, codes sorted."""
    try:
        table = pq.ParquetFile(share.data("records.parquet")).read()
    except (OSError, pa.ArrowInvalid):
        return [Check("layout", False, "records.parquet is missing or cannot be read.")], None
    payload = [str(name) for name in share.manifest["parameters"].get("payload", [])]
    expected = ["record", "codes", *demographics_of(share), *payload]
    if table.column_names != expected or not _lists_texts(table.schema.field("codes").type):
        detail = "records.parquet has other columns than `record`, `codes` and the payload that the manifest names."
        return [Check("layout", False, detail)], None
    numbers = np.sort(table["record"].to_numpy())
    unsorted = count_unsorted(table["codes"])
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


def count_unsorted(lists: pa.ChunkedArray) -> int:
    """How many lists are null, hold a null, or do not ascend."""
    flat, owner = pc.list_flatten(lists).combine_chunks(), pc.list_parent_indices(lists).to_numpy()
    falls = pc.fill_null(pc.less(flat[1:], flat[:-1]), False).to_numpy(zero_copy_only=False)
    wrong = owner[1:][falls & (owner[1:] == owner[:-1])]
    wrong = np.append(wrong, owner[flat.is_null().to_numpy(zero_copy_only=False)])
    return lists.null_count + len(np.unique(wrong))


def _lists_texts(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return bool(pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type))


def records_of(table: pa.Table) -> list[Record]:
    """The released records."""
    return [tuple(sorted(Counter(codes).items())) for codes in table["codes"].to_pylist()]


class People:
    """Who holds each code how often: per code the people (numbered from 0 in ascending order of their names, the
    identifiers) ascending, and their mentions."""

    def __init__(self, names: pl.Series, holders: dict[str, tuple[Longs, Longs]]) -> None:
        self.names, self.n = names, len(names)
        self._holders = holders
        self._at_least: dict[tuple[str, int], Longs] = {}

    @staticmethod
    def of(events: pl.DataFrame) -> People:
        """Count the mentions of `events`; with a visit column a code counts once a visit."""
        if "visit" in events.columns:
            known = events.filter(pl.col("visit").is_not_null()).unique(["patient", "visit", "code"])
            events = pl.concat([known, events.filter(pl.col("visit").is_null())])
        people = events.select("patient").unique().sort("patient").with_row_index("person")
        counted = events.group_by("code", "patient").len().join(people, on="patient").sort("code", "person")
        person, mentions = (counted[name].cast(pl.Int64).to_numpy() for name in ("person", "len"))
        runs = counted["code"].rle().struct.unnest()
        ends = runs["len"].cum_sum().to_list()
        starts = [0, *ends[:-1]]
        holders = {
            str(code): (person[start:end], mentions[start:end])
            for code, start, end in zip(runs["value"].to_list(), starts, ends, strict=True)
        }
        return People(people["patient"], holders)

    def owners(self, record: Record, enough: int | None = None) -> Longs:
        """The people who hold the whole record; at least `enough` of them where that many are asked for."""
        if not record:
            return np.arange(self.n)
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

    def records(self) -> list[Record]:
        """Everybody's record, in the order of their numbers."""
        held: list[list[tuple[str, int]]] = [[] for _ in range(self.n)]
        for code in sorted(self._holders):
            people, mentions = self._holders[code]
            for person, count in zip(people.tolist(), mentions.tolist(), strict=True):
                held[person].append((code, count))
        return [tuple(each) for each in held]

    def _with(self, code: str, count: int) -> Longs:
        if (code, count) not in self._at_least:
            people, mentions = self._holders.get(code, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
            self._at_least[code, count] = people[mentions >= count]
        return self._at_least[code, count]


def k_map(shown: Shown, records: int, postings: Postings, k: int) -> Check:
    """At least k people of the population hold each released record."""
    counts = postings.holders(shown, records, k)
    violations = int((counts < k).sum())
    figures: dict[str, Any] = {"k": k, "population": postings.n}
    if violations:
        figures["smallest"] = int(counts.min())
    return of_count(
        "k_map",
        violations,
        f"Every one of {records:,} records is contained in at least {k} of {postings.n:,} people.",
        f"of {records:,} records are contained in fewer than {k} people.",
        figures,
    )


def caps(shown: Shown, parameters: dict[str, Any]) -> list[Check]:
    """No code is more often in a record than the caps that the manifest states."""
    given, rest = parameters.get("caps"), parameters.get("cap")
    if given is None and rest is None:
        return []
    limits = {str(code): int(cap) for code, cap in (given or {}).items()}
    other = int(rest) if rest is not None else 0
    most = np.array([limits.get(code, other) for code in shown.codes], np.int64)
    above = len(distinct(shown.place[shown.shows > most[shown.code]]))
    return [
        of_count("caps", above, "No record exceeds a cap.", "records hold a code more often than its cap."),
    ]


def against_source(table: pa.Table, source: Source, proven: bool) -> list[Check]:
    """Nothing was invented: every record is part of an original, each original used once.

    proven : custody names an original for each record, and it was found to be one (see `check_owners`).
    """
    n, records = len(source.numbered.patients), table.num_rows
    checks = [
        Check("every_patient_once", n == records, f"{records:,} records for {n:,} patients of the sample.")
    ]
    if proven:
        return [
            *checks,
            Check("parts_of_originals", True, "Every record is part of the original that custody names."),
            Check(
                "one_original_each", True, "Records and originals match one to one, as custody names them."
            ),
        ]
    sample, released = People.of(source.events), records_of(table)
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
    if not strangers and sum(map(len, owners.values())) <= MOST_EDGES:
        unmatched = len(released) - _match(Counter(released), owners, sample)
        checks.append(
            of_count(
                "one_original_each",
                unmatched,
                "Records and originals match one to one.",
                "records have no original left when each original is used once.",
            )
        )
    return checks


def accounts(shown: Shown, share: Share, numbered: Numbered, *, classed: bool = False) -> list[Check]:
    """Nothing was lost on the way in or out: each code has as many mentions in the source as the method says that it
    read, and in the release as it says that it meant to show; a global cap is the same for every record."""
    keys, has = numbered.mentions
    patient, held = np.divmod(keys, numbered.width)
    code = shown.among(numbered.codes)
    checks = []
    if share.manifest["parameters"].get("scope") in ("global", "raise"):
        most = np.zeros(numbered.width, np.int64)
        np.maximum.at(most, code[code >= 0], shown.shows[code >= 0])
        limited = np.minimum(has, most[held])
        left = limited > 0
        # a code that the source lacks is another entry: a place beyond those of the source
        unknown = np.where(code >= 0, code, numbered.width + shown.code)
        mine = alike(shown.place, unknown, shown.shows)
        theirs = alike(patient[left], held[left], limited[left])
        checks.append(
            of_count(
                "censored_alike",
                sum((mine - theirs).values()),
                "Every record shows all mentions up to one cap a code.",
                "records show fewer mentions than the caps of the other records allow.",
            )
        )
    file = share.folder.parent / "custody" / "data" / "caps.parquet"
    if not file.is_file():
        return checks
    said = pl.read_parquet(file)
    if classed:
        if "class" not in said.columns:
            return [
                *checks,
                Check("mentions_read", False, "custody/data/caps.parquet does not tell classes apart."),
            ]
        said = said.with_columns(of_class("code"))
    said = said.select("code", "mentions", "shown")
    for name, column, codes, number, counted, of in (
        ("mentions_read", "mentions", numbered.codes, held, has, "source"),
        ("mentions_shown", "shown", shown.codes, shown.code, shown.shows, "release"),
    ):
        sums = np.bincount(number, counted, minlength=len(codes)).astype(np.int64)
        found = pl.DataFrame({"code": codes, "n": sums}, schema={"code": pl.String, "n": pl.Int64})
        both = said.select("code", said=column).join(
            found.filter(pl.col("n") > 0), on="code", how="full", coalesce=True
        )
        wrong = both.filter(
            pl.col("said").fill_null(-1 if column == "mentions" else 0) != pl.col("n").fill_null(0)
        )
        checks.append(
            of_count(
                name,
                wrong.height,
                f"Each code has as many mentions in the {of} as the method counted.",
                f"codes have another number of mentions in the {of} than the method counted.",
            )
        )
    return checks


def alike(owner: Longs, code: Longs, shows: Longs) -> Counter[tuple[int, int, int]]:
    """Records (by two hashes of their codes and mentions) and how many are alike; empty ones are left out."""
    entry = pl.struct("code", "shows")
    words = pl.DataFrame({"owner": owner, "code": code, "shows": shows}).select(
        "owner", a=entry.hash(seed=1), b=entry.hash(seed=2)
    )
    each = words.group_by("owner").agg(pl.col("a", "b").sum(), n=pl.len())
    return Counter({(a, b, n): count for a, b, n, count in each.group_by("a", "b", "n").len("count").rows()})


def _match(released: Counter[Record], owners: dict[Record, Longs], sample: People) -> int:
    """How many records can be given an original of their own: a flow from equal records to equal originals."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_flow

    numbers: dict[Record, int] = {}
    kind = np.array([numbers.setdefault(record, len(numbers)) for record in sample.records()], np.int64)
    first_original = 1 + len(released)
    sink = first_original + len(numbers)
    edges = [(0, 1 + place, count) for place, count in enumerate(released.values())]
    edges += [(first_original + k, sink, int(count)) for k, count in enumerate(np.bincount(kind))]
    for place, (record, count) in enumerate(released.items()):
        edges += [(1 + place, first_original + k, count) for k in np.unique(kind[owners[record]]).tolist()]
    rows, columns, capacities = np.array(edges, np.int32).T
    graph = coo_matrix((capacities, (rows, columns)), shape=(sink + 1, sink + 1), dtype=np.int32).tocsr()
    return int(maximum_flow(graph, 0, sink).flow_value)


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
