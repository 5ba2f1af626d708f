"""The attacker of a k-map: counts, for every released record, the people of the population who could be its owner.

Written from the definition (Tamersoy 2011, III.4) and shares nothing with the method: each released record is looked
for among the people who hold its rarest code, code by code.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.verify.censoring.classed import (
    People,
    k_map_of_classes,
    place_in_population,
    split_by_class,
)
from leeward.verify.censoring.holders import Postings, Shown, check_owners, owners_of
from leeward.verify.censoring.records import Known, Records, by_groups, limits_of
from leeward.verify.checks import (
    Check,
    Source,
    check_numbers,
    failing,
    of_count,
    payload_of,
    same_payload,
    unlike_counts,
)
from leeward.verify.classes import (
    demographics_of,
    demographics_of_patients,
    exact_values,
    largest_flow,
    of_class,
    select_patients,
)
from leeward.verify.flat import Longs, Mentioned, Numbered, distinct
from leeward.verify.manifest import Share

Record = tuple[tuple[str, int], ...]
"""A released record: its codes with their mentions, ascending by code."""

MOST_EDGES = 20_000_000
"""Up to this many (released record, possible owner) pairs records and owners are matched one to one."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a censored release. BadInput without a population: nothing in the files says how many people look
    alike outside of them."""
    if source is None or source.population_events is None:
        raise BadInput(
            "a k-map can only be checked against its population: give the population that the "
            "release was made with (--population)."
        )
    checks, table = layout(share)
    if table is None:
        return checks
    parameters, shown, k = share.manifest["parameters"], Shown.of(table), share.guarantee("k")
    own = check_owners(share, table, shown, source)
    proven = bool(own) and not failing(own)
    if demographics_of(share):
        checks += in_classes(table, shown, share, source, proven)
    else:
        postings = Postings.of(source.population)
        checks += [k_map(shown, table.num_rows, postings, k), *against_source(table, source, proven)]
        checks += [*payload(table, share, source), *accounts(shown, share, source.numbered)]
        if parameters.get("scope") == "groups":
            codes, released, sample, people = in_numbers(shown, table.num_rows, source)
            nothing = Known.nothing(len(released), len(sample), len(people))
            limits = limits_of(codes, parameters)
            checks += by_groups(released, sample, people, nothing, k, limits)[1:]
    return [*checks, *caps(shown, parameters), *own]


def in_classes(table: pa.Table, shown: Shown, share: Share, source: Source, proven: bool) -> list[Check]:
    """What depends on demographics: the classes, the people who fit them, and what each class shows."""
    assert source.population_events is not None  # asked for before
    checks, placed = place_in_population(table, share, source)
    if placed is None:
        return checks
    checks.append(k_map_of_classes(shown, placed, source.population_events, share.guarantee("k")))
    if share.manifest["parameters"].get("scope") == "groups":
        checks += _groups_in_classes(shown, placed, share, source)
    owners = owners_of(share, source) if proven else None
    source = select_patients(share, placed.classes, source)
    rows = pl.DataFrame({"record": table["record"].to_numpy(), "class": placed.of_record})
    own = None
    if owners is not None:
        rows = rows.join(owners, on="record", how="left", maintain_order="left")
        own = rows["patient"]
    checks += demographics_of_patients(placed.classes, placed.of_record, source, own)
    checks += [*against_source(table, source, proven), *payload(table, share, source)]
    if owners is None:
        return checks
    events = source.events.join(rows.select("patient", "class"), on="patient")
    numbered = Numbered(events.with_columns(of_class("code")).drop("class"))
    return checks + accounts(split_by_class(shown, placed), share, numbered, classed=True)


def _groups_in_classes(shown: Shown, placed: People, share: Share, source: Source) -> list[Check]:
    """Scope `groups` with demographics: the custodian's file says which labels everybody would be published with."""
    file = share.kept("people.parquet")
    if file is None:
        raise BadInput(
            "custody/data/people.parquet has the labels of the population; give the whole "
            "folder of the release."
        )
    classes = placed.classes
    said = pl.read_parquet(file).sort("place")
    values = exact_values(classes, source, source.numbered.patients)
    everybody = said["place"].to_list() == list(range(len(placed.people)))
    if not everybody or values is None or not set(classes.names) <= set(said.columns):
        detail = "custody/data/people.parquet lacks people of the population, or columns."
        return [Check("population_classes", False, detail)]
    codes, released, sample, people = in_numbers(shown, len(placed.of_record), source)
    number = {each: i for i, each in enumerate(dict.fromkeys(placed.values))}
    labels = said.select(classes.names).rows()
    label = {each: c for c, each in enumerate(dict.fromkeys([*classes.labels, *labels]))}
    known = Known(
        placed.of_record,
        np.array([number.get(each, -1) for each in values], np.int64),
        np.array([number[each] for each in placed.values], np.int64),
        np.array([-1 if None in row else label[row] for row in labels], np.int64),
        np.stack([classes.fit(exact) for exact in number]),
    )
    limits = limits_of(codes, share.manifest["parameters"])
    return by_groups(released, sample, people, known, share.guarantee("k"), limits)


