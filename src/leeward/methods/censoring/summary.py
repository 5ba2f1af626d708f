"""What a k-map of repeated codes cost: codes, mentions, repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from leeward.release import Release
from leeward.report.sections import number, percent
from leeward.report.summary import Cost, Costs, cost_of_share

FEW_CODES, FEW_REPEATS = 0.1, 0.1
"""Shares of codes and of repeats below which little is left."""


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """Codes that some record still shows, mentions and repeats that are released."""
    total = int(measures["source"]["codes"])
    left = codes_left(release)
    gone = 1 - left / max(1, total)
    figures = [
        Cost(
            f"{number(total - left)} of {number(total)}",
            "codes are in no released record",
            "bad" if gone > 0.5 else "warn" if gone else "good",
        )
    ]
    if measures.get("cul"):
        figures.append(
            cost_of_share(measures["cul"]["kept"], "of all mentions of codes are released", warn=0.9, bad=0.5)
        )
    repeats = measures.get("repeats") or {"before": 0, "kept": 1.0}
    if repeats["before"]:
        figures.append(
            cost_of_share(
                repeats["kept"], "of the repeats of a code in a record are released", warn=0.9, bad=0.5
            )
        )
    return Costs(tuple(figures), little_left(left, total, repeats, release.parameters["scope"]))


def codes_left(release: Release) -> int:
    """Codes that at least one released record has."""
    codes = release.table("records.parquet").select(pl.col("codes").list.explode(empty_as_null=False))
    return int(codes.select(pl.col("codes").drop_nulls().n_unique()).collect().item())


def little_left(left: int, total: int, repeats: Mapping[str, Any], scope: str = "global") -> str:
    """A sentence where most codes or nearly all repeats are gone."""
    few = left < FEW_CODES * total
    once = bool(repeats["before"]) and repeats["kept"] < FEW_REPEATS
    if not few and not once:
        return ""
    found = f"of {number(total)} codes {number(left)} are left"
    found += f", and {percent(repeats['kept'])} of the repeats" if repeats["before"] else ""
    groups = "" if scope == "groups" else "`--scope groups`, "
    return f"{found}; try {groups}codes of fewer digits, or a larger population."
