"""Attacks on a finished release, run with its `share/` and the source as background knowledge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from leeward.analysis.figures import Figures
from leeward.arrays import AnyArray, Int64s


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
    """Which records have each label: pairs of a record and a label's number, in any order, repeats allowed."""

    def __init__(self, record: AnyArray, label: AnyArray, labels: int) -> None:
        order = np.lexsort((record, label))
        record, label = np.asarray(record)[order], np.asarray(label)[order]
        new = np.ones(len(record), np.bool_)
        new[1:] = (record[1:] != record[:-1]) | (label[1:] != label[:-1])
        self.record: Int64s = record[new].astype(np.int64)
        self.at: Int64s = np.searchsorted(label[new], np.arange(labels + 1))

    def of(self, label: int) -> Int64s:
        """The records that have a label, ascending."""
        return self.record[self.at[label] : self.at[label + 1]]

    def count(self, wanted: Iterable[int]) -> int:
        """How many records have all of these labels, at least one label."""
        lists = sorted((self.of(label) for label in wanted), key=len)
        return len(reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), lists))