def in_numbers(shown: Shown, count: int, source: Source) -> tuple[list[str], Records, Records, Records]:
    """Codes, ascending, and over these the released records and those of the sample and of the population, in the order
    of their numbers."""
    everyone = source.numbered, source.population
    codes = sorted({*shown.codes, *everyone[0].codes, *everyone[1].codes})
    place = {code: i for i, code in enumerate(codes)}

    def records(owner: Longs, own: list[str], code: Longs, count: Longs, n: int) -> Records:
        return Records.of(owner, np.array([place[each] for each in own], np.int64)[code], count, n)

    def of_people(people: Numbered | Mentioned) -> Records:
        owner, code = np.divmod(people.mentions[0], people.width)
        return records(owner, people.codes, code, people.mentions[1], len(people.patients))

    released = records(shown.place, shown.codes, shown.code, shown.shows, count)
    return codes, released, of_people(source.numbered), of_people(source.population)


def layout(share: Share) -> tuple[list[Check], pa.Table | None]:
    """`records.parquet` has one row per record, numbered 0…n-1, codes sorted."""
    table = pq.ParquetFile(share.data("records.parquet")).read()
    unsorted = count_disorder(table["codes"])
    checks = [
        check_numbers(pl.Series(table["record"].to_numpy()), share.manifest["records"]),
        of_count(
            "codes_sorted",
            unsorted,
            "Every record's codes are sorted.",
            "records have unsorted or null codes.",
        ),
    ]
    return checks, table if unsorted == 0 else None


def count_disorder(lists: pa.ChunkedArray) -> int:
    """How many lists are null, hold a null, or do not ascend."""
    flat, owner = pc.list_flatten(lists).combine_chunks(), pc.list_parent_indices(lists).to_numpy()
    falls = pc.fill_null(pc.less(flat[1:], flat[:-1]), False).to_numpy(zero_copy_only=False)
    wrong = owner[1:][falls & (owner[1:] == owner[:-1])]
    wrong = np.append(wrong, owner[flat.is_null().to_numpy(zero_copy_only=False)])
    return lists.null_count + len(np.unique(wrong))


def records_of(table: pa.Table) -> list[Record]:
    return [tuple(sorted(Counter(codes).items())) for codes in table["codes"].to_pylist()]


