"""The figures of a censored release, as `measures.json` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class OfRecords(Figures):
    """Distinguishability of records, classes of equal records in the sample, and the usual risks.

    unique, below_k : shares of records. marketer : share of right guesses when every record is guessed. prosecutor :
    knows that a person is in the sample: one over the size of classes of equal records (`highest`, `mean`).
    journalist : does not: one over distinguishability (`highest`), and the share of records `above_1_in_k`.

    at_most : share of records with at most so much, at `Risk.at`.
    """

    unique: float
    below_k: float
    smallest: int
    median: float
    smallest_class_in_sample: int
    alone_in_sample: float
    prosecutor: Mapping[str, float]
    journalist: Mapping[str, float]
    marketer: float
    at_most: tuple[float, ...]


@dataclass(frozen=True)
class Risk(Figures):
    """In a population of so many people, before and after."""

    population: int
    at: tuple[int, ...]
    before: OfRecords
    after: OfRecords


@dataclass(frozen=True)
class Loss(Figures):
    """Censoring utility loss of the original and of the capped records; mentions before and after.

    cul, cul_after_cap : `mean`, `sd`, `median` and `skewness`. intervals : records (`count`) whose loss is above `low`
    and at most `high`.
    """

    cul: Mapping[str, float]
    cul_after_cap: Mapping[str, float]
    mentions: int
    mentions_kept: int
    kept: float | None
    kept_after_cap: float | None
    changed_records: float
    changed_records_after_cap: float
    emptied_records: int
    intervals: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Attack(Figures):
    """Consistent owners of the attacked records, for an attacker who knows the rule."""

    rule: str | None
    records: int
    exact: bool
    smallest: int | None = None
    median: float | None = None
    below_k: float | None = None
    pinned_down: float | None = None
    no_consistent_owner: float | None = None
    mean_success: float | None = None
