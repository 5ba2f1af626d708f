"""The figures of a censored release, as `measures.json` has them."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class Prosecutor(Figures):
    """Knows that a person is in the sample: one over the size of classes of equal records."""

    highest: float
    mean: float


@dataclass(frozen=True)
class Journalist(Figures):
    """Does not know who is in the sample: one over distinguishability, and the share of records above 1/k."""

    highest: float
    above_1_in_k: float


@dataclass(frozen=True)
class OfRecords(Figures):
    """Distinguishability of records, classes of equal records in the sample, and the usual risks.

    unique, below_k : shares of records. marketer : share of right guesses when every record is guessed.

    at_most : share of records with at most so much, at `Risk.at`.
    """

    unique: float
    below_k: float
    smallest: int
    median: float
    smallest_class_in_sample: int
    alone_in_sample: float
    prosecutor: Prosecutor
    journalist: Journalist
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
class Statistics(Figures):
    """Mean, standard deviation, median and skewness."""

    mean: float
    sd: float
    median: float
    skewness: float


@dataclass(frozen=True)
class Interval(Figures):
    """Records whose loss is above `low` and at most `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Loss(Figures):
    """Censoring utility loss of the original and of the capped records; mentions before and after."""

    cul: Statistics
    cul_after_cap: Statistics
    mentions: int
    mentions_kept: int
    kept: float | None
    kept_after_cap: float | None
    changed_records: float
    changed_records_after_cap: float
    emptied_records: int
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Kept(Figures):
    """A count before and after; the share is None where there was nothing."""

    before: int
    after: int
    kept: float | None


@dataclass(frozen=True)
class Phenotypes(Figures):
    """Cases by a rule of so many mentions: (patient, code) pairs, and patients with one."""

    mentions: int
    cases_before: int
    cases_after: int
    cases_kept: float | None
    patients_before: int
    patients_after: int
    patients_kept: float | None


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