def records_of_people(events: Numbered | Mentioned) -> list[Record]:
    """Everybody's record, in the order of their numbers."""
    keys, has = events.mentions
    person, code = np.divmod(keys, events.width)
    most = int(has.max(initial=0)) + 1
    used, place = np.unique(code * most + has, return_inverse=True)
    pairs = [(events.codes[each // most], each % most) for each in used.tolist()]
    held = [pairs[each] for each in place.tolist()]
    bounds = np.searchsorted(person, np.arange(len(events.patients) + 1)).tolist()
    return [tuple(sorted(held[first:last])) for first, last in pairwise(bounds)]


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
    """Nothing was invented: every record is part of an original, each original used once. `proven`: custody names an
    original for each record, and it was found to be one (see `check_owners`)."""
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
    sample, released = Postings.of(source.numbered), records_of(table)
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
        unmatched = len(released) - _match(Counter(released), owners, records_of_people(source.numbered))
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
    by_scope = share.manifest["parameters"].get("scope") in ("global", "raise")
    checks = [same_caps(shown, numbered)] if by_scope else []
    file = share.kept("caps.parquet")
    if file is None:
        return checks
    said = pl.read_parquet(file)
    if classed:
        if "class" not in said.columns:
            detail = "custody/data/caps.parquet does not tell classes apart."
            return [*checks, Check("mentions_read", False, detail)]
        said = said.with_columns(of_class("code"))
    keys, has = numbered.mentions
    for name, column, codes, number, counted, of, missing in (
        ("mentions_read", "mentions", numbered.codes, keys % numbered.width, has, "source", -1),
        ("mentions_shown", "shown", shown.codes, shown.code, shown.shows, "release", 0),
    ):
        sums = np.bincount(number, counted, minlength=len(codes)).astype(np.int64)
        found = pl.DataFrame({"code": codes, "n": sums}, schema={"code": pl.String, "n": pl.Int64})
        wrong = unlike_counts(said.select("code", column), found.filter(pl.col("n") > 0), missing)
        checks.append(
            of_count(
                name,
                wrong,
                f"Each code has as many mentions in the {of} as the method counted.",
                f"codes have a different number of mentions in the {of} than the method counted.",
            )
        )
    return checks


def same_caps(shown: Shown, numbered: Numbered) -> Check:
    """Every record shows the mentions of its patient, up to the most that any record shows of the code."""
    keys, has = numbered.mentions
    patient, held = np.divmod(keys, numbered.width)
    code = shown.among(numbered.codes)
    most = np.zeros(numbered.width, np.int64)
    np.maximum.at(most, code[code >= 0], shown.shows[code >= 0])
    limited = np.minimum(has, most[held])
    left = limited > 0
    # a code that the source lacks is another entry: a place beyond those of the source
    unknown = np.where(code >= 0, code, numbered.width + shown.code)
    mine = alike(shown.place, unknown, shown.shows)
    theirs = alike(patient[left], held[left], limited[left])
    return of_count(
        "censored_alike",
        sum((mine - theirs).values()),
        "Every record shows all mentions up to one cap for each code.",
        "records show fewer mentions than the caps of the other records allow.",
    )


def alike(owner: Longs, code: Longs, shows: Longs) -> Counter[tuple[int, int, int]]:
    """Records (by two hashes of their codes and mentions) and how many are alike; empty ones are left out."""
    entry = pl.struct("code", "shows")
    words = pl.DataFrame({"owner": owner, "code": code, "shows": shows}).select(
        "owner", a=entry.hash(seed=1), b=entry.hash(seed=2)
    )
    each = words.group_by("owner").agg(pl.col("a", "b").sum(), n=pl.len())
    return Counter({(a, b, n): count for a, b, n, count in each.group_by("a", "b", "n").len("count").rows()})


def _match(released: Counter[Record], owners: dict[Record, Longs], sample: list[Record]) -> int:
    """How many records can be given an original of their own: a flow from equal records to equal originals."""
    numbers: dict[Record, int] = {}
    kind = np.array([numbers.setdefault(record, len(numbers)) for record in sample], np.int64)
    counts, fits = np.fromiter(released.values(), np.int64), [np.unique(kind[owners[r]]) for r in released]
    return largest_flow(counts, fits, np.bincount(kind))


def payload(table: pa.Table, share: Share, source: Source) -> list[Check]:
    """The payload's rows are those of the sample's patients, in whatever order."""
    names = payload_of(share.manifest["parameters"])
    if not names or source.patients is None:
        return []
    patients = source.events.select("patient").unique().join(source.patients, on="patient", how="left")
    return [same_payload(pl.DataFrame(pl.from_arrow(table.select(names))), patients, names, "sample")]
