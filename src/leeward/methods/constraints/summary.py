"""What generalization and suppression cost: codes, occurrences, counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report.sections import number, percent
from leeward.report.summary import Cost, Costs, counts_off, errors_of_pairs_and_triples, mean_errors, share

USELESS = 0.5
"""Share of codes left below which little is left."""


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """Codes and occurrences suppressed, and the error of counts of pairs."""
    codes = measures.get("codes")
    if not codes:
        return Costs(errors_of_pairs_and_triples(measures))
    fate, occurrences = codes["codes"], codes["occurrences"]
    classes = bool(release.parameters.get("demographics"))
    gone = fate["suppressed"] / max(1, fate["total"])
    figures = [
        Cost(
            f"{number(fate['suppressed'])} of {number(fate['total'])}",
            "codes suppressed" + (", each counted in every class that has it" if classes else ""),
            "bad" if gone > USELESS else "warn" if gone else "good",
        ),
        share(
            (occurrences["suppressed"] + occurrences["generalized"]) / max(1, occurrences["total"]),
            "of the codes' occurrences suppressed or generalized",
            warn=0.05,
            bad=0.5,
        ),
    ]
    errors = mean_errors(measures)
    if 2 in errors:
        figures.append(counts_off(errors[2], "mean error of counts of pairs of codes"))
    elif "frequent" in errors:
        figures.append(counts_off(errors["frequent"], "mean error of counts of frequent sets of codes"))
    return Costs(tuple(figures), little_left(fate, occurrences, " of the classes" if classes else ""))


def little_left(fate: Mapping[str, int], occurrences: Mapping[str, int], beside: str = "") -> str:
    """A sentence where most codes are gone; `beside` says of what the codes are counted."""
    left = fate["total"] - fate["suppressed"]
    if left >= USELESS * fate["total"]:
        return ""
    lost = occurrences["suppressed"] / max(1, occurrences["total"])
    return (
        f"of {number(fate['total'])} codes{beside} {number(left)} are left, and {percent(1 - lost)} of the "
        "occurrences; try `leeward disassociate`, which suppresses no code, or a policy with larger groups of codes."
    )
