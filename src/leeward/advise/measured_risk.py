"""How often the attacker of a release's guarantee would be right: maximum, mean, and the share above thresholds.

The chance is 1 / candidates, counted by each method from its released files for what the guarantee's attacker knows of
patients who are in the data (`reidentification` beside the method's parameters). The mean over all records is also the
marketer's expected share of right guesses. What an attacker who goes further finds is `further`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leeward.analysis.reidentification import Further, Known
from leeward.methods import METHODS

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release


@dataclass(frozen=True)
class Above:
    """The share of patients whose risk is above a threshold."""

    threshold: float
    share: float


@dataclass(frozen=True)
class Before:
    """Of so many patients of the source, those who are alone with what the attacker knows, and those of whom fewer than
    k agree on it."""

    patients: int
    unique: int
    below_k: int
    k: int


@dataclass(frozen=True, kw_only=True)
class MeasuredRisk:
    """What was measured for the attacker of the guarantee.

    model : prosecutor or journalist. knows : in words. maximum, mean : of 1 / candidates. patients : how many were
    looked at. all : whether they are all, or a sample. promised : the guarantee's maximum. further : what an attacker
    finds whom the guarantee does not cover. before : the same knowledge before the release, where it was counted.
    """

    model: str
    knows: str
    promised: float | None
    maximum: float
    mean: float
    patients: int
    all: bool
    above: tuple[Above, ...] = ()
    further: Further | None = None
    before: Before | None = None


def measure_risk(
    release: Release, cohort: Cohort, population: Cohort | None = None, thresholds: Sequence[float] = ()
) -> MeasuredRisk | None:
    """The risk measured from the files; None where the method leaves nothing to count (counts with noise)."""
    row = METHODS.get(release.method)
    module = None if row is None else row.reidentification()
    found: Known | None = None if module is None else module.count_candidates(release, cohort, population)
    if found is None or not len(found.candidates):
        return None
    # Sorted: classes come in any order, and the last digit of a mean of floats would tell it.
    risks = np.sort(1 / np.maximum(found.candidates, 1))
    stated = release.guarantee.get("risk") or {}
    before = None
    if found.before is not None:
        k = int(release.guarantee["k"])
        unique, below_k = int((found.before == 1).sum()), int((found.before < k).sum())
        before = Before(len(found.before), unique, below_k, k)
    return MeasuredRisk(
        model=str(stated.get("model", "prosecutor")),
        knows=found.knows,
        promised=stated.get("maximum"),
        maximum=float(risks.max()),
        mean=float(risks.mean()),
        patients=len(risks),
        all=found.whole,
        above=tuple(Above(float(each), float(np.mean(risks > each + 1e-12))) for each in thresholds),
        further=found.further,
        before=before,
    )
