"""What a condensed or k-anonymous table cost: coefficients, directions, correlations, rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report.sections import number, percent
from leeward.report.summary import Cost, Costs, Tone, share

USELESS = 0.5
"""Share of coefficients outside their 95 % interval, in the worst model, above which little is left."""

OFF = (0.05, 0.2)
"""Mean differences of correlations that are worth a warning, and that are bad."""


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """The recipient's models in the worst case, else correlations; rows and levels that were withheld."""
    models = (measures.get("models") or {}).get("models", ())
    metrics = [model["metrics"] for model in models if model.get("metrics")]
    figures: list[Cost] = []
    outside = max((each["outside"] for each in metrics), default=0.0)
    if metrics:
        changed = max(each["direction"] for each in metrics)
        worst = ", in the planned model that lost most" if len(metrics) > 1 else ", in the planned model"
        figures += [
            share(outside, f"of the coefficients left their 95 % interval{worst}", warn=0.05, bad=0.2),
            share(changed, f"of the significant coefficients changed direction{worst}", warn=0.0, bad=0.1),
        ]
    together = measures.get("correlations")
    if together and len(together["columns"]) > 1:
        off = together["mean_difference"]
        tone: Tone = "bad" if off > OFF[1] else "warn" if off > OFF[0] else "good"
        figures.append(Cost(f"{off:.3f}", "mean difference of correlations between columns", tone))
    if len(figures) < 3:
        figures.append(withheld(measures.get("method", {})))
    return Costs(tuple(figures[:3]), little_left(outside))


def withheld(facts: Mapping[str, Any]) -> Cost:
    """Rows and levels that are not in the release."""
    rows = int(facts.get("withheld_rows") or 0)
    levels = sum((facts.get("withheld_levels") or {}).values())
    what = "rows withheld" + (f", and {number(levels)} rare levels" if levels else "")
    return Cost(number(rows), what, "warn" if rows or levels else "good")


def little_left(outside: float) -> str:
    """A sentence where a planned model is mostly wrong."""
    if outside <= USELESS:
        return ""
    return (
        f"{percent(outside)} of the coefficients of a planned model left their 95 % interval; try a smaller k, fewer "
        "columns (`--drop`), or a shorter plan."
    )
