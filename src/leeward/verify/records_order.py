"""Orders of records and of what is inside them: against custody's and the source's order, and what the share shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from leeward.verify.checks import Check, Source
from leeward.verify.manifest import Share
from leeward.verify.order import order_check

NUMBERS = frozenset({"record", "position", "visit"})
"""Columns that number things: what they number is tested, not they."""


def check_orders(share: Share, files: Sequence[str]) -> list[Check]:
    """The order of records against what each file shows of them (of several rows of a record, the first)."""
    found: dict[str, pl.Series] = {}
    for name in files:
        table = share.table(name)
        if "record" in table.columns and not (first := first_rows(table["record"])).all():
            table = table.filter(first)
        for column in table.columns:
            if column not in NUMBERS:
                # `age` is a label of records and the age of a pair: neither hides the other
                found[f"{column} ({name})" if column in found else column] = key_of(table[column])
    return [order_check("order_of_rows", found, "records")] if found else []


def first_rows(record: pl.Series) -> pl.Series:
    """Where each record's first row is; ascending ones, as they should be, are compared with their neighbours alone."""
    if record.null_count() or not record.is_sorted():
        return record.is_first_distinct()
    return (record != record.shift(1)).fill_null(value=True)


def key_of(column: pl.Series) -> pl.Series:
    """What a column is ranked by: of lists the first entry."""
    return column.list.first() if isinstance(column.dtype, pl.List) else column


def owner_orders(share: Share, owners: Mapping[str, str], source: Source | None = None) -> list[Check]:
    """The order of records against what custody says of each; none without custody.

    owners : file of `custody/data` with a row a record -> its column that tells whose the record is.
    """
    custody = share.folder.parent / "custody" / "data"
    found: dict[str, pl.Series] = {}
    for file, column in owners.items():
        if share.folder.name != "share" or not (custody / file).is_file():
            continue
        table = pl.read_parquet(custody / file)
        if not {"record", column} <= set(table.columns):
            continue
        found[column] = table.sort("record")[column]
        if source is not None and column in ("patient", "place"):
            found["source row"] = source_rows(found[column], source)
    return [order_check("order_of_records", found, "records")] if found else []


def source_rows(owner: pl.Series, source: Source) -> pl.Series:
    """The first row of each record's patient in the source; nulls where custody names patients otherwise.

    owner : identifiers, or places among the patients in ascending order.
    """
    patients, first = source.numbered.patients, pl.Series(source.numbered.first)
    if owner.name == "place":
        inside = owner.is_between(0, len(first) - 1)
        return first.gather(pl.select(pl.when(inside).then(owner)).to_series())
    if patients.dtype != owner.dtype:
        return pl.Series([None] * len(owner), dtype=pl.UInt32)
    known = pl.DataFrame({"patient": patients, "at": first})
    table = owner.to_frame("patient").join(known, on="patient", how="left", maintain_order="left")
    return table["at"]
