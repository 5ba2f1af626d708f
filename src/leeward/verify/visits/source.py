"""A release of visits against its source: each released visit is part of the image of one visit of its patient."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from leeward.errors import BadInput
from leeward.verify.checks import (
    Check,
    Source,
    merge_parts,
    of_count,
    other_payload,
    payload_of,
    same_payload,
    unlike_counts,
)
from leeward.verify.classes import Placed, demographics_of_patients, select_patients
from leeward.verify.flat import Longs, Numbered, distinct, find, values_of_groups
from leeward.verify.manifest import Share
from leeward.verify.order import within_check
from leeward.verify.visits.layout import VisitLists, bare, read_named, source_apart
from leeward.verify.visits.levels import (
    check_codes_shown,
    check_containment,
    images_of,
    sets_of_source,
    visit_column,
)
from leeward.vocabulary import VOCABULARIES, load

MEMBERS = "|"
CHAPTER = 3
"""The level of a hierarchy to which codes climb."""


def source_checks(
    share: Share, visits: VisitLists, source: Source, placed: Placed | None = None
) -> list[Check]:
    """Nothing was invented, each visit comes from one visit, merged codes belong together, the payload is whole. What
    is about single patients is checked one part of the source after the other."""
    owners = read_owners(share)
    if share.kept("codes.parquet") is None:
        owners = None
    if placed is not None:
        source = select_patients(share, placed.classes, source)
    of_parts = [(len(part.numbered.patients), part.events["patient"].dtype) for part in source.parts()]
    people, records = sum(n for n, _ in of_parts), int(share.manifest["records"])
    detail = f"{records:,} records for {people:,} patients of the source."
    checks = [Check("every_patient_once", people == records, detail)]
    if source.vocabulary is not None:
        same = share.manifest["parameters"].get("vocabulary") == Path(source.vocabulary).name
        detail = (
            "The vocabulary is the source's." if same else "The source's codes are of another vocabulary."
        )
        checks.append(Check("vocabulary_of_source", same, detail))
    if owners is not None:
        same = all(owners["patient"].dtype == kind for _, kind in of_parts)
        if not same or not np.array_equal(owners["record"].sort().to_numpy(), np.arange(records)):
            detail = "custody/data/patients.parquet does not name the source's patients once each."
            return [*checks, Check("witness", False, detail)]
    if placed is not None:
        own = None if owners is None else owners.sort("record")["patient"]
        checks += demographics_of_patients(placed.classes, placed.of_record, source, own)
    if owners is not None:
        checks += witness_checks(share, visits, source, placed, owners)
    return checks + payload_checks(share, source)


def read_owners(share: Share) -> pl.DataFrame | None:
    """`record`, `patient` as custody names them; None without custody."""
    file = share.kept("patients.parquet")
    return None if file is None else pl.read_parquet(file).select("record", "patient")


def witness_checks(
    share: Share, visits: VisitLists, source: Source, placed: Placed | None, owners: pl.DataFrame
) -> list[Check]:
    """The checks that the custodian's files of who is who (`owners`), and of what became of each code, allow. Levels
    about source visits: their images are made again from the source and counted in the records."""
    codes = read_named(share, "codes.parquet", placed)
    if codes is None:
        return [Check("witness", False, "custody/data/codes.parquet does not tell classes apart.")]
    if placed is not None:
        source = source_apart(source, placed, owners)
    rows = rows_of_visits(share, visits)
    people = [part.numbered.patients for part in source.parts()]
    known = pl.concat(people).to_frame("patient").with_row_index("number").cast({"number": pl.Int64})
    numbered = owners.join(known, on="patient", how="left").sort("number", nulls_last=True)
    of_record = pl.DataFrame({"record": visits.record}).join(
        numbered.select("record", "number"), on="record", how="left", maintain_order="left"
    )
    own = of_record["number"].fill_null(-1).to_numpy()  # -1: custody names none of the source's patients
    order = np.argsort(own, kind="stable")  # by part, as patients ascend from part to part
    made: list[list[Check]] = []
    read: list[pl.DataFrame] = []
    base = seen = 0
    for part, patients in zip(source.parts(), people, strict=True):
        low, high = np.searchsorted(own, [base, base + len(patients)], sorter=order)
        mine = np.sort(order[low:high]) if source.stored else np.arange(len(visits))
        said = None if rows is None else rows.gather(mine)
        found = image_checks(share, visits.take(mine), part, own[mine] - base, codes, said)
        held = numbered.slice(*_between(numbered["number"], base, base + len(patients)))
        made.append(found + check_shown(share, visits, part, held, codes))
        read.append(_labels_of_source(share, part, codes))
        base, seen = base + len(patients), seen + len(mine)
    checks = [*code_checks(share, bare(codes, placed)), *merge_parts(made)]
    if source.stored:
        good = f"Each of the {len(visits):,} released visits is of a patient in one of {len(made):,} parts."
        bad = "released visits are of no patient of the source, or of one in several parts."
        checks.append(of_count("parts_of_source", abs(len(visits) - seen), good, bad))
    return checks + accounts(share, visits, pl.concat(read), placed)


def check_shown(
    share: Share, visits: VisitLists, source: Source, owners: pl.DataFrame, codes: pl.DataFrame
) -> list[Check]:
    """What records show of the source's visits is in k records, at the levels that are about these."""
    level, k = share.manifest["parameters"].get("level"), share.guarantee("k")
    if level not in ("codes", "containment"):
        return []
    sets = sets_of_source(source, owners, codes)
    if level == "containment":
        return [check_containment("contained_source_visits", sets, visits, k)]
    return [check_codes_shown(sets, visits, k, share.guarantee("m"), "known_codes_of_source_visits")]


