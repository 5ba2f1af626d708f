"""What anonymized visits cost: diagnoses, codes, visits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report.sections import number, percent
from leeward.report.summary import Cost, Costs, cost_of_share, share

FEW_DIAGNOSES, FEW_CODES = 0.5, 0.25
"""Shares of diagnoses and of codes below which little is left."""


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """Pairs of patient and code that are kept, codes that are still shown, visits that are empty."""
    figures: list[Cost] = []
    retention, facts = measures.get("retention"), measures.get("method", {})
    if retention:
        dc, cc = retention["dc"], retention["cc"]
        gone = cc["original"] - cc["released"]
        figures += [
            Cost(
                f"{number(gone)} of {number(cc['original'])}",
                "codes are in no released visit",
                "bad" if cc["released_local"] < 0.5 else "warn" if gone else "good",
            ),
            cost_of_share(
                dc["released_local"], "of the diagnoses (patient and code) are kept", warn=0.9, bad=0.5
            ),
        ]
    if facts.get("emptied_visits") is not None:
        emptied = facts["emptied_visits"] / max(1, facts["visits"])
        figures.append(share(emptied, "of the visits lost all their codes", warn=0.05, bad=0.25))
    return Costs(tuple(figures), little_left(retention))


def little_left(retention: Mapping[str, Any] | None) -> str:
    """A sentence where most diagnoses or codes are gone."""
    if not retention:
        return ""
    dc, cc = retention["dc"]["released_local"], retention["cc"]
    if dc >= FEW_DIAGNOSES and cc["released_local"] >= FEW_CODES:
        return ""
    return (
        f"of {number(cc['original'])} codes {number(cc['released'])} are left, and {percent(dc)} of the diagnoses; "
        "try `--enforce generalize`, codes of fewer digits, or `leeward disassociate` where visits are not needed."
    )
