"""What linked tables cost: codes and events that fewer than k patients share in a view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.methods.linked.measures import Kept, Views
from leeward.release import Release
from leeward.report.sections import number, percent
from leeward.report.summary import Cost, Costs, counts_off, share

USELESS, FEW_CODES = 0.5, 0.25
"""Shares of pairs of a patient and a code, and of codes, below which little is left."""


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """Codes of which nobody is left, events suppressed, the error of counts of codes."""
    kept, views = Kept.of(measures, "kept"), Views.of(measures, "views")
    if kept is None:
        return Costs()
    gone = kept.codes_lost / max(1, kept.codes)
    figures = [
        Cost(
            f"{number(kept.codes_lost)} of {number(kept.codes)}",
            "codes are in no released table",
            "bad" if gone > USELESS else "warn" if gone else "good",
        )
    ]
    if views:
        figures.append(share(views.lost, "of the events are suppressed", warn=0.05, bad=0.5))
    figures.append(counts_off(kept.error, "mean error of the number of patients with a code"))
    left = kept.released / max(1, kept.pairs)
    if left >= USELESS and 1 - gone >= FEW_CODES:
        return Costs(tuple(figures))
    return Costs(
        tuple(figures),
        f"of {number(kept.codes)} codes {number(kept.codes - kept.codes_lost)} are left, and {percent(left)} of the "
        "codes of patients; try fewer views, coarser demographics (`keep`), or `leeward disassociate`, which "
        "suppresses no code.",
    )
