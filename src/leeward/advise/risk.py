"""The risk of a guarantee's attacker, as it is promised and as it is measured, in numbers and in words.

The chance of the attacker to be right is 1 / candidates, counted by each method from its released files for what the
guarantee's attacker knows of patients who are in the data (`reidentification` beside the method's parameters). The mean
over all records is also the marketer's expected share of right guesses. What an attacker who goes further finds is
`further`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.advise.thresholds import Threshold, profiles
from leeward.analysis.reidentification import Known, Scope
from leeward.arrays import count_noun
from leeward.methods import METHODS
from leeward.release.manifest import MODELS

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

Figures = Mapping[str, Any]

MUCH = 0.05
"""Share of the pieces of knowledge below k candidates from which a remedy is named."""


def measure_risk(
    release: Release, cohort: Cohort, population: Cohort | None = None, thresholds: Sequence[float] = ()
) -> dict[str, Any] | None:
    """The risk for the attacker of the guarantee, measured from the files, as JSON has it; None where the method leaves
    nothing to count (counts with noise).

    Its keys. model : prosecutor or journalist. knows : in words. promised : the guarantee's maximum. maximum, mean : of
    1 / candidates. patients : how many were looked at. all : whether they are all, or a sample. above : for each
    threshold the share of patients whose risk is above it. further : what an attacker finds whom the guarantee does not
    cover. before : where it was counted, how many patients of the source are alone with the same knowledge, and how
    many are among fewer than k.
    """
    row = METHODS.get(release.method)
    module = None if row is None else row.reidentification()
    found: Known | None = None if module is None else module.count_candidates(release, cohort, population)
    if found is None or not len(found.candidates):
        return None
    # Sorted: classes come in any order, and the last digit of a mean of floats would tell it.
    risks = np.sort(1 / np.maximum(found.candidates, 1))
    stated = release.guarantee.get("risk") or {}
    above = [{"threshold": float(t), "share": float(np.mean(risks > t + 1e-12))} for t in thresholds]
    measured = {
        "model": str(stated.get("model", "prosecutor")),
        "knows": found.knows,
        "promised": stated.get("maximum"),
        "maximum": float(risks.max()),
        "mean": float(risks.mean()),
        "patients": len(risks),
        "all": found.whole,
        "above": above,
    }
    if found.further is not None:
        measured["further"] = asdict(found.further)
    if found.before is not None:
        k = int(release.guarantee["k"])
        unique, below_k = int((found.before == 1).sum()), int((found.before < k).sum())
        measured["before"] = {"patients": len(found.before), "unique": unique, "below_k": below_k, "k": k}
    return measured


def odds(maximum: float) -> str:
    """A risk in words: `0.2 (1 in 5)`."""
    return f"{maximum:.3g} (1 in {1 / maximum:.3g})" if maximum > 0 else "0"


def met(maximum: float) -> list[tuple[Threshold, bool]]:
    """Each shipped threshold that names a number, and whether a maximum risk is within it."""
    return [
        (each, Fraction(str(maximum)).limit_denominator(10**6) <= Fraction(str(each.maximum)))
        for each in profiles().values()
        if each.maximum is not None
    ]


def scope_of(release: Release) -> Scope | None:
    """Where the maximum of a release's guarantee holds and where not; None where it holds as it stands."""
    row = METHODS.get(release.method)
    module = None if row is None else row.reidentification()
    stated = getattr(module, "scope", None)
    return None if stated is None else stated(release)


def maximum_in_words(release: Release, found: Figures | None = None) -> str:
    """The guarantee's maximum risk for its attacker, and what is beyond: `0.2 (1 in 5) if they …; 92 of 915 codes …`;
    empty where it bounds none. `found`: the measured risk (`measure_risk`), as JSON has it."""
    risk = release.guarantee.get("risk")
    if not risk or "prior" in risk:
        return ""
    scope = scope_of(release)
    if scope is None:
        return odds(risk["maximum"])
    beyond = beyond_in_words(release, scope, found)
    return f"{odds(risk['maximum'])} {scope.within}" + (f"; {beyond}" if beyond else "")


def beyond_in_words(release: Release, scope: Scope, found: Figures | None = None) -> str:
    """What an attacker finds who goes further than the guarantee's: counted, where it was."""
    further = (found or {}).get("further")
    if not further:
        return f"{scope.beyond}, {scope.found}" if scope.beyond else scope.found
    about = "" if further.get("exact", True) else "about "
    alone = f"; {further['alone']:,} are alone with theirs" if further.get("alone") else ""
    tried = ""
    if further.get("tried"):
        rarest = f"{further['tried']:,} rarest sets of up to {further['largest']} codes"
        tried = f" and {further['tried_below_k']:,} of the {rarest}"
    return (
        f"{scope.beyond}, {further['below_k']:,} of {further['sets']:,} {further['known']} (which {about}"
        f"{further['patients']:,} of {further['among']:,} patients have{alone}){tried} leave fewer than "
        f"{release.guarantee['k']} candidates"
    )


def risk_lines(release: Release, found: Figures | None = None) -> list[str]:
    """The maximum of a guarantee, for whom it holds and for whom not, and the reported thresholds that it is above;
    empty where it bounds none. found : as in `maximum_in_words`."""
    risk = release.guarantee.get("risk")
    if not risk:
        return []
    if "prior" in risk:
        after = f"{100 * risk['maximum']:.1f} %, {MODELS['anybody']}."
        return [
            f"Maximum risk: a belief of {100 * risk['prior']:.0f} % that somebody is in the data may become {after}"
        ]
    chance = f"Chance that an attacker {MODELS[risk['model']]} picks the right record"
    lines = [f"{chance}: at most {maximum_in_words(release, found)}."]
    further, scope = (found or {}).get("further"), scope_of(release)
    if further and scope is not None and further["below_k"] > MUCH * further["sets"]:
        lines.append(scope.remedy)
    rows = met(risk["maximum"])
    above = [f"{each.name} {each.maximum:g}" for each, within in rows if not within]
    if above:
        limits = count_noun("published limit", len(above))
        lines.append(f"This is above {limits}, quoted second-hand: {', '.join(above)}.")
    return lines


def measured_lines(found: Figures | None) -> list[str]:
    if not found:
        return []
    whom = "all" if found["all"] else f"{found['patients']:,} patients drawn at random"
    measured = f"mean {odds(found['mean'])}, greatest {odds(found['maximum'])} ({whom})"
    lines = [
        f"Measured from the released files, for an attacker who knows {found['knows']}: {measured}.",
        "The mean is also the share of right guesses when somebody guesses for every patient (marketer).",
    ]
    before = found.get("before")
    if before:
        alone = f"{before['unique']:,} of {before['patients']:,} patients"
        lines.insert(
            0,
            f"Before the release {alone} were unique in what this attacker knows; {before['below_k']:,} "
            f"shared it with fewer than {before['k']} in all.",
        )
    return lines


def threshold_rows(guarantee: Mapping[str, Any], found: Figures | None = None) -> list[tuple[str, ...]]:
    """A row per shipped threshold: name, number, whether the maximum is within it, measured share above it, source."""
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