def code_checks(share: Share, codes: pl.DataFrame) -> list[Check]:
    """A label names its members, merged codes are in one group of the hierarchy, nodes are above their codes."""
    parameters = share.manifest["parameters"]
    kept = codes.drop_nulls("label")
    strangers = sum(code not in label.split(MEMBERS) for code, label in kept.select("code", "label").rows())
    checks = [
        of_count(
            "labels",
            strangers,
            "Every label names its members.",
            "codes have a label that does not name them.",
        )
    ]
    name = parameters.get("vocabulary")
    if name not in VOCABULARIES:
        return checks
    vocabulary = load(str(name))
    kind, _, level = str(parameters.get("policy")).partition(":")
    if kind == "hierarchy":
        groups = kept.group_by("label").agg("code").rows()
        mixed = sum(
            len({vocabulary.level(code, int(level)) for code in members}) > 1 for _, members in groups
        )
        checks.append(
            of_count(
                "merged_inside_groups",
                mixed,
                "Merged codes share their group.",
                "generalized codes join different groups.",
            )
        )
    if parameters.get("enforce") == "generalize":
        above = codes.drop_nulls("above").select("code", "above").rows()
        wrong = sum(vocabulary.level(code, CHAPTER) != node for code, node in above)
        checks.append(
            of_count(
                "nodes_above",
                wrong,
                "Every node is above its codes.",
                "codes were generalized to a node that is not above them.",
            )
        )
    return checks


def accounts(share: Share, visits: VisitLists, read: pl.DataFrame, placed: Placed | None) -> list[Check]:
    """Nothing was lost on the way in or out: each label is in as many source visits (`read`) as the method says that it
    read, and in as many released ones as it says that it meant to show."""
    if share.kept("labels.parquet") is None:
        return [Check("labels_read", False, "custody/data/labels.parquet is missing.")]
    said = read_named(share, "labels.parquet", placed)
    if said is None:
        return [Check("labels_read", False, "custody/data/labels.parquet does not tell classes apart.")]
    counts = np.bincount(visits.values, minlength=len(visits.labels))
    shown = pl.DataFrame({"label": pl.Series(visits.labels, dtype=pl.String), "n": counts})
    return [
        of_count(
            "labels_read",
            unlike_counts(said.select("label", "read"), read.group_by("label").sum()),
            "Each label was read in as many visits as the source has.",
            "labels are in a different number of source visits than were read.",
        ),
        of_count(
            "labels_shown",
            unlike_counts(said.select("label", "shown"), shown),
            "Each label is in as many released visits as were meant to show it.",
            "labels are in a different number of released visits than were meant to show them.",
        ),
    ]


