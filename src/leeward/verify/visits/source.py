"""A release of visits against its source: each released visit is part of the image of one visit of its patient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from leeward.errors import BadInput
from leeward.verify.checks import (
    Check,
    Source,
    of_count,
    other_payload,
    payload_of,
    same_payload,
    unlike_counts,
)
from leeward.verify.classes import demographics_of_patients, select_patients
from leeward.verify.flat import Longs, Numbered, distinct, find, values_of_groups
from leeward.verify.manifest import Share
from leeward.verify.order import within_check
from leeward.verify.visits.layout import Placed, VisitLists, bare, read_named
from leeward.verify.visits.levels import check_codes_shown, check_containment, sets_of_source
from leeward.vocabulary import VOCABULARIES, load

MEMBERS = "|"
CHAPTER = 3
"""The level of a hierarchy to which codes climb."""


def source_checks(
    share: Share, visits: VisitLists, source: Source, placed: Placed | None = None
) -> list[Check]:
    """Nothing was invented, each visit comes from one visit, merged codes belong together, the payload is whole."""
    folder = share.folder.parent / "custody" / "data"
    witnessed = all((folder / name).is_file() for name in ("patients.parquet", "codes.parquet"))
    owners = pl.read_parquet(folder / "patients.parquet").select("record", "patient") if witnessed else None
    checks = []
    if placed is not None:
        source = select_patients(share, placed.classes, source)
    people = len(source.numbered.patients)
    records = int(share.manifest["records"])
    checks.append(
        Check(
            "every_patient_once",
            people == records,
            f"{records:,} records for {people:,} patients of the source.",
        )
    )
    if source.vocabulary is not None:
        stated = share.manifest["parameters"].get("vocabulary")
        theirs = Path(source.vocabulary).name
        detail = (
            "The vocabulary is the source's."
            if stated == theirs
            else "The source's codes are of another vocabulary."
        )
        checks.append(Check("vocabulary_of_source", stated == theirs, detail))
    if owners is not None:
        same = owners["patient"].dtype == source.events["patient"].dtype
        if not same or not np.array_equal(owners["record"].sort().to_numpy(), np.arange(records)):
            detail = "custody/data/patients.parquet does not name the source's patients once each."
            return [*checks, Check("witness", False, detail)]
    if placed is not None:
        own = None if owners is None else owners.sort("record")["patient"]
        checks += demographics_of_patients(placed.classes, placed.of_record, source, own)
    if owners is not None:
        checks += witness_checks(share, visits, source, placed, owners)
    return checks + payload_checks(share, source, folder)


def witness_checks(
    share: Share, visits: VisitLists, source: Source, placed: Placed | None, owners: pl.DataFrame
) -> list[Check]:
    """The checks that the custodian's files of who is who, and of what became of each code, allow."""
    folder = share.folder.parent / "custody" / "data"
    codes = read_named(folder / "codes.parquet", placed)
    if codes is None:
        return [Check("witness", False, "custody/data/codes.parquet does not tell classes apart.")]
    if placed is not None:
        source = placed.source_apart(source, owners)
    checks = [*code_checks(share, bare(codes, placed)), *image_checks(share, visits, source, folder, codes)]
    checks += accounts(share, visits, source, folder, codes, placed)
    return checks + check_against_source(share, visits, source, folder, codes)


def check_against_source(
    share: Share, visits: VisitLists, source: Source, folder: Path, codes: pl.DataFrame
) -> list[Check]:
    """Levels about source visits: their images are made again from the source and counted in the records."""
    level, k = share.manifest["parameters"].get("level"), share.guarantee("k")
    if level == "codes":
        sets = sets_of_source(source, folder, codes)
        return [check_codes_shown(sets, visits, k, share.guarantee("m"), "known_codes_of_source_visits")]
    if level != "containment":
        return []
    sets = sets_of_source(source, folder, codes)
    return [check_containment("contained_source_visits", sets, visits, share.guarantee("k"))]


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
                "codes climb to a node that is not above them.",
            )
        )
    return checks


