"""A release of visits against its source: each released visit is part of the image of one visit of its patient."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.manifest import Share
from leeward.verify.visits.classed import Placed, bare, only_released, read_named
from leeward.verify.visits.kernels import explain
from leeward.verify.visits.known_codes import known_codes_shown
from leeward.verify.visits.reading import VisitLists
from leeward.verify.visits.shown import contained_check, sets_of_source
from leeward.vocabulary import VOCABULARIES, load

MEMBERS = "|"


def source_checks(
    share: Share, visits: VisitLists, source: Source, placed: Placed | None = None
) -> list[Check]:
    """Nothing was invented, each visit comes from one visit, merged codes belong together, the payload is whole."""
    folder = share.folder.parent / "custody" / "data"
    witnessed = all((folder / name).is_file() for name in ("patients.parquet", "codes.parquet"))
    owners = pl.read_parquet(folder / "patients.parquet").select("record", "patient") if witnessed else None
    checks = []
    if placed is not None:
        source = only_released(share, placed, source)
    people = source.events["patient"].n_unique()
    records = int(share.manifest["records"])
    checks.append(
        Check(
            "every_patient_once",
            people == records,
            f"{records:,} records for {people:,} patients of the source.",
        )
    )
    if owners is not None:
        same = owners["patient"].dtype == source.events["patient"].dtype
        if not same or not np.array_equal(owners["record"].sort().to_numpy(), np.arange(records)):
            detail = "custody/data/patients.parquet does not name the source's patients once each."
            return [*checks, Check("witness", False, detail)]
    if placed is not None:
        checks += placed.source_checks(source, owners)
    if owners is not None:
        checks += witness_checks(share, visits, source, placed, owners)
    return checks + payload_checks(share, source) + payload_of_patients(share, source, folder)


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
    return checks + shown_checks(share, visits, source, folder, codes)


def shown_checks(
    share: Share, visits: VisitLists, source: Source, folder: Path, codes: pl.DataFrame
) -> list[Check]:
    """Levels about source visits: their images are made again from the source and counted in the records."""
    level, k = share.manifest["parameters"].get("level"), share.guarantee("k")
    if level == "codes":
        sets = sets_of_source(source, folder, codes)
        return [known_codes_shown(sets, visits, k, share.guarantee("m"), "known_codes_of_source_visits")]
    if level != "containment":
        return []
    sets = sets_of_source(source, folder, codes)
    return [contained_check("contained_source_visits", sets, visits, share.guarantee("k"))]


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
            _differing(
                said.select("label", pl.col("read").alias("n")), _labels_of_source(share, source, codes)
            ),
            "Each label was read in as many visits as the source has.",
            "labels are in another number of source visits than were read.",
        ),
        of_count(
            "labels_shown",
            _differing(
                said.select("label", pl.col("shown").alias("n")),
                pl.DataFrame({"label": pl.Series(visits.labels, dtype=pl.String), "n": shown}),
            ),
            "Each label is in as many released visits as were meant to show it.",
            "labels are in another number of released visits than were meant to show them.",
        ),
    ]


def _differing(said: pl.DataFrame, found: pl.DataFrame) -> int:
    """Labels whose numbers `n` differ; a label that is missing on one side has 0 there."""
    both = said.join(found, on="label", how="full", coalesce=True).fill_null(0)
    return int((both["n"] != both["n_right"]).sum())


def _labels_of_source(share: Share, source: Source, codes: pl.DataFrame) -> pl.DataFrame:
    """`label`, `n`: the source visits with a code of that label (patients, where visits are merged before)."""
    parameters, events = share.manifest["parameters"], source.events
    image = dict(codes.select("code", pl.coalesce("label", "above")).drop_nulls().rows())
    labels = sorted(set(image.values()))
    place = {label: number for number, label in enumerate(labels)}
    distinct = events["code"].unique()
    number = pl.Series([place.get(image.get(str(code), ""), -1) for code in distinct], dtype=pl.Int32)
    early = parameters.get("merge_visits") and parameters.get("level") not in ("codes", "containment")
    column = next((name for name in ("visit", "date") if name in events.columns and not early), None)
    keys = [pl.col("patient"), pl.col("code").replace_strict(distinct, number).alias("place")]
    if column is not None:
        keys.append(pl.col(column))
        if events[column].null_count():  # a null visit is a visit of one row
            keys.append(pl.when(pl.col(column).is_null()).then(pl.int_range(pl.len())).alias("alone"))
    counted = events.select(keys).unique().group_by("place").len("n").filter(pl.col("place") >= 0)
    return counted.select(pl.Series(labels, dtype=pl.String).gather(counted["place"]).alias("label"), "n")


def image_checks(
    share: Share, visits: VisitLists, source: Source, folder: Path, codes: pl.DataFrame
) -> list[Check]:
    """Each released visit is a part of the image of a source visit of its patient, each source visit used once."""
    patients = pl.read_parquet(folder / "patients.parquet").select("record", "patient")
    placed = pl.DataFrame({"record": visits.record, "visit": visits.visit})
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
            "Every released code is the image of a code of the source visit that it comes from.",
            "released codes are the image of nothing in the source visit that they come from.",
        ),
    ]


def _strange(visits: VisitLists, events: pl.DataFrame, codes: pl.DataFrame) -> int:
    """Released (visit, label) pairs without a code of that source visit (`place`, `code`) behind them."""
    number = {label: place for place, label in enumerate(visits.labels)}
    rows = {code: place for place, code in enumerate(codes["code"])}
    # The categories of an Enum are few: what becomes of each, then of each event by its number.
    kept = (
        events["code"] if isinstance(events["code"].dtype, pl.Enum) else events["code"].cast(pl.Categorical)
    )
    of_event = kept.to_physical().to_numpy()
    explained = np.zeros(len(visits.values), np.bool_)
    for column in ("label", "above"):
        if codes[column].null_count() == codes.height:
            continue
        image = codes[column].to_list()
        table = np.full(int(of_event.max(initial=0)) + 1, -1, np.int32)
        for category, physical in zip(*_categories(kept), strict=True):
            row = rows.get(category)
            if row is not None:
                table[physical] = number.get(image[row], -1)
        explain(events["place"].to_numpy(), table[of_event], visits.offsets, visits.values, explained)
    return int(np.count_nonzero(~explained))


def _categories(codes: pl.Series) -> tuple[list[str], list[int]]:
    """The codes that occur and their numbers."""
    distinct = codes.unique()
    return distinct.cast(pl.String).to_list(), distinct.to_physical().to_list()


def _of_patients(source: Source, patients: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """`place` and `code` of the events of every released record (one visit each)."""
    owners = patients.join(placed.with_row_index("place"), on="record", how="inner").select(
        "patient", "place"
    )
    return _with_place(source.events, owners, ["patient"])


def _with_place(events: pl.DataFrame, owners: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """`place` (-1: none) and `code` of every event, by the keys. Neighbours with equal keys are looked up once."""
    new = pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift(1)) for key in keys)
    first = events.select(new.fill_null(True)).to_series().to_numpy().copy()
    first[:1] = True
    heads = events.select(keys).filter(pl.Series(first))
    places = heads.join(owners, on=keys, how="left", maintain_order="left", nulls_equal=True)["place"]
    of_run = places.cast(pl.Int64).fill_null(-1).to_numpy()
    if len(of_run) != heads.height:  # a visit that two released visits claim: `one_source_visit_each` tells
        joined = events.select(*keys, "code").join(owners, on=keys, how="inner", nulls_equal=True)
        return joined.select(pl.col("place").cast(pl.Int64), "code")
    return pl.DataFrame({"place": of_run[np.cumsum(first) - 1], "code": events["code"]})


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
    if not said.select("record", "visit").equals(placed):
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
    owners = events.select(visit)[at].with_row_index("place")
    identifiers = patients.sort("record")
    whole = np.array_equal(
        identifiers["record"].to_numpy(), np.arange(int(placed["record"].to_numpy().max(initial=-1)) + 1)
    )
    theirs = (
        identifiers["patient"].gather(said["record"])
        if whole
        else said.select("record").join(patients, on="record", how="left", maintain_order="left")["patient"]
    )
    foreign = int((owners["patient"] != theirs).sum())
    doubled = owners.height - owners.select(visit).n_unique()
    return _with_place(events, owners, visit), foreign + doubled


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


def payload_of_patients(share: Share, source: Source, folder: Path) -> list[Check]:
    """Every record has the payload of the patient whom custody names; none without custody or payload."""
    names = [str(name) for name in share.manifest["parameters"].get("payload", [])]
    if not names or source.patients is None or not (folder / "patients.parquet").is_file():
        return []
    texts = [pl.col(name).cast(pl.String) for name in names]
    owners = pl.read_parquet(folder / "patients.parquet").select("record", "patient")
    if owners["patient"].dtype != source.patients["patient"].dtype:
        return [
            Check(
                "payload_of_patients", False, "custody/data/patients.parquet names no patients of the source."
            )
        ]
    own = owners.join(source.patients.select("patient", *texts), on="patient", how="left")
    released = pl.read_parquet(share.data("records.parquet")).select("record", *texts)
    both = released.join(own, on="record", how="left", suffix=" of patient")
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name} of patient")) for name in names)
    return [
        of_count(
            "payload_of_patients",
            both.select(differs.sum()).item(),
            "Every record has its own patient's payload.",
            "records have another patient's payload.",
        )
    ]
