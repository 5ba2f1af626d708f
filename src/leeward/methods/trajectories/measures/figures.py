"""The figures of released trajectories, as `measures.json` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class Loss(Figures):
    """Definition 8: `ilm` of codes, `alm` of ages, their sum; the share of pairs published at all; and, for `code` and
    `age`, the share of values by level from the finest to the root."""

    ilm: float
    alm: float
    total: float
    kept_pairs: float
    levels: Mapping[str, tuple[Mapping[str, Any], ...]]


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
