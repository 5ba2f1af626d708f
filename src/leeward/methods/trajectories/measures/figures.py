"""The figures of released trajectories, as `measures.json` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class LevelShare(Figures):
    """The share of the original values that are published at one level of a hierarchy."""

    level: str
    share: float


@dataclass(frozen=True)
class Loss(Figures):
    """Definition 8: `ilm` of codes, `alm` of ages, their sum; the share of pairs published at all; and, for `code` and
    `age`, the share of values by level from the finest to the root."""

    ilm: float
    alm: float
    total: float
    kept_pairs: float
    levels: Mapping[str, tuple[LevelShare, ...]]


@dataclass(frozen=True)
class Usable(Figures):
    """What published pairs say, as shares of the original pairs (docs/methods/trajectories.md#measures).

    usable : code at 3-digit level or finer, age within 8 years.  chapter : chapter or finer, within 16 years.
    root : code at the root.  lost : not published.  none : share of patients without a usable pair.
    categories : distinct 3-digit categories among usable pairs.  at_most : no release of this k has more usable pairs.
    """

    usable: float
    chapter: float
    root: float
    lost: float
    none: float
    categories: int
    at_most: float


@dataclass(frozen=True)
class Answers(Figures):
    """AvgRE: the average and median relative error of `queries` counts; None where no set of pairs is frequent."""

    avgre: float | None
    queries: int
    min_support: float
    median: float | None = None
    largest: int | None = None


@dataclass(frozen=True)
class Example(Figures):
    """A released trajectory: its pairs in words, its records, and the share of them that lost a pair."""

    pairs: tuple[str, ...]
    records: int
    lost_a_pair: float


@dataclass(frozen=True)
class Run(Figures):
    """What the method reported of its run: groups, their sizes, examples, and parts that were clustered apart."""

    groups: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    partitions: int = 1
    one_halving_costs: float | None = None