def _labels_of_source(share: Share, source: Source, codes: pl.DataFrame) -> pl.DataFrame:
    """`label`, `n`: the source visits with a code of that label (patients, where visits are merged before)."""
    parameters = share.manifest["parameters"]
    labels, label = images_of(source, codes.select("code", pl.coalesce("label", "above")).drop_nulls())
    early = parameters.get("merge_visits") and parameters.get("level") not in ("codes", "containment")
    visit, n = source.numbered.visits(None if early else visit_column(source))
    counts = np.bincount(values_of_groups(visit, label, n)[1], minlength=len(labels))
    frame = pl.DataFrame({"label": pl.Series(labels, dtype=pl.String), "n": counts})
    return frame.filter(pl.col("n") > 0)


def image_checks(
    share: Share,
    visits: VisitLists,
    source: Source,
    owners: Longs,
    codes: pl.DataFrame,
    rows: pl.Series | None,
) -> list[Check]:
    """Each released visit is a part of the image of a source visit of its patient, each source visit used once.
    `owners`: the number of each visit's patient. `rows`: the source row that each visit is said to come from."""
    if share.manifest["parameters"].get("merge_visits"):
        of_events, of_visits, mixed = source.numbered.visits(None)[0], owners, 0
    elif (found := _of_visits(source, owners, rows)) is not None:
        of_events, of_visits, mixed = found
    else:
        detail = "custody/data/visits.parquet does not name one source row for each visit."
        return [Check("witness", False, detail)]
    return [
        of_count(
            "one_source_visit_each",
            mixed,
            "Each released visit comes from a source visit of its own.",
            "released visits share a source visit or come from another patient's.",
        ),
        of_count(
            "parts_of_source_visits",
            _strange(visits, of_events, of_visits, source.numbered, codes),
            "Every released code is the image of a code of the source visit that it comes from.",
            "released codes are the image of nothing in the source visit that they come from.",
        ),
    ]


def _strange(
    visits: VisitLists, of_events: Longs, of_visits: Longs, source: Numbered, codes: pl.DataFrame
) -> int:
    """Released (visit, label) pairs without a code of the source visit behind them: events and released visits of a
    source visit have its number."""
    number = {label: place for place, label in enumerate(visits.labels)}
    rows = {code: place for place, code in enumerate(codes["code"])}
    explained = np.zeros(len(visits.values), np.bool_)
    width = max(1, len(visits.labels))
    # below 0 for visits of no source visit
    shown = np.repeat(of_visits, visits.sizes()) * width + visits.values
    for column in ("label", "above"):
        if codes[column].null_count() == codes.height:
            continue
        image = codes[column].to_list()
        table = [number.get(image[rows[code]], -1) if code in rows else -1 for code in source.codes]
        images = np.array(table, np.int32)[source.code]
        known = (images >= 0) & (of_events >= 0)
        explained |= find(distinct(of_events[known] * width + images[known]), shown, -1) >= 0
    return int(np.count_nonzero(~explained))


def _between(ascending: pl.Series, low: int, high: int) -> tuple[int, int]:
    """Where the values from `low` to below `high` begin, and how many they are."""
    first, end = ascending.drop_nulls().search_sorted([low, high])
    return int(first), int(end - first)


def _of_visits(source: Source, owners: Longs, said: pl.Series | None) -> tuple[Longs, Longs, int] | None:
    """The number of each event's source visit, and of the source visit that each released one is said to come from; and
    how many say another patient's visit, or one that another released visit comes from too. None where the witness does
    not name one row for each."""
    if said is None or said.null_count():
        return None
    events = source.events
    row = events["row"].to_numpy() if "row" in events.columns else np.arange(1, events.height + 1)
    order = None if bool((row[1:] >= row[:-1]).all()) else np.argsort(row, kind="stable")
    place = find(row if order is None else row[order], said.to_numpy().astype(np.int64), -1)
    if (place < 0).any():
        return None
    at, column = place if order is None else order[place], visit_column(source)
    if column is None:
        raise BadInput("the source was read without visits; name its column of visits or of dates.")
    visit, n = source.numbered.visits(column)
    foreign = int(np.count_nonzero(source.numbered.patient[at] != owners))
    again = len(at) - int(np.count_nonzero(np.bincount(visit[at], minlength=n)))
    return visit, visit[at], foreign + again


