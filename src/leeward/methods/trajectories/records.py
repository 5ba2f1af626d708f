"""Input and output of clustering: trajectories as flat arrays, groups with one published trajectory, and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leeward.arrays import Float64s, Int32s, Int64s, offsets_of, positions_of
from leeward.methods.trajectories.hierarchies import Axis, Space


class Pairs(NamedTuple):
    """Trajectories in order of (age, code): record r has the leaves codes[offsets[r]:offsets[r + 1]], ages likewise."""

    offsets: Int64s
    codes: Int32s
    ages: Int32s


@dataclass(frozen=True, eq=False)
class Records:
    """Trajectories as leaves of the hierarchies; `group` is the sensitive payload value of each, or None."""

    offsets: Int64s
    codes: Int32s
    ages: Int32s
    group: Int32s | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Int64s:
        return np.diff(self.offsets)

    def owners(self) -> Int64s:
        return np.repeat(np.arange(len(self)), self.lengths())

    def take(self, chosen: Int64s) -> Records:
        at = positions_of(self.offsets, chosen)
        group = None if self.group is None else self.group[chosen]
        return Records(offsets_of(self.lengths()[chosen]), self.codes[at], self.ages[at], group)

    def in_order(self, space: Space) -> Pairs:
        owner, code, age = self.owners(), space.code.rank[self.codes], space.age.rank[self.ages]
        codes, ages = int(code.max(initial=0)) + 1, int(age.max(initial=0)) + 1
        if (len(owner) + 1) * ages * codes >= 1 << 62:
            order = np.lexsort((code, age, owner))
        else:  # one number a pair sorts several times faster; equal pairs of a record are interchangeable
            order = np.argsort((owner * ages + age) * codes + code)
        return Pairs(self.offsets, self.codes[order], self.ages[order])


@dataclass(frozen=True, eq=False)
class Group:
    """Records with the same published trajectory, in joining order, and its pairs as nodes."""

    members: Int64s
    codes: Int32s
    ages: Int32s

    def saving(self, space: Space) -> int:
        return int(space.code.gain[self.codes].sum() + space.age.gain[self.ages].sum())


@dataclass(frozen=True)
class Losses:
    """ilm, alm : Definition 8.  kept : share of the original pairs that are published, generalized or not."""

    ilm: float
    alm: float
    kept: float

    @property
    def total(self) -> float:
        return self.ilm + self.alm


def losses_of(groups: Sequence[Group], lengths: Int64s, space: Space) -> Losses:
    """The losses over all records of the groups; `lengths` of the originals. Every original value is a leaf, so pairs
    need not be traced to their originals: the loss of a record on an attribute is 1 − (1/|T|)·Σ (1 − Δ/|A|) over its
    published pairs, whichever of its pairs became which (docs/methods/trajectories.md#loss)."""
    records = np.concatenate([group.members for group in groups])
    sizes = np.array([len(group.members) for group in groups])
    pairs = np.array([len(group.codes) for group in groups])
    group_of = np.repeat(np.arange(len(groups)), sizes)
    weight = np.bincount(group_of, weights=1 / lengths[records], minlength=len(groups))
    ilm = 1 - float(weight @ _savings(space.code, [g.codes for g in groups], pairs)) / len(records)
    alm = 1 - float(weight @ _savings(space.age, [g.ages for g in groups], pairs)) / len(records)
    return Losses(ilm, alm, float(sizes @ pairs) / float(lengths[records].sum()))


def _savings(axis: Axis, nodes: Sequence[Int32s], pairs: Int64s) -> Float64s:
    """Σ (1 − Δ/|A|) over the published pairs of each group."""
    values = 1 - axis.hierarchy.losses[np.concatenate(nodes).astype(np.int64)]
    group_of = np.repeat(np.arange(len(nodes)), pairs)
    return np.asarray(np.bincount(group_of, weights=values, minlength=len(nodes)), np.float64)
