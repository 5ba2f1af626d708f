"""The risk of a guarantee in words: the greatest chance that its attacker is right, beside the thresholds of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.advise.thresholds import met, odds

MODELS = {
    "prosecutor": "who knows that the patient is in the data",
    "journalist": "who looks for somebody of the population and does not know who is in the data",
    "anybody": "whatever they know",
}
"""Whom the attacker looks for, in words (El Emam's prosecutor and journalist)."""


def risk_lines(guarantee: Mapping[str, Any]) -> list[str]:
    """The maximum of a guarantee and the reported thresholds that it is above; empty where it bounds none."""
    risk = guarantee.get("risk")
    if not risk:
        return []
    if "prior" in risk:
        after = f"{100 * risk['maximum']:.1f} %, {MODELS['anybody']}."
        return [
            f"Maximum risk: a belief of {100 * risk['prior']:.0f} % that somebody is in the data may become {after}"
        ]
    lines = [f"Maximum risk: {odds(risk['maximum'])}, for an attacker {MODELS[risk['model']]}."]
    rows = met(risk["maximum"])
    above = [f"{each.name} {each.maximum:g}" for each, within in rows if not within]
    if above:
        lines.append(f"That is above the thresholds reported for {', '.join(above)} (second-hand).")
    return lines


def measured_lines(found: Mapping[str, Any] | None) -> list[str]:
    """The risk that was measured for the attacker of the guarantee; empty where none was."""
    if not found:
        return []
    whom = "all" if found["all"] else f"{found['patients']:,} patients drawn of all"
    measured = f"mean {odds(found['mean'])}, greatest {odds(found['maximum'])} ({whom})"
    return [
        f"Measured from the released files, for an attacker who knows {found['knows']}: {measured}.",
        "The mean is also the share of right guesses of somebody who guesses for everybody (marketer).",
    ]


def threshold_rows(
    guarantee: Mapping[str, Any], found: Mapping[str, Any] | None = None
) -> list[tuple[str, ...]]:
    """A row per shipped threshold: name, number, whether the maximum is within it, the share of patients that was
    measured above it, and who reports it."""
    risk = guarantee.get("risk")
    if not risk or "prior" in risk:
        return []
    above = {each["threshold"]: each["share"] for each in (found or {}).get("above", ())}
    return [
        (
            each.name,
            f"{each.maximum:g}",
            "within" if within else "above",
            f"{100 * above[each.maximum]:.1f} %" if each.maximum in above else "–",
            each.cited,
        )
        for each, within in met(risk["maximum"])
    ]