def payload_checks(share: Share, source: Source) -> list[Check]:
    """The payload's rows are those of the source's patients, in whatever order; with custody every record has the
    payload of the patient whom custody names."""
    names = payload_of(share.manifest["parameters"])
    if not names or source.patients is None:
        return []
    held = source.events.select("patient").unique().join(source.patients, on="patient", how="left")
    released = share.table("records.parquet").select("record", *names)
    checks = [same_payload(released, held, names, "source")]
    owners = read_owners(share)
    if owners is None:
        return checks
    if owners["patient"].dtype != source.patients["patient"].dtype:
        detail = "custody/data/patients.parquet names no patients of the source."
        return [*checks, Check("payload_of_patients", False, detail)]
    own = owners.join(source.patients.select("patient", *names), on="patient", how="left")
    good, bad = "Every record has its own patient's payload.", "records have another patient's payload."
    wrong = other_payload(released, own, "record", names).height
    return [*checks, of_count("payload_of_patients", wrong, good, bad)]


VISITS_AT_ONCE = 1 << 20
"""The order of so many visits, and of the rest of a record's, is looked at together."""


def order_of_visits(share: Share, visits: VisitLists) -> Check:
    """Numbers of visits say nothing of their first code, their size, or their place in the source."""
    rows = rows_of_visits(share, visits)
    if not bool((visits.record[1:] >= visits.record[:-1]).all()):
        order = np.argsort(visits.record, kind="stable")
        visits, rows = visits.take(order), None if rows is None else rows.gather(order)
    cuts = np.searchsorted(visits.record, visits.record[VISITS_AT_ONCE::VISITS_AT_ONCE])
    bounds = np.unique(np.concatenate([[0], cuts, [len(visits)]]))
    made = [
        [_order_inside(visits.take(np.arange(low, high)), None if rows is None else rows[low:high])]
        for low, high in pairwise(bounds if len(bounds) > 1 else [0, 0])
    ]
    return merge_parts(made)[0]


def _order_inside(visits: VisitLists, rows: pl.Series | None) -> Check:
    first = np.unique(visits.record, return_index=True)[1]
    sizes_of_records = np.diff(np.append(first, len(visits)))
    several = np.flatnonzero(np.repeat(sizes_of_records, sizes_of_records) > 1)
    order = several[np.lexsort((visits.visit[several], visits.record[several]))]
    sizes = visits.sizes()
    first = np.where(
        sizes > 0, visits.values[np.minimum(visits.offsets[:-1], max(len(visits.values) - 1, 0))], -1
    )
    known = {"first code": pl.Series(first[order]), "size": pl.Series(sizes[order])}
    if rows is not None:
        known["source row"] = rows.gather(order)
    return within_check("order_of_visits", pl.Series(visits.record[order]), known, "visits inside a record")


def rows_of_visits(share: Share, visits: VisitLists) -> pl.Series | None:
    """The source row of each visit by custody's `visits.parquet`, null where it says none; None without such a file, or
    where it says several."""
    file = share.kept("visits.parquet")
    if file is None or not {"record", "visit", "row"} <= set(pl.read_parquet_schema(file)):
        return None
    said = pl.read_parquet(file).with_columns(pl.col("record", "visit").cast(pl.Int64))
    placed = pl.DataFrame({"record": visits.record, "visit": visits.visit})
    if not said.select("record", "visit").equals(placed):
        said = placed.join(said, on=["record", "visit"], how="left", maintain_order="left")
    return said["row"] if said.height == placed.height else None
