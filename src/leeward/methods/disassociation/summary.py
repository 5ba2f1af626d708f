"""What a disassociated release cost: counts of pairs and triples, and codes whose frequency is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report.sections import percent
from leeward.report.summary import COUNTS_USELESS, Costs, errors_of_pairs_and_triples, mean_errors, share


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """Errors of counts of pairs and triples, and the share of occurrences in item chunks, or suppressed."""
    figures = errors_of_pairs_and_triples(measures)
    places = measures.get("placement")
    if places:
        figures += (
            share(
                places["item_share"],
                "of the codes' occurrences are suppressed"
                if release.parameters.get("attacker") == "algorithm"
                else "of the codes' occurrences are in item chunks: how often such a code occurs is hidden",
                warn=0.1,
                bad=0.5,
            ),
        )
    return Costs(figures, little_left(mean_errors(measures)))


def little_left(errors: Mapping[int | str, float]) -> str:
    """A sentence where counts of pairs are mostly wrong."""
    if errors.get(2, 0.0) <= COUNTS_USELESS:
        return ""
    return (
        f"estimated counts of pairs of codes are off by {percent(errors[2])} on average; try a smaller k or m, codes "
        "of fewer digits, or more patients."
    )
