"""Suppress what fewer than k patients of a class share in some view (docs/methods/linked.md#suppression)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

TOKENS = {
    "patients+events": ("code",),
    "patients+visits": ("day",),
    "patients+visits+events": ("day", "code"),
}
"""View -> the columns of a joined row beside the class."""


def suppress(
    visits: pl.DataFrame, events: pl.DataFrame, k: int, joins: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What is released: every row of every view is then that of at least k patients of its class, or of none.

    visits : `class`, `record`, `visit`, `day`; events : the same and `code` (whole numbers, ascending as the codes)
    joins : the views with their parts (`Linked.joins`)
    """
    while True:
        before = visits.height, events.height
        if "patients+visits" in joins:
            visits = visits.join(rare(visits, ("day",), k), on=["class", "day"], how="anti")
            events = events.join(visits, on=["class", "record", "visit"], how="semi")
        for view in ("patients+events", "patients+visits+events"):
            if view in joins:
                token = TOKENS[view]
                events = events.join(rare(events, token, k), on=["class", *token], how="anti")
        if "patients+events+events" in joins:
            events = events.join(of_rare_pairs(events, k), on=["class", "record", "code"], how="anti")
        if before == (visits.height, events.height):
            return visits, events


def rare(rows: pl.DataFrame, token: Sequence[str], k: int) -> pl.DataFrame:
    """The tokens of a class that fewer than k of its patients have."""
    return (
        rows.select("class", "record", *token)
        .unique()
        .group_by("class", *token)
        .len()
        .filter(pl.col("len") < k)
        .drop("len")
    )


def of_rare_pairs(events: pl.DataFrame, k: int) -> pl.DataFrame:
    """`class`, `record`, `code`: of every two codes that fewer than k patients of a class have together, the one that
    fewer of its patients have (of equals the later one), for each patient who has both."""
    held = events.select("class", "record", "code").unique()
    held = held.join(held.group_by("class", "code").agg(support=pl.len()), on=["class", "code"])
    both = held.join(held, on=["class", "record"], suffix="_2").filter(pl.col("code") < pl.col("code_2"))
    few = both.group_by("class", "code", "code_2").len().filter(pl.col("len") < k)
    first = pl.col("support") < pl.col("support_2")
    return (
        both.join(few, on=["class", "code", "code_2"], how="semi")
        .select("class", "record", code=pl.when(first).then("code").otherwise("code_2"))
        .unique()
    )
