"""Figures that releases of code sets have in common: counts of queries, code groups of a policy, risk before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.analysis.figures import Figures


@dataclass(frozen=True, kw_only=True)
class Errors(Figures):
    """ARE over `queries` with a true count above 0; `skipped` had none. `outside_bounds` is 0 unless something is
    wrong."""

    queries: int
    skipped: int
    are: float
    median: float
    largest: float
    outside_bounds: int


@dataclass(frozen=True, kw_only=True)
class Workload(Figures):
    """The errors of a workload; `kept`: on released codes only; `largest_set`: larger sets were too many."""

    name: str
    label: str
    min_support: float | None = None
    itemsets: int | None = None
    largest_set: int | None = None
    size: int | None = None
    queries: int
    skipped: int
    are: float
    median: float
    largest: float
    outside_bounds: int
    kept: Errors | None = None


@dataclass(frozen=True, kw_only=True)
class Matched(Figures):
    """A constraint of the policy: records with one of its codes, and the matching relative error."""

    name: str
    codes: int
    true: int
    estimate: float
    mre: float


@dataclass(frozen=True)
class Interval(Figures):
    """How many errors lie in [low, high)."""

    low: float | None
    high: float | None
    count: int
    share: float


@dataclass(frozen=True, kw_only=True)
class RiskRow(Figures):
    """What m codes of a patient give away (see `leeward.analysis.risk.risk_before`)."""

    m: int
    sets: int
    sets_in_one_record_share: float
    sets_below_k_share: float
    sets_by_support: tuple[Mapping[str, Any], ...]
    exact: bool
    sampled_share: float
    patients_sampled: int | None = None
    patients: int
    unique: int
    unique_share: float
    below_k: int
    below_k_share: float
    patients_exact: bool


@dataclass(frozen=True, kw_only=True)
class RiskBefore(Figures):
    """The risk in the source (see `leeward.analysis.risk.risk_before`)."""

    k: int
    patients: int
    by_m: tuple[RiskRow, ...]
    whole_set: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class MatchingErrors(Figures):
    """Matching relative errors of a policy's constraints; the last two only where there is a policy."""

    policy: str = "none"
    constraints: tuple[Matched, ...] = ()
    skipped: int = 0
    intervals: tuple[Interval, ...] = ()
    within_2_5_percent: float | None = None
    within_5_percent: float | None = None
