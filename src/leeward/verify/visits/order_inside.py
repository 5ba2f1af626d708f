"""The order of visits inside a record: against their codes, and with custody against the source's rows."""

from __future__ import annotations

from pathlib import Path

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