def accounts(
    share: Share,
    visits: VisitLists,
    source: Source,
    folder: Path,
    codes: pl.DataFrame,
    placed: Placed | None = None,
) -> list[Check]:
    """Nothing was lost on the way in or out: each label is in as many source visits as the method says that it read,
    and in as many released ones as it says that it meant to show."""
    if not (folder / "labels.parquet").is_file():
        return [Check("labels_read", False, "custody/data/labels.parquet is missing.")]
    said = read_named(folder / "labels.parquet", placed)
    if said is None:
        return [Check("labels_read", False, "custody/data/labels.parquet does not tell classes apart.")]
    shown = np.bincount(visits.values, minlength=len(visits.labels))
    return [
        of_count(
            "labels_read",
            unlike_counts(said.select("label", "read"), _labels_of_source(share, source, codes)),
            "Each label was read in as many visits as the source has.",
            "labels are in another number of source visits than were read.",
        ),
        of_count(
            "labels_shown",
            unlike_counts(
                said.select("label", "shown"),
                pl.DataFrame({"label": pl.Series(visits.labels, dtype=pl.String), "n": shown}),
            ),
            "Each label is in as many released visits as were meant to show it.",
            "labels are in another number of released visits than were meant to show them.",
        ),
    ]


def _labels_of_source(share: Share, source: Source, codes: pl.DataFrame) -> pl.DataFrame:
    """`label`, `n`: the source visits with a code of that label (patients, where visits are merged before)."""
    parameters, events = share.manifest["parameters"], source.events
    image = dict(codes.select("code", pl.coalesce("label", "above")).drop_nulls().rows())
    numbered = source.numbered
    labels = sorted({image[code] for code in numbered.codes if code in image})
    place = {label: number for number, label in enumerate(labels)}
    label = np.array([place.get(image.get(code, ""), -1) for code in numbered.codes], np.int32)[numbered.code]
    early = parameters.get("merge_visits") and parameters.get("level") not in ("codes", "containment")
    column = next((name for name in ("visit", "date") if name in events.columns and not early), None)
    visit, n = numbered.visits(column)
    counts = np.bincount(values_of_groups(visit, label, n)[1], minlength=len(labels))
    frame = pl.DataFrame({"label": pl.Series(labels, dtype=pl.String), "n": counts})
    return frame.filter(pl.col("n") > 0)


def image_checks(
    share: Share, visits: VisitLists, source: Source, folder: Path, codes: pl.DataFrame
) -> list[Check]:
    """Each released visit is a part of the image of a source visit of its patient, each source visit used once."""
    patients = pl.read_parquet(folder / "patients.parquet").select("record", "patient")
    merged = bool(share.manifest["parameters"].get("merge_visits"))
    owners = _owners(source, patients, visits.record)
    found = (
        (source.numbered.visits(None)[0], owners, 0) if merged else _of_visits(source, owners, visits, folder)
    )
    if found is None:
        detail = "custody/data/visits.parquet does not name one source row for each visit."
        return [Check("witness", False, detail)]
    of_events, of_visits, mixed = found
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
    shown = (
        np.repeat(of_visits, visits.sizes()) * width + visits.values
    )  # below 0 for visits of no source visit
    for column in ("label", "above"):
        if codes[column].null_count() == codes.height:
            continue
        image = codes[column].to_list()
        table = [number.get(image[rows[code]], -1) if code in rows else -1 for code in source.codes]
        images = np.array(table, np.int32)[source.code]
        known = (images >= 0) & (of_events >= 0)
        explained |= find(distinct(of_events[known] * width + images[known]), shown, -1) >= 0
    return int(np.count_nonzero(~explained))


def _owners(source: Source, patients: pl.DataFrame, records: Longs) -> Longs:
    """The number of each record's patient, -1 where custody names none of the source's."""
    known = source.numbered.patients.to_frame("patient").with_row_index("number")
    named = patients.join(known, on="patient", how="left")
    of_record = pl.DataFrame({"record": records}).join(named, on="record", how="left", maintain_order="left")
    return of_record["number"].cast(pl.Int64).fill_null(-1).to_numpy()


