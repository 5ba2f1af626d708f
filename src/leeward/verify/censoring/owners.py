"""Censored records against the patients that the custodian says they are of."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import demographics_of
from leeward.verify.manifest import Share


def own_patients(share: Share, table: pa.Table, source: Source) -> list[Check]:
    """Every record is a part of its patient's record, with that patient's payload; none without custody.

    `custody/data/records.parquet` names the place of each record's patient among the sample's, ascending.
    """
    file = share.folder.parent / "custody" / "data" / "records.parquet"
    if share.folder.name != "share" or not file.is_file():
        return []
    owners = owners_of(share, source)
    whole = owners.height == table.num_rows == owners["record"].n_unique() == owners["patient"].n_unique()
    if not whole or owners["patient"].null_count():
        return [Check("own_patients", False, "custody/data/records.parquet does not name each patient once.")]
    names = [name for name in table.column_names if name not in ("record", "codes", *demographics_of(share))]
    released = pl.DataFrame(pl.from_arrow(table)).join(owners.select("record", "patient"), on="record")
    wrong = set(more_than_own(released, source)) | set(other_payload(released, source, names))
    return [
        of_count(
            "own_patients",
            len(wrong) + (released.height != table.num_rows),
            "Every record is a part of the record of the patient whom custody names, with that patient's payload.",
            "records hold what the patient whom custody names has not, or another payload.",
        )
    ]


def owners_of(share: Share, source: Source) -> pl.DataFrame:
    """`record`, `place`, `patient`: the patient whom custody names for each record, null for none."""
    said = pl.read_parquet(share.folder.parent / "custody" / "data" / "records.parquet").select(
        "record", "place"
    )
    patients = source.events.select("patient").unique().sort("patient").with_row_index("place")
    patients = patients.with_columns(pl.col("place").cast(pl.Int64))
    return said.with_columns(pl.col("place").cast(pl.Int64)).join(patients, on="place", how="left")


def more_than_own(released: pl.DataFrame, source: Source) -> list[int]:
    """Records with a mention that their patient lacks."""
    events = source.events.select(
        "patient", pl.col("code").cast(pl.String), *(["visit"] if "visit" in source.events.columns else [])
    )
    if "visit" in events.columns:
        known = events.filter(pl.col("visit").is_not_null()).unique()
        events = pl.concat([known, events.filter(pl.col("visit").is_null())])
    held = events.group_by("patient", "code").agg(pl.len().alias("has"))
    shown = (
        released.select("record", "patient", "codes")
        .explode("codes", empty_as_null=False)
        .group_by("record", "patient", code="codes")
        .agg(pl.len().alias("shows"))
        .join(held, on=["patient", "code"], how="left")
    )
    records: list[int] = shown.filter(pl.col("shows") > pl.col("has").fill_null(0))["record"].to_list()
    return records


def other_payload(released: pl.DataFrame, source: Source, names: Sequence[str]) -> list[int]:
    """Records whose payload is not their patient's."""
    if not names or source.patients is None:
        return []
    texts = [pl.col(name).cast(pl.String) for name in names]
    own = source.patients.select("patient", *texts)
    both = released.select("record", "patient", *texts).join(
        own, on="patient", how="left", suffix=" of patient"
    )
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name} of patient")) for name in names)
    records: list[int] = both.filter(differs)["record"].to_list()
    return records
