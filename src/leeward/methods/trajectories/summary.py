"""What released trajectories cost: usable pairs, pairs that say nothing, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.methods.trajectories.hierarchies import CHAPTER
from leeward.release import Release
from leeward.report.sections import percent
from leeward.report.summary import Cost, Costs, cost_of_share, counts_off, share

ENOUGH, USELESS = 0.5, 0.1
"""Shares of usable pairs from which nobody is warned, and below which little is left."""

SAYS_NOTHING = ("classification", "root")
"""Levels of a code hierarchy at which a code is any code at all."""


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """Usable pairs; pairs that are lost or whose code is any code; errors of counts."""
    figures: list[Cost] = []
    usable, loss, counts = (measures.get(name) for name in ("usable", "loss", "avgre"))
    if usable:
        named = {each["level"] for each in loss["levels"]["code"]} if loss else {CHAPTER}
        fine = "3-character code or finer" if CHAPTER in named else "finer than the hierarchy's widest groups"
        words = f"of the (code, age) pairs are usable: {fine}, age within 8 years"
        figures.append(cost_of_share(usable["usable"], words, warn=ENOUGH, bad=USELESS))
    if loss:
        words = "of the pairs are not published, or say no more than that there was some code"
        figures.append(share(empty_pairs(loss["levels"]["code"]), words, warn=0.1, bad=0.5))
    if counts and counts.get("avgre") is not None:
        figures.append(counts_off(counts["avgre"], "mean error of counts of frequent pairs"))
    return Costs(tuple(figures), little_left(usable))


def empty_pairs(levels: Sequence[Mapping[str, Any]]) -> float:
    """Share of pairs whose code is suppressed, the root, or a whole classification."""
    last = len(levels) - 1
    return float(
        sum(each["share"] for i, each in enumerate(levels) if i == last or each["level"] in SAYS_NOTHING)
    )


def little_left(usable: Mapping[str, Any] | None) -> str:
    """A sentence where few pairs are usable."""
    if not usable or usable["usable"] >= USELESS:
        return ""
    return (
        f"{percent(usable['usable'])} of the (code, age) pairs are usable; try `--clustering cells --order free`, a "
        "smaller k, or `leeward disassociate` where ages are not needed."
    )
