"""The verifier of suppression: counts codes in the released records, and compares patients with the source."""

from __future__ import annotations

import polars as pl

from leeward.verify.checks import Check, Source
from leeward.verify.manifest import Share


def check(share: Share, source: Source | None) -> list[Check]:
    """Every code is in at least k records; with the source, there is a record for each patient."""
    records = pl.read_parquet(share.folder / "data" / "records.parquet")
    k = int(share.manifest["guarantee"]["k"])
    counts = records["codes"].explode().drop_nulls().value_counts()
    rare = counts.filter(pl.col("count") < k).height
    found = [Check("codes_of_k", rare == 0, f"{rare} codes in fewer than {k} records.", {"rare": rare})]
    if source is not None:
        patients = source.events["patient"].n_unique()
        same = patients == records.height
        found.append(Check("every_patient", same, f"{records.height} records of {patients} patients.", {}))
    return found
