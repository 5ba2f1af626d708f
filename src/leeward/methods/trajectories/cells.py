"""Clustering by shared cells (docs/methods/trajectories.md#cells): groups that can publish usable pairs.

A cell is a 3-digit category and an 8-year block of ages. The usable pairs that a group can publish are exactly the
cells that all its members share, so records are grouped by shared cells, the heaviest group first.
"""

from __future__ import annotations

import numpy as np

from leeward.arrays import Bools, Int32s, Int64s, occurrences, offsets_of
from leeward.methods.trajectories.hierarchies import (
    Axes,
    Axis,
    Space,
    Tree,
    chapter_codes,
    highest,
    narrow,
    usable_codes,
)
from leeward.methods.trajectories.records import Group, Records

LARGEST = 4_000
"""Most records clustered at once: the work grows with the square of their number."""

WEIGHTS = (4, 1)
"""Weights of a usable cell and of a chapter cell."""

USABLE, CHAPTER, WIDER, ROOT = range(4)
"""Tiers of nodes, the most informative first."""

WORTH = (100_000_000, 1_000_000, 10_000, 1)
"""Weight of a pair by tier: usable pairs before all others, then chapters, then any code."""


def cluster(records: Records, space: Space, k: int, most: int) -> list[Int64s]:
    """Group the records, k … 2k − 1 to a group, with at most `most` of one sensitive value where the rest allows it."""
    from leeward.methods.trajectories.kernels import cells as kernels

    data = _items(records, space, k)
    groups, left = kernels.best_first(k, most, data)
    found = [group.astype(np.int64) for group in groups]
    rest = np.flatnonzero(left)
    rest = rest[np.lexsort((rest, records.lengths()[rest]))]
    if len(rest) >= k or not found:
        cuts = np.arange(k, len(rest) - k + 1, k)
        return found + [each.astype(np.int64) for each in np.split(rest, cuts)]
    table = np.full((len(groups), 2 * k), -1, np.int32)
    table[:, :k] = groups
    sizes = np.full(len(groups), k, np.int64)
    for record in rest.tolist():
        host = kernels.host_of(record, table, sizes, 2 * k, data)
        table[host, sizes[host]] = record
        sizes[host] += 1
    return [row[:size].astype(np.int64) for row, size in zip(table, sizes, strict=True)]


def publish(groups: list[Int64s], records: Records, space: Space, in_order: bool) -> list[Group]:
    """Publish the pairs that all members of each group share; `in_order`: only those in the same order in all."""
    from leeward.methods.trajectories.kernels import cells as kernels
    from leeward.methods.trajectories.kernels.alignment import publish_in_order

    longest = int(records.lengths().max())
    codes, ages = np.empty(longest, np.int32), np.empty(longest, np.int32)
    axes, pairs, steps = tiers_of(space), records.in_order(space), _steps(space)
    first, last = _years(space.age)
    text = np.array(space.code.hierarchy.labels)
    found = []
    for members in groups:
        if in_order:
            n, _ = publish_in_order(members, pairs, axes, np.zeros(0, np.int64), codes, ages)
            found.append(Group(members, codes[:n].copy(), ages[:n].copy()))
        else:
            n = kernels.publish(members, *pairs, *steps, codes, ages)
            order = np.lexsort((text[codes[:n]], last[ages[:n]], first[ages[:n]]))
            found.append(Group(members, codes[order], ages[order]))
    return found


def tiers_of(space: Space) -> Axes:
    """Both axes with the tier of each node; the gain of a node is how fine it is."""
    code, age = space.code.hierarchy, space.age.hierarchy
    wide = np.where(np.arange(len(code)) == 0, ROOT, WIDER)
    chapter = np.where(chapter_codes(code), CHAPTER, wide)
    code_tier = np.where(usable_codes(code), USABLE, chapter).astype(np.int32)
    fine, broad = (narrow(age, space.years, widest) for widest in space.widths)
    age_tier = np.where(fine, USABLE, np.where(broad, CHAPTER, WIDER)).astype(np.int32)
    widths = np.unique(space.years)
    finer = (int(code.level.max()) - code.level).astype(np.int64)
    narrower = (len(widths) - np.searchsorted(widths, space.years)).astype(np.int64)
    return Axes(
        Tree(code.parent, code.end, space.code.published, finer, code_tier),
        Tree(age.parent, age.end, space.age.published, narrower, age_tier),
        np.array(WORTH, np.int64),
    )