def _of_visits(
    source: Source, owners: Longs, visits: VisitLists, folder: Path
) -> tuple[Longs, Longs, int] | None:
    """The number of each event's source visit, and of the source visit that each released one is said to come from.

    And how many say another patient's visit, or one that another released visit comes from too. None where the witness
    does not name one row for each.
    """
    said = rows_of_visits(folder, visits)
    if said is None or said.null_count():
        return None
    events, wanted = source.events, said.cast(pl.UInt32).to_numpy()
    row = events["row"].to_numpy() if "row" in events.columns else np.arange(1, events.height + 1)
    ascending = None if bool((row[1:] >= row[:-1]).all()) else np.argsort(row, kind="stable")
    at = np.searchsorted(row, wanted, sorter=ascending)
    if at.max(initial=0) >= events.height:
        return None
    at = at if ascending is None else ascending[at]
    if (row[at] != wanted).any():
        return None
    column = next((name for name in ("visit", "date") if name in events.columns), None)
    if column is None:
        raise BadInput("the source was read without visits; name its column of visits or of dates.")
    visit, n = source.numbered.visits(column)
    foreign = int(np.count_nonzero(source.numbered.patient[at] != owners))
    again = len(at) - int(np.count_nonzero(np.bincount(visit[at], minlength=n)))
    return visit, visit[at], foreign + again


def payload_checks(share: Share, source: Source, folder: Path) -> list[Check]:
    """The payload's rows are those of the source's patients, in whatever order; with custody every record has the
    payload of the patient whom custody names."""
    names = payload_of(share.manifest["parameters"])
    if not names or source.patients is None:
        return []
    held = source.events.select("patient").unique().join(source.patients, on="patient", how="left")
    released = pl.read_parquet(share.data("records.parquet"), columns=["record", *names])
    checks = [same_payload(released, held, names, "source")]
    if not (folder / "patients.parquet").is_file():
        return checks
    owners = pl.read_parquet(folder / "patients.parquet").select("record", "patient")
    if owners["patient"].dtype != source.patients["patient"].dtype:
        detail = "custody/data/patients.parquet names no patients of the source."
        return [*checks, Check("payload_of_patients", False, detail)]
    own = owners.join(source.patients.select("patient", *names), on="patient", how="left")
    good, bad = "Every record has its own patient's payload.", "records have another patient's payload."
    wrong = other_payload(released, own, "record", names).height
    return [*checks, of_count("payload_of_patients", wrong, good, bad)]


def order_of_visits(share: Share, visits: VisitLists) -> Check:
    """Numbers of visits say nothing of their first code, their size, or their place in the source."""
    several = np.flatnonzero(np.bincount(visits.record, minlength=1)[visits.record] > 1)
    order = several[np.lexsort((visits.visit[several], visits.record[several]))]
    sizes = visits.sizes()
    first = np.where(
        sizes > 0, visits.values[np.minimum(visits.offsets[:-1], max(len(visits.values) - 1, 0))], -1
    )
    known = {"first code": pl.Series(first[order]), "size": pl.Series(sizes[order])}
    folder = share.folder.parent / "custody" / "data"
    rows = rows_of_visits(folder, visits) if share.folder.name == "share" else None
    if rows is not None:
        known["source row"] = rows.gather(order)
    return within_check("order_of_visits", pl.Series(visits.record[order]), known, "visits inside a record")


def rows_of_visits(folder: Path, visits: VisitLists) -> pl.Series | None:
    """The source row of each visit by custody's `visits.parquet`, null where it says none; None without such a file, or
    where it says several."""
    file = folder / "visits.parquet"
    if not file.is_file() or not {"record", "visit", "row"} <= set(pl.read_parquet_schema(file)):
        return None
    said = pl.read_parquet(file).with_columns(pl.col("record", "visit").cast(pl.Int64))
    placed = pl.DataFrame({"record": visits.record, "visit": visits.visit})
    if not said.select("record", "visit").equals(placed):
        said = placed.join(said, on=["record", "visit"], how="left", maintain_order="left")
    return said["row"] if said.height == placed.height else None
