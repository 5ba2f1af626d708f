"""Censored records against the patients that the custodian says they are of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.verify.censoring.holders import Longs, Shown
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import demographics_of
from leeward.verify.flat import distinct
from leeward.verify.manifest import Share


def check_owners(share: Share, table: pa.Table, shown: Shown, source: Source) -> list[Check]:
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
    released = pl.DataFrame(pl.from_arrow(table.drop(["codes"])))
    place = released.select("record").join(owners, on="record", how="left", maintain_order="left")["place"]
    more = released["record"].gather(more_than_own(place.fill_null(-1).to_numpy(), shown, source))
    released = released.join(owners.select("record", "patient"), on="record")
    once = released.height == table.num_rows == released["record"].n_unique()
    wrong = set(more) | set(other_payload(released, source, names))
    return [
        of_count(
            "own_patients",
            len(wrong) + (not once),
            "Every record is a part of the record of the patient whom custody names, with that patient's payload.",
            "records hold what the patient whom custody names has not, or another payload.",
        )
    ]


def owners_of(share: Share, source: Source) -> pl.DataFrame:
    """`record`, `place`, `patient`: the patient whom custody names for each record, null for none."""
    said = pl.read_parquet(share.folder.parent / "custody" / "data" / "records.parquet").select(
        "record", "place"
    )
    patients = source.numbered.patients.to_frame("patient").with_row_index("place")
    patients = patients.with_columns(pl.col("place").cast(pl.Int64))
    return said.with_columns(pl.col("place").cast(pl.Int64)).join(patients, on="place", how="left")


def more_than_own(owner: Longs, shown: Shown, source: Source) -> Longs:
    """Places of records with a mention that their patient lacks.

    owner : of the record at each place of the file, the place of its patient among the source's, -1 for none.
    """
    keys, has = source.numbered.mentions
    code = shown.among(source.numbered.codes)
    asked = owner[shown.place] * source.numbered.width + code
    at = np.minimum(np.searchsorted(keys, asked), max(len(keys) - 1, 0))
    held = np.where((code >= 0) & (keys[at] == asked), has[at], 0) if len(keys) else np.zeros(len(asked))
    return distinct(shown.place[shown.shows > held])


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
