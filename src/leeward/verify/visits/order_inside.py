"""The order of visits inside a record: against their codes, and with custody against the source's rows."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.verify.checks import Check
from leeward.verify.manifest import Share
from leeward.verify.order import within_check
from leeward.verify.visits.reading import VisitLists


def order_of_visits(share: Share, visits: VisitLists) -> Check:
    """Numbers of visits say nothing of their first code, their size, or their place in the source."""
    several = np.flatnonzero(np.bincount(visits.record, minlength=1)[visits.record] > 1)
    order = several[np.lexsort((visits.visit[several], visits.record[several]))]
    sizes = visits.sizes()
    first = np.where(
        sizes > 0, visits.values[np.minimum(visits.offsets[:-1], max(len(visits.values) - 1, 0))], -1
    )
    known = {"first code": pl.Series(first[order]), "size": pl.Series(sizes[order])}
    file = share.folder.parent / "custody" / "data" / "visits.parquet"
    if share.folder.name == "share" and file.is_file():
        said = pl.read_parquet(file)
        if {"record", "visit", "row"} <= set(said.columns):
            placed = pl.DataFrame({"record": visits.record[order], "visit": visits.visit[order]})
            rows = placed.join(
                said.with_columns(pl.col("record", "visit").cast(pl.Int64)),
                on=["record", "visit"],
                how="left",
                maintain_order="left",
            )
            if rows.height == placed.height:
                known["source row"] = rows["row"]
    return within_check("order_of_visits", pl.Series(visits.record[order]), known, "visits inside a record")
