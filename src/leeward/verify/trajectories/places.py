"""Records against the patients that the custodian says they are of: each generalizes its own, with its own payload.

`custody/data/records.parquet` is a witness. What it says is checked, and it proves what otherwise a matching must find.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, of_count
from leeward.verify.manifest import Share
from leeward.verify.trajectories import kernels
from leeward.verify.trajectories.layout import Released

Longs = NDArray[np.int64]


def places_of(share: Share, n: int) -> Longs | None:
    """For each record the place of its patient, ascending identifiers; None where custody does not say it."""
    file = share.folder.parent / "custody" / "data" / "records.parquet"
    if share.folder.name != "share" or not file.is_file():
        return None
    table = pl.read_parquet(file)
    if not {"record", "place"} <= set(table.columns):
        return None
    table = table.sort("record")
    ranks = np.arange(n)
    fits = np.array_equal(table["record"].to_numpy(), ranks) and np.array_equal(
        np.sort(table["place"].to_numpy()), ranks
    )
    return table["place"].to_numpy().astype(np.int64) if fits else np.full(n, -1, np.int64)


def check_owners(
    released: Released,
    frame: pl.DataFrame,
    place: Longs,
    fitting: NDArray[np.bool_],
    in_order: bool,
) -> Check:
    """Each record generalizes the pairs of its patient and has the patient's payload, and labels that fit.

    frame : `patient`, `code`, `age` (leaves), patients ascending, a patient's rows in order.  fitting : whether
    a record has the payload of the patient whom custody names, and a class that fits the patient.
    """
    runs = frame.select(pl.col("patient").rle()).unnest("patient")
    offsets = np.concatenate([[0], np.cumsum(runs["len"].to_numpy())]).astype(np.int64)
    codes, ages = (frame[name].to_numpy().astype(np.int64) for name in ("code", "age"))
    r = released
    matches = kernels.owners if in_order else kernels.owners_in_any_order
    buffer, one = np.empty(1, np.int64), np.empty(1, np.int64)
    low, high = r.code_tree.low[r.codes], r.code_tree.high[r.codes]
    first, last = r.age_tree.low[r.ages], r.age_tree.high[r.ages]
    wrong = 0
    for record in range(len(r.offsets) - 1):
        span = slice(int(r.offsets[record]), int(r.offsets[record + 1]))
        one[0] = place[record]
        fits = place[record] >= 0 and fitting[record]
        wrong += not (
            fits
            and matches(low[span], high[span], first[span], last[span], one, offsets, codes, ages, buffer)
        )
    return of_count(
        "own_patients",
        wrong,
        "Every record generalizes the patient whom custody names, with that patient's payload and labels that fit.",
        "records do not generalize the patient whom custody names, have another payload, or labels that do not fit the "
        "patient.",
        {"records": len(place)},
    )
