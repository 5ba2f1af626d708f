"""Verify a k-anonymous table: equal rows are counted; what it shares with condensed tables is checked as there."""

from __future__ import annotations

import polars as pl

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.condensation.check import check as check_table
from leeward.verify.condensation.check import layout
from leeward.verify.manifest import Share


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a k-anonymous table."""
    checks = check_table(share, source)
    table = layout(share)[1]
    if table is None:
        return checks
    checks.append(equal_rows(share, table))
    if source is not None and source.patients is not None:
        checks.append(every_row(table, source.patients))
    return checks


def every_row(table: pl.DataFrame, original: pl.DataFrame) -> Check:
    """The table has one row for each of the source's."""
    return Check(
        "every_row_once",
        table.height == original.height,
        f"{table.height:,} rows for {original.height:,} rows of the source.",
    )


def equal_rows(share: Share, table: pl.DataFrame) -> Check:
    """k-anonymity: rows that agree on all quasi-identifiers, counted."""
    k = share.guarantee("k")
    names = [str(name) for name in share.manifest["parameters"].get("quasi_identifiers", table.columns)]
    if not names or any(name not in table.columns for name in names):
        return Check(
            "k_anonymous_rows", False, "A quasi-identifier that the manifest names is not in the table."
        )
    sizes = table.group_by(names).len()["len"]
    small = int((sizes < k).sum())
    return of_count(
        "k_anonymous_rows",
        small,
        f"Every combination of quasi-identifiers is in at least {k:,} rows.",
        f"combinations of quasi-identifiers are in fewer than {k:,} rows.",
        {"classes": len(sizes), "least": int(sizes.to_numpy().min(initial=table.height))},
    )
