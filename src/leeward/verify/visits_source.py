"""A release of visits against its source: every released visit is part of the image of one source visit of its patient."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

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
    """A label names its members, and what was merged lies in one group of the hierarchy; nodes are above their codes."""
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
        return [
            Check(
                "witness",
                False,
                "custody/data/patients.parquet does not name the source's patients once each.",
            )
        ]
    merged = bool(share.manifest["parameters"].get("merge_visits"))
    events, mixed = (
        (_of_patients(source, patients), 0) if merged else _of_visits(source, patients, visits, folder)
    )
    if events is None:
        return [
            Check(
                "witness", False, "custody/data/visits.parquet does not name one source row for each visit."
            )
        ]
    labels = (
        pl.concat([codes["label"], codes["above"], visits["codes"].explode()]).drop_nulls().unique().sort()
    )
    kind = pl.Enum(labels)
    images = [
        events.join(
            codes.select(
                pl.col("code").cast(events["code"].dtype, strict=False),
                pl.col(column).cast(kind).alias("codes"),
            ),
            on="code",
            how="inner",
        )
        .drop_nulls("codes")
        .select("record", "visit", pl.col("codes").to_physical())
        for column in ("label", "above")
        if codes[column].null_count() < codes.height
    ]
    shown = visits.explode("codes").select("record", "visit", pl.col("codes").cast(kind).to_physical())
    left = shown
    for image in images:
        left = left.join(image, on=["record", "visit", "codes"], how="anti")
    return [
        of_count(
            "one_source_visit_each",
            mixed,
            "Each released visit comes from a source visit of its own.",
            "released visits share a source visit or come from another patient's.",
        ),
        of_count(
            "parts_of_source_visits",
            left.height,
            "Every released code stands for a code of the source visit that it comes from.",
            "released codes stand for nothing in the source visit that they come from.",
        ),
    ]


def _of_patients(source: Source, patients: pl.DataFrame) -> pl.DataFrame:
    """`record`, `visit` 0, `code` of all events."""
    events = source.events.select("patient", "code").join(patients, on="patient", how="inner")
    return events.select("record", pl.lit(0, pl.Int64).alias("visit"), "code")


def _of_visits(
    source: Source, patients: pl.DataFrame, visits: pl.DataFrame, folder: Path
) -> tuple[pl.DataFrame | None, int]:
    """`record`, `visit`, `code` of the events of every source visit that a released one is said to come from."""
    if not (folder / "visits.parquet").is_file():
        return None, 0
    said = pl.read_parquet(folder / "visits.parquet").with_columns(pl.col("row").cast(pl.UInt32))
    keys = ["record", "visit"]
    if said.height != visits.height or said.join(visits.select(keys), on=keys, how="anti").height:
        return None, 0
    events = source.events
    if "row" not in events.columns:
        events = events.with_row_index("row", 1)
    column = next(name for name in ("visit", "date") if name in events.columns)
    # A null visit is a visit of one row: its row names it.
    events = events.select("patient", "code", "row", pl.col(column).alias("source_visit")).with_columns(
        pl.when(pl.col("source_visit").is_null()).then(pl.col("row")).alias("alone")
    )
    first = events.select("patient", "row", "source_visit", "alone").unique("row", keep="any")
    owners = said.join(first, on="row", how="inner").join(patients, on="record", how="left", suffix="_said")
    foreign = owners.filter(pl.col("patient") != pl.col("patient_said")).height + said.height - owners.height
    visit = ["patient", "source_visit", "alone"]
    doubled = owners.height - owners.select(visit).n_unique()
    joined = events.select("code", *visit).join(
        owners.select("record", "visit", *visit), on=visit, nulls_equal=True
    )
    return joined.select("record", "visit", "code"), foreign + doubled


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
