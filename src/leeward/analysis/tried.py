"""Attacks on a finished release, run with its `share/` and the source as background knowledge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from leeward.analysis.figures import Figures
from leeward.analysis.holders import postings
from leeward.arrays import AnyArray, Int32s, Int64s


@dataclass(frozen=True)
class Tried(Figures):
    """An attack that was carried out.

    knows : the attacker's knowledge, and what is done with it
    success : what counts as a success
    attacked, succeeded : how many times it was tried, and how many times it worked
    covered : whether the guarantee excludes a success
    remedy : what to choose where it works although nothing excludes it
    """

    knows: str
    success: str
    attacked: int
    succeeded: int
    covered: bool = True
    remedy: str = ""


class Holders:
    """Which records have each label; record r has the distinct values[offsets[r] : offsets[r + 1]]."""

    def __init__(self, offsets: Int64s, values: Int32s, labels: int) -> None:
        self.at, self.record = postings(offsets, values, labels)

    def of(self, label: int) -> AnyArray:
        """The records that have a label, ascending."""
        return self.record[self.at[label] : self.at[label + 1]]

    def count(self, wanted: Iterable[int]) -> int:
        """How many records have all of these labels, at least one label."""
        found, *others = sorted((self.of(label) for label in wanted), key=len)
        for each in others:
            found = found[each.take(np.searchsorted(each, found), mode="clip") == found]
        return len(found)
