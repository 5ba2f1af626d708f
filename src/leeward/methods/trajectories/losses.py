"""ILM and ALM of Definition 8, from the groups of a release and the lengths of its originals.

Every original value is a leaf, so the way of each pair need not be kept: what a record lost on an attribute is
1 − (1/|T|)·Σ (1 − Δ/|A|) over its published pairs, whichever of its pairs became which
(docs/methods/trajectories.md#loss).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.methods.trajectories.records import Group
from leeward.methods.trajectories.space import Axis, Space


@dataclass(frozen=True)
class Losses:
    """ilm, alm : Definition 8.  kept : share of the original pairs that are published, generalized or not."""

    ilm: float
    alm: float
    kept: float

    @property
    def total(self) -> float:
        """ILM + ALM, what the thesis minimizes."""
        return self.ilm + self.alm


def of(groups: Sequence[Group], lengths: NDArray[np.int64], space: Space) -> Losses:
    """The losses over all records of the groups."""
    records = np.concatenate([group.members for group in groups])
    sizes = np.array([len(group.members) for group in groups])
    pairs = np.array([len(group.codes) for group in groups])
    group_of = np.repeat(np.arange(len(groups)), sizes)
    weight = np.bincount(group_of, weights=1 / lengths[records], minlength=len(groups))
    ilm = 1 - float(weight @ _savings(space.code, [g.codes for g in groups], pairs)) / len(records)
    alm = 1 - float(weight @ _savings(space.age, [g.ages for g in groups], pairs)) / len(records)
    return Losses(ilm, alm, float(sizes @ pairs) / float(lengths[records].sum()))


def _savings(axis: Axis, nodes: Sequence[NDArray[np.int32]], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Σ (1 − Δ/|A|) over the published pairs of each group."""
    values = 1 - axis.hierarchy.losses[np.concatenate(nodes).astype(np.int64)]
    group_of = np.repeat(np.arange(len(nodes)), pairs)
    return np.asarray(np.bincount(group_of, weights=values, minlength=len(nodes)), np.float64)


def by_level(
    groups: Sequence[Group], lengths: NDArray[np.int64], space: Space
) -> dict[str, dict[str, float]]:
    """The share of original values published at each level of both hierarchies; vanished ones count at the root
    (Figs. 13 and 14; docs/methods/trajectories.md#measures)."""
    sizes = np.array([len(group.members) for group in groups])
    total = float(lengths[np.concatenate([group.members for group in groups])].sum())
    found = {}
    for name, axis, nodes in (
        ("code", space.code, [g.codes for g in groups]),
        ("age", space.age, [g.ages for g in groups]),
    ):
        tree = axis.hierarchy
        times = np.repeat(sizes, [len(n) for n in nodes])
        levels = tree.level[np.concatenate(nodes).astype(np.int64)]
        counts = np.bincount(levels, weights=times, minlength=len(tree.level_names))
        counts[tree.level[0]] += total - counts.sum()
        found[name] = {tree.level_names[i]: float(counts[i] / total) for i in range(len(tree.level_names))}
    return found
