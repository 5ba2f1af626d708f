"""Beyond N²: parts of similar trajectories, clustered apart.

Records are halved along the principal axis of what they are made of (the share of each chapter of codes, of each
block of ages, and the length), until parts are small enough. Features are whole numbers, so their sums of
products are exact in any order and the halves are the same on every machine with the same linear algebra.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.protect.trajectories.space import Space
from leeward.vocabulary.hierarchy import Hierarchy

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

AGE_DEPTH = 4
"""Ages are described by the nodes this deep: blocks of 8 years of a tree over 128 ages."""

SHARE_SCALE, LENGTH_SCALE = 256, 128


def features(offsets: Longs, codes: Ints, ages: Ints, space: Space) -> NDArray[np.float64]:
    """Whole numbers a record: shares of code chapters and age blocks in 1/256, and 128·log2(length)."""
    lengths = np.diff(offsets)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    chapter = _kinds(space.code.hierarchy, codes, 1)
    block = _kinds(space.age.hierarchy, ages, AGE_DEPTH)
    found = [_shares(owner, kind, lengths) for kind in (chapter, block)]
    size = np.rint(LENGTH_SCALE * np.log2(lengths))[:, None]
    return np.concatenate([*found, size], axis=1)


def parts(described: NDArray[np.float64], largest: int) -> Ints:
    """The part of each record, int32, each with at most `largest` records."""
    part = np.zeros(len(described), np.int32)
    waiting = [np.arange(len(described))]
    made = 0
    while waiting:
        records = waiting.pop()
        if len(records) <= largest:
            part[records] = made
            made += 1
            continue
        order = records[np.argsort(_along_main_axis(described[records]), kind="stable")]
        middle = len(order) // 2
        waiting += [np.sort(order[middle:]), np.sort(order[:middle])]
    return part


def _along_main_axis(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    total = rows.sum(axis=0)
    spread = rows.T @ rows - np.outer(total, total) / len(rows)
    axis = np.linalg.eigh(spread)[1][:, -1]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    # Rounded, so that the last bits of a dot product cannot reorder equal records.
    return np.rint(rows @ axis * 1024)


def _kinds(tree: Hierarchy, nodes: Ints, depth: int) -> NDArray[np.int64]:
    """The ancestor at `depth` (or the node, if it is higher) of each node, those that occur numbered 0, 1, …"""
    shown = np.arange(len(tree), dtype=np.int32)
    while (deep := tree.depth[shown] > depth).any():
        shown[deep] = tree.parent[shown[deep]]
    occurs = np.zeros(len(tree), np.bool_)
    occurs[shown[np.bincount(nodes, minlength=len(tree)) > 0]] = True
    number = np.cumsum(occurs) - 1
    return np.asarray(number[shown][nodes], np.int64)


def _shares(owner: Longs, kind: Longs, lengths: Longs) -> NDArray[np.float64]:
    width = int(kind.max()) + 1
    counts = np.bincount(owner * width + kind, minlength=len(lengths) * width).reshape(len(lengths), width)
    return np.rint(SHARE_SCALE * counts / lengths[:, None])
