"""What the measures of trajectories return: typed figures, as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class LevelShare:
    """The share of the original values that are published at one level of a hierarchy."""

    level: str
    share: float


@dataclass(frozen=True)
class Loss:
    """Definition 8: `ilm` of codes, `alm` of ages, their sum; the share of pairs published at all; and, for `code` and
    `age`, the share of values by level from the finest to the root."""

    ilm: float
    alm: float
    total: float
    kept_pairs: float
    levels: Mapping[str, tuple[LevelShare, ...]]

    def to_json(self) -> dict[str, Any]:
        """As in `custody/measures.json`."""
        return asdict(self) | {
            "levels": {name: [asdict(each) for each in rows] for name, rows in self.levels.items()}
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Loss:
        """The figures of `to_json`."""
        levels = {name: tuple(LevelShare(**each) for each in rows) for name, rows in found["levels"].items()}
        return cls(**{**found, "levels": levels})


@dataclass(frozen=True)
class Usable:
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

    def to_json(self) -> dict[str, Any]:
        """As in `custody/measures.json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Usable:
        """The figures of `to_json`."""
        return cls(**found)


@dataclass(frozen=True)
class Answers:
    """AvgRE: the average and median relative error of `queries` counts; None where no set of pairs is frequent."""

    avgre: float | None
    queries: int
    min_support: float
    median: float | None = None
    largest: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As in `custody/measures.json`; without queries there is no median."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None or name in ("avgre", "queries", "min_support")
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Answers:
        """The figures of `to_json`."""
        return cls(**found)