def _steps(space: Space) -> tuple[Int32s, Int32s, Int32s]:
    """Levels of codes and of ages, each the node that every node is published as (-1: none), and pairs of levels in
    the order of publishing, fine to coarse."""
    axes = tiers_of(space)
    codes = _ladder(space.code, space.code.hierarchy.level, axes.codes.tier)
    ages = _ladder(space.age, space.years, axes.ages.tier)
    pairs = [(c, a) for c in range(len(codes)) for a in range(len(ages))]
    pairs.sort(key=lambda at: (max(codes[at[0]][0], ages[at[1]][0]), at[0] + at[1], at[0]))
    return np.stack([at for _, at in codes]), np.stack([at for _, at in ages]), np.array(pairs, np.int32)


def _ladder(axis: Axis, level: Int32s | Int64s, tier: Int32s) -> list[tuple[int, Int32s]]:
    """(tier, published node of every node) at each level, fine to coarse: tier by tier, and level by level inside."""
    found: list[tuple[int, Int32s]] = []
    seen: set[bytes] = set()
    for number in range(int(tier.max()) + 1):
        allowed = tier <= number
        for top in np.unique(level[allowed]):
            at = _nodes_at(axis, allowed & (level <= top))
            if at.tobytes() not in seen:
                seen.add(at.tobytes())
                found.append((number, at))
    return found


def _nodes_at(axis: Axis, allowed: Bools) -> Int32s:
    """The highest allowed node (leaves always are) at or above each node that may be published as itself; -1: none."""
    nodes = np.arange(len(axis.hierarchy))
    return highest(axis.hierarchy, (allowed | axis.hierarchy.is_leaf(nodes)) & (axis.published == nodes))


def _items(records: Records, space: Space, k: int) -> object:
    """The cells of each record at both levels, numbered by occurrence in the record, of at least k records."""
    from leeward.methods.trajectories.kernels import cells as kernels

    owner, axes = records.owners(), tiers_of(space)
    keys, holders, weights = [], [], []
    for level in (USABLE, CHAPTER):
        code = _nodes_at(space.code, axes.codes.tier <= level)[records.codes].astype(np.int64)
        age = _nodes_at(space.age, axes.ages.tier <= level)[records.ages].astype(np.int64)
        known = (code >= 0) & (age >= 0)
        cell = code[known] * len(space.years) + age[known]
        nth = occurrences(owner[known] * (int(cell.max(initial=0)) + 1) + cell)
        keys.append(((cell * (int(nth.max(initial=0)) + 1) + nth) << 1) | level)
        holders.append(owner[known])
        weights.append(np.full(len(cell), WEIGHTS[level], np.int64))
    key, holder, weight = (np.concatenate(each) for each in (keys, holders, weights))
    _, first, number, support = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    common = support >= k
    item_of = np.cumsum(common) - 1
    kept = common[number]
    item, holder = item_of[number[kept]].astype(np.int32), holder[kept]
    by_record, by_item = np.lexsort((item, holder)), np.lexsort((holder, item))
    return kernels.Items(
        offsets_of(np.bincount(holder, minlength=len(records))),
        item[by_record],
        offsets_of(np.bincount(item, minlength=int(common.sum()))),
        holder[by_item].astype(np.int32),
        weight[first[common]],
        records.lengths(),
        np.zeros(len(records), np.int32) if records.group is None else records.group,
    )


def _years(axis: Axis) -> tuple[Int64s, Int64s]:
    """The places of the first and last leaf below each age node, in order of age."""
    tree = axis.hierarchy
    rank = axis.rank[tree.leaves].astype(np.int64)
    first = [int(rank[a : b + 1].min()) for a, b in zip(tree.first_leaf, tree.last_leaf, strict=True)]
    last = [int(rank[a : b + 1].max()) for a, b in zip(tree.first_leaf, tree.last_leaf, strict=True)]
    return np.array(first, np.int64), np.array(last, np.int64)
