"""A release of visits against its source: each released visit is part of the image of one visit of its patient."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.manifest import Share
from leeward.vocabulary import VOCABULARIES, load

MEMBERS = "|"


def source_checks(share: Share, visits: pl.DataFrame, source: Source) -> list[Check]:
    """Nothing was invented, each visit comes from one visit, merged codes belong together, the payload is whole."""
    people = source.events["patient"].n_unique()
    records = int(share.manifest["records"])
    checks = [
        Check(
            "every_patient_once",
            people == records,
            f"{records:,} records for {people:,} patients of the source.",
        )
    ]
    folder = share.folder.parent / "custody" / "data"
    needed = ("patients.parquet", "codes.parquet")
    if all((folder / name).is_file() for name in needed):
        codes = pl.read_parquet(folder / "codes.parquet")
        checks += [*code_checks(share, codes), *image_checks(share, visits, source, folder, codes)]
    return checks + payload_checks(share, source)


def code_checks(share: Share, codes: pl.DataFrame) -> list[Check]:
    """A label names its members, merged codes lie in one group of the hierarchy, nodes are above their codes."""
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
        wrong = sum(vocabulary.level(code, int(parameters["climb_to"])) != node for code, node in above)
        checks.append(
            of_count(
                "nodes_above",
                wrong,
                "Every node is above its codes.",
                "codes climb to a node that is not above them.",
            )
        )
    return checks


def image_checks(
    share: Share, visits: pl.DataFrame, source: Source, folder: Path, codes: pl.DataFrame
) -> list[Check]:
    """Each released visit is a part of the image of a source visit of its patient, each source visit used once."""
    patients = pl.read_parquet(folder / "patients.parquet").select("record", "patient")
    same = patients["patient"].dtype == source.events["patient"].dtype
    if not same or patients["record"].n_unique() != patients.height:
        detail = "custody/data/patients.parquet does not name the source's patients once each."
        return [Check("witness", False, detail)]
    placed = visits.select("record", "visit").with_row_index("place")
    merged = bool(share.manifest["parameters"].get("merge_visits"))
    found = (
        (_of_patients(source, patients, placed), 0)
        if merged
        else _of_visits(source, patients, placed, folder)
    )
    if found is None:
        detail = "custody/data/visits.parquet does not name one source row for each visit."
        return [Check("witness", False, detail)]
    events, mixed = found
    return [
        of_count(
            "one_source_visit_each",
            mixed,
            "Each released visit comes from a source visit of its own.",
            "released visits share a source visit or come from another patient's.",
        ),
        of_count(
            "parts_of_source_visits",
            _strange(visits, events, codes),
            "Every released code stands for a code of the source visit that it comes from.",
            "released codes stand for nothing in the source visit that they come from.",
        ),
    ]


def _strange(visits: pl.DataFrame, events: pl.DataFrame, codes: pl.DataFrame) -> int:
    """Released (visit, label) pairs without a code of that source visit (`place`, `code`) behind them."""
    shown = visits["codes"].explode()
    labels = pl.concat([codes["label"], codes["above"], shown]).drop_nulls().unique().sort()
    kind, width = pl.Enum(labels), len(labels)
    place = np.repeat(np.arange(visits.height, dtype=np.int64), visits["codes"].list.len().to_numpy())
    left = np.unique(place * width + shown.cast(kind).to_physical().to_numpy())
    known = pl.Enum(codes["code"].unique().sort())
    of_event = (
        events["code"]
        .cast(pl.String)
        .cast(known, strict=False)
        .to_physical()
        .fill_null(len(known.categories))
    )
    for column in ("label", "above"):
        table = np.full(len(known.categories) + 1, -1, np.int64)
        numbers = codes[column].cast(kind).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        table[codes["code"].cast(known).to_physical().to_numpy()] = numbers
        image = table[of_event.to_numpy()]
        keys = (events["place"].cast(pl.Int64).to_numpy() * width + image)[image >= 0]
        keys.sort()
        at = np.minimum(np.searchsorted(keys, left), max(0, len(keys) - 1))
        left = left[keys[at] != left] if len(keys) else left
    return len(left)


def _of_patients(source: Source, patients: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """`place` and `code` of the events of every released record (one visit each)."""
    owners = patients.join(placed, on="record", how="inner").select("patient", "place")
    return (
        source.events.select("patient", "code")
        .join(owners, on="patient", how="inner")
        .select("place", "code")
    )


def _of_visits(
    source: Source, patients: pl.DataFrame, placed: pl.DataFrame, folder: Path
) -> tuple[pl.DataFrame, int] | None:
    """`place` and `code` of the events of the source visit that each released one is said to come from.

    And how many say another patient's visit, or one that another released visit comes from too. None where the witness
    does not name one row for each.
    """
    if not (folder / "visits.parquet").is_file():
        return None
    said = pl.read_parquet(folder / "visits.parquet").with_columns(pl.col("row").cast(pl.UInt32))
    said = placed.join(said, on=["record", "visit"], how="left", maintain_order="left")
    if said.height != placed.height or said["row"].null_count():
        return None
    events = source.events if "row" in source.events.columns else source.events.with_row_index("row", 1)
    events = events if events["row"].is_sorted() else events.sort("row", maintain_order=True)
    at = np.searchsorted(events["row"].to_numpy(), said["row"].to_numpy())
    if at.max(initial=0) >= events.height or (events["row"].gather(at) != said["row"]).any():
        return None
    column = next(name for name in ("visit", "date") if name in events.columns)
    visit = ["patient", column]
    if events[column].null_count():  # a null visit is a visit of one row: its row names it
        alone = pl.when(pl.col(column).is_null()).then(pl.col("row")).alias("alone")
        events, visit = events.with_columns(alone), [*visit, "alone"]
    owners = events.select(visit)[at].with_columns(said["place"])
    theirs = said.select("record").join(patients, on="record", how="left", maintain_order="left")["patient"]
    foreign = int((owners["patient"] != theirs).sum())
    doubled = owners.height - owners.select(visit).n_unique()
    joined = events.select("code", *visit).join(owners, on=visit, nulls_equal=len(visit) > 2)
    return joined.select("place", "code"), foreign + doubled


def payload_checks(share: Share, source: Source) -> list[Check]:
    """The payload's rows are those of the source's patients, in whatever order."""
    names = [str(name) for name in share.manifest["parameters"].get("payload", [])]
    if not names or source.patients is None:
        return []
    held = source.events.select("patient").unique().join(source.patients, on="patient", how="left")
    released = pl.read_parquet(share.data("records.parquet"), columns=names)
    shown, kept = (
        Counter(
            dict(
                frame.select(
                    pl.concat_str(pl.col(names).cast(pl.String).fill_null("\x00"), separator="\x1f").alias(
                        "row"
                    )
                )
                .group_by("row")
                .len()
                .rows()
            )
        )
        for frame in (released, held)
    )
    return [
        of_count(
            "payload",
            sum((shown - kept).values()) + sum((kept - shown).values()),
            "The payload's rows are those of the source.",
            "rows of payload differ from those of the source.",
        )
    ]
