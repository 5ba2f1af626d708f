"""What goes into a clustering and what comes out: trajectories as flat arrays, and groups published alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Records:
    """Trajectories as leaves of the hierarchies; `group` is the sensitive payload value of each, or None."""

    offsets: Longs
    codes: Ints
    ages: Ints
    group: Ints | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Longs:
        """Pairs of each record."""
        return np.diff(self.offsets)

    def take(self, chosen: Longs) -> Records:
        """The chosen records, in that order."""
        sizes = self.offsets[chosen + 1] - self.offsets[chosen]
        ends = np.cumsum(sizes)
        at = np.arange(int(ends[-1])) + np.repeat(self.offsets[chosen] - (ends - sizes), sizes)
        group = None if self.group is None else self.group[chosen]
        return Records(np.concatenate([[0], ends]), self.codes[at], self.ages[at], group)


@dataclass(frozen=True, eq=False)
class Group:
    """Records published alike, in joining order, and the published pairs as nodes."""

    members: Longs
    codes: Ints
    ages: Ints
